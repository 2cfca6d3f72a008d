"""An upstream that writes the bytes a test has written down, and keeps the bytes that it got."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass
class Asked:
    """One request, unchanged from the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    closed: threading.Event = field(default_factory=threading.Event)
    """Set when its connection is closed: by the other side, as long as it is not answered."""

    def header(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known.lower() == name]


@dataclass
class Scripted:
    """``answer`` gets each request, and a function that writes; it returns when the connection
    shall be closed.
    """

    answer: Callable[[Asked, Callable[[bytes], object]], object]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)


def plain(
    body: bytes, status: str = "200 OK", kind: str = "application/json", more: str = ""
) -> bytes:
    """A whole answer."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: "
        f"{len(body)}\r\nConnection: close\r\n{more}\r\n"
    )
    return head.encode() + body


def chunk(data: bytes) -> bytes:
    """A piece of a body of unknown length."""
    return b"%x\r\n%s\r\n" % (len(data), data)


STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
    b"chunked\r\nConnection: close\r\n\r\n"
)


@contextmanager
def scripted(answer: Callable[[Asked, Callable[[bytes], object]], object]) -> Generator[Scripted]:
    """Such an upstream, while the context lasts."""
    upstream = Scripted(answer)
    listener = socket.create_server(("127.0.0.1", 0))
    upstream.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    open_: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                open_.append(connection)
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection, connection.makefile("rb") as read:
            asked = _request(read)
            upstream.asked.append(asked)
            threading.Thread(target=watch, args=(connection.dup(), asked), daemon=True).start()
            upstream.answer(asked, connection.sendall)
            connection.shutdown(socket.SHUT_RDWR)

    def watch(connection: socket.socket, asked: Asked) -> None:
        with suppress(OSError), connection:
            if not connection.recv(1, socket.MSG_PEEK):
                asked.closed.set()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield upstream
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in open_:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _request(read: BinaryIO) -> Asked:
    """A whole request. Raises ``ValueError`` where the caller went away before its end: it was
    never made.
    """
    method, target, _ = read.readline().decode().split(" ", 2)
    headers: list[tuple[str, str]] = []
    while text := read.readline().decode().rstrip("\r\n"):
        name, _, value = text.partition(":")
        headers.append((name, value.strip()))
    known = {name.lower(): value for name, value in headers}
    body = b""
    if known.get("transfer-encoding") == "chunked":
        while size := int(read.readline(), 16):
            body += read.read(size)
            read.readline()
        read.readline()
    else:
        length = int(known.get("content-length", 0))
        body = read.read(length)
        if len(body) < length:
            raise ValueError("the request breaks off")
    return Asked(method, target, headers, body)
