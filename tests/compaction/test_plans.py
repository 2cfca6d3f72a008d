"""The plans of real conversations at six ratios and four windows, as they were when they were
recorded.

A change of what is compacted shows here, conversation by conversation. If it is meant, record the
plans anew: ``python -m tests.compaction.test_plans`` writes ``plans.txt``, and the difference is
part of the change. The conversations are other people's: the file has a digest and numbers alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.conversations import bot

from compacter import Compacter, CompactionPlan, Truncate
from compacter.messages.format import get_format

RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
WINDOWS = (10, 25, 50, 90)
"""Windows, in percent of the conversation."""
RECORD = Path(__file__).with_name("plans.txt")


class TooLongError(Exception):
    """A provider's refusal."""


def plan(conversation: dict[str, Any], ratio: float, window: int) -> str:
    """Return cut, size of the head and longest summary of the first round, if the refusal states
    the numbers.
    """
    messages = conversation["messages"]
    size = get_format(conversation["format"]).size
    tokens = sum(map(size, messages)) // 4
    said = f"maximum context length is {tokens * window // 100} tokens, you sent {tokens} tokens"
    seen = list[str]()

    def complete(messages: list[Any]) -> None:
        raise TooLongError(said)

    def note(plan: CompactionPlan) -> bool:
        seen.append(f"{plan.cut},{plan.head_size},{plan.longest_summary}")
        return False

    wrapped = Compacter(
        compact_ratio=ratio, memory=None, before_compaction=note, summarizer="extractive"
    ).wrap(complete, wire_format=conversation["format"])
    with pytest.raises(TooLongError):
        wrapped(messages)
    return seen[0] if seen else "-"


def rounds(conversation: dict[str, Any], ratio: float, window: int) -> str:
    """Return the sizes of the requests of a call whose refusals state no number, and whether the
    last one was answered.
    """
    messages = conversation["messages"]
    size = get_format(conversation["format"]).size
    most = sum(map(size, messages)) * window // 100
    sent = list[int]()

    def complete(messages: list[Any]) -> Any:
        sent.append(sum(map(size, messages)))
        if sent[-1] > most:
            raise TooLongError("Your input exceeds the context window of this model.")
        return {"choices": [{"message": bot("ok"), "finish_reason": "stop"}]}

    wrapped = Compacter(compact_ratio=ratio, memory=None, recall=None, strategy=Truncate()).wrap(
        complete, wire_format=conversation["format"]
    )
    try:
        wrapped(messages)
    except TooLongError:
        sent.append(0)
    return ",".join(map(str, sent[1:]))


def recorded(conversation: dict[str, Any]) -> list[str]:
    """Return a line of numbers for each ratio."""
    return [
        " ".join(
            [
                *(plan(conversation, ratio, window) for window in WINDOWS),
                *(rounds(conversation, ratio, window) for window in WINDOWS if ratio in (0.1, 0.7)),
            ]
        )
        for ratio in RATIOS
    ]


def conversations(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the conversations under 200,000 bytes, each with its digest; of the many in OpenAI's
    format every fourth.
    """
    lines = (data / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(line for line in lines if len(line) < 200_000):
        talk = json.loads(line)
        if talk["format"] != "openai" or not number % 4:
            yield sha256(line.encode()).hexdigest()[:8], talk


def test_are_those_that_were_recorded(data: Path) -> None:
    known: dict[str, list[str]] = {}
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        digest, _, numbers = line.partition(" ")
        known.setdefault(digest, []).append(numbers)
    found = {digest: talk for digest, talk in conversations(data) if digest in known}
    if not found:
        pytest.skip("other conversations than the recorded ones")
    # One by one: the difference of all of them would take gigabytes.
    changed = [digest for digest, talk in found.items() if recorded(talk) != known[digest]]
    assert changed == []


if __name__ == "__main__":
    folder = os.environ.get("COMPACTER_DATA") or Path(__file__).parents[3] / "shared" / "data"
    RECORD.write_text(
        "".join(
            f"{digest} {line}\n"
            for digest, talk in conversations(Path(folder))
            for line in recorded(talk)
        ),
        encoding="utf-8",
    )
