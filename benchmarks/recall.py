"""What quotes cost: the index of what was folded, a new turn, and a fold that goes on from an
earlier one.

Run: ``python benchmarks/recall.py``. One long conversation, the window an eighth of it. ``same`` is
a call whose compaction is remembered, with the question unchanged; ``new`` the first call of a
turn, which looks for passages. Both are told in milliseconds beyond the same call with
``recall=None``, and in shares of the time it takes to encode the request as JSON, as a client does
before it sends it. Each figure is the median of several turns, in time of the processor. Ends with
one JSON line.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from compacter import Compacter
from compacter.lines.asks import terms
from compacter.lines.frame import folded
from compacter.lines.talk import Talk
from compacter.messages.format import get_format
from compacter.testing import ScriptedSummarizer, token_limit_error

TURNS = 15
Message = dict[str, Any]


def sentence(words: random.Random) -> str:
    """A dozen of three thousand words."""
    return " ".join(f"word{words.randrange(3_000)}" for _ in range(12)).capitalize() + "."


def conversation(length: int) -> list[Message]:
    """User and assistant in turn, five sentences each; the last one is the user's."""
    words = random.Random(length)
    texts = [" ".join(sentence(words) for _ in range(5)) for _ in range(length - 1)]
    turns = [
        {"role": "assistant" if at % 2 else "user", "content": text}
        for at, text in enumerate(texts)
    ]
    return [*turns, {"role": "user", "content": sentence(words)}]


def seconds(action: Callable[[], object]) -> float:
    """Processor time of one action."""
    started = time.process_time()
    action()
    return time.process_time() - started


def turns(messages: Sequence[Message], recall: float | None) -> dict[str, float]:
    """Seconds of calls on a history whose compaction is remembered, and of the second fold."""
    window = sum(len(message["content"]) for message in messages) // 8
    quoted = 0

    def provider(*, messages: Sequence[Message], **_: Any) -> Message:
        nonlocal quoted
        tokens = sum(len(message["content"]) for message in messages) // 4
        if tokens * 4 > window:
            raise token_limit_error("openai", limit=window // 4, input_tokens=tokens)
        quoted += any("quoted from earlier" in message["content"] for message in messages)
        reply = {
            "choices": [
                {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
            ]
        }
        return {**reply, "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}

    call = Compacter(
        summarizer=ScriptedSummarizer("They went through a long list."), recall=recall
    ).wrap(provider)
    call(messages=messages)
    new = list[float]()
    same = list[float]()
    held = list(messages)
    for turn in range(TURNS):
        asked = held[31 * turn]["content"].partition(".")[0]
        held.extend(
            [
                {"role": "assistant", "content": "Well."},
                {"role": "user", "content": f"Tell me of {asked}?"},
            ]
        )
        gc.collect()
        new.append(seconds(lambda: call(messages=held)))
        same.append(seconds(lambda: call(messages=held)))
    return {
        "new": statistics.median(new),
        "same": statistics.median(same),
        "quoted": quoted / (2 * TURNS),
    }


def measure(length: int) -> dict[str, float]:
    """All figures of one length, in milliseconds and shares."""
    messages = conversation(length)
    form = get_format("openai")
    encoding = min(seconds(lambda: json.dumps(messages)) for _ in range(5))
    parts = folded(messages, (), form)
    building = seconds(lambda: Talk(parts).find(terms("harbour")))
    index = Talk(parts)
    wanted = terms(messages[7]["content"].partition(".")[0])
    looking = min(seconds(lambda: index.find(wanted)) for _ in range(5))
    with_quotes = turns(messages, 0.15)
    without = turns(messages, None)
    added = {name: with_quotes[name] - without[name] for name in ("new", "same")}
    return {
        "messages": length,
        "index_ms": building * 1e3,
        "bytes_per_character": index.bytes / sum(len(message["content"]) for message in messages),
        "lookup_ms": looking * 1e3,
        **{f"{name}_ms": value * 1e3 for name, value in added.items()},
        "new_of_encoding": added["new"] / encoding,
        "same_of_encoding": added["same"] / encoding,
        "turns_quoted": with_quotes["quoted"],
    }


def main() -> None:
    """Print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[1_000, 10_000], help="numbers of messages"
    )
    rows = [measure(length) for length in parser.parse_args().lengths]
    for name in rows[0]:
        print(f"{name:22}" + "".join(f"{row[name]:>12,.2f}" for row in rows))
    print(
        json.dumps(
            {"recall": [{name: round(value, 3) for name, value in row.items()} for row in rows]}
        )
    )


if __name__ == "__main__":
    main()
