"""Compaction by hand: compact, acompact, plan, budget, strict, a summary of one's own; and the
limits.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from tenacity import stop_after_attempt, stop_after_delay, stop_any
from tests.conversations import Chat, talk

from compacter import (
    ClearToolResults,
    Compacter,
    CompactionError,
    CompactionEvent,
    CompactionPlan,
    InvalidHistoryError,
    Shorten,
    Summarize,
    Truncate,
)
from compacter.errors import ConfigurationError
from compacter.memory import InProcessMemory
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError


def weight(messages: list[Chat]) -> int:
    return sum(len(message["content"]) for message in messages)


def own(**options: Any) -> Compacter:
    return Compacter(summarizer=ScriptedSummarizer("They talked."), **options)


class TestCompact:
    async def test_sync_and_async_give_the_same(self) -> None:
        history = talk()
        one = own().compact(history)
        other = await own().acompact(history)
        assert one.messages == other.messages
        assert one.discarded == other.discarded == tuple(history[1 : 1 + len(one.discarded)])
        assert one.event is not None
        assert one.event.trigger == "manual"
        assert one.event.conversation

    @pytest.mark.parametrize("size", [0, 1, 2])
    def test_a_tiny_list_comes_back_as_it_was_though_nobody_could_summarise(
        self, size: int
    ) -> None:
        history = talk(1, 20)[:size]
        result = Compacter().compact(history)
        assert (result.messages, result.changed, result.fits) == (history, False, True)

    def test_a_missing_summarizer_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match="there is no summarizer"):
            Compacter().compact(talk())
        with pytest.raises(ConfigurationError, match="there is no summarizer"):
            Compacter(strategy=[ClearToolResults(), Summarize()]).compact(talk())

    def test_a_chain_without_a_summary_needs_no_model(self) -> None:
        assert Compacter(strategy=[Truncate(), Shorten()]).compact(talk()).changed

    @pytest.mark.parametrize("budget", [300, 600, 1_500, 3_000, 5_000])
    def test_a_budget_is_kept_summary_included(self, budget: int) -> None:
        result = own().compact(talk(), budget=budget)
        assert result.fits
        assert weight(result.messages) <= budget
        assert result.messages[0] == talk()[0]
        assert result.messages[-1] == talk()[-1]

    def test_a_budget_smaller_than_what_must_stay_is_told(self) -> None:
        history = [*talk()[:-1], {"role": "user", "content": "x" * 3_000}]
        result = own().compact(history, budget=1_000)
        assert not result.fits
        assert result.changed
        assert result.messages[-1] is history[-1]

    def test_plan_changes_and_asks_nothing_and_foretells_the_compaction(self) -> None:
        asked = ScriptedSummarizer("They talked.")
        compacter = Compacter(summarizer=asked)
        history = talk()
        plan = compacter.plan(history)
        assert not asked.requests
        result = compacter.compact(history)
        assert plan.head == result.discarded
        assert result.event is not None
        assert plan.ratio == result.event.ratio
        assert compacter.plan(history[:1]).cut == 0

    def test_the_same_object_many_times_in_a_list_is_no_riddle(self) -> None:
        yes = {"role": "user", "content": "Yes. " * 40}
        go = {"role": "assistant", "content": "Go on. " * 40}
        history = [yes, go] * 12
        result = own().compact(history)
        assert len(result.discarded) + len(result.messages) - 1 == len(history)
        assert result.messages[-1] is go
        assert result.event is not None
        assert result.event.strategy == "summarize"

    def test_alternate_roles_puts_fillers_where_the_format_needs_none(self) -> None:
        pinned = [3, 7, 8, 13]
        history = talk()
        kept = [history[index] for index in pinned]
        result = own(alternate_roles=True, pin=lambda message: message in kept).compact(history)
        roles = [message["role"] for message in result.messages[1:]]
        assert all(one != other for one, other in pairwise(roles))
        assert [message for message in result.messages if message in kept] == kept
        assert len(own(pin=lambda message: message in kept).compact(history).messages) < len(
            result.messages
        )

    @pytest.mark.parametrize("turns", [1, 2, 5])
    def test_the_newest_turns_stay_as_long_as_it_fits(self, turns: int) -> None:
        history = talk(6)
        result = own(preserve_recent_turns=turns, compact_ratio=1.0).compact(history)
        newest = history[-(2 * turns - 1) :]
        assert result.messages[-len(newest) :] == newest
        tight = own(preserve_recent_turns=turns, compact_ratio=1.0).compact(history, budget=300)
        assert tight.fits

    def test_fewer_turns_than_are_to_stay_means_no_compaction_by_hand(self) -> None:
        asked = ScriptedSummarizer()
        compacter = Compacter(summarizer=asked, preserve_recent_turns=10)
        assert not compacter.compact(talk(5)).changed
        assert not asked.requests


class TestSummary:
    def test_a_summary_of_ones_own_replaces_the_model(self) -> None:
        result = Compacter().compact(talk(), summary="  They planned a feast. ")
        assert result.event is not None
        assert (result.event.summary, result.event.summarizer_calls) == ("They planned a feast.", 0)
        assert summary_message.parse(result.messages[1]["content"]) == summary_message.Summary(
            "They planned a feast."
        )

    @pytest.mark.parametrize("text", ["", "  \n", "x" * 50_000])
    def test_a_blank_one_and_one_that_is_too_long_are_refused(self, text: str) -> None:
        with pytest.raises((ConfigurationError, CompactionError)):
            Compacter().compact(talk(), summary=text)

    def test_a_prior_summary_is_replaced_by_it(self) -> None:
        once = own().compact(talk()).messages
        again = Compacter().compact([*once, *talk()[1:]], summary="All of it.").messages
        assert sum(summary_message.parse(message["content"]) is not None for message in again) == 1


class TestStrict:
    CALL: ClassVar[Chat] = {
        "id": "call_7",
        "type": "function",
        "function": {"name": "look", "arguments": "{}"},
    }

    def test_a_result_without_a_call_is_named(self) -> None:
        history = talk()
        history.insert(4, {"role": "tool", "tool_call_id": "call_9", "content": "seen"})
        with pytest.raises(InvalidHistoryError, match="call_9") as caught:
            own().compact(history, strict=True)
        assert (caught.value.call_id, caught.value.index) == ("call_9", 4)
        assert own().compact(history).changed

    def test_a_call_without_a_result_is_named_unless_it_is_the_open_last_one(self) -> None:
        calling = {"role": "assistant", "content": None, "tool_calls": [self.CALL]}
        with pytest.raises(InvalidHistoryError, match="call_7") as caught:
            own().compact([*talk()[:5], calling, *talk()[5:]], strict=True)
        assert (caught.value.call_id, caught.value.index) == ("call_7", 5)
        assert own().compact([*talk(), calling], strict=True).messages[-1] is calling


class TestBeforeCompaction:
    def test_a_changed_cut_is_followed(self) -> None:
        history = talk()
        result = own(before_compaction=lambda plan: replace(plan, cut=5)).compact(history)
        assert result.discarded == tuple(history[1:5])

    def test_it_is_followed_by_every_strategy_of_several(self) -> None:
        history = talk()
        compacter = own(
            strategy=[ClearToolResults(), Summarize()],
            before_compaction=lambda plan: replace(plan, cut=5),
        )
        assert compacter.compact(history).discarded == tuple(history[1:5])

    def test_nothing_but_the_cut_can_be_chosen(self) -> None:
        plan = own().plan(talk())
        stranger: Any = {"messages": ({"role": "user", "content": "x"},) * 9}
        with pytest.raises(TypeError, match="messages"):
            replace(plan, **stranger)
        assert 0 in replace(plan, cut=5).kept

    @pytest.mark.parametrize("answer", [None, True, "no", 3])
    def test_any_other_answer_leaves_the_plan(self, answer: Any) -> None:
        asked = own(before_compaction=lambda plan: answer).compact(talk())
        assert asked.messages == own().compact(talk()).messages

    @pytest.mark.parametrize("cut", [-5, 10**6, "four", None, 2.5])
    def test_a_cut_that_makes_no_sense_breaks_nothing(self, cut: Any) -> None:
        result = own(before_compaction=lambda plan: replace(plan, cut=cut)).compact(talk())
        assert result.messages[-1] == talk()[-1]

    def test_a_hook_that_raises_leaves_the_plan(self) -> None:
        def hook(plan: CompactionPlan) -> None:
            raise RuntimeError("oh")

        assert (
            own(before_compaction=hook).compact(talk()).messages == own().compact(talk()).messages
        )

    async def test_false_is_a_veto_also_from_an_async_hook_and_for_shortening(self) -> None:
        async def hook(plan: CompactionPlan) -> bool:
            await asyncio.sleep(0)
            return False

        told: list[Any] = []
        compacter = own(before_compaction=hook, on_event=told.append)
        for history in (talk(), [{"role": "assistant", "content": "x" * 9_000}, talk()[-1]]):
            assert not (await compacter.acompact(history)).changed
            assert not compacter.compact(history, budget=500).changed
            with pytest.raises(TokenLimitError):
                compacter.wrap(ScriptedModel(window=200).completion)("m", history)
        assert {getattr(event, "reason", "vetoed") for event in told} >= {"vetoed"}
        assert not any(isinstance(event, CompactionEvent) for event in told)


class TestLimits:
    async def test_cancellation_passes_at_once_and_leaves_nothing(self) -> None:
        begun = asyncio.Event()

        async def never(messages: Any) -> str:
            begun.set()
            await asyncio.Event().wait()
            return ""

        memory = InProcessMemory()
        compacter = Compacter(summarizer=never, memory=memory)
        task = asyncio.create_task(
            compacter.wrap(ScriptedModel(window=900).acompletion)("m", talk(20))
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(memory) == 0
        assert not compacter._state.flights._table

    @pytest.mark.parametrize(
        ("stop", "requests"),
        [
            (0, 1),
            (1, 2),
            (stop_after_attempt(2), 2),
            (stop_after_delay(0), 1),
            (stop_any(stop_after_attempt(3), stop_after_delay(600)), 3),
            (stop_after_attempt(3) | stop_after_delay(600), 3),
        ],
        ids=lambda value: str(value) if isinstance(value, int) else type(value).__name__,
    )
    def test_max_retries_takes_a_number_or_a_tenacity_stop(self, stop: Any, requests: int) -> None:
        calls = 0

        def completion(messages: Any) -> Any:
            nonlocal calls
            calls += 1
            raise NeverEnoughError(calls)

        compacter = own(max_retries=stop, compact_ratio=0.2)
        with pytest.raises(NeverEnoughError) as caught:
            compacter.wrap(completion)(talk(40))
        assert calls == caught.value.number == requests


class NeverEnoughError(Exception):
    """A provider that never has enough."""

    def __init__(self, number: int) -> None:
        super().__init__("This request is too long: prompt is too long for the context window.")
        self.number = number
        self.status_code = 400
        self.code = "context_length_exceeded"


async def test_the_timeout_counts_the_compactions_of_a_call_and_not_the_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    asked = ScriptedSummarizer("They talked.")
    model = ScriptedModel(window=10_000)
    calls = 0

    async def slow(messages: Any) -> Any:
        nonlocal calls, now
        calls += 1
        now += 50
        if calls < 3:
            raise NeverEnoughError(calls)
        return await model.acompletion("m", messages)

    told: list[Any] = []
    monkeypatch.setattr("compacter.call.handlers.time", SimpleNamespace(monotonic=lambda: now))
    compacter = Compacter(
        summarizer=asked, timeout=60, compact_ratio=0.3, on_compaction=told.append
    )
    await compacter.wrap(slow)(talk(40))
    assert [event.fallback for event in told] == [False, False]
