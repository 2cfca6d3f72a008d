"""The body of a raw response, as it comes over the wire: in pieces, broken off, or unreadable."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from typing import Any

import openai
import pytest
from tests.serve import scripted

from compacter import Compacter

# Version 2 of the SDK uses httpx, version 3 httpx2.
HTTPX = import_module(openai.DefaultHttpxClient.__bases__[0].__module__.partition(".")[0])
ROLE = b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}\n\n'
PIECES = [
    b'data: {"choices": [{"index": 0, "delta": {"content": "%d"}}]}\n\n' % number
    for number in range(3)
]
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


async def read_raw(
    url: str, go_on: Callable[[], object], *, asynchronous: bool, stream: bool = True
) -> bytes:
    """The body of a wrapped client's raw response, as the client leaves it; ``go_on`` is called
    before it is read.
    """
    options: dict[str, Any] = {"base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}
    async with AsyncExitStack() as stack:
        if asynchronous:
            client = await stack.enter_async_context(openai.AsyncOpenAI(**options))
            call: Any = Compacter().wrap(client).chat.completions.with_streaming_response.create
            reply = await stack.enter_async_context(call(stream=stream, **ASK))
            go_on()
            return b"".join([chunk async for chunk in reply.http_response.aiter_raw()])
        made = stack.enter_context(openai.OpenAI(**options))
        call = Compacter().wrap(made).chat.completions.with_streaming_response.create
        reply = stack.enter_context(call(stream=stream, **ASK))
        go_on()
        return b"".join(reply.http_response.iter_raw())


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_pieces_that_come_after_the_first_are_read_when_they_come(
    *, asynchronous: bool
) -> None:
    begun = threading.Event()

    def answer(_: object, write: Callable[[bytes], object]) -> None:
        write(scripted.STREAM + scripted.chunk(ROLE + PIECES[0]))
        assert begun.wait(300)
        write(b"".join(map(scripted.chunk, [*PIECES[1:], b""])))

    with scripted.scripted(answer) as server:
        assert await read_raw(server.url, begun.set, asynchronous=asynchronous) == b"".join(
            [ROLE, *PIECES]
        )


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_body_that_breaks_off_before_its_first_content_fails_where_it_is_read(
    *, asynchronous: bool
) -> None:
    with scripted.scripted(
        lambda _, write: write(scripted.STREAM + scripted.chunk(ROLE))
    ) as server:
        reached = threading.Event()
        with pytest.raises(HTTPX.RemoteProtocolError):
            await read_raw(server.url, reached.set, asynchronous=asynchronous)
        assert reached.is_set()
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("text/event-stream", "Content-Encoding: br\r\n"),
        ("text/plain", ""),
        ("application/json", ""),
        ("application/json", "Content-Encoding: zstd\r\n"),
    ],
)
async def test_a_body_that_cannot_be_read_is_left_as_it_is(kind: str, more: str) -> None:
    whole = scripted.plain(b"context_length_exceeded", kind=kind, more=more)
    with scripted.scripted(lambda _, write: write(whole)) as server:
        read = await read_raw(server.url, lambda: None, asynchronous=False, stream="event" in kind)
        assert read == b"context_length_exceeded"
        assert len(server.asked) == 1
