"""Putting a compacted list together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter.compaction.check import assemble
from compacter.compaction.conversation import Conversation
from compacter.messages.format import FILLERS, WIRE_FORMATS, WireName, wire

OPENAI = wire("openai")
USER, ASSISTANT = ({"role": role, "content": text} for role, text in FILLERS.items())


def say(role: str, text: str = "x") -> dict[str, Any]:
    return {"role": role, "content": text}


S, U1, A1, U2, A2, U3 = (
    say(r, str(n)) for n, r in enumerate(["system", "user", "assistant", "user", "assistant", "user"])
)
TALK = [S, U1, A1, U2, A2, U3]
SUMMARY = say("user", "summary")


@pytest.mark.parametrize(
    ("messages", "keep", "alternate", "out"),
    [
        (TALK, [0, 4, 5], False, [S, SUMMARY, A2, U3]),
        (TALK, [0, 3, 4, 5], False, [S, SUMMARY, U2, A2, U3]),
        (TALK, [0, 3, 4, 5], True, [S, SUMMARY, ASSISTANT, U2, A2, U3]),
        (TALK, [0, 2, 4, 5], True, [S, SUMMARY, A1, USER, A2, U3]),
        (TALK[1:], [4], True, [SUMMARY, ASSISTANT, U3]),
        ([S, S, U1, A1, S, U2], [0, 1, 4, 5], False, [S, S, SUMMARY, S, U2]),  # M7: after the whole prefix
        ([U1, S, A1, U2], [1, 3], False, [SUMMARY, S, U2]),  # M6: in the middle it stays where it was
        ([U1, U2, A1, U3], [0, 1, 3], True, [SUMMARY, ASSISTANT, U1, U2, ASSISTANT, U3]),  # what was, may be
    ],
)
def test_the_summary_has_its_place_and_turns_alternate(
    messages: list[Any], keep: list[int], alternate: bool, out: list[Any]
) -> None:
    assert assemble(Conversation.of(messages, OPENAI), keep, SUMMARY, alternate=alternate) == out


def test_without_a_summary_a_filler_opens_where_the_user_was_first() -> None:
    assert assemble(Conversation.of(TALK, OPENAI), [0, 2, 3], None, alternate=True) == [S, USER, A1, U2]
    assert assemble(Conversation.of([A1, U1, A2], OPENAI), [0, 1], None, alternate=True) == [A1, U1]


@pytest.mark.parametrize("form", WIRE_FORMATS)
@given(data=st.data())
def test_kept_messages_are_the_same_objects_in_order_and_turns_alternate(form: WireName, data: st.DataObject) -> None:
    shape = wire(form)
    count = data.draw(st.integers(1, 12))
    messages = [shape.say("assistant" if number % 2 else "user", str(number)) for number in range(count)]
    keep = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))

    out = assemble(Conversation.of(messages, shape), keep, shape.say("user", "summary"), alternate=True)

    kept = [item for item in out if any(item is one for one in messages)]
    assert all(one is messages[index] for one, index in zip(kept, keep, strict=True))
    roles = [shape.speaker(item) for item in out]
    assert roles[0] == "user"
    assert all(one != other for one, other in pairwise(roles))
