"""Half-sent requests end, and large ones are refused."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from compacter.errors import ConfigurationError
from compacter.serve import create_app

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


@pytest.mark.parametrize(
    "given",
    [
        {"max_body": 0},
        {"max_body": "1"},
        {"body_timeout": 0},
    ],
)
def test_a_limit_that_cannot_be_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        create_app("https://api.openai.com/v1", **given)
