"""A caller that keeps its own full history, and what it pays for compaction with and without a
memory.

Run: ``python benchmarks/growing.py``. Two hundred turns with tools through a window of 8,000
tokens, all of the history sent each time. Beside compacter with its memory and without, the twenty
lines that many programs
have: catch the error, summarize the older seven tenths, try again. Ends with one JSON line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from compacter import Compacter, detect_token_limit
from compacter.testing import ScriptedModel, ScriptedSummarizer

TURNS = 200
WINDOW = 8_000
SUMMARY = (
    "The user has the stores of a country checked, one town after the other, and "
    "wants to know what is missing on "
    "each shelf and what it costs to fill it up. The assistant looks every town up "
    "with the stock tool, which "
    "answers with twenty shelves: their number, how many pieces are missing, and a "
    "price. Shelves whose number is "
    "a multiple of seven were full everywhere. The others lacked between one and "
    "six pieces. Prices rise from "
    "shelf to shelf by thirteen, and by one from town to town, so that the last "
    "shelf of a late town is the "
    "dearest. All orders were written down as they came up, and delivery was "
    "promised by Monday. Nobody has asked "
    "for a total yet, nor was any order changed or called off afterwards. No town "
    "had to be looked up a second "
    "time, and no call of the tool failed. Still to be done are the towns that "
    "have not been named so far; the "
    "user names them in the order of their numbers. There were no wishes about the "
    "form of the answers beyond "
    "keeping them short."
)
"""About as long as a model's, and not repeating itself, which would be refused."""

Completion = Callable[..., Any]


def question(turn: int) -> dict[str, Any]:
    """What the user says."""
    words = (
        f"Now the store in town {turn}: what is missing there, and what does it cost to "
        f"fill it up again? "
    )
    return {"role": "user", "content": words * 3}


def call(turn: int) -> dict[str, Any]:
    """The assistant looks it up."""
    function = {"name": "stock", "arguments": json.dumps({"town": turn, "detail": "all"})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}],
    }


def result(turn: int) -> dict[str, Any]:
    """What it finds."""
    shelves = [
        {"shelf": shelf, "missing": shelf % 7, "price": shelf * 13 + turn} for shelf in range(20)
    ]
    return {"role": "tool", "tool_call_id": f"call_{turn}", "content": json.dumps(shelves)}


def converse(completion: Completion) -> None:
    """All the turns; the history grows and is never touched."""
    history: list[dict[str, Any]] = [
        {"role": "system", "content": ("You keep the stores of a country. ") * 10}
    ]
    for turn in range(TURNS):
        history += [question(turn), call(turn), result(turn)]
        history.append(completion(model="any", messages=history)["choices"][0]["message"])


def plain(completion: Completion, summarizer: ScriptedSummarizer, tries: int = 10) -> Completion:
    """The loop that everybody writes first; kind enough to cut at a user message."""

    def wrapped(*, model: str, messages: Sequence[Any]) -> object:
        for _ in range(tries):
            try:
                return completion(model=model, messages=messages)
            except Exception as error:
                if detect_token_limit(error) is None:
                    raise
            sizes = [len(str(message)) for message in messages]
            cut = next(at for at in range(len(sizes)) if sum(sizes[:at]) >= 0.7 * sum(sizes))
            while messages[cut]["role"] != "user":
                cut -= 1
            text = summarizer([{"role": "user", "content": json.dumps(messages[1:cut])}])
            messages = [messages[0], {"role": "user", "content": text}, *messages[cut:]]
        raise RuntimeError("too many tries")

    return wrapped


def measured(
    name: str, wrap: Callable[[Completion, ScriptedSummarizer], Completion]
) -> dict[str, float | str]:
    """One row."""
    model = ScriptedModel(
        window=WINDOW, replies=("It is all written down, and will be there by Monday. ") * 4
    )
    summarizer = ScriptedSummarizer(SUMMARY)
    converse(wrap(model.completion, summarizer))
    prompts = [len(json.dumps(call)) // 4 for call in summarizer.prompts]
    return {
        "name": name,
        "requests": len(model.requests),
        "refused": model.rejected,
        "summaries": len(prompts),
        "summarizer_tokens": sum(prompts),
        "uncached_tokens": sum(
            request.tokens - request.cached_tokens
            for request in model.requests
            if not request.refused
        ),
    }


def main() -> None:
    """Print the table and the JSON line."""
    rows = [
        measured("compacter", lambda call, ask: Compacter(summarizer=ask).wrap(call)),
        measured(
            "compacter, recall=None",
            lambda call, ask: Compacter(summarizer=ask, recall=None).wrap(call),
        ),
        measured(
            "compacter, memory=None",
            lambda call, ask: Compacter(summarizer=ask, memory=None).wrap(call),
        ),
        measured("catch, summarize, retry", plain),
    ]
    print(
        f"{TURNS} turns with tools, a window of {WINDOW:,} tokens, all of the history "
        f"sent each time\n"
    )
    names = [name for name in rows[0] if name != "name"]
    print(f"{'':<25}" + "".join(f"{name.replace('_', ' '):>19}" for name in names))
    for row in rows:
        print(f"{row['name']:<25}" + "".join(f"{row[name]:>19,}" for name in names))
    print()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
