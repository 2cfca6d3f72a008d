"""Questions in requests that have almost filled their window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.effort import every

from compacter import Compacter, History
from compacter.events import CompactionEvent, CompactionSkipped, PassagesRecalled
from compacter.lines.frame import TAG
from compacter.testing import ScriptedModel

Chat = dict[str, Any]
QUESTION = "Good. And who keeps the deposit?"
OTHER = "Tell me a joke about a penguin."
COMPACTED = 211
"""Day after which a question has no room for its quotes."""
FULL = every(3, range(199, 216))
"""Days after which this diary fills its window, and was compacted before."""
SENT_FROM = 110
"""Day from which the diary is sent to the model: it fills the window for the first time later."""


def sync(compacter: Compacter, model: ScriptedModel) -> Callable[[Any], Any]:
    completion = compacter.wrap(model.completion)
    return lambda messages: completion(model="any-model", messages=messages)


def stream(compacter: Compacter, model: ScriptedModel) -> Callable[[Any], Any]:
    completion = compacter.wrap(model.completion)
    return lambda messages: list(completion(model="any-model", messages=messages, stream=True))


def awaited(compacter: Compacter, model: ScriptedModel) -> Callable[[Any], Any]:
    acompletion = compacter.wrap(model.acompletion)
    return lambda messages: asyncio.run(acompletion(model="any-model", messages=messages))


class Diary:
    """A program that keeps a diary in a window of 1,000 tokens, a turn a day."""

    def __init__(
        self, days: int, call: Any = sync, history: History | None = None, **options: Any
    ) -> None:
        self.model = ScriptedModel(window=1_000, replies="Noted.")
        self.events: list[Any] = []
        told = " ".join(f"On day {day} we sold {day * 7} tickets." for day in range(60, 74))
        given = {"summarizer": lambda *_, **__: told, "on_event": self.events.append, **options}
        self.compacter = Compacter(**given)
        self.history: Any = [] if history is None else history
        self.call = sync(self.compacter, self.model)
        for day in range(1, days + 1):
            said = f"Day {day}: we sold {day * 7} tickets."
            self.ask(said, sent=day >= SENT_FROM)
            if day == 12:
                kept = "Mr. Lind keeps the deposit of 40 euros."
                self.history[-1] = {"role": "assistant", "content": kept}
        self.refused = self.model.rejected
        self.events.clear()
        self.call = call(self.compacter, self.model)

    def ask(self, text: str, *, sent: bool = True) -> None:
        self.history.append({"role": "user", "content": text})
        if sent:
            self.call(self.history)
        self.history.append({"role": "assistant", "content": "Noted."})

    @property
    def quotes(self) -> str:
        """The quotes of the last request."""
        contents = [str(message["content"]) for message in self.model.requests[-1].messages]
        return next((text for text in contents if text.startswith(TAG)), "")

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.mark.parametrize("days", FULL)
def test_a_full_window_does_not_keep_the_answer_from_the_question(days: int) -> None:
    diary = Diary(days)
    diary.ask(QUESTION)
    assert "Mr. Lind keeps the deposit" in diary.quotes
    assert diary.model.rejected == diary.refused
    assert len(diary.told(PassagesRecalled)) == 1


@pytest.mark.parametrize("call", [sync, stream, awaited])
def test_the_compaction_that_is_due_comes_before_the_question_is_sent(call: Any) -> None:
    diary = Diary(COMPACTED, call)
    diary.ask(QUESTION)
    assert "Mr. Lind keeps the deposit" in diary.quotes
    assert [event.trigger for event in diary.told(CompactionEvent)] == ["quotes"]


@pytest.mark.parametrize("days", FULL[::2])
def test_a_question_that_finds_nothing_has_nothing_compacted(days: int) -> None:
    diary = Diary(days)
    diary.ask(OTHER)
    assert diary.quotes == ""
    assert diary.told(CompactionSkipped) == []
    # But where it would not fit by itself.
    assert len(diary.told(CompactionEvent)) == diary.model.rejected - diary.refused


def test_no_more_requests_are_refused_than_without_quotes() -> None:
    def refused(**options: Any) -> int:
        diary = Diary(150, **options)
        for day in range(80):
            diary.ask(f"{QUESTION} I forgot it {day} times.")
        return diary.model.rejected

    assert refused() <= refused(recall=None)


def test_a_history_is_compacted_for_its_question_too() -> None:
    diary = Diary(COMPACTED, history=History())
    before = len(diary.history)
    diary.ask(QUESTION)
    assert "Mr. Lind keeps the deposit" in diary.quotes
    assert len(diary.history) < before
    assert [event.trigger for event in diary.told(CompactionEvent)] == ["quotes"]


def test_an_event_reports_quotes_that_were_left_out() -> None:
    """If no compaction makes room for quotes, the event names the reason."""
    diary = Diary(COMPACTED, before_compaction=lambda plan: plan.trigger != "quotes")
    diary.ask(f"{'Well. ' * 66}{QUESTION}")
    assert diary.quotes == ""
    (skipped,) = diary.told(CompactionSkipped)
    assert (skipped.trigger, skipped.reason) == ("quotes", "vetoed")
    assert "quotes" in str(skipped)
