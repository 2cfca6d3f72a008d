"""Wrap ``litellm.completion``, and talk on for longer than the model's context window allows."""

from __future__ import annotations

import os
from typing import Any

from pretend_provider import MODEL, pretend_provider

# So that this runs without any network; a program of yours need not do it.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm

from compacter import Compacter

QUESTIONS = ("Where do we stay?", "What do we eat?", "How do we get there?", "What do we see when it rains?")


def main() -> None:
    """Sixty questions to a model that has room for twenty."""
    litellm.suppress_debug_info = True  # Else litellm prints where to report bugs, each time a request is refused.
    compacter = Compacter()
    completion = compacter.wrap(litellm.completion)

    with pretend_provider(window=1_000) as (address, provider):
        history = [{"role": "system", "content": "You plan journeys. Never propose a hotel above the fourth floor."}]
        for turn in range(60):
            history.append({"role": "user", "content": f"Day {turn + 1}: {QUESTIONS[turn % len(QUESTIONS)]}"})
            reply: Any = completion(model=f"openai/{MODEL}", messages=history, api_base=address, api_key="none")
            history.append({"role": "assistant", "content": reply.choices[0].message.content})

        sent = provider.requests[-1]
        print(f"{len(history)} messages in the program's own history, none of them changed")
        print(f"{provider.rejected} requests were too long; every question got an answer all the same")
        print(f"the last was sent as {len(sent.messages)} messages, {sent.tokens} of {provider.window} tokens:")
        for message in sent.messages[:2]:
            print(f"  {message['role']}: {message['content']}")
        print(f"{compacter.totals.rounds} compactions cost {compacter.totals.input_tokens} tokens")


if __name__ == "__main__":
    main()
