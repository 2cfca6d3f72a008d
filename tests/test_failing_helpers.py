"""Summarizers, hooks, memories and loggers that fail: the call goes on without them."""

from __future__ import annotations

import asyncio
import copy
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import pytest
from tests.conversations import Chat, talk

from compacter import Compacter, CompactionError, CompactionEvent, History, Quotes, TokenLimit
from compacter.errors import ConfigurationError
from compacter.memory import InProcessMemory
from compacter.summary import message as summary_message
from compacter.testing import (
    Failure,
    ScriptedModel,
    ScriptedSummarizer,
    TokenLimitError,
    token_limit_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


FAILURES: tuple[Failure, ...] = tuple(one for one in get_args(Failure) if one != "refusal")
"""A refusal in words is a text like any other; one by a provider's flag is ``filtered``."""


def answered(reply: Any) -> str:
    text: str = reply["choices"][0]["message"]["content"]
    return text


async def answer(compacter: Compacter, model: ScriptedModel, program: str) -> str:
    """The answer to a call that is too long, in a sync or an async program."""
    if program == "sync":
        return answered(compacter.wrap(model.completion)("m", talk()))
    return answered(await compacter.wrap(model.acompletion)("m", talk()))


class TestSummarizersThatFail:
    @pytest.mark.parametrize("failure", FAILURES)
    def test_the_call_goes_on_without_a_summary(self, failure: Failure) -> None:
        model = ScriptedModel(window=900)
        events = list[Any]()
        summarizer = ScriptedSummarizer(fail=failure)
        history = talk()
        before = copy.deepcopy(history)

        reply = Compacter(summarizer=summarizer, on_event=events.append).wrap(model.completion)(
            "m", history
        )

        assert answered(reply) == "ok"
        assert history == before
        (event,) = [event for event in events if isinstance(event, CompactionEvent)]
        assert event.fallback
        assert event.strategy == "extractive"
        kept = [message for message in model.requests[-1].messages if message in history]
        assert list(event.discarded) == [message for message in history if message not in kept]
        assert any(type(event).__name__ == "CompactionFailed" for event in events)

    @pytest.mark.parametrize("failure", FAILURES)
    async def test_so_it_does_in_an_async_program(self, failure: Failure) -> None:
        model = ScriptedModel(window=900)
        summarizer = ScriptedSummarizer(fail=failure)
        for asked in (summarizer, summarizer.acall):
            completion = Compacter(summarizer=asked, memory=None).wrap(model.acompletion)
            assert answered(await completion("m", talk())) == "ok"
        assert model.rejected == 2

    @pytest.mark.parametrize("failure", FAILURES)
    def test_without_a_fallback_the_cause_is_told(self, failure: Failure) -> None:
        model = ScriptedModel(window=900)
        completion = Compacter(summarizer=ScriptedSummarizer(fail=failure), fallback=None).wrap(
            model.completion
        )

        with pytest.raises(CompactionError, match="no summary could be had") as caught:
            completion("m", talk())

        assert len(model.requests) == 1
        # The summarizer's exception, or else the provider's own.
        assert caught.value.__cause__ is not None

    @pytest.mark.parametrize("failure", FAILURES)
    def test_one_bad_answer_is_followed_by_another_try(self, failure: Failure) -> None:
        summarizer = ScriptedSummarizer("They talked about questions.", fail=[failure])
        result = Compacter(summarizer=summarizer).compact(talk(), model=None)

        assert result.event is not None
        if failure == "raises":  # An outage: asking again at once would not help.
            assert result.event.fallback
        else:
            assert result.event.summary == "They talked about questions."
            assert len(summarizer.requests) > 1

    def test_strange_answers_count_as_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        for answer in (7, object(), {"choices": []}, {"choices": [{}]}, [], b"bytes", Ellipsis):
            caplog.clear()
            result = Compacter(summarizer=lambda messages, answer=answer: answer).compact(talk())
            assert result.event is not None
            assert result.event.fallback
            assert "the summary was refused: " in caplog.text

    async def test_a_hanging_async_summarizer_is_cancelled(self) -> None:
        cancelled = False

        async def hang(messages: Sequence[Chat]) -> str:
            nonlocal cancelled
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled = True
                raise
            return "Too late."

        model = ScriptedModel(window=900)
        completion = Compacter(summarizer=hang, timeout=0.05).wrap(model.acompletion)

        assert answered(await completion("m", talk())) == "ok"
        assert cancelled


class TestHooksMemoriesAndLoggersThatFail:
    @pytest.mark.parametrize("option", ["on_compaction", "on_event", "before_compaction"])
    @pytest.mark.parametrize("shape", ["sync", "async"])
    @pytest.mark.parametrize("program", ["sync", "async"])
    async def test_a_hook_that_raises_breaks_nothing(
        self, option: str, shape: str, program: str
    ) -> None:
        called = False

        def hook(event: object) -> None:
            nonlocal called
            called = True
            raise KeyError("hook")

        async def ahook(event: object) -> None:
            hook(event)

        model = ScriptedModel(window=900)
        options: dict[str, Any] = {option: hook if shape == "sync" else ahook}
        compacter = Compacter(summarizer=ScriptedSummarizer("Short."), **options)

        assert await answer(compacter, model, program) == "ok"
        assert called
        assert summary_message.TAG in str(model.requests[-1].messages)

    def test_a_hook_that_raises_does_not_silence_the_others(self) -> None:
        told: list[CompactionEvent] = []

        def hook(event: CompactionEvent) -> None:
            raise RuntimeError

        compacter = Compacter(
            summarizer=ScriptedSummarizer("Short."), on_compaction=[hook, told.append]
        )
        compacter.compact(talk())

        assert len(told) == 1

    @pytest.mark.parametrize("broken", ["find", "save", "claim", "release"])
    @pytest.mark.parametrize("program", ["sync", "async"])
    async def test_a_memory_that_raises_is_skipped(self, broken: str, program: str) -> None:
        memory: Any = Broken(broken)
        model = ScriptedModel(window=900)
        compacter = Compacter(summarizer=ScriptedSummarizer("Short."), memory=memory)

        assert await answer(compacter, model, program) == "ok"
        assert await answer(compacter, model, program) == "ok"
        assert broken in memory.raised

    @pytest.mark.parametrize("claim", [7, "granted", object(), []])
    async def test_so_is_one_whose_claims_cannot_be_released(self, claim: Any) -> None:
        memory: Any = Broken("nothing")
        memory.claim = lambda key, seconds: claim
        model = ScriptedModel(window=900)
        compacter = Compacter(summarizer=ScriptedSummarizer("Short."), memory=memory)

        assert answered(compacter.wrap(model.completion)("m", talk())) == "ok"
        assert answered(await compacter.wrap(model.acompletion)("another", talk())) == "ok"
        assert compacter.totals.rounds == 2

    def test_a_logger_that_raises_is_ignored(self) -> None:
        class Logger:
            def __getattr__(self, name: str) -> Callable[..., None]:
                raise OSError("disk full")

        model = ScriptedModel(window=900)
        completion = Compacter(summarizer=ScriptedSummarizer("Short."), logger=Logger()).wrap(
            model.completion
        )

        assert answered(completion("m", talk())) == "ok"

    def test_no_text_of_a_message_is_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        def hook(event: object) -> None:
            raise ValueError("Question 1 leaks here")

        caplog.set_level(logging.DEBUG)
        model = ScriptedModel(window=900)
        summarizer = ScriptedSummarizer("Question 1 was asked.", fail=["raises"])
        completion = Compacter(summarizer=summarizer, on_event=hook).wrap(model.completion)
        completion("m", talk())
        completion("m", [*talk(), *talk()[1:]])

        assert caplog.records
        assert "Question" not in "".join(str(record.__dict__) for record in caplog.records)

    @pytest.mark.parametrize("fallback", ["truncate", "extractive"])
    def test_a_redaction_that_raises_sends_nothing_unredacted(self, fallback: Any) -> None:
        def broken(text: str) -> str:
            raise ZeroDivisionError

        model = ScriptedModel(window=900)
        summarizer = ScriptedSummarizer("Short.")
        completion = Compacter(summarizer=summarizer, redact=broken, fallback=fallback).wrap(
            model.completion
        )

        assert answered(completion("m", talk())) == "ok"
        assert not summarizer.requests
        assert "Kept from it" not in str(model.requests[-1].messages)


async def later(*_: object) -> int:
    return 5


NUMBERS = [None, "7", b"7", -1, float("nan"), float("inf"), True, [], [None], object(), later]
TEXTS = [None, 7, b"x", True, ["x"], object(), later]
LIMITS = ["yes", 4000, TokenLimit(limit=0), TokenLimit(limit=-5), TokenLimit(requested="9"), later]  # type: ignore[arg-type]
SAID = "what was said"
BAD_ANSWERS: dict[str, list[Any]] = {
    "detect": LIMITS,
    "token_counter": NUMBERS,
    "redact": TEXTS,
    "retrieved": TEXTS,
    "search": [*NUMBERS, [0.5], [float("nan")] * 99, ["high"] * 99],
    "pin": [later],
    "max_retries": [later],
}


class TestFunctionsThatAnswerBadly:
    """A function that raises, or whose answer is of no use."""

    @staticmethod
    def asking() -> list[Chat]:
        """Return a conversation that ends with a question about its beginning."""
        history = talk()
        history[1]["content"] += " The harbour master is Zebediah Quillfeather."
        history[-1]["content"] = "Who is the harbour master Zebediah?"
        return history

    @staticmethod
    def second_call(option: str, function: Any) -> Callable[[], Any]:
        """Make one call of a Compacter with this function, and return the next one, which
        calls it.
        """
        model = ScriptedModel(window=900)
        history = TestFunctionsThatAnswerBadly.asking()
        options: dict[str, Any] = {option: function}
        if option == "search":
            options = {"recall": Quotes(share=2_000, search=function)}
        if option == "token_counter":
            options["trigger_tokens"] = 500
        if option == "retrieved":
            history[-1]["content"] = "Sum it up. " * 200
        completion = Compacter(summarizer=ScriptedSummarizer("Short."), **options).wrap(
            model.completion
        )
        completion("m", history[:4])
        return lambda: completion("m", history)

    @pytest.mark.parametrize(
        ("option", "answer"),
        [
            (option, one)
            for option, many in BAD_ANSWERS.items()
            for one in (*many, KeyError(SAID), StopIteration(SAID))
        ],
    )
    def test_is_named_in_the_log(
        self, option: str, answer: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        def function(*given: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer() if answer is later else answer

        call = self.second_call(option, function)
        if option in ("pin", "max_retries"):
            with pytest.raises(TokenLimitError):
                call()
        else:
            assert answered(call()) == "ok"

        told = [record.message for record in caplog.records if record.levelname == "WARNING"]
        fault = f"raised {type(answer).__name__}" if isinstance(answer, Exception) else "returned "
        assert any(f"{option} {fault}" in line for line in told), told
        assert not any(SAID in line for line in told)

    @pytest.mark.parametrize("answer", NUMBERS)
    def test_a_count_by_hand_names_it(self, answer: Any) -> None:
        def count(messages: object) -> Any:
            return answer() if answer is later else answer

        compacter = Compacter(token_counter=count)
        for tokens in (
            partial(compacter.estimate_tokens, talk()),
            History(talk(), compacter=compacter).tokens,
        ):
            with pytest.raises(ConfigurationError, match=r"token_counter returned "):
                tokens()

    async def test_a_slow_search_does_not_hold_the_event_loop(self) -> None:
        threads = list[threading.Thread]()

        def search(question: str, passages: Sequence[Any]) -> list[float]:
            threads.append(threading.current_thread())
            return [1.0] * len(passages)

        model = ScriptedModel(window=900)
        history = self.asking()
        recall = Quotes(share=2_000, search=search)
        await Compacter(summarizer=ScriptedSummarizer("Short."), recall=recall).wrap(
            model.acompletion
        )("m", history)

        assert threads
        assert threading.current_thread() not in threads


class NoNotesError(TokenLimitError):
    """A token limit that takes no notes, as an exception of a user's may."""

    def add_note(self, note: str) -> None:
        raise TypeError(note)


@pytest.mark.parametrize(
    "options", [{"max_retries": 0}, {"max_retries": 9, "compact_ratio": 0.1}, {"pin": bool}]
)
async def test_an_exception_that_takes_no_notes_is_raised_as_it_is(options: dict[str, Any]) -> None:
    refusal = token_limit_error(limit=800, input_tokens=1_100)
    refusal.__class__ = NoNotesError

    def chat(messages: object) -> Any:
        raise refusal

    async def achat(messages: object) -> Any:
        raise refusal

    for messages in (talk(), []):
        compacter = Compacter(summarizer=ScriptedSummarizer("Short."), **options)
        with pytest.raises(NoNotesError) as caught:
            compacter.wrap(chat)(messages)
        assert caught.value is refusal
        with pytest.raises(NoNotesError) as caught:
            await compacter.wrap(achat)(messages)
        assert caught.value is refusal


class Broken(InProcessMemory):
    """A memory in which one method raises; ``blocking`` so that it is asked for claims."""

    blocking = True

    def __init__(self, broken: str) -> None:
        super().__init__()
        self.raised: list[str] = []
        self._broken = broken

    def _break(self, name: str) -> None:
        if name == self._broken:
            self.raised.append(name)
            raise ConnectionError("the memory is down")

    def __len__(self) -> int:
        return 1

    def find(self, keys: Sequence[str]) -> Any:
        self._break("find")
        return super().find(keys)

    def save(self, record: Any) -> None:
        self._break("save")
        super().save(record)

    def claim(self, key: str, seconds: float) -> Any:
        self._break("claim")
        return self

    def release(self) -> None:
        self._break("release")
