"""``compact_ratio`` is a share of the size, whatever the sizes of the messages are."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compaction.conftest import plan, refused

from compacter import Compacter, CompactionPlan
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.messages.format import get_format
from compacter.options import Options

OPENAI = get_format("openai")
LAST = 9
"""Size of the last user message, which always stays."""


def say(role: str, size: int) -> dict[str, Any]:
    return {"role": role, "content": role[0] * size}


def chat(*sizes: int) -> list[dict[str, Any]]:
    """Messages of these sizes, the user's first, and a last question."""
    talk = [say(("user", "assistant")[place % 2], size) for place, size in enumerate(sizes)]
    return [*talk, say("user", LAST)]


def agent(*sizes: int) -> list[dict[str, Any]]:
    """One request, and a step for each size: a call of 10 characters, and a result."""
    items = [say("user", LAST)]
    for number, size in enumerate(sizes):
        function = {"name": "look", "arguments": '{"":1}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        items.append({"role": "assistant", "content": None, "tool_calls": [call]})
        items.append({"role": "tool", "tool_call_id": f"c{number}", "content": "r" * size})
    return items


def cut_of(messages: list[Any], ratio: float, room: int = 0, **options: Any) -> CompactionPlan:
    """The plan after a refusal: with a known window, ``room`` is what fits beside the last
    question, in characters.
    """
    work = refused(
        conversation=Conversation(messages, OPENAI),
        trigger="token_limit",
        calibration=Calibration(window=(room + LAST) // 4 if room else None),
        target=room + LAST if room else None,
        is_required=True,
    )
    return plan(Options(compact_ratio=ratio, **options), work)


LONG_SHORT = chat(*[1_000] * 8, *[100] * 32)
SHORT_LONG = chat(*[100] * 32, *[1_000] * 8)
RISING = chat(*range(100, 1_100, 100))
FALLING = chat(*range(1_000, 0, -100))
GIANT_FIRST = chat(5_000, *[100] * 9)
GIANT_LAST = chat(*[100] * 9, 5_000)
GIANT_MIDDLE = chat(*[100] * 4, 5_000, *[100] * 5)
EVEN = chat(*[100] * 40)
AGENT = agent(2_000, *[100] * 10, 2_000, 100)


@pytest.mark.parametrize(
    ("messages", "ratio", "cut"),
    [
        (LONG_SHORT, 0.7, 8),  # 8,000 of 11,200.
        (LONG_SHORT, 0.2, 3),  # 3,000; two messages have 2,000.
        (LONG_SHORT, 0.9, 30),  # 10,080 is in the middle of a turn of 200, which goes whole.
        (SHORT_LONG, 0.7, 37),  # 8,200; the turn would end at 9,200.
        (SHORT_LONG, 0.2, 24),  # 2,300 are enough, and the turn ends at 2,400.
        (SHORT_LONG, 0.9, 39),  # 10,200.
        (RISING, 0.7, 9),  # 4,500 of 5,500; eight messages have 3,600.
        (RISING, 0.2, 5),  # 1,500; four messages have 1,000.
        (FALLING, 0.7, 5),  # 4,000 of 5,500; four messages have 3,400.
        (FALLING, 0.2, 2),  # 1,900.
        (GIANT_FIRST, 0.7, 2),  # 5,000 of 5,900, and the 100 of the rest of the turn.
        (GIANT_FIRST, 0.2, 2),
        (GIANT_LAST, 0.7, 10),  # 900 are not enough.
        (GIANT_LAST, 0.1, 6),  # 600.
        (GIANT_MIDDLE, 0.7, 6),  # 5,400 of 5,900, and the 100 of the rest of the turn.
        (EVEN, 0.7, 28),
        (EVEN, 0.2, 8),
        (EVEN, 1.0, 40),
        (AGENT, 0.2, 3),  # 2,010 of 5,230.
        (AGENT, 0.5, 15),  # 2,670.
    ],
)
def test_ratio_without_window(messages: list[Any], ratio: float, cut: int) -> None:
    """Without a known window the head is the oldest ``compact_ratio`` of the size."""
    made = cut_of(messages, ratio)

    assert made.cut == cut
    assert made.ratio == round(made.head_size / (made.original_data_size - LAST), 4) >= ratio


@pytest.mark.parametrize(
    ("messages", "ratio", "room", "cut"),
    [
        (chat(*[100] * 42), 0.7, 4_000, 30),  # 1.05 windows: 12 messages of 100 are 30 %.
        (chat(*[100] * 120), 0.7, 4_000, 108),  # Three windows: the same 12.
        (chat(*[100] * 120), 0.5, 4_000, 100),
        (chat(*[100] * 120), 0.9, 4_000, 116),
        (chat(*[100] * 120), 1.0, 4_000, 120),
        (LONG_SHORT, 0.7, 8_000, 16),  # 2,400 stay.
        (LONG_SHORT, 0.7, 11_000, 8),  # 3,300 may stay; of the size 7,840 must go.
        (SHORT_LONG, 0.7, 8_000, 38),  # Two of 1,000 stay.
        (RISING, 0.7, 5_000, 9),  # 1,500 may stay, 1,000 do.
        (FALLING, 0.7, 5_000, 5),  # 1,500 may stay, and do.
        (FALLING, 0.7, 2_600, 7),  # 780 may stay, 600 do.
        (GIANT_FIRST, 0.7, 5_000, 2),
        (GIANT_LAST, 0.7, 5_000, 10),
        (AGENT, 0.2, 5_000, 3),
        (AGENT, 0.7, 5_000, 25),
    ],
)
def test_ratio_of_window(messages: list[Any], ratio: float, room: int, cut: int) -> None:
    """At most ``1 - compact_ratio`` of what fits stays, so that a history of three windows is cut
    to the size of one of 1.05.
    """
    made = cut_of(messages, ratio, room)

    assert made.cut == cut
    assert made.tail_size - LAST <= (1 - ratio) * room + 1


@pytest.mark.parametrize("messages", [EVEN, LONG_SHORT, AGENT], ids=["even", "unequal", "agent"])
@pytest.mark.parametrize("room", [0, 3_000, 5_000])
def test_default_ratio_is_the_ratio(messages: list[Any], room: int) -> None:
    """``Compacter()`` and ``Compacter(compact_ratio=0.7)`` do the same."""
    spelled = cut_of(messages, 0.7, room)

    assert plan(Options(), spelled).cut == spelled.cut


@pytest.mark.parametrize("turns", [1, 3, 6])
@pytest.mark.parametrize("windows", [1.05, 2.7])
def test_recent_turns_win(turns: int, windows: float) -> None:
    """As many recent turns stay as ``preserve_recent_turns`` says where they fit, whatever the
    ratio would leave.
    """
    messages = chat(*[400, 400] * int(windows * 10))

    made = cut_of(messages, 0.7, 8_000, preserve_recent_turns=turns + 1)

    assert made.cut <= len(messages) - 1 - 2 * turns
    assert cut_of(messages, 0.95, 8_000, preserve_recent_turns=turns + 1).cut == (
        len(messages) - 1 - 2 * turns
    )


def test_more_recent_turns_than_there_are() -> None:
    """All stay by hand; after a refusal no more than fit."""
    messages = chat(*[400, 400] * 10)

    assert Compacter(preserve_recent_turns=99).plan(messages).cut == 0
    assert cut_of(messages, 0.7, 4_000, preserve_recent_turns=99).cut > 0


def test_recent_turns_that_do_not_fit() -> None:
    """Recent turns that do not fit give way to a summary."""
    messages = chat(*[400] * 60)

    made = cut_of(messages, 0.7, 4_000, preserve_recent_turns=20)

    assert made.cut == len(messages) - 1 - 8  # 3,200 stay; two more turns would leave nothing.


@pytest.mark.parametrize("strategy", [[], ["a step"]], ids=["chat", "agent"])
def test_more_than_half_is_free(strategy: list[str]) -> None:
    """With the default more than half of the window is free after a compaction."""
    messages = agent(*[900] * 60) if strategy else chat(*[450] * 120)
    sent: list[int] = []

    class TooLongError(Exception):
        code = "context_length_exceeded"

    def completion(*, messages: list[Any], model: str) -> str:
        size = sum(map(OPENAI.size, messages))
        if size > 20_000:
            raise TooLongError(
                "This model's maximum context length is 5000 tokens. However, your messages "
                f"resulted in {size // 4} tokens."
            )
        sent.append(size)
        return "ok"

    events: list[Any] = []
    compacter = Compacter(summarizer="extractive", recall=None, on_compaction=events.append)
    compacter.wrap(completion)(messages=messages, model="m")

    assert 0.25 * 20_000 < sent[0] < 0.5 * 20_000
    assert events[0].ratio == pytest.approx(1 - 0.3 * 20_000 * 0.97 / (54_000), abs=0.03)


@pytest.mark.parametrize("messages", [LONG_SHORT, SHORT_LONG, GIANT_FIRST])
def test_the_event_has_the_share_of_the_size(messages: list[Any]) -> None:
    """Plan and event give the share of the size, not that of the number of messages."""
    compacter = Compacter(summarizer="extractive", memory=None)

    event = compacter.compact(messages).event

    assert event is not None
    assert event.ratio == compacter.plan(messages).ratio
    removed = sum(map(OPENAI.size, event.discarded))
    assert event.ratio == pytest.approx(
        removed / (sum(map(OPENAI.size, messages)) - LAST), abs=1e-4
    )
