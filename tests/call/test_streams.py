"""Streams: compacted while they are opening, then the vendor's own object, nothing twice and
nothing late.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, get_args

import pytest
from tests.conversations import Chat, talk
from tests.kit import OddModel

from compacter import Compacter, History
from compacter.messages.replies import has_content
from compacter.testing import (
    AsyncScriptedStream,
    Interrupted,
    OverflowAt,
    ScriptedModel,
    ScriptedStream,
    ScriptedSummarizer,
    TokenLimitError,
    server_error,
    token_limit_error,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

PLACES: tuple[OverflowAt, ...] = get_args(OverflowAt)
ANSWER = "The answer, told in a few chunks."


def compacter(**options: Any) -> Compacter:
    return Compacter(summarizer=ScriptedSummarizer("They asked and answered."), **options)


def text(chunks: Sequence[Any]) -> str:
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in chunks
        for choice in chunk.get("choices", ())
    )


async def read(stream: Any, heard: list[Any] | None = None) -> list[Any]:
    """All chunks; with ``heard``, those before an error are in it."""
    heard = [] if heard is None else heard
    async for chunk in stream:
        heard.append(chunk)
    return heard


@pytest.mark.parametrize(
    ("chunk", "shows"),
    [
        ("", False),
        ("word", True),
        ({"choices": [{"delta": {"role": "assistant"}}]}, False),
        ({"choices": [{"delta": {"content": "word"}}]}, True),
        ({"type": "ping"}, False),
        ({"type": "content_block_delta"}, True),
        ({"candidates": [{"content": {}}]}, False),
        ({"candidates": [{"content": {"parts": [{"text": "word"}]}}]}, True),
        ({"messageStart": {"role": "assistant"}}, False),
        ({"contentBlockDelta": {}}, True),
        ({"messageStart": {}, "mine": "word"}, True),
        (object(), True),
        (b"", False),
        (b"word", True),
        ({"choices": []}, False),
        ({"choices": [{"delta": {"content": ""}}, {"delta": {"content": "word"}}]}, True),
        ({"choices": [{"delta": {}, "finish_reason": "stop"}]}, True),
        ({"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}, True),
        ({"choices": [{"delta": {"reasoning_content": "Hm."}}]}, True),
        ({"choices": [{"delta": {"refusal": "I cannot."}}]}, True),
        ({"choices": [{"text": ""}]}, False),
        ({"choices": [{"text": "word"}]}, True),
        ({"choices": [{"message": {"content": "word"}}]}, True),
        ({"type": "response.created"}, False),
        ({"type": "response.output_text.delta"}, True),
        ({"candidates": []}, False),
        ({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}, True),
        ({"candidates": [{"content": None, "finish_reason": "SAFETY"}]}, True),
        ({"contentBlockStart": {}}, False),
        ({}, True),
    ],
)
def test_a_chunk_shows_something_unless_it_is_housekeeping(chunk: Any, shows: bool) -> None:
    assert has_content(chunk) is shows


class Wordy:
    """A stream that tells what its producer has made and what became of it; an error, raised once,
    ends it early.
    """

    def __init__(self, *chunks: str, then: Exception | None = None) -> None:
        self.made: list[str] = []
        self.closed = False
        self._chunks = iter(chunks)
        self._then = then

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        chunk = next(self._chunks, None)
        if chunk is None:
            error = self._then
            self._then = None
            raise error or StopIteration
        self.made.append(chunk)
        return chunk

    def close(self) -> None:
        self.closed = True


class AsyncWordy(Wordy):
    """The same for ``async for``."""

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        await asyncio.sleep(0)
        try:
            return Wordy.__next__(self)
        except StopIteration:
            raise StopAsyncIteration from None

    __next__ = None  # type: ignore[assignment]
    __iter__ = None  # type: ignore[assignment]

    async def aclose(self) -> None:
        self.closed = True


class TestOverflowWhileOpening:
    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("housekeeping", [0, 3])
    @pytest.mark.parametrize("reply_type", ["dict", "object"])
    def test_one_whole_answer_is_read(
        self, place: OverflowAt, housekeeping: int, reply_type: Any
    ) -> None:
        model = OddModel(
            window=900,
            replies=ANSWER,
            overflow_at=place,
            housekeeping=housekeeping,
            reply_type=reply_type,
        )

        stream = compacter().wrap(model.completion)("m", talk(), stream=True)
        chunks = [chunk if isinstance(chunk, dict) else chunk.model_dump() for chunk in stream]

        assert text(chunks) == ANSWER
        assert [request.refused for request in model.requests] == [True, False]
        roles = [
            chunk for chunk in chunks for choice in chunk["choices"] if choice["delta"].get("role")
        ]
        assert len(roles) == 1
        assert len(chunks) == model.streams[-1].delivered
        assert all(stream.closed for stream in model.streams)

    @pytest.mark.parametrize("place", PLACES)
    async def test_so_it_is_in_an_async_program(self, place: OverflowAt) -> None:
        model = OddModel(window=900, replies=ANSWER, overflow_at=place, housekeeping=1)

        stream = await compacter().wrap(model.acompletion)("m", talk(), stream=True)
        assert stream is model.streams[-1]
        chunks = await read(stream)

        assert type(stream) is AsyncScriptedStream
        assert text(chunks) == ANSWER
        assert [request.refused for request in model.requests] == [True, False]
        assert all(stream.closed for stream in model.streams)

    @pytest.mark.parametrize("place", PLACES)
    def test_when_nothing_helps_the_providers_answer_comes_through(self, place: OverflowAt) -> None:
        model = ScriptedModel(window=900, overflow_at=place)
        history = [{"role": "user", "content": "long " * 4_000}]

        if place == "error_chunk":
            chunks = list(compacter().wrap(model.completion)("m", history, stream=True))
            assert "error" in chunks[-1]
        else:
            with pytest.raises(TokenLimitError, match="900"):
                list(compacter().wrap(model.completion)("m", history, stream=True))

        assert len(model.requests) == 1

    @pytest.mark.parametrize("place", PLACES)
    def test_a_second_overflow_is_answered_like_the_first(self, place: OverflowAt) -> None:
        # A style that says no numbers: the first round cannot aim.
        model = ScriptedModel(window=400, replies=ANSWER, overflow_at=place, style="bedrock")

        stream = compacter(compact_ratio=0.5).wrap(model.completion)("m", talk(), stream=True)

        assert text(list(stream)) == ANSWER
        assert model.rejected >= 2
        assert not model.requests[-1].refused


class TestAfterTheFirstContent:
    def test_an_error_passes_through_and_nothing_comes_twice(self) -> None:
        late = token_limit_error(limit=900, input_tokens=1_000)
        model = ScriptedModel(
            window=10**6, replies=Interrupted(ANSWER, after=3, error=late), chunk_size=4
        )
        heard: list[Any] = []

        stream = compacter().wrap(model.completion)("m", talk(), stream=True)
        with pytest.raises(TokenLimitError) as caught:
            heard.extend(stream)

        assert caught.value is late
        assert ANSWER.startswith(text(heard))
        assert text(heard)
        assert len(model.requests) == 1

    def test_the_first_content_is_passed_on_before_the_second_is_made(self) -> None:
        stream = Wordy("", "one ", "two ", "three")

        def chat(messages: Sequence[Chat]) -> Wordy:
            return stream

        opened = compacter().wrap(chat)(messages=talk())
        heard = [next(opened), next(opened)]

        assert heard == ["", "one "]
        assert stream.made == ["", "one "]
        assert next(opened) == "two "
        assert stream.made == ["", "one ", "two "]


class TestTheObject:
    def test_it_is_the_vendors_own(self) -> None:
        model = ScriptedModel(window=900, replies=ANSWER)

        stream = compacter().wrap(model.completion)("m", talk(), stream=True)

        assert stream is model.streams[-1]
        assert isinstance(stream, ScriptedStream)
        assert stream.response.status_code == 200
        list(stream)
        assert type(stream) is ScriptedStream

    def test_its_with_block_closes_it(self) -> None:
        model = ScriptedModel(window=900, replies=ANSWER, chunk_size=2)

        with compacter().wrap(model.completion)("m", talk(), stream=True) as stream:
            next(stream)
            assert not model.streams[-1].closed

        assert model.streams[-1].closed

    def test_what_was_held_back_is_not_given_out_after_a_close(self) -> None:
        model = ScriptedModel(window=900, replies=ANSWER, chunk_size=2)

        stream = compacter().wrap(model.completion)("m", talk(), stream=True)
        stream.close()

        assert model.streams[-1].closed
        assert text(list(stream)) in ("", ANSWER[:2])

    def test_a_class_that_cannot_be_swapped_is_stood_in_for(self) -> None:
        class Slotted:
            __slots__ = ("closed", "left")
            label = "a vendor's own"

            def __init__(self) -> None:
                self.closed = False
                self.left = ["a", "b", "c"]

            def __iter__(self) -> Slotted:
                return self

            def __next__(self) -> str:
                if not self.left:
                    raise StopIteration
                return self.left.pop(0)

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *exc: object) -> None:
                self.close()

            def close(self) -> None:
                self.closed = True

        def chat(messages: Sequence[Chat]) -> Slotted:
            return Slotted()

        with compacter().wrap(chat)(messages=talk()) as stream:
            assert stream.label == "a vendor's own"
            assert "".join(stream) == "abc"
        assert stream.closed

    @pytest.mark.parametrize("chunks", [(), ("",), ("", "")])
    def test_a_stream_without_content_ends_as_it_would(self, chunks: tuple[str, ...]) -> None:
        def chat(messages: Sequence[Chat]) -> Wordy:
            return Wordy(*chunks)

        assert list(compacter().wrap(chat)(messages=talk())) == list(chunks)

    def test_a_reply_that_is_a_list_or_a_text_is_no_stream(self) -> None:
        replies: list[Any] = [["a"], "text", ("a",), {"choices": []}, range(3), None]

        def chat(messages: Sequence[Chat], number: int) -> Any:
            return replies[number]

        for number, reply in enumerate(replies):
            assert compacter().wrap(chat)(messages=talk(), number=number) is reply


class TestGenerators:
    def test_a_generator_function_stays_one(self) -> None:
        model = ScriptedModel(window=900, replies=ANSWER, overflow_at="first_event")

        def chat(messages: Sequence[Chat]) -> Iterator[Any]:
            yield from model.completion("m", messages, stream=True)

        chunks = compacter().wrap(chat)(messages=talk())

        assert not model.requests
        assert text(list(chunks)) == ANSWER
        assert [request.refused for request in model.requests] == [True, False]

    async def test_an_async_generator_function_stays_one(self) -> None:
        model = ScriptedModel(window=900, replies=ANSWER, overflow_at="first_event")

        async def chat(messages: Sequence[Chat]) -> AsyncIterator[Any]:
            async for chunk in await model.acompletion("m", messages, stream=True):
                yield chunk

        chunks = compacter().wrap(chat)(messages=talk())

        assert not model.requests
        assert text(await read(chunks)) == ANSWER
        assert [request.refused for request in model.requests] == [True, False]

    @pytest.mark.parametrize("busy", [None, "a trigger", "a history"])
    async def test_a_plain_function_may_return_an_async_generator(self, busy: str | None) -> None:
        model = ScriptedModel(window=900, replies=ANSWER, overflow_at="after_role")
        middle = compacter(trigger_tokens=100_000 if busy == "a trigger" else None)

        def chat(messages: Sequence[Chat]) -> AsyncIterator[Any]:
            async def chunks() -> AsyncIterator[Any]:
                async for chunk in await model.acompletion("m", messages, stream=True):
                    yield chunk

            return chunks()

        messages: Any = History(talk()) if busy == "a history" else talk()
        assert text(await read(middle.wrap(chat)(messages=messages))) == ANSWER
        assert middle.totals.rounds == 1

    async def test_a_stream_can_be_read_in_the_one_way_that_it_has(self) -> None:
        async def words() -> AsyncIterator[str]:
            yield "word"

        def chat(messages: Sequence[Chat], kind: str) -> Any:
            return iter(["word"]) if kind == "sync" else words()

        wrapped = compacter().wrap(chat)
        assert not hasattr(type(wrapped(talk(), "sync")), "__anext__")
        assert not hasattr(type(wrapped(talk(), "async")), "__next__")

    def test_what_a_generator_returns_at_its_end_is_kept(self) -> None:
        def chat(messages: Sequence[Chat]) -> Any:
            yield "one"
            return "usage"

        chunks = compacter().wrap(chat)(messages=talk())

        assert next(chunks) == "one"
        with pytest.raises(StopIteration) as ended:
            next(chunks)
        assert ended.value.value == "usage"


class TestAnErrorInAStream:
    """Raised where the reader gets to it, once; then it is the stream's own again."""

    def test_comes_after_what_was_read_before_it(self) -> None:
        stream = Wordy("", then=server_error())
        opened = compacter().wrap(lambda messages: stream)(messages=talk())
        assert next(opened) == ""
        with pytest.raises(type(server_error())):
            next(opened)
        assert list(opened) == []
        assert type(stream) is Wordy


def test_the_events_inside_a_helper_stream_are_read_first() -> None:
    class Helper(Wordy):
        def __init__(self, raw: Wordy) -> None:
            super().__init__()
            self._raw_stream = raw

        def __next__(self) -> str:
            return next(self._raw_stream).upper()

    stream = compacter().wrap(lambda messages: Helper(Wordy("one ", "two")))(messages=talk())
    assert isinstance(stream, Helper)
    assert list(stream) == ["ONE ", "TWO"]
