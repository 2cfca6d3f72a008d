"""Where a history is cut, and what stays whatever happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter import Compacter, CompactionPlan
from compacter.compaction.conversation import Conversation
from compacter.messages.format import get_format
from compacter.messages.parts import Kind
from compacter.summary import message as summary_message

OPENAI = get_format("openai")


def message(letter: str, size: int = 400) -> dict[str, Any]:
    """``s``, ``u``, ``a`` speak; ``c`` calls, ``r`` is its result."""
    if letter == "c":
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "look", "arguments": "x" * size},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if letter == "r":
        return {"role": "tool", "tool_call_id": "c", "content": "r" * size}
    return {
        "role": {"s": "system", "u": "user", "a": "assistant"}[letter],
        "content": letter * size,
    }


def history(letters: str, size: int = 400) -> list[dict[str, Any]]:
    return [message(letter, size) for letter in letters]


def plan(letters: str, ratio: float = 0.7, **options: Any) -> CompactionPlan:
    budget = options.pop("budget", None)
    return Compacter(compact_ratio=ratio, **options).plan(
        history(letters), wire_format="openai", budget=budget
    )


@pytest.mark.parametrize(
    ("letters", "pins", "stays"),
    [
        ("suaua", (), "10010"),
        ("ucrcr", (), "10000"),
        ("suaua", (2,), "10110"),
        ("ucrcru", (1,), "011001"),
        ("ucrcru", (4,), "000111"),
        ("scrcr", (), "10000"),
    ],
)
def test_what_must_stay_stays_with_its_partners(
    letters: str, pins: tuple[int, ...], stays: str
) -> None:
    found = "".join(
        "1" if held else "0"
        for held in Conversation.of(history(letters), OPENAI, pinned=pins).protected
    )
    assert found == stays


@pytest.mark.parametrize(
    ("letters", "folded"),
    [
        ("suauauauu", "suauau"),
        ("ucrcrcrcrcr", "ucrcrcrcr"),  # one long turn shrinks too; the newest results stay unread
        ("u", ""),
        ("su", ""),
        ("s", ""),
        ("", ""),
        ("suc", ""),  # an unanswered call is never folded
    ],
)
def test_the_cut_reaches_its_share(letters: str, folded: str) -> None:
    found = plan(letters)
    assert letters[: found.cut] == folded
    assert all(
        OPENAI.outline(history(letters)).kinds[index] is not Kind.SYSTEM
        for index in found.compacted
    )


@given(
    turns=st.lists(
        st.sampled_from(["ua", "ucra", "ucrcra", "ucrcrcr", "u"]), min_size=1, max_size=8
    ),
    ratio=st.sampled_from([0.1, 0.4, 0.7, 1.0]),
    system=st.booleans(),
)
def test_a_cut_never_parts_a_pair_and_never_leaves_nothing(
    turns: list[str], ratio: float, system: bool
) -> None:
    letters = "s" * system + "".join(turns)
    found = plan(letters, ratio)
    outline = Conversation.of(history(letters), OPENAI)
    assert found.cut in (*outline.steps, len(letters))
    assert len(found.kept) > 0
    assert len(found.head) + len(found.kept) == len(letters)
    assert found.head_size + found.tail_size == found.original_data_size
    last = outline.last_user
    assert last is not None
    assert last not in found.compacted


@pytest.mark.parametrize(("turns", "tail"), [(1, "u"), (2, "uau"), (3, "uauau"), (4, "uauauau")])
def test_as_many_turns_stay_as_were_asked_for(turns: int, tail: str) -> None:
    letters = "suauauauau"
    found = plan(letters, 1.0, preserve_recent_turns=turns)
    assert letters[found.cut :] == tail


def test_fewer_turns_than_that_fold_only_when_they_must() -> None:
    letters = "suauau"
    assert plan(letters, 1.0, preserve_recent_turns=9).cut == 0
    assert plan(letters, 1.0, preserve_recent_turns=9, budget=1_300).cut > 0


def test_a_summary_message_is_no_turn_and_alone_no_head() -> None:
    prior = {"role": "user", "content": summary_message.compose("x" * 600)}
    compacter = Compacter(compact_ratio=1.0, preserve_recent_turns=2)
    talk = [prior, *history("auau")]
    found = compacter.plan(talk, wire_format="openai")
    assert found.prior in (0, None)
    # what would be compacted is more than the summary, or nothing.
    assert found.compacted != (0,)


def test_a_wholly_pinned_head_is_no_head() -> None:
    assert plan("uauau", pin=lambda _: True).cut == 0
