"""The event of a conversation that fills its window."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conversations import talk

from compacter import Compacter, CompactionEvent
from compacter.events import Event, WindowFilling
from compacter.testing import ScriptedModel

WINDOW = 8_192
"""That of gpt-4, by the table of models."""


def filling(events: list[Event]) -> list[WindowFilling]:
    return [event for event in events if isinstance(event, WindowFilling)]


def converse(calls: int, *, stream: bool = False, **options: Any) -> list[Event]:
    """The events of a conversation that grows by a tenth of the window with each call."""
    events: list[Event] = []
    compacter = Compacter(summarizer="extractive", on_event=events.append, **options)
    completion = compacter.wrap(ScriptedModel(window=WINDOW).completion)
    messages: list[Any] = []
    for number in range(calls):
        part = f"Harbour {number} has a pier of oak. "
        messages.append({"role": "user", "content": part * (WINDOW * 4 // 10 // len(part))})
        reply: Any = completion("gpt-4", messages, **({"stream": True} if stream else {}))
        if stream:
            list(reply)
        messages.append({"role": "assistant", "content": "Noted."})
    return events


@pytest.mark.parametrize("options", [{}, {"memory": None}, {"prepare_tokens": 0.95}])
@pytest.mark.parametrize("stream", [False, True])
def test_it_comes_once_before_the_window_is_full(options: dict[str, Any], stream: bool) -> None:
    events = converse(9, stream=stream, **options)
    (event,) = filling(events)
    assert not any(isinstance(each, CompactionEvent) for each in events)
    assert event.window == WINDOW
    assert 0.8 <= event.share < 0.95
    assert event.tokens == pytest.approx(event.share * WINDOW)
    assert "% full" in event.sentence


def test_not_below_four_fifths_and_not_of_an_unknown_window() -> None:
    assert filling(converse(7)) == []
    events: list[Event] = []
    completion = Compacter(on_event=events.append).wrap(ScriptedModel(window=WINDOW).completion)
    completion("nobody/knows", talk(10, 600))
    assert filling(events) == []


def test_it_comes_again_after_each_compaction() -> None:
    events = converse(24)
    kinds = [type(event) for event in events if isinstance(event, WindowFilling | CompactionEvent)]
    assert kinds.count(CompactionEvent) >= 2
    assert kinds[:4] == [WindowFilling, CompactionEvent, WindowFilling, CompactionEvent]


async def test_in_an_async_program_too() -> None:
    events: list[Event] = []
    completion = Compacter(on_event=events.append).wrap(ScriptedModel(window=WINDOW).acompletion)
    for _ in range(2):
        await completion("gpt-4", [{"role": "user", "content": "A pier of oak. " * 1_900}])
    assert len(filling(events)) == 1
