from __future__ import annotations

from typing import Any

import pytest
from tests.kit import OddModel

from compacter.testing import (
    AsyncScriptedStream,
    Interrupted,
    OverflowAt,
    ScriptedModel,
    ScriptedStream,
    TokenLimitError,
)

HELLO = [{"role": "user", "content": "hello"}]
PLACES: list[OverflowAt] = ["first_event", "after_role", "error_chunk"]


def delta(chunk: dict[str, Any]) -> dict[str, Any]:
    return chunk["choices"][0]["delta"] if chunk["choices"] else {}


def text(chunks: list[dict[str, Any]]) -> str:
    return "".join(delta(chunk).get("content", "") for chunk in chunks)


async def read(stream: AsyncScriptedStream, seen: list[dict[str, Any]]) -> None:
    async for chunk in stream:
        seen.append(chunk)  # noqa: PERF401 - a comprehension would lose what came before an error


class TestChunks:
    def test_role_then_text_then_the_finish(self) -> None:
        chunks = list(
            ScriptedModel(replies="abcdef", chunk_size=4).completion("m", HELLO, stream=True)
        )
        assert [(delta(chunk), chunk["choices"][0]["finish_reason"]) for chunk in chunks] == [
            ({"role": "assistant", "content": ""}, None),
            ({"content": "abcd"}, None),
            ({"content": "ef"}, None),
            ({}, "stop"),
        ]

    def test_usage_comes_last_and_only_if_asked_for(self) -> None:
        model = ScriptedModel()
        chunks = list(
            model.completion("m", HELLO, stream=True, stream_options={"include_usage": True})
        )
        assert (chunks[-1]["choices"], chunks[-1]["usage"]["prompt_tokens"]) == ([], 2)
        assert not any("usage" in chunk for chunk in chunks[:-1])

    def test_tool_calls_come_in_pieces(self) -> None:
        function = {"name": "look_up", "arguments": '{"q": 1}'}
        reply = {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        chunks = list(
            ScriptedModel(replies=reply, chunk_size=5).completion("m", HELLO, stream=True)
        )
        parts = [delta(chunk)["tool_calls"][0] for chunk in chunks if "tool_calls" in delta(chunk)]
        assert (parts[0]["id"], parts[0]["function"]["name"], len(parts)) == (
            "call_1",
            "look_up",
            3,
        )
        assert "".join(part["function"]["arguments"] for part in parts) == '{"q": 1}'
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"

    def test_a_refusal_of_the_model_is_streamed(self) -> None:
        chunks = list(ScriptedModel(replies={"refusal": "no"}).completion("m", HELLO, stream=True))
        assert {"refusal": "no"} in [delta(chunk) for chunk in chunks]

    def test_chunks_can_be_objects(self) -> None:
        stream = ScriptedModel(reply_type="object").completion("m", HELLO, stream=True)
        assert [chunk.choices[0].delta for chunk in stream][1].content == "ok"


class TestStream:
    def test_it_has_a_response_and_closes_with_its_block(self) -> None:
        model = ScriptedModel(replies="a long text that has many chunks")
        with model.completion("m", HELLO, stream=True) as stream:
            next(stream)
            assert stream.response.status_code == 200
            assert not stream.closed
        assert stream.closed
        assert list(stream) == []
        assert model.streams == (stream,)
        assert stream.delivered == 1

    async def test_the_async_stream_does_the_same(self) -> None:
        stream = await ScriptedModel().acompletion("m", HELLO, stream=True)
        assert isinstance(stream, AsyncScriptedStream)
        async with stream:
            assert text([chunk async for chunk in stream]) == "ok"
        assert stream.closed


class TestOverflow:
    @pytest.mark.parametrize(("place", "before"), [("first_event", 0), ("after_role", 3)])
    def test_later_it_is_raised_while_reading(self, place: OverflowAt, before: int) -> None:
        model = OddModel(window=1, overflow_at=place, housekeeping=2)
        stream = model.completion("m", HELLO, stream=True)
        assert isinstance(stream, ScriptedStream)
        seen: list[dict[str, Any]] = []
        with pytest.raises(TokenLimitError):
            seen.extend(stream)
        assert (stream.delivered, stream.closed, text(seen)) == (before, True, "")

    def test_inside_http_200_it_is_a_chunk(self) -> None:
        model = ScriptedModel(window=1, overflow_at="error_chunk")
        (chunk,) = model.completion("m", HELLO, stream=True)
        assert chunk["error"]["code"] == "context_length_exceeded"
        assert "2 tokens" in chunk["error"]["message"]

    @pytest.mark.parametrize("place", PLACES)
    async def test_async_streams_refuse_at_the_same_places(self, place: OverflowAt) -> None:
        stream = await ScriptedModel(window=1, overflow_at=place).acompletion(
            "m", HELLO, stream=True
        )
        seen: list[dict[str, Any]] = []
        if place == "error_chunk":
            assert [chunk["error"]["code"] async for chunk in stream] == ["context_length_exceeded"]
            return
        with pytest.raises(TokenLimitError):
            await read(stream, seen)
        assert len(seen) == stream.delivered == PLACES.index(place)

    @pytest.mark.parametrize("place", PLACES)
    def test_a_call_that_does_not_stream_is_refused_at_once(self, place: OverflowAt) -> None:
        with pytest.raises(TokenLimitError):
            ScriptedModel(window=1, overflow_at=place).completion("m", HELLO)


class TestInterruption:
    def test_a_stream_breaks_after_content(self) -> None:
        model = ScriptedModel(replies=[Interrupted("abcdefgh", after=2), "whole"], chunk_size=4)
        seen: list[dict[str, Any]] = []
        with pytest.raises(TokenLimitError):
            seen.extend(model.completion("m", HELLO, stream=True))
        assert text(seen) == "abcd"
        assert text(list(model.completion("m", HELLO, stream=True))) == "whole"
