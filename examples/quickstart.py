"""Wrap ``litellm.completion``, and talk for longer than the model's context window allows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from compacter.testing import ScriptedServer

# So that this runs without any network; a program of yours need not do it.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm

from compacter import Compacter

QUESTIONS = (
    "Where do we stay?",
    "What do we eat?",
    "How do we get there?",
    "What do we see when it rains?",
)


def answer(messages: Sequence[Any]) -> str:
    """One long message alone is a request for a summary; anything else is a question."""
    if len(messages) == 1 and len(messages[0]["content"]) > 500:
        return (
            "They plan a journey day by day: where they stay, what they eat, how they get there "
            "and what they see when it rains."
        )
    questions = sum(message["role"] == "user" for message in messages)
    return (
        f"That is a good question. I have {questions} of yours before me. "
        + "Here is what I think of it. " * 4
    )


def main() -> None:
    """Sixty questions to a model that has room for twenty."""
    # Else litellm prints where to report bugs, each time a request is refused.
    litellm.suppress_debug_info = True
    compacter = Compacter()
    completion = compacter.wrap(litellm.completion)

    # Stands in for a provider: it has a real context window, and refuses with the HTTP error that a
    # provider sends.
    with ScriptedServer(window=1_000, replies=answer) as server:
        provider = server.model
        place = {"api_base": f"{server.url}/v1", "api_key": "none"}
        history = [
            {
                "role": "system",
                "content": ("You plan journeys. Never propose a hotel above the fourth floor."),
            }
        ]
        for turn in range(60):
            history.append(
                {"role": "user", "content": (f"Day {turn + 1}: {QUESTIONS[turn % len(QUESTIONS)]}")}
            )
            reply: Any = completion(model="openai/pretend-1", messages=history, **place)
            history.append({"role": "assistant", "content": reply.choices[0].message.content})

        sent = provider.requests[-1]
        print(f"{len(history)} messages in the program's own history, none of them changed")
        print(
            f"{provider.rejected} requests were too long; every question got an answer all the same"
        )
        print(
            f"the last was sent as {len(sent.messages)} messages, {sent.tokens} of "
            f"{provider.window} tokens:"
        )
        for message in sent.messages[:2]:
            print(f"  {message['role']}: {message['content'].partition('Lines of it')[0].strip()}")
        print(f"{compacter.totals.rounds} compactions cost {compacter.totals.input_tokens} tokens")


if __name__ == "__main__":
    main()
