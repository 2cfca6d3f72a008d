"""Nothing that compacter does for itself may raise into a call; what the wrapped function raises
stands.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.lowlevel
from tests.conversations import Chat, talk

import compacter as package
from compacter import Compacter, CompactionEvent, History, InProcessMemory, Truncate
from compacter.call import policy
from compacter.runtime.io import SyncIO
from compacter.testing import ScriptedModel, ScriptedSummarizer, token_limit_error

HOUSE = Path(package.__file__).parent


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = {"a": value}
    return value


class Unreadable:
    """A message that raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)


STRANGE: dict[str, Any] = {
    "mixed key types": {"role": "user", "content": "x", 1: "a", "b": 2},
    "600 levels": {"role": "user", "content": [{"type": "text", "text": "x", "more": nested(600)}]},
    "a number of 5,000 digits": {"role": "user", "content": "x", "n": 10**5_000},
    "an object that raises": Unreadable(),
    "a set": {"role": "user", "content": {1, "two"}},
    "itself": {"role": "user", "content": []},
}
STRANGE["itself"]["content"].append(STRANGE["itself"])


class ProviderError(Exception):
    pass


class TestStrangeMessages:
    @pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
    @pytest.mark.parametrize(("trigger", "refused"), [(None, False), (None, True), (500, True)])
    def test_break_no_call(self, strange: Any, trigger: int | None, refused: bool) -> None:
        """A call that works goes on working once something is remembered."""
        compacter = Compacter(summarizer=ScriptedSummarizer(), trigger_tokens=trigger)
        compacter.wrap(ScriptedModel(window=2_000).completion)("m", talk(12, 400))
        refusal = token_limit_error(limit=100, input_tokens=90_000)

        def completion(messages: list[Any]) -> str:
            if refused and len(messages) > 20:
                raise refusal
            return "ok"

        try:
            reply = compacter.wrap(completion)([strange, *talk(12, 400)])
        except type(refusal) as error:
            assert error is refusal  # noqa: PT017 - either outcome is right
            assert refused
        else:
            assert reply == "ok"


@pytest.mark.parametrize("given", [None, [], "Hello.", ()])
def test_a_reply_to_a_call_without_a_list_is_returned(given: Any) -> None:
    reply = {"choices": [], "usage": {"prompt_tokens": 9}}
    assert Compacter().wrap(lambda messages: reply)(messages=given) is reply


def test_a_refusal_names_a_message_of_no_known_format(caplog: pytest.LogCaptureFixture) -> None:
    class HumanMessage:
        def __init__(self, text: str) -> None:
            self.type = "human"
            self.content = text
            self.additional_kwargs: dict[str, Any] = {}  # As LangChain's messages have them.

    def refusing(messages: list[Any]) -> str:
        raise ProviderError("context_length_exceeded: the prompt is too long")

    with pytest.raises(ProviderError) as refused:
        Compacter().wrap(refusing)([HumanMessage("Hello.")] * 9)
    (note,) = refused.value.__notes__
    assert note.startswith("compacter did nothing: messages[0] is a ")
    assert "HumanMessage, which is not a message of any provider's API" in note
    assert not caplog.records


