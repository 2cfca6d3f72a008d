"""What hooks are told, in which order, and how it adds up."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from tests.conversations import Chat, talk

from compacter import Compacter, CompactionError, CompactionEvent, CompactionPlan, History
from compacter.events import (
    UNTOLD,
    CompactionFailed,
    CompactionReused,
    CompactionSkipped,
    CompactionStarted,
    Event,
    MaxTokensAdjusted,
    RetriesExhausted,
    SealedContentRemoved,
)
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

if TYPE_CHECKING:
    from pathlib import Path


def summarizer(**options: Any) -> ScriptedSummarizer:
    return ScriptedSummarizer("They asked and answered.", returns="completion", **options)


EVENTS: tuple[type[Event], ...] = (Event, *Event.__subclasses__())
WITHOUT_MESSAGES = {"model", "conversation", "trigger", "strategy", "reason", "error", "kinds"}
"""Fields of events that are texts, but of no message."""


def test_the_manual_has_each_field_of_each_event(root: Path) -> None:
    manual = (root / "docs" / "events.md").read_text(encoding="utf-8")
    assert {
        name for event in EVENTS for name in event.model_fields if f"`{name}`" not in manual
    } == set()


def test_each_field_that_may_quote_a_message_is_kept_from_logs_and_spans() -> None:
    numbers: tuple[Any, ...] = (int, float, bool, int | None, float | None)
    texts = {
        name
        for event in EVENTS
        for name, one in event.model_fields.items()
        if one.annotation not in numbers
    }
    assert texts - UNTOLD == WITHOUT_MESSAGES


class TestTheCompactionEvent:
    @pytest.fixture
    def event(self) -> CompactionEvent:
        told: list[CompactionEvent] = []
        model = ScriptedModel(window=900)
        Compacter(summarizer=summarizer(), on_compaction=told.append).wrap(model.completion)(
            "m", talk()
        )
        (event,) = told
        return event

    def test_it_says_what_was_before_and_after(self, event: CompactionEvent) -> None:
        history = talk()
        assert event.original_data_size == sum(len(message["content"]) for message in history)
        assert event.messages_before == len(history)
        assert event.messages_after == len(history) - len(event.discarded) + 1
        assert 0 < event.compacted_data_size < event.original_data_size
        assert event.compacted_tokens < event.original_tokens
        assert 0.5 < event.ratio <= 1

    def test_it_says_what_the_provider_said(self, event: CompactionEvent) -> None:
        assert event.limit == 900
        assert event.requested is not None
        assert event.requested > 900
        assert (event.model, event.trigger, event.attempt) == ("m", "token_limit", 1)

    def test_its_estimates_are_calibrated_by_that(self, event: CompactionEvent) -> None:
        assert event.requested == pytest.approx(event.original_tokens, rel=0.02)

    def test_it_is_json_without_the_discarded_messages(self, event: CompactionEvent) -> None:
        read = json.loads(event.model_dump_json())
        assert "discarded" not in read
        assert read["summary"] == "They asked and answered."
        assert CompactionEvent.model_validate(read) == event.model_copy(update={"discarded": ()})

    def test_its_repr_holds_no_discarded_text(self, event: CompactionEvent) -> None:
        assert "Question 1?" not in repr(event.model_copy(update={"ledger": ""}))

    def test_the_discarded_messages_are_the_callers_own_objects(self) -> None:
        history = talk()
        result = Compacter(summarizer=summarizer()).compact(history)

        assert result.discarded
        assert all(any(message is own for own in history) for message in result.discarded)

    def test_all_calls_of_one_conversation_have_its_name(self) -> None:
        told: list[CompactionEvent] = []
        model = ScriptedModel(window=900)
        completion = Compacter(
            summarizer=summarizer(), on_compaction=told.append, memory=None
        ).wrap(model.completion)

        completion("m", talk())
        completion(
            "m", [*talk(), {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
        )
        completion("m", [talk()[0], {"role": "user", "content": "Another beginning."}, *talk()[2:]])

        names = [event.conversation for event in told]
        assert names[0] == names[1] != names[2]
        assert all(names)

    def test_conversations_that_begin_with_the_same_greeting_have_names_of_their_own(self) -> None:
        told: list[CompactionEvent] = []
        model = ScriptedModel(window=900)
        completion = Compacter(summarizer="extractive", on_compaction=told.append).wrap(
            model.completion
        )
        greeting = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello. What can I do?"},
        ]
        for subject in ("harbours", "lighthouses"):
            completion(
                "m", [*greeting, {"role": "user", "content": f"Tell me of {subject}."}, *talk()[1:]]
            )

        assert len({event.conversation for event in told}) == len(told) == 2

    def test_a_history_keeps_its_name_when_it_is_folded_copied_and_stored(self) -> None:
        told: list[CompactionEvent] = []
        model = ScriptedModel(window=400, replies="Noted.")
        completion = Compacter(summarizer="extractive", on_compaction=told.append).wrap(
            model.completion
        )
        history = History()
        for number in range(120):
            history.append(
                {"role": "user", "content": (f"Line {number} of a long list of things to do.")}
            )
            history.append(completion("m", history)["choices"][0]["message"])

        restored = History()
        restored.restore(history.snapshot())
        copies = (history.copy(), pickle.loads(pickle.dumps(history)), restored, History(history))  # noqa: S301
        assert len(told) > 1
        assert {event.conversation for event in told} == {history.conversation}
        assert {copy.conversation for copy in copies} == {history.conversation}
        assert len(history) < 120

    def test_a_conversation_is_named_for_a_call_a_copy_or_a_history(self) -> None:
        told: list[CompactionEvent] = []
        compacter = Compacter(summarizer="extractive", on_compaction=told.append, memory=None)
        call: Any = compacter.wrap(ScriptedModel(window=900).completion)

        call("m", talk(), compacter_options={"conversation": "of a call"})
        compacter.replace(conversation="of a copy").compact(talk())
        compacter.compact(History(talk(), conversation="of a history"))

        assert [event.conversation for event in told] == ["of a call", "of a copy", "of a history"]

    def test_the_news_that_a_history_has_changed_names_the_model_of_its_compaction(self) -> None:
        told: list[Event] = []
        compacter = Compacter(summarizer="extractive", on_event=told.append)
        made = compacter.compact(talk(), model="m").event
        compacter.tell_history_changed(made)
        compacter.tell_history_changed(None)
        skipped = [event for event in told if isinstance(event, CompactionSkipped)]
        assert [(event.trigger, event.model) for event in skipped] == [
            ("manual", "m"),
            ("token_limit", None),
        ]

    async def test_that_news_reaches_an_async_hook_too(self) -> None:
        told: list[Event] = []

        async def hear(event: Event) -> None:
            await asyncio.sleep(0)
            told.append(event)

        Compacter(on_event=hear).tell_history_changed(None)
        assert [type(event) for event in told] == [CompactionSkipped]


class TestOrder:
    def run(self, **options: Any) -> tuple[list[str], ScriptedModel]:
        told: list[Event] = []
        model = options.pop("model", None) or ScriptedModel(window=900)
        options.setdefault("summarizer", summarizer())
        options.setdefault("recall", None)
        asked = options.pop("asked", {})
        completion = Compacter(on_event=told.append, **options).wrap(model.completion)
        for _ in range(options.pop("times", 1)):
            completion("m", talk(), **asked)
        return [type(event).__name__ for event in told], model

    def test_a_call_that_fits_tells_nothing(self) -> None:
        assert self.run(model=ScriptedModel())[0] == []

    def test_a_round(self) -> None:
        progress = ["SummaryProgress"] * 2  # The window is smaller than what is summarized.
        assert self.run()[0] == ["CompactionStarted", *progress, "CompactionEvent"]

    def test_a_summary_that_fails(self) -> None:
        names, _ = self.run(summarizer=summarizer(fail="raises"))
        started = ["CompactionStarted", "SummaryProgress"]
        assert names == [*started, "CompactionFailed", "CompactionEvent"]

    def test_a_veto(self) -> None:
        told: list[Event] = []
        completion = Compacter(
            summarizer=summarizer(), on_event=told.append, before_compaction=lambda plan: False
        ).wrap(ScriptedModel(window=900).completion)

        with pytest.raises(TokenLimitError):
            completion("m", talk())

        assert [type(event).__name__ for event in told] == ["CompactionSkipped", "RetriesExhausted"]
        assert isinstance(told[0], CompactionSkipped)
        assert told[0].reason == "vetoed"

    def test_a_lowered_output_limit(self) -> None:
        model = ScriptedModel(window=1_400, counts_output=True)
        names, _ = self.run(model=model, asked={"max_tokens": 1_000})
        assert names == ["MaxTokensAdjusted"]
        assert model.requests[-1].messages == tuple(talk())
        assert 0 < (model.requests[-1].max_tokens or 0) < 400

    def test_a_lowered_output_limit_is_told_in_words(self) -> None:
        told = str(MaxTokensAdjusted(before=1_000, after=380))
        assert told == "MaxTokensAdjusted: lowered the output limit from 1,000 to 380 tokens"

    def test_what_was_left_out_for_another_model_is_counted_by_its_kinds(self) -> None:
        kinds = ("redacted_thinking", "thinking")
        told = str(SealedContentRemoved(removed=12, kinds=kinds, error="BadRequestError"))
        assert told == (
            "SealedContentRemoved: left out 12 blocks that another model has sealed: "
            "redacted_thinking, thinking"
        )

    def test_an_earlier_compaction_that_is_used_again_is_no_round(self) -> None:
        told: list[CompactionEvent] = []
        model = ScriptedModel(window=900)
        compacter = Compacter(summarizer=summarizer(), on_compaction=told.append)
        completion = compacter.wrap(model.completion)

        for _ in range(5):
            completion("m", talk())

        assert len(told) == 1
        assert model.rejected == 1


def test_a_failed_summary_names_its_conversation_and_attempt() -> None:
    seen: list[Event] = []
    model = ScriptedModel(window=1_000)

    def broken(messages: list[Any], **options: Any) -> str:
        raise OSError

    call = Compacter(summarizer=broken, on_event=seen.append).wrap(model.completion)
    call(
        model="m",
        messages=[
            {"role": "user", "content": f"Question {n}? ".ljust(400, "q")} for n in range(20)
        ],
    )

    started, failed = (
        next(event for event in seen if isinstance(event, kind))
        for kind in (CompactionStarted, CompactionFailed)
    )
    assert (failed.conversation, failed.attempt) == (started.conversation, 1)
    assert failed.conversation


class TestHooks:
    async def test_async_hooks_are_awaited_before_the_retry(self) -> None:
        order: list[str] = []
        model = ScriptedModel(window=900)

        async def completion(messages: list[Chat]) -> Any:
            order.append("call")
            return await model.acompletion("m", messages)

        async def hook(event: CompactionEvent) -> None:
            await asyncio.sleep(0)
            order.append("hook")

        await Compacter(summarizer=summarizer(), on_compaction=hook).wrap(completion)(
            messages=talk()
        )

        assert order == ["call", "hook", "call"]

    def test_async_hooks_work_in_a_sync_program(self) -> None:
        told: list[CompactionEvent] = []

        async def hook(event: CompactionEvent) -> None:
            await asyncio.sleep(0)
            told.append(event)

        Compacter(summarizer=summarizer(), on_compaction=hook).compact(talk())

        assert len(told) == 1


class TestBeforeCompaction:
    def test_it_sees_the_plan_and_may_move_the_cut(self) -> None:
        from dataclasses import replace

        seen: list[CompactionPlan] = []

        def fewer(plan: CompactionPlan) -> CompactionPlan:
            seen.append(plan)
            return replace(plan, cut=5)

        result = Compacter(summarizer=summarizer(), before_compaction=fewer).compact(talk())

        assert seen[0].cut > 5
        assert result.discarded == tuple(talk()[1:5])

    @pytest.mark.parametrize("answer", [True, None, "yes"])
    def test_any_other_answer_lets_the_plan_be(self, answer: Any) -> None:
        plain = Compacter(summarizer=summarizer()).compact(talk())
        asked = Compacter(summarizer=summarizer(), before_compaction=lambda plan: answer).compact(
            talk()
        )
        assert asked.discarded == plain.discarded

    def test_a_veto_leaves_everything(self) -> None:
        asked = summarizer()
        result = Compacter(summarizer=asked, before_compaction=lambda plan: False).compact(talk())
        assert not result.changed
        assert not asked.requests

    async def test_it_may_be_async(self) -> None:
        async def veto(plan: CompactionPlan) -> bool:
            await asyncio.sleep(0)
            return False

        result = await Compacter(summarizer=summarizer(), before_compaction=veto).acompact(talk())
        assert not result.changed


class TestTotals:
    def test_calls_rounds_and_tokens_add_up(self) -> None:
        asked = summarizer()
        told = list[CompactionEvent]()
        model = ScriptedModel(window=900)
        compacter = Compacter(summarizer=asked, on_compaction=told.append, memory=None)
        completion = compacter.wrap(model.completion)

        for _ in range(3):
            completion("m", talk())
        completion("m", talk(2))

        totals = compacter.totals
        assert (totals.calls, totals.rounds) == (4, 3)
        assert (
            totals.summarizer_calls
            == len(asked.requests)
            == sum(event.summarizer_calls for event in told)
        )
        assert totals.input_tokens == asked.tokens == sum(event.input_tokens for event in told)
        assert totals.output_tokens == sum(event.output_tokens for event in told)
        assert totals.characters_saved == sum(
            event.original_data_size - event.compacted_data_size for event in told
        )

    @pytest.mark.parametrize("failure", ["filtered", "too_large", "length", "raises"])
    @pytest.mark.parametrize("fallback", ["truncate", None])
    def test_tokens_count_also_when_their_summary_is_refused(
        self, failure: Any, fallback: Any
    ) -> None:
        asked = summarizer(fail=failure)
        compacter = Compacter(summarizer=asked, fallback=fallback)

        try:
            compacter.compact(talk())
        except CompactionError:
            assert fallback is None

        totals = compacter.totals
        assert totals.failures == 1
        assert totals.summarizer_calls == len(asked.requests)
        answered = 0 if failure == "raises" else asked.tokens
        assert totals.input_tokens == answered

    def test_the_price_of_a_summary_is_told_where_it_is_known(self) -> None:
        model = ScriptedModel(window=900, replies="They asked and answered.")
        told: list[CompactionEvent] = []
        compacter = Compacter(on_compaction=told.append)
        compacter.wrap(model.completion)("gpt-4o-mini", talk())
        unknown = Compacter(on_compaction=told.append)
        unknown.wrap(model.completion)("a-model-of-ones-own", talk())

        assert told[0].cost is not None
        assert told[0].cost > 0
        assert compacter.totals.cost == pytest.approx(told[0].cost)
        assert told[1].cost is None


class TestLogs:
    def test_events_reach_the_standard_logger_as_numbers(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, logger="compacter")

        Compacter(summarizer=summarizer()).compact(talk())

        (record,) = caplog.records
        assert record.name == "compacter"
        assert record.getMessage().startswith(
            f"compacter: compacted 20 of {len(talk())} messages, "
        )
        assert record.__dict__["messages_before"] == len(talk())
        assert "summary" not in record.__dict__

    def test_a_logger_of_ones_own_gets_them(self) -> None:
        logs = structlog.testing.LogCapture()
        logger = structlog.wrap_logger(None, processors=[logs])
        Compacter(summarizer=summarizer(), logger=logger).compact(talk())

        assert [entry["event"] for entry in logs.entries] == [
            "compacter.compaction_started",
            "compacter.compaction_event",
        ]
        assert summary_message.TAG not in str(logs.entries)


@pytest.mark.parametrize(
    "kind",
    [
        CompactionStarted,
        CompactionFailed,
        CompactionSkipped,
        CompactionReused,
        MaxTokensAdjusted,
        RetriesExhausted,
    ],
)
def test_no_event_but_the_compactions_has_room_for_text(kind: type[Event]) -> None:
    texts = {name for name, member in kind.model_fields.items() if member.annotation is str}
    assert texts <= {"conversation", "reason", "error"}


class TestAHookThatMakesTheCallAgain:
    """It finds the compaction that it was told of: it neither waits for its own call nor compacts
    again.
    """

    async def test_in_a_task_of_its_own(self) -> None:
        model = ScriptedModel(window=900)
        summaries = summarizer()
        compacter = Compacter(summarizer=summaries)
        call = compacter.wrap(model.acompletion)

        @compacter.on_compaction
        async def again(_: CompactionEvent) -> None:
            await asyncio.create_task(call("m", talk()))

        await asyncio.wait_for(call("m", talk()), 10)
        assert compacter.totals.calls == 2
        assert compacter.totals.rounds == 1

    async def test_from_a_sync_call_inside_a_running_loop(self) -> None:
        model = ScriptedModel(window=900)
        compacter = Compacter(summarizer=summarizer(), timeout=10)
        call = compacter.wrap(model.completion)

        @compacter.on_compaction
        async def again(_: CompactionEvent) -> None:
            call("m", talk())

        call("m", talk())
        assert compacter.totals.calls == 2
        assert compacter.totals.rounds == 1
