"""A history that is sent again is compared with what it was: whatever became of it, a call is as if
nothing were known.

The one Compacter has seen each state of the history, the other one has the same records and has
seen none of them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter import Compacter, InProcessMemory
from compacter.lines.asks import question
from compacter.lines.quotes import Quoter
from compacter.lines.talk import Talk
from compacter.memory import BaseMemory, Claim, Record
from compacter.messages.parts import Part
from compacter.testing import ScriptedSummarizer, token_limit_error

LONG = 60
"""Messages of the history: more than those by which alone a format is recognised."""
_HERON = Part("user", "text", "The heron nests by the weir.", "", 3)
_QUOTER = Quoter(Talk([_HERON]), 999)
_QUOTER.answer(question([Part("user", "text", "Where does the heron nest?", "", 9)]))
_FOUND = _QUOTER.quotation()
QUOTES = _FOUND.text if _FOUND is not None else ""
REPLY = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}


class Foreign:
    """An object that is not a message of any provider, and cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("not to be compared")

    __hash__ = None  # type: ignore[assignment]


class Shared(BaseMemory):
    """The records of another memory, and nothing else of it."""

    blocking = False

    def __init__(self, records: InProcessMemory) -> None:
        super().__init__()
        self.records = records

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        return self.records.find(keys)

    def save(self, record: Record) -> None:
        self.records.save(record)

    def claim(self, key: str, seconds: float) -> Claim:
        return self.records.claim(key, seconds)


class Program:
    """A program that sends a history."""

    def __init__(self, memory: BaseMemory) -> None:
        self.sent: list[Any] = []
        self.window: int | None = None
        summarizer = ScriptedSummarizer("They counted.")
        self.call = Compacter(memory=memory, summarizer=summarizer, recall=None).wrap(
            self.completion
        )

    def completion(self, *, model: str, messages: list[Any]) -> Any:
        self.sent = list(messages)
        size = sum(len(str(message)) for message in messages)
        if self.window is not None and size > 4 * self.window:
            raise token_limit_error(limit=self.window, input_tokens=size // 4)
        return REPLY

    def sends(self, messages: list[Any]) -> list[Any]:
        """Messages that the wrapped function gets."""
        self.call(model="m", messages=messages)
        return self.sent


def counted(number: int) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"Message {number} of a long count, which goes on and on. "}


def known() -> tuple[Program, InProcessMemory, list[Any]]:
    """A program whose history was folded once, and was sent again."""
    memory = InProcessMemory()
    program = Program(memory)
    history = [{"role": "system", "content": "Count."}, *map(counted, range(LONG))]
    program.window = sum(len(str(message)) for message in history) // 8
    program.sends(history)
    program.window = None
    assert program.sends(history) != history
    return program, memory, history


changes: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"content": "Edited."},
        {"content": QUOTES},
        {"role": "user", "content": QUOTES},
        {"role": "user"},
        {"role": "system"},
        {"content": [{"type": "text", "text": "In parts."}]},
        {"content": [{"type": "text", "text": QUOTES}, {"type": "text", "text": "And a word."}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}],
        },
        {"role": "user", "content": [{"text": "As Bedrock has it."}]},
        {"cache_control": {"type": "ephemeral"}},
        {"content": 1},
        {"content": True},
    ]
)
places = st.integers(0, LONG)


@given(st.data())
def test_a_call_is_as_if_nothing_had_been_seen(data: st.DataObject) -> None:
    program, memory, history = known()
    for _ in range(data.draw(st.integers(1, 4))):
        place = min(data.draw(places), len(history) - 1)
        change = copy.deepcopy(data.draw(changes))
        match data.draw(
            st.sampled_from(
                ["edit", "edit", "go on", "insert", "drop", "cut", "copy", "foreign", "undo"]
            )
        ):
            case "edit" if isinstance(history[place], dict):
                history[place].update(change)
            case "go on" | "insert" as where:
                history.insert(
                    place if where == "insert" else len(history), {**counted(place), **change}
                )
            case "drop" | "cut" as what:
                history = [
                    *history[: max(2, place)],
                    *(history[place + 1 :] if what == "drop" else ()),
                ]
            case "copy":
                history = [copy.copy(message) for message in history]
            case "foreign":
                history[place] = Foreign()
            case _:
                history = [{"role": "system", "content": "Count."}, *map(counted, range(LONG))]
        assert outcome(program, history) == outcome(Program(Shared(memory)), history)


def outcome(program: Program, history: list[Any]) -> list[object]:
    """Messages of a call; an object that cannot be compared counts by its place in memory."""
    return [
        id(message) if isinstance(message, Foreign) else message
        for message in program.sends(history)
    ]


@pytest.mark.parametrize("place", [1, 20, LONG - 1], ids=["folded", "at the boundary", "behind it"])
def test_quotes_that_are_put_into_an_old_message_are_taken_out_again(place: int) -> None:
    program, _, history = known()
    while history[place]["role"] != "user":
        place += 1
    own = {"type": "text", "text": history[place]["content"]}
    history[place]["content"] = [{"type": "text", "text": QUOTES}, own]
    assert QUOTES not in str([message["content"] for message in program.sends(history)])
