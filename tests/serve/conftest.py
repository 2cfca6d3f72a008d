"""A pass-through on a free port for each test that asks for one, and upstreams that it leads to."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")

from tests.serve import scripted

from compacter.gateway.serve.board import Board
from compacter.gateway.serve.server import server
from compacter.serve import create_app


class Serving:
    """A pass-through that runs in this process."""

    def __init__(
        self, url: str, board: Board, lines: list[str], end: Callable[[float], bool]
    ) -> None:
        self.url = url
        self.end = end
        """Ends the server, and returns whether it took no more than so many seconds."""
        self.port = int(url.rpartition(":")[2])
        self.board = board
        self.lines = lines

    def send(self, head: str, body: bytes = b"") -> socket.socket:
        """A connection over which these bytes were sent; ``HOST`` is replaced by the right
        header.
        """
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        head = head.replace("\nHOST\n", f"\nHost: 127.0.0.1:{self.port}\n").replace("\n", "\r\n")
        connection.sendall(head.encode() + body)
        return connection

    def post(self, path: str, body: object, more: str = "") -> bytes:
        """All that comes back for a body, which is written as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\nHOST\nContent-Length: {len(data)}\nConnection: close\n"
        return self.ask(f"{head}{more}\n", data)

    def get(self, path: str, more: str = "") -> bytes:
        """All that comes back for a path."""
        return self.ask(f"GET {path} HTTP/1.1\nHOST\nConnection: close\n{more}\n")

    def ask(self, head: str, body: bytes = b"") -> bytes:
        """All that comes back over a connection of its own."""
        with self.send(head, body) as connection, connection.makefile("rb") as read:
            return read.read()


@contextlib.contextmanager
def running(
    upstream: object, *, texts: bool = False, drain: float = 5.0, **options: Any
) -> Generator[Serving]:
    """A pass-through to the upstream, while the context lasts."""
    lines: list[str] = []
    board = Board(print_line=lines.append, texts=texts)
    app = create_app(upstream, board=board, **options)  # type: ignore[arg-type]
    running = server(app, drain)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=running.run, args=([listener],), daemon=True)

        def end(seconds: float) -> bool:
            running.should_exit = True
            thread.join(seconds)
            return not thread.is_alive()

        thread.start()
        try:
            yield Serving(f"http://127.0.0.1:{listener.getsockname()[1]}", board, lines, end)
        finally:
            end(30)


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Starts pass-throughs that end with the test. They make nothing ahead unless a test wants it,
    so that requests can be counted.
    """
    with contextlib.ExitStack() as stack:
        yield lambda upstream, **options: stack.enter_context(
            running(upstream, **{"prepare_tokens": None, **options})
        )


@pytest.fixture
def upstream() -> Iterator[Callable[..., Any]]:
    """Starts scripted upstreams that end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda answer: stack.enter_context(scripted.scripted(answer))


@pytest.fixture
def answering(upstream: Callable[..., Any]) -> Callable[..., Any]:
    """Starts upstreams that answer every request with this body, by default ``{}``."""
    return lambda body=b"{}", *rest, **more: upstream(
        lambda _, write: write(scripted.plain(body, *rest, **more))
    )


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Serving, scripted.Scripted]]:
    def answer(_: object, write: Callable[[bytes], object]) -> None:
        write(scripted.plain(b"{}"))

    with (
        scripted.scripted(answer) as server,
        running(server.url, prepare_tokens=None, summarizer="extractive") as serving,
    ):
        yield serving, server


@pytest.fixture
def passing(pair: tuple[Serving, scripted.Scripted]) -> Iterator[tuple[Serving, Any]]:
    """A pass-through and its upstream, which answers ``{}`` unless a test sets ``answer``. They are
    shared by the tests of a module; callers without a key share nothing.
    """
    serving, server = pair
    usual = server.answer
    server.asked.clear()
    serving.lines.clear()
    serving.board.counts.clear()
    yield serving, server
    server.answer = usual


@pytest.fixture
def wire() -> Any:
    """How the bytes of an answer are written."""
    return scripted


@pytest.fixture
def talk() -> Callable[..., list[dict[str, Any]]]:
    """A conversation of so many turns, and a question; twenty are too long for the providers."""

    def make(turns: int = 20, about: str = "piers") -> list[dict[str, Any]]:
        history = []
        for number in range(turns):
            history.append(
                {"role": "user", "content": (f"What is known of {about}, part {number}? ") * 8}
            )
            history.append(
                {
                    "role": "assistant",
                    "content": (f"Part {number} of {about} was built of oak. ") * 8,
                }
            )
        return [*history, {"role": "user", "content": f"Which part of {about} came first?"}]

    return make
