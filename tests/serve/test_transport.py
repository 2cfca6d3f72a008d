"""Connections to an upstream: what comes back is what was sent, piece by piece, and each connection
is used again only if nothing is left on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from compacter.gateway.serve.targets import make_client
from compacter.gateway.serve.transport import Transport
from compacter.gateway.serve.upstream import Upstream

OK = b"HTTP/1.1 200 OK\r\n"
Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Served:
    """A transport, and a server that a test plays on each of its connections."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.transport = Transport(None, 30.0)
        self.connections = 0
        self.tasks: set[Any] = set()

    async def ask(self, content: bytes | AsyncIterator[bytes] = b"{}") -> httpx.Response:
        request = httpx.Request("POST", f"{self.url}/v1/x?y=%2F", content=content)
        return await self.transport.handle_async_request(request)

    async def body(self, content: bytes | AsyncIterator[bytes] = b"{}") -> bytes:
        response = await self.ask(content)
        try:
            return b"".join([piece async for piece in response.aiter_raw()])
        finally:
            await response.aclose()


@contextlib.asynccontextmanager
async def served(peer: Peer) -> AsyncGenerator[Served]:
    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        one.connections += 1
        one.tasks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await peer(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(count, "127.0.0.1", 0)
    one = Served(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server:
        try:
            yield one
        finally:
            await one.transport.aclose()
            await asyncio.gather(*one.tasks)


async def request_on(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The head of the next request, and its body of a stated length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    return head, await reader.readexactly(length)


def answering(*parts: bytes) -> Peer:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_on(reader)
            for part in parts:
                writer.write(part)
                await writer.drain()

    return peer


def run(work: Callable[[Served], Awaitable[Any]], peer: Peer) -> Any:
    async def main() -> Any:
        async with served(peer) as one, asyncio.timeout(60):
            return await work(one)

    return asyncio.run(main())


def test_head_and_body_arrive_as_they_were_given() -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await request_on(reader))
        writer.write(OK + b"content-length: 0\r\n\r\n")

    assert run(lambda one: one.body(b"\0 bytes \xff"), peer) == b""
    ((head, body),) = seen
    assert head.startswith(b"POST /v1/x?y=%2F HTTP/1.1\r\n")
    assert body == b"\0 bytes \xff"


@pytest.mark.parametrize(
    ("parts", "connections"),
    [
        ([OK + b"content-length: 4\r\n\r\nabcd"], 1),
        ([b"HTTP/1.1 103 Early Hints\r\n\r\n", OK + b"content-length: 4\r\n\r\nabcd"], 1),
        ([OK + b"transfer-encoding: chunked\r\n\r\n", b"2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"], 1),
        ([OK + b"content-length: 4\r\nconnection: close\r\n\r\nabcd"], 3),
        ([OK + b"content-length: 4\r\n\r\nabcd and more than it said"], 3),
    ],
    ids=["length", "early hints", "chunks", "closed", "unasked bytes"],
)
def test_a_connection_is_used_again_if_nothing_is_left_on_it(
    parts: list[bytes], connections: int
) -> None:
    async def thrice(one: Served) -> int:
        for _ in range(3):
            assert await one.body() == b"abcd"
        return one.connections

    assert run(thrice, answering(*parts)) == connections


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_on(reader)
        writer.write(OK + b"\r\nabc")

    assert run(Served.body, peer) == b"abc"


@pytest.mark.parametrize(
    "parts",
    [[], [b"no HTTP\r\n\r\n"], [OK[:9]], [OK + b"content-length: 9\r\n\r\nabc"]],
    ids=["nothing", "no HTTP", "half a head", "half a body"],
)
def test_what_breaks_off_is_an_error(parts: list[bytes]) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_on(reader)
        writer.writelines(parts)

    with pytest.raises(httpx.RemoteProtocolError):
        run(Served.body, peer)


def test_a_reset_is_no_end_of_a_body() -> None:
    is_read = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_on(reader)
        writer.write(OK + b"\r\nabc")
        await is_read.wait()
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.transport.abort()

    async def work(one: Served) -> None:
        response = await one.ask()
        async for _ in response.aiter_raw():
            is_read.set()

    with pytest.raises(httpx.ReadError):
        run(work, peer)


def test_an_answer_before_the_end_of_the_request_is_read() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await writer.drain()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536
            await asyncio.sleep(0)

    async def work(one: Served) -> bytes:
        response = await one.ask(endless())
        assert response.status_code == 413
        return b"".join([piece async for piece in response.aiter_raw()])

    assert run(work, peer) == b"no"


def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_on(reader)
        writer.write(OK + b"content-length: 4\r\n\r\nabcd")

    async def twice(one: Served) -> int:
        assert await one.body() == b"abcd"
        await asyncio.gather(*one.tasks)
        await asyncio.sleep(0)  # The loop has seen it close.
        assert await one.body() == b"abcd"
        return one.connections

    assert run(twice, peer) == 2


def test_a_server_that_is_away_is_an_error_of_connecting() -> None:
    async def work(one: Served) -> None:
        one.url = f"http://127.0.0.1:{port}"
        await one.body()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(httpx.ConnectError):
        run(work, answering())


def test_the_environments_proxy_stands_before_other_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bytes] = []

    def proxy(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            seen.append(connection.recv(65536))
            connection.sendall(OK + b"content-length: 2\r\n\r\nok")

    async def ask() -> bytes:
        client = make_client(Upstream.parse("http://provider.test/v1"))
        request = httpx.Request("GET", "http://provider.test/v1/models")
        response = await client.handle_async_request(request)
        return b"".join([piece async for piece in response.aiter_raw()])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=proxy, args=(listener,), daemon=True)
        thread.start()
        assert asyncio.run(ask()) == b"ok"
    assert seen[0].startswith(b"GET http://provider.test/v1/models HTTP/1.1\r\n")
    monkeypatch.setenv("NO_PROXY", "provider.test")
    assert isinstance(make_client(Upstream.parse("http://provider.test/v1")), Transport)
