"""Events that hooks get, their order and their sums."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from tests.conversations import Chat, talk

from compacter import Compacter, CompactionError, CompactionEvent, History
from compacter.events import (
    UNTOLD,
    CompactionReused,
    CompactionSkipped,
    Event,
    Totals,
)
from compacter.lines.passages import Passage
from compacter.runtime.models import prices
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
    } == set(), "write a row for each in docs/events.md"


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

    @pytest.mark.parametrize(
        ("options", "names"),
        [
            ({"model": ScriptedModel()}, []),
            # The window is smaller than what is summarized.
            ({}, ["CompactionStarted", "SummaryProgress", "SummaryProgress", "CompactionEvent"]),
            (
                {"summarizer": summarizer(fail="raises")},
                ["CompactionStarted", "CompactionFailed", "CompactionEvent"],
            ),
        ],
        ids=["fits", "compacted", "failed summary"],
    )
    def test_events_of_a_call(self, options: dict[str, Any], names: list[str]) -> None:
        assert self.run(**options)[0] == names

    def test_a_veto(self) -> None:
        told: list[Event] = []
        completion = Compacter(
            summarizer=summarizer(), on_event=told.append, before_compaction=lambda plan: False
        ).wrap(ScriptedModel(window=900).completion)

        with pytest.raises(TokenLimitError) as refused:
            completion("m", talk())

        (note,) = refused.value.__notes__
        assert "before_compaction vetoed the compaction" in note
        assert "What helps: let before_compaction return the plan" in note
        assert "max_retries" not in note
        assert [type(event).__name__ for event in told] == ["CompactionSkipped", "RetriesExhausted"]
        assert isinstance(told[0], CompactionSkipped)
        assert told[0].reason == "vetoed"

    def test_a_lowered_output_limit(self) -> None:
        model = ScriptedModel(window=1_400, counts_output=True)
        names, _ = self.run(model=model, asked={"max_tokens": 1_000})
        assert names == ["MaxTokensAdjusted"]
        assert model.requests[-1].messages == tuple(talk())
        assert 0 < (model.requests[-1].max_tokens or 0) < 400


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
    def test_tokens_of_a_refused_summary_count(self, failure: Any, fallback: Any) -> None:
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


class TestAHookThatMakesTheCallAgain:
    """It finds the compaction of its event: it neither waits for its own call nor compacts
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


def test_totals_are_printed_in_three_lines_without_the_noise_of_floating_point() -> None:
    totals = Totals(
        calls=1_240,
        rounds=3,
        reused=1_180,
        failures=1,
        summarizer_calls=3,
        input_tokens=61_200,
        output_tokens=5_300,
        cost=0.1 + 0.2 - 0.29263,
        tokens_saved=41_876_000,
        cost_saved=10.469000000000001,
    )
    assert str(totals).splitlines() == [
        "1,240 calls, 3 compactions, 1,180 began from a summary, 1 failed summary",
        "41,876,000 input tokens not sent, worth $10.47",
        "3 requests for summaries, 61,200 tokens read, 5,300 written, $0.0074",
    ]
    assert str(Totals()).splitlines() == [
        "0 calls, 0 compactions",
        "0 input tokens not sent",
        "0 requests for summaries",
    ]
    tiny = str(Totals(summarizer_calls=1, cost=0.00001))
    assert tiny.endswith("under $0.0001")
    assert str(Totals(summarizer_calls=1, cost=None)).endswith("price unknown")


class TestWhatASummaryWasGoodFor:
    """Each call that begins from a summary counts, with the tokens and the money that it saves."""

    LONG = tuple(
        {"role": "user", "content": f"Question {n} about trains. " * 20} for n in range(20)
    )

    def begun(self, model: Any, **options: Any) -> tuple[Compacter, list[CompactionReused]]:
        events: list[Any] = []
        compacter = Compacter(summarizer="extractive", on_event=events.append, **options)
        completion = compacter.wrap(model.completion)
        messages = list(self.LONG)
        for number in range(10):
            completion("gpt-4o", messages)
            messages.append({"role": "user", "content": f"And {number}?"})
        return compacter, [event for event in events if isinstance(event, CompactionReused)]

    def test_nine_calls_that_begin_from_one_summary_count_nine(self) -> None:
        model = ScriptedModel(window=2_000)
        compacter, events = self.begun(model)
        totals = compacter.totals
        assert (totals.rounds, totals.reused, model.rejected) == (1, 9, 1)
        assert [event.began for event in events] == [True] * 9
        assert totals.tokens_saved == sum(event.tokens_saved for event in events)
        first, last = events[0], events[-1]
        assert (first.messages_before, last.messages_before) == (21, 29)
        whole = sum(len(message["content"]) for message in self.LONG)
        # What is left out is most of a history of which the model took 2,000 tokens.
        assert whole / 8 < first.tokens_saved < whole / 3

    @pytest.mark.parametrize("cached", [0, 600])
    def test_tokens_that_would_come_from_the_cache_have_its_price(self, cached: int) -> None:
        scripted = ScriptedModel(window=2_000)
        answer = scripted.completion

        def completion(model: str, messages: list[Any]) -> Any:
            reply = answer(model, messages)
            reply["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
            return reply

        scripted.completion = completion  # type: ignore[assignment,method-assign]
        _, events = self.begun(scripted)
        usual, of_cache, _ = prices("gpt-4o") or (0.0, 0.0, 0.0)
        rate = of_cache if cached else usual
        last = events[-1]
        assert last.cost_saved == pytest.approx(last.tokens_saved * (rate or 0))
        assert last.cost_saved
        assert events[0].cost_saved == pytest.approx(events[0].tokens_saved * (rate or 0))

    def test_an_unknown_price_is_no_price(self) -> None:
        compacter = Compacter(summarizer="extractive")
        completion = compacter.wrap(ScriptedModel(window=2_000).completion)
        for _ in range(2):
            completion("nobody/knows", list(self.LONG))
        assert compacter.totals.tokens_saved > 0
        assert compacter.totals.cost_saved == 0

    def test_a_history_that_was_compacted_counts_as_a_list_does(self) -> None:
        compacter = Compacter(summarizer="extractive")
        completion = compacter.wrap(ScriptedModel(window=2_000).completion)
        history = History(self.LONG)
        for number in range(4):
            completion("m", history)
            history.append({"role": "user", "content": f"And {number}?"})
        totals = compacter.totals
        assert (totals.rounds, totals.reused) == (1, 3)
        of_list, _ = self.begun(ScriptedModel(window=2_000))
        each = of_list.totals.tokens_saved / 9
        assert totals.tokens_saved / 3 == pytest.approx(each, rel=0.1)


def test_a_notebook_shows_a_compacter_and_a_passage_as_tables() -> None:
    shown = Compacter(compact_ratio=0.5)._repr_html_()
    assert "<tr><th>Compacter<td>compact_ratio=0.5<tr><th>calls<td>0<tr>" in shown
    assert "default options" in Compacter()._repr_html_()
    passage = Passage("Pier <4> is oak.", "tool", "look_up", index=3, score=10.171)
    assert "<tr><th>message 3<td>Pier &lt;4&gt; is oak.<tr>" in passage._repr_html_()
    assert str(passage).splitlines()[1:] == ["said by    tool look_up", "score      10.17"]
