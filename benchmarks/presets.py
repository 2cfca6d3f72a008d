"""What the presets choose, measured: an agent with tools, and a chat that comes back to what was
said long ago.

Both are made up here and grow through a window of 8,000 tokens. For each setting: requests that the
provider refused, summaries that a model was asked for and the tokens that it read, tokens of
accepted requests that no prompt cache holds, and the share of what later turns need that stood in
their requests.

Run: ``python benchmarks/presets.py``. Prints two tables and ends with one JSON line.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from compacter import ClearToolResults, Compacter, Summarize
from compacter.options.settings import PRESETS
from compacter.testing import ScriptedModel

WINDOW = 8_000
STEPS = 240
TURNS = 160
MODEL = "gpt-4"  # Its window, by litellm's table, is the one that is measured here.
WORDS = """harbour crane pilot berth lantern ferry cargo rope anchor deck
           customs ledger tide mast signal dock""".split()  # noqa: SIM905 - a list of words
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "as usual": {},
    "compact_ratio=0.5": {"compact_ratio": 0.5},
    "compact_ratio=0.85": {"compact_ratio": 0.85},
    "trigger_tokens=0.8": {"trigger_tokens": 0.8},
    "clear results first": {"strategy": (ClearToolResults(), Summarize())},
    "clear all but 12 results": {"strategy": (ClearToolResults(keep_recent=12), Summarize())},
    "preserve_recent_turns=4": {"preserve_recent_turns": 4},
    "extractive": {"summarizer": "extractive"},
    "extractive, 0.95": {"summarizer": "extractive", "compact_ratio": 0.95},
}


def sentence(chance: random.Random, words: int) -> str:
    """Words without a meaning."""
    return " ".join(chance.choices(WORDS, k=words)).capitalize() + "."


class Provider:
    """Answers, writes summaries, and looks for what each turn needs."""

    def __init__(self) -> None:
        self.model = ScriptedModel(window=WINDOW, replies="Noted, and on to the next one. " * 4)
        self.needed: str = ""
        self.found = self.asked = 0
        self.summaries = self.summary_tokens = 0

    def completion(self, *, messages: list[dict[str, Any]], **options: Any) -> Any:
        """A reply, if the request fits."""
        reply = self.model.completion(messages=messages, **options)
        if self.needed:
            self.asked += 1
            self.found += self.needed in json.dumps(messages)
        return reply

    def summarize(self, messages: list[dict[str, Any]]) -> str:
        """A summary that says nothing of use: what is found in it later was quoted by compacter."""
        self.summaries += 1
        self.summary_tokens += len(json.dumps(messages)) // 4
        return sentence(random.Random(self.summaries), 150)


def agent(completion: Callable[..., Any], provider: Provider) -> None:
    """One request and many tool calls; every sixth step uses an id that an earlier result has
    named.
    """
    chance = random.Random(3)
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You inspect ships. " * 20},
        {
            "role": "user",
            "content": (
                "Inspect every ship in the register, and tell me of each that lacks papers."
            ),
        },
    ]
    papers: list[str] = []
    for step in range(STEPS):
        provider.needed = ""
        arguments = {"ship": step}
        if step % 6 == 5:
            paper = papers[-chance.choice((2, 8, 16, 40)) % len(papers)]
            provider.needed = paper
        function = {"name": "inspect", "arguments": json.dumps(arguments)}
        call = {"id": f"call_{step}", "type": "function", "function": function}
        papers.append(f"paper-{chance.randrange(10**6):06d}")
        result = {
            "ship": step,
            "paper": papers[-1],
            "log": [sentence(chance, 12) for _ in range(8)],
        }
        reply = completion(model=MODEL, messages=history)["choices"][0]["message"]
        history.append({"role": "assistant", "content": reply["content"], "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})


def chat(completion: Callable[..., Any], provider: Provider) -> None:
    """A person says things in passing, and asks for one of them every fourth turn."""
    chance = random.Random(5)
    history: list[dict[str, Any]] = [
        {"role": "system", "content": ("You keep a harbour master company. ") * 5}
    ]
    told: list[tuple[str, str]] = []
    for turn in range(TURNS):
        provider.needed = ""
        if turn % 4 == 3:
            name, berth = told[-chance.choice((1, 4, 12, 40)) % len(told)]
            said = f"Where did the {name} lie again?"
            provider.needed = berth
        else:
            name = f"{chance.choice(WORDS).capitalize()} {turn}"
            berth = f"berth {chance.randrange(10**4)}-{turn}"
            told.append((name, berth))
            said = f"{sentence(chance, 30)} The {name} lies at {berth}. {sentence(chance, 30)}"
        history.append({"role": "user", "content": said})
        history.append(completion(model=MODEL, messages=history)["choices"][0]["message"])


def measured(converse: Callable[..., None], settings: Mapping[str, Any]) -> dict[str, float]:
    """One row."""
    provider = Provider()
    options: dict[str, Any] = {"summarizer": provider.summarize, **settings}
    compacter = Compacter(**options)
    converse(compacter.wrap(provider.completion), provider)
    accepted = [request for request in provider.model.requests if not request.refused]
    return {
        "refused": provider.model.rejected,
        "folds": compacter.totals.rounds,
        "summaries": provider.summaries,
        "read for them": provider.summary_tokens,
        "uncached": sum(request.tokens - request.cached_tokens for request in accepted),
        "needed, there": round(provider.found / provider.asked, 3),
    }


def main() -> None:
    """Print the tables and the JSON line."""
    presets = {f"preset: {name}": settings for name, settings in PRESETS.items()}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for converse in (agent, chat):
        rows = {
            name: measured(converse, settings) for name, settings in {**SETTINGS, **presets}.items()
        }
        found[converse.__name__] = rows
        names = list(rows["as usual"])
        print(f"\n{converse.__name__:<26}" + "".join(f"{name:>15}" for name in names))
        for name, row in rows.items():
            print(f"{name:<26}" + "".join(f"{row[key]:>15,}" for key in names))
    print()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
