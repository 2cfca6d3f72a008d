"""Half-sent requests end."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from compacter.errors import ConfigurationError
from compacter.gateway.serve import server as server_module
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
def test_a_body_that_does_not_come_is_told(serve: Serve, answering: Any, path: str) -> None:
    server = answering()
    serving = serve(server.url, body_timeout=0.2)
    got = everything(serving.send(HEAD.format(path=path, length=1_000), b'{"messages": ['))
    assert got.startswith(b"HTTP/1.1 408 ")
    assert code(got) == "request_timeout"
    assert server.asked == []


def test_an_unfinished_head_is_closed(
    serve: Serve, upstream: Any, wire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection whose request's head does not come is closed, also one that was kept open; a
    request whose answer takes longer than that is not.
    """
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.2)
    closed = threading.Event()

    def answer(_: Any, write: Callable[[bytes], object]) -> None:
        assert closed.wait(300)
        write(wire.plain(b"{}"))

    serving = serve(upstream(answer).url)
    answered = serving.send("GET /v1/models HTTP/1.1\nHOST\nConnection: close\n\n")
    kept = serving.send("GET /healthz HTTP/1.1\nHOST\n\n")
    got = b""
    while b'{"status":"ok"}' not in got:
        got += kept.recv(65_536)
    kept.sendall(b"GET /hea")
    ends = [serving.send(""), serving.send("POST /v1/files HTTP/1.1\nHo"), kept]
    assert [*map(everything, ends)] == [b"", b"", b""]
    closed.set()
    assert everything(answered).endswith(b"{}")


@pytest.mark.parametrize("path", [INSPECTED, PASSED_ON])
def test_a_half_body_does_not_delay_the_end(
    serve: Serve, answering: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the server does not wait for a body of which nothing comes any more."""
    monkeypatch.setattr(server_module, "BODY_PAUSE", 0.1)
    serving = serve(answering().url, drain=300.0)
    with serving.send(HEAD.format(path=path, length=1_000), b'{"messages": ['):
        while not serving.board.counts["requests"]:
            time.sleep(0.01)
        assert serving.end(60)


def test_invalid_timeout() -> None:
    """A limit that cannot be is refused at the start, by its name."""
    with pytest.raises(ConfigurationError, match="body_timeout"):
        create_app("https://api.openai.com/v1", body_timeout=0)
