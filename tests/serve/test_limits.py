"""Half-sent requests end, large ones are refused, and summaries wait in line."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from compacter.errors import ConfigurationError
from compacter.gateway.serve import create_app
from compacter.gateway.serve.limits import Limits, Slots

Serve = Callable[..., Any]
HEAD = "POST /v1/{path} HTTP/1.1\nHOST\nContent-Length: {length}\nConnection: close\n\n"
INSPECTED = "chat/completions"
PASSED_ON = "files"


def code(got: bytes) -> str:
    found: str = json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"]
    return found


def everything(connection: socket.socket) -> bytes:
    with connection, connection.makefile("rb") as read:
        return read.read()


@pytest.mark.parametrize("sent", ["", "POST /v1/chat/comp", "GET /healthz HTTP/1.1\nHost: 127"])
def test_a_connection_whose_head_does_not_come_is_closed(
    serve: Serve, upstream: Any, wire: Any, sent: str
) -> None:
    server = upstream(lambda asked, write: write(wire.plain(b"{}")))
    serving = serve(server.url, header_timeout=0.2)
    assert everything(serving.send(sent)) == b""


def test_a_second_head_that_is_half_sent_ends_too(serve: Serve, upstream: Any, wire: Any) -> None:
    server = upstream(lambda asked, write: write(wire.plain(b"{}")))
    serving = serve(server.url, header_timeout=0.2)
    connection = serving.send("GET /healthz HTTP/1.1\nHOST\n\n")
    got = b""
    while not got.endswith(b'{"status":"ok"}'):
        got += connection.recv(65_536)
    connection.sendall(b"GET /heal")
    assert everything(connection) == b""


@pytest.mark.parametrize("path", [INSPECTED, PASSED_ON])
def test_a_body_that_does_not_come_is_told(
    serve: Serve, upstream: Any, wire: Any, path: str
) -> None:
    server = upstream(lambda asked, write: write(wire.plain(b"{}")))
    serving = serve(server.url, body_timeout=0.2)
    got = everything(serving.send(HEAD.format(path=path, length=1_000), b'{"messages": ['))
    assert got.startswith(b"HTTP/1.1 408 ")
    assert code(got) == "request_timeout"
    assert server.asked == []


@pytest.mark.parametrize("path", [INSPECTED, PASSED_ON])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_operators_limit_is_refused(
    serve: Serve, upstream: Any, wire: Any, path: str, *, chunked: bool
) -> None:
    server = upstream(lambda asked, write: write(wire.plain(b"{}")))
    serving = serve(server.url, max_body=1_000)
    body = b"x" * 2_000
    head = HEAD.format(path=path, length=len(body))
    if chunked:
        head = head.replace(f"Content-Length: {len(body)}", "Transfer-Encoding: chunked")
        body = wire.chunk(body) + wire.chunk(b"")
    got = serving.ask(head, body)
    assert got.startswith(b"HTTP/1.1 413 ")
    assert code(got) == "body_too_large"
    assert server.asked == []


def test_a_body_below_it_goes_through(serve: Serve, upstream: Any, wire: Any) -> None:
    server = upstream(lambda asked, write: write(wire.plain(b"{}")))
    serving = serve(server.url, max_body=1_000)
    assert serving.ask(HEAD.format(path=PASSED_ON, length=9), b"x" * 9).endswith(b"{}")


async def test_summaries_of_one_caller_leave_room_for_others() -> None:
    slots = Slots(Limits(max_summaries=3, max_summaries_each=2))
    running: list[str] = []
    done = asyncio.Event()

    async def summary(caller: str) -> None:
        async with slots.place(caller):
            running.append(caller)
            await done.wait()

    async with asyncio.TaskGroup() as group:
        for caller in "aaaabb":
            group.create_task(summary(caller))
        while slots.taken < 3:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)
        assert sorted(running) == ["a", "a", "b"]
        assert slots.waiting == 3
        done.set()
    assert len(running) == 6
    assert (slots.taken, slots.waiting, len(slots._by_caller)) == (0, 0, 0)


async def test_a_summary_that_is_cancelled_in_line_leaves_nothing_behind() -> None:
    slots = Slots(Limits(max_summaries=1))
    async with slots.place("a"):
        waiting = asyncio.ensure_future(slots.place("b").__aenter__())
        while not slots.waiting:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert (slots.taken, slots.waiting) == (0, 0)
    async with slots.place("b"):
        assert slots.taken == 1


@pytest.mark.parametrize(
    "given",
    [
        {"max_body": 0},
        {"max_body": "1"},
        {"body_timeout": 0},
        {"header_timeout": -1},
        {"max_summaries": 0},
        {"max_summaries_each": 0.5},
    ],
)
def test_a_limit_that_cannot_be_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        create_app("https://api.openai.com/v1", **given)
