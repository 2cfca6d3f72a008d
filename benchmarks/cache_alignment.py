"""What a prompt cache saves: uncached tokens with summaries of refused calls, which read a
transcript, and of compactions made ahead, which read the messages themselves.

One agent's conversation with tools grows through a small window. A provider's cache is taken to
hold the longest common prefix with any earlier request, which is what OpenAI's and Anthropic's
automatic caches do within their lifetime.
"""

from __future__ import annotations

import json
import random
from typing import Any

from compacter import Compacter
from compacter.testing import ScriptedModel

WINDOW = 8_000
TURNS = 120
WORDS = """deploy cluster latency budget schema index cache router agent
           queue worker invoice ledger policy region""".split()  # noqa: SIM905 - a list of words
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "description": "Look a word up in the handbook. " * 20,
            "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
        },
    }
]


class Cache:
    """Counts the characters of requests that no earlier request began with."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        self.sent = self.uncached = 0

    def take(self, messages: list[dict[str, Any]], tools: object) -> None:
        """Add one request up."""
        prefix = hash(json.dumps(tools))
        for message in [{"tools": tools}, *messages]:
            text = json.dumps(message)
            prefix = hash((prefix, text))
            self.sent += len(text)
            self.uncached += 0 if prefix in self.known else len(text)
            self.known.add(prefix)


SUMMARY = (
    "The user looks words up in the handbook, many at a time, and has not said "
    "what for. Every look-up so far was "
    "answered by the tool, with a paragraph that the assistant repeated in its own "
    "words. No question came back a "
    "second time. Most of the words are about running software: clusters, queues, "
    "caches and budgets. There were "
    "no rules, and nothing was decided. Open is whatever the user asks next."
)
"""About as long as a model's, and not repeating itself, which would be refused."""


def speak(messages: tuple[Any, ...]) -> str:
    """A summary where one is asked for, else a short answer."""
    if "summary" in str(messages[-1]["content"]).lower():
        return SUMMARY
    return "Here is what the handbook says. " * 6


def measure(prepare_tokens: int | None) -> dict[str, float]:
    """Run the conversation; tokens are characters // 4."""
    model = ScriptedModel(window=WINDOW, replies=speak)
    cache = Cache()
    chance = random.Random(7)

    def completion(*, messages: list[dict[str, Any]], tools: object = None, **options: Any) -> Any:
        cache.take(messages, tools)
        return model.completion(messages=messages, tools=tools, **options)

    compacter = Compacter(prepare_tokens=prepare_tokens)
    wrapped = compacter.wrap(completion)
    history: list[dict[str, Any]] = [
        {"role": "system", "content": ("You answer from the handbook. ") * 40}
    ]
    for turn in range(TURNS):
        question = f"question {turn}: " + " ".join(chance.choices(WORDS, k=80))
        history.append({"role": "user", "content": question})
        history.append(
            wrapped(model="scripted", messages=history, tools=TOOLS)["choices"][0]["message"]
        )
        compacter.drain()
    totals = compacter.totals
    return {
        "compactions": totals.rounds,
        "summarizer_calls": totals.summarizer_calls,
        "sent_tokens": cache.sent // 4,
        "uncached_tokens": cache.uncached // 4,
    }


def main() -> None:
    """Print both, and their ratio."""
    refused = measure(None)
    ahead = measure(WINDOW * 7 // 10)
    print(f"{'':18}{'refused':>12}{'made ahead':>12}")
    for name in ahead:
        print(f"{name:18}{refused[name]:>12,}{ahead[name]:>12,}")
    counts = {"refused": refused["uncached_tokens"], "made_ahead": ahead["uncached_tokens"]}
    ratio = round(ahead["uncached_tokens"] / refused["uncached_tokens"], 3)
    print(json.dumps({**counts, "ratio": ratio}))


if __name__ == "__main__":
    main()
