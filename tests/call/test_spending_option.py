"""Limits of a conversation's tokens and money: the option ``spending``."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, CompactionEvent, SQLiteMemory
from compacter.errors import ConfigurationError, SpendingError
from compacter.events import CompactionFailed, Event, SpendingReached
from compacter.spending import Spending
from compacter.testing import ScriptedModel, ScriptedSummarizer


class Talk:
    """A conversation that grows with each call."""

    def __init__(self, model: ScriptedModel | None = None, **options: Any) -> None:
        self.events: list[Event] = []
        self.model = model or ScriptedModel(window=2_000)
        self.summarizer = ScriptedSummarizer("They spoke of piers.", returns="completion")
        self.compacter = Compacter(
            on_event=self.events.append, **{"summarizer": self.summarizer, **options}
        )
        self.completion = self.compacter.wrap(self.model.completion)
        self.messages: list[Any] = []

    def ask(self, calls: int = 1, **options: Any) -> Any:
        reply: Any = None
        for _ in range(calls):
            text = f"Harbour {len(self.messages)} has a pier of oak. " * 25
            self.messages.append({"role": "user", "content": text})
            reply = self.completion("gpt-4o", self.messages, **options)
        return reply

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def test_its_end_is_told_once_and_stops_nothing() -> None:
    talk = Talk(spending=Spending(tokens=3_000))
    talk.ask(12)
    (event,) = talk.of(SpendingReached)
    assert 3_000 <= event.tokens < 6_000
    assert event.dollars > 0
    assert f"{event.tokens:,} tokens" in event.sentence


def test_dollars_end_it_too() -> None:
    talk = Talk(spending=Spending(dollars=0.01))
    talk.ask(12)
    (event,) = talk.of(SpendingReached)
    assert 0.01 <= event.dollars < 0.02


@pytest.mark.parametrize("stream", [False, True])
def test_only_if_asked_the_next_call_raises_before_it_is_made(stream: bool) -> None:
    talk = Talk(spending=Spending(tokens=3_000, refuse=True))
    while not talk.of(SpendingReached):
        list(talk.ask(stream=stream))
    made = len(talk.model.requests)
    with pytest.raises(SpendingError, match="option spending"):
        talk.ask(stream=stream)
    assert len(talk.model.requests) == made


def test_no_summary_is_paid_for_a_call_that_is_refused() -> None:
    spending = Spending(tokens=3_000, summaries=1.0, refuse=True)
    talk = Talk(spending=spending, trigger_tokens=1_000, min_calls_between=0)
    with pytest.raises(SpendingError):
        talk.ask(12)
    asked = len(talk.summarizer.requests)
    talk.of(SpendingReached)[0]
    with pytest.raises(SpendingError):
        talk.ask()
    assert len(talk.summarizer.requests) == asked


async def test_so_does_an_async_call() -> None:
    compacter = Compacter(spending=Spending(tokens=100, refuse=True))
    model = ScriptedModel(window=2_000)
    completion = compacter.wrap(model.acompletion)
    messages = [{"role": "user", "content": "A pier of oak. " * 60}]
    await completion("m", messages)
    with pytest.raises(SpendingError):
        await completion("m", messages)
    assert len(model.requests) == 1


def test_summaries_above_their_share_are_quoted_lines() -> None:
    talk = Talk(spending=Spending(summaries=0.05))
    talk.ask(40)
    made = talk.of(CompactionEvent)
    assert len(made) >= 3
    assert any(event.fallback for event in made)
    assert talk.of(CompactionFailed)[0].sentence == (
        "no summary: summaries have had their share of the spending (5%)"
    )
    summaries = talk.compacter.totals
    spent = sum(request.tokens for request in talk.model.requests if not request.refused)
    assert summaries.input_tokens <= 0.06 * spent


def test_a_small_summarizer_costs_no_more_than_the_share() -> None:
    """It gets the history in many pieces; those above the share are quoted lines."""
    model = ScriptedModel(window=32_000)
    text = "The pier of oak has a lamp. " * 40
    messages = [{"role": "user", "content": f"{number}. {text}"} for number in range(150)]
    asked = ScriptedSummarizer("They spoke.", window=2_000, returns="completion")
    compacter = Compacter(summarizer=asked, spending=Spending(summaries=0.3))
    compacter.wrap(model.completion)("gpt-4o", messages)
    assert compacter.totals.rounds == 1
    size = sum(len(message["content"]) for message in messages) / 4
    assert compacter.totals.input_tokens <= 0.35 * size


def test_another_process_goes_on_with_what_was_spent(tmp_path: Any) -> None:
    memory = SQLiteMemory(tmp_path / "memory.db")
    first = Talk(memory=memory, spending=Spending(tokens=10**6), summarizer="extractive")
    first.ask(12)
    assert first.of(CompactionEvent)
    later = Talk(
        memory=SQLiteMemory(tmp_path / "memory.db"),
        spending=Spending(tokens=5_000),
        summarizer="extractive",
    )
    later.messages = first.messages
    later.ask()
    (event,) = later.of(SpendingReached)
    assert event.tokens >= 5_000


@pytest.mark.parametrize("wrong", [{"tokens": 0}, {"dollars": -1.0}, {"summaries": 1.5}])
def test_values_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Spending(**wrong)
    with pytest.raises(ConfigurationError, match="spending: takes Spending"):
        Compacter(spending=1_000)  # type: ignore[arg-type]