class TestFaultsOfCompactersOwn:
    @pytest.fixture
    def broken(self) -> Compacter:
        """A Compacter that fails at an unexpected place: when it reads what it has learnt."""
        compacter = Compacter(strategy=Truncate(), summarizer=ScriptedSummarizer())

        compacter._state.calibration = _Broken  # type: ignore[method-assign,assignment]
        return compacter

    def test_a_refusal_is_raised_with_a_note(self, broken: Compacter) -> None:
        model = ScriptedModel(window=2_000)
        with pytest.raises(Exception, match="context") as raised:
            broken.wrap(model.completion)("m", talk(12, 400))
        assert "ZeroDivisionError" in "".join(raised.value.__notes__)
        assert model.rejected == 1

    def test_the_log_says_where_it_is(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(policy, "reduce_request", None)
        with pytest.raises(Exception, match="context"):
            Compacter().wrap(ScriptedModel(window=2_000).completion)("m", talk(12, 400))
        assert 'policy.py", line ' in caplog.text
        assert caplog.text.rstrip().endswith("TypeError")


class _Broken:
    """Stands for what was learnt of a model."""

    window: int | None = None
    learnt = False
    warned = False
    summarizer_window: int | None = None

    def __init__(self, model: str | None, place: str = "") -> None:
        pass

    def __getattr__(self, name: str) -> object:
        raise ZeroDivisionError

    def __setattr__(self, name: str, value: object) -> None:
        raise ZeroDivisionError


class TestTheTraceback:
    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_of_a_refusal_names_the_function_that_raised_it(self, asynchronous: bool) -> None:
        def completion(messages: list[Any]) -> Any:
            raise token_limit_error(limit=1_000, input_tokens=2_000)

        async def acompletion(messages: list[Any]) -> Any:
            return completion(messages)

        wrap = Compacter(max_retries=0).wrap
        with pytest.raises(Exception, match="context") as raised:
            asyncio.run(wrap(acompletion)(talk())) if asynchronous else wrap(completion)(talk())
        assert raised.traceback[-1].name == "completion"

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_of_a_failed_retry_has_four_frames_of_compacter(self, asynchronous: bool) -> None:
        calls: list[int] = []

        def completion(model: str, messages: list[Any]) -> Any:
            calls.append(len(messages))
            if len(calls) == 1:
                raise token_limit_error(limit=1_000, input_tokens=2_000)
            raise ProviderError("no credit")

        async def acompletion(model: str, messages: list[Any]) -> Any:
            return completion(model, messages)

        compacter = Compacter(summarizer=ScriptedSummarizer())
        chat: Any = compacter.wrap(completion)
        if asynchronous:
            wrapped = compacter.wrap(acompletion)
            chat = lambda model, messages: asyncio.run(wrapped(model, messages))  # noqa: E731
        with pytest.raises(ProviderError) as raised:
            chat("m", talk(12, 400))

        frames = [
            Path(frame.filename) for frame in traceback.extract_tb(raised.value.__traceback__)
        ]
        assert len([frame for frame in frames if HOUSE in frame.parents]) <= 4
        assert frames[-1] == Path(__file__)
        assert raised.value.__context__ is None


class TestNestedCompacters:
    @pytest.mark.parametrize(
        ("shape", "max_retries"),
        [
            ("function", 1),
            ("function", 3),
            ("generator", 3),
            ("async generator", 3),
            ("function that returns a generator", 3),
        ],
    )
    def test_refused_request(self, shape: str, max_retries: int) -> None:
        """No refused request is sent twice, also by streams, which call when they are read."""
        sent: list[str] = []

        def completion(model: str, messages: list[Any]) -> Any:
            sent.append(repr(messages))
            raise token_limit_error(limit=10, input_tokens=90_000)

        summarizer = ScriptedSummarizer("Short.")
        inner = Compacter(summarizer=summarizer, max_retries=max_retries).wrap(completion)
        outer = Compacter(summarizer=summarizer)

        def function(model: str, messages: list[Any]) -> Any:
            return inner(model, messages)

        def generator(model: str, messages: list[Any]) -> Iterator[Any]:
            yield inner(model, messages)

        async def async_generator(model: str, messages: list[Any]) -> AsyncIterator[Any]:
            yield inner(model, messages)

        async def read(stream: AsyncIterator[Any]) -> list[Any]:
            return [chunk async for chunk in stream]

        def returning(model: str, messages: list[Any]) -> Iterator[Any]:
            return generator(model, messages)

        calls: dict[str, Callable[[], object]] = {
            "function": lambda: outer.wrap(function)("m", talk(12, 400)),
            "generator": lambda: list(outer.wrap(generator)("m", talk(12, 400))),
            "async generator": lambda: asyncio.run(
                read(outer.wrap(async_generator)("m", talk(12, 400)))
            ),
            "function that returns a generator": lambda: list(
                outer.wrap(returning)("m", talk(12, 400))
            ),
        }
        with pytest.raises(Exception, match="context"):
            calls[shape]()
        assert len(sent) == len(set(sent)) > 1
        assert outer.totals.rounds == 0

    def test_the_outer_one_goes_on_where_the_inner_one_tries_nothing(self) -> None:
        model = ScriptedModel(window=2_000)
        inner = Compacter(max_retries=0)
        outer = Compacter(summarizer=ScriptedSummarizer())
        assert outer.wrap(inner.wrap(model.completion))("m", talk(12, 400))
        assert outer.totals.rounds == 1


class TestHooks:
    def test_a_hook_may_not_empty_an_event(self) -> None:
        seen: list[CompactionEvent] = []

        def emptying(event: CompactionEvent) -> None:
            vars(event).clear()

        compacter = Compacter(
            summarizer=ScriptedSummarizer("Short."), on_compaction=[emptying, seen.append]
        )
        result = compacter.compact(talk(12, 400))
        assert result.event is not None
        assert result.event.summary == "Short."
        assert seen[0].summary == "Short."

    def test_an_event_with_half_a_surrogate_pair_is_json_all_the_same(self) -> None:
        told: list[CompactionEvent] = []
        compacter = Compacter(
            on_compaction=told.append, summarizer=lambda messages, **_: "A half \ud83d of a smiley."
        )
        compacter.compact(talk(12, 400))
        assert "A half \ufffd of a smiley." in told[0].model_dump_json()
        assert "A half \ud83d of a smiley." in (told[0].summary, *told[0].unverified)


class _GrantsNobody(InProcessMemory):
    """A user's memory whose ``claim`` was left empty."""

    blocking = True

    def claim(self, key: str, seconds: float) -> Any:
        return None


class TestMemory:
    def test_a_memory_that_grants_nobody_a_claim_is_not_waited_for(self) -> None:
        compacter = Compacter(summarizer=ScriptedSummarizer(), memory=_GrantsNobody())
        compacter.wrap(ScriptedModel(window=2_000).completion)("m", talk(12, 400))
        assert compacter.totals.rounds == 1

    def test_no_message_of_a_finished_call_is_kept_alive(self) -> None:
        import gc
        import weakref

        class Message(dict[str, Any]):
            pass

        compacter = Compacter()
        message = Message(role="user", content="x")

        def completion(messages: list[Any]) -> Any:
            return {"usage": {"prompt_tokens": 100}}

        wrapped = compacter.wrap(completion)
        wrapped(messages=[message])
        alive = weakref.ref(message)
        del message
        gc.collect()
        assert alive() is None
        assert compacter._state.last_reply is not None
        *numbers, usage = compacter._state.last_reply
        assert all(isinstance(one, int) for one in numbers)
        assert usage == {"prompt_tokens": 100}


class TestTimeout:
    def test_is_one_budget_for_a_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 0.0
        left = []
        ask = SyncIO.ask

        async def watched(self: SyncIO, action: Any, seconds: float | None, **options: Any) -> Any:
            left.append(seconds)
            return await ask(self, action, seconds, **options)

        def slow(messages: list[Any], **_: Any) -> str:
            nonlocal now
            now += 40
            raise ValueError("no summary")

        monkeypatch.setattr(SyncIO, "ask", watched)
        monkeypatch.setattr("compacter.call.handlers.time", SimpleNamespace(monotonic=lambda: now))
        compacter = Compacter(summarizer=slow, timeout=60, compact_ratio=0.2, memory=None)
        with contextlib.suppress(Exception):
            compacter.wrap(unnumbered(ScriptedModel(window=900)))("m", talk(40))
        assert left[:3] == [60, 20, 0]


def unnumbered(model: ScriptedModel) -> Any:
    """A model whose refusal states no numbers, so that several rounds are needed."""

    def completion(model_name: str, messages: list[Any]) -> Any:
        try:
            return model.completion(model_name, messages)
        except Exception:  # noqa: BLE001 - whatever it is, it is the refusal
            raise ProviderError("context_length_exceeded: the prompt is too long") from None

    return completion


class TestLargeHistories:
    @pytest.mark.parametrize(
        ("window", "size", "thread"),
        [(20_000, (100, 2_000), "compacter"), (2_000, (12, 400), "MainThread")],
    )
    async def test_what_is_worked_out_about_one_does_not_hold_up_the_event_loop(
        self, window: int, size: tuple[int, int], thread: str
    ) -> None:
        """The work on a large history is done in a thread, that on a small one at once."""
        threads: set[str] = set()

        def pin(message: Chat) -> bool:
            threads.add(threading.current_thread().name)
            return False

        compacter = Compacter(summarizer=ScriptedSummarizer(), pin=pin)
        await compacter.wrap(ScriptedModel(window=window).acompletion)("m", talk(*size))
        assert threads == {thread}

    @pytest.mark.parametrize("max_tokens", [5_000, 500_000])
    async def test_nor_does_the_count_of_a_history(self, max_tokens: int) -> None:
        threads: list[str] = []

        def count(messages: Sequence[Any]) -> int:
            threads.append(threading.current_thread().name)
            return sum(len(str(message)) for message in messages) // 4

        compacter = Compacter(summarizer="extractive", token_counter=count)
        history = History(talk(100, 2_000), compacter=compacter, max_tokens=max_tokens)
        result = await history.acompact_if_needed()
        assert (result.changed, result.fits) == (max_tokens == 5_000, True)
        assert set(threads) == {"compacter"}

    async def test_nor_does_the_archive_of_what_a_history_has_folded(self) -> None:
        threads: set[str] = set()

        def redact(text: str) -> str:
            threads.add(threading.current_thread().name)
            return text

        compacter = Compacter(summarizer="extractive", redact=redact, recall=500)
        history = History(talk(100, 2_000), compacter=compacter)
        await history.acompact(budget=20_000)
        history.append({"role": "user", "content": "What was said about number 7?"})
        threads.clear()
        await compacter.wrap(ScriptedModel(window=20_000).acompletion)("m", history)
        assert threads == {"compacter"}


def under_trio(model: ScriptedModel) -> Any:
    async def acompletion(model_name: str, messages: list[Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return model.completion(model_name, messages)

    return acompletion


class TestTrio:
    def test_an_overflow_is_compacted(self) -> None:
        model = ScriptedModel(window=2_000)
        told: list[str] = []

        async def hook(event: CompactionEvent) -> None:
            await trio.lowlevel.checkpoint()
            told.append(event.strategy)

        async def summarizer(messages: list[Any], **_: Any) -> str:
            await trio.lowlevel.checkpoint()
            return "They asked twelve questions."

        compacter = Compacter(summarizer=summarizer, on_compaction=hook, timeout=60)

        reply = trio.run(compacter.wrap(under_trio(model)), "m", talk(12, 400))
        assert reply["choices"]
        assert told == ["summarize"]

    def test_two_tasks_make_one_summary(self) -> None:
        model = ScriptedModel(window=2_000)

        async def summarizer(messages: list[Any], **_: Any) -> str:
            await trio.sleep(0.05)
            return "They asked twelve questions."

        compacter = Compacter(summarizer=summarizer)

        async def both() -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(compacter.wrap(under_trio(model)), "m", talk(12, 400))

        trio.run(both)
        assert compacter.totals.rounds == 1
        assert compacter.totals.reused == 1

    def test_the_timeout_holds_for_a_summarizer_that_never_answers(self) -> None:
        async def never(messages: list[Any], **_: Any) -> str:
            await trio.sleep_forever()
            raise AssertionError

        model = ScriptedModel(window=2_000)

        compacter = Compacter(summarizer=never, timeout=0.05)
        assert trio.run(compacter.wrap(under_trio(model)), "m", talk(12, 400))["choices"]

    def test_a_summarizer_that_blocks_is_left_behind(self) -> None:
        release = threading.Event()
        ended = list[str]()
        model = ScriptedModel(window=2_000)

        def blocking(messages: list[Any]) -> str:
            release.wait(20)
            ended.append("too late")
            return "Too late."

        compacter = Compacter(summarizer=blocking, timeout=0.05)
        assert trio.run(compacter.wrap(under_trio(model)), "m", talk(12, 400))["choices"]
        assert ended == []
        release.set()
