"""A view that lost something without a summary is used by one call: the next one begins with all
that the caller sends.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conversations import TooLongError

from compacter import Compacter, InProcessMemory, SQLiteMemory
from compacter.testing import ScriptedSummarizer

TASK = "Repair the north dyke of polder seven. " + "The clay comes from pit four. " * 12
LIMIT = 2_500


def play(lines: int, *, states: bool = True, **options: Any) -> tuple[list[str], list[Any]]:
    """An agent whose results are user messages; the first of eight has so many lines. Returns for
    each call whether its request had the task, and the events.
    """
    sent: list[Any] = []
    events: list[Any] = []

    def completion(*, messages: list[Any], model: str) -> dict[str, Any]:
        tokens = sum(len(message["content"]) // 4 + 4 for message in messages)
        if tokens > LIMIT:
            numbers = f" is {LIMIT} tokens. However, your messages resulted in {tokens} tokens."
            said = numbers if states else " was exceeded."
            raise TooLongError("This model's maximum context length" + said)
        sent[:] = messages
        return {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}

    compacter = Compacter(recall=None, on_event=events.append, **options)
    wrapped = compacter.wrap(completion)
    talk = [{"role": "system", "content": "One command."}, {"role": "user", "content": TASK}]
    outcome = []
    for number in range(8):
        count = 40 if number else lines
        rows = "\n".join(f"/polder/{number}/pit{row}/layer_{row * 7}.txt" for row in range(count))
        talk = [
            *talk,
            {"role": "assistant", "content": f"list {number}"},
            {"role": "user", "content": f"OBSERVATION:\n{rows}"},
        ]
        try:
            wrapped(model="m", messages=talk)
        except TooLongError:
            outcome.append("refused")
        else:
            text = "\n".join(message["content"] for message in sent)
            outcome.append("task" if "Repair the north dyke" in text else "no task")
    return outcome, events


@pytest.fixture(params=["memory", "SQLite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Makes a memory of each kind."""
    if request.param == "memory":
        return InProcessMemory
    return lambda: SQLiteMemory(tmp_path / "memory.db")


def test_after_truncation(memory: Callable[[], Any]) -> None:
    """The next call contains again what the fallback ``truncate`` dropped for lack of room."""
    outcome, events = play(310, summarizer="extractive", memory=memory())

    assert any(getattr(event, "strategy", "") == "truncate" for event in events)
    assert outcome == ["no task", *["task"] * 7]


@pytest.mark.parametrize("states", [True, False], ids=["with numbers", "without numbers"])
@pytest.mark.parametrize("summarizer", ["extractive", ScriptedSummarizer("They listed a pit.")])
def test_after_a_call_that_failed(summarizer: Any, states: bool, memory: Callable[[], Any]) -> None:
    """The views of a call that was given up are in no later call."""
    outcome, events = play(700, states=states, summarizer=summarizer, memory=memory())

    assert any(type(event).__name__ == "CompactionEvent" for event in events)
    assert outcome[0] == "refused"
    assert outcome[-1] == "task" or summarizer != "extractive"
    first = next(at for at, each in enumerate(events) if type(each).__name__ == "RetriesExhausted")
    names = [type(event).__name__ for event in events]
    after = names.index("CompactionEvent", first)
    assert events[after].messages_before >= 6
    assert "CompactionReused" not in names[:after]
