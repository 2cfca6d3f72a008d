"""Connections to an upstream, without a proxy between: HTTP/1.1 on asyncio's own transports.

A request and its body leave in one write. A response comes back piece by piece, and is not read
faster than its reader takes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Generator
from typing import Any

import h11
import httpx

# As in httpx: seconds for which an idle connection is kept, and the most that are kept.
_KEPT_SECONDS = 5.0
_MOST_KEPT = 100
# Largest head of a response in bytes: that of httpx.
_LARGEST_HEAD = 100 << 10
# Bytes of a response that are read ahead of its reader.
_AHEAD = 64 << 10


class Transport(httpx.AsyncBaseTransport):
    """Sends requests to one upstream, over connections that it keeps.

    Args:
        context: How to verify an upstream with ``https``.
        seconds: Longest time for a connection to open.
    """

    def __init__(self, context: ssl.SSLContext | None, seconds: float) -> None:
        self._context = context
        self._seconds = seconds
        self._kept: list[_Connection] = []
        self._open: set[_Connection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response, whose body is still to be read. Raises ``httpx.TransportError``."""
        connection = self._take() or await self._connect(request.url)
        try:
            with _errors():
                await connection.send(request)
                response = await connection.response()
        except BaseException:
            self._release(connection)
            raise
        body = _Body(self, connection)
        return httpx.Response(
            response.status_code, headers=response.headers.raw_items(), stream=body
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in [*self._open]:
            self._close(connection)
        self._kept.clear()

    def _take(self) -> _Connection | None:
        """Return a connection that was kept, the newest one; close those kept for too long."""
        oldest = time.monotonic() - _KEPT_SECONDS
        while self._kept and self._kept[0].idle_since < oldest:
            self._close(self._kept.pop(0))
        while self._kept:
            connection = self._kept.pop()
            if connection.is_open():
                return connection
            self._close(connection)
        return None

    async def _connect(self, url: httpx.URL) -> _Connection:
        is_tls = url.scheme == "https"
        try:
            async with asyncio.timeout(self._seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    _Connection,
                    url.raw_host.decode("ascii"),
                    url.port or (443 if is_tls else 80),
                    ssl=self._context if is_tls else None,
                    happy_eyeballs_delay=0.25,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self._open.add(connection)
        return connection

    def _release(self, connection: _Connection) -> None:
        """Keep a connection for the next request, or close it if it cannot have another one."""
        if connection in self._open and len(self._kept) < _MOST_KEPT and connection.is_ready():
            connection.idle_since = time.monotonic()
            self._kept.append(connection)
        else:
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.close()


class _Body(httpx.AsyncByteStream):
    """The body of a response, as it comes."""

    def __init__(self, transport: Transport, connection: _Connection) -> None:
        self._transport = transport
        self._connection: _Connection | None = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors():
            while self._connection is not None:
                data = await self._connection.data()
                if data is None:
                    await self.aclose()
                else:
                    yield data

    async def aclose(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._transport._release(connection)  # noqa: SLF001 - of this file


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEAD)
        self._error: Exception | None = None
        self._is_lost = False
        self._unread = 0
        # Futures of the one who waits for more to read, and of the one who waits to write.
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # -- called by asyncio -------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._unread += len(data)
        if self._unread > _AHEAD:
            self._transport.pause_reading()
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._error = exc
        if exc is None:
            self._http.receive_data(b"")  # The end of a body without a stated length.
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        self._writer = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._writer)
        self._writer = None

    # -- one request -------------------------------------------------------------------------------

    async def send(self, request: httpx.Request) -> None:
        """Send a request. A server that answers before the end of it may close the connection, and
        its response is read nevertheless.
        """
        http = self._http
        head = h11.Request(
            method=request.method,
            target=request.url.raw_path,
            headers=request.headers.raw,
        )
        first = http.send(head) or b""
        if isinstance(request.stream, httpx.ByteStream):
            body = request.content
            self._transport.write(first + (http.send(h11.Data(body)) or b"" if body else b""))
        else:
            self._transport.write(first)
            async for chunk in request.stream:  # type: ignore[union-attr]
                if self._is_lost:
                    return
                self._transport.write(http.send(h11.Data(chunk)) or b"")
                await self._drain()
        self._transport.write(http.send(h11.EndOfMessage()) or b"")
        await self._drain()

    async def response(self) -> h11.Response:
        """Return the head of the response."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event

    async def data(self) -> bytes | None:
        """Return the next piece of the body; ``None`` at its end."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    def is_open(self) -> bool:
        """Return whether the other side has not closed it, and has sent nothing unasked."""
        is_clean = self._http.trailing_data == (b"", False)
        return is_clean and not self._is_lost and not self._transport.is_closing()

    def is_ready(self) -> bool:
        """Return whether another request can be sent. Begins its cycle."""
        http = self._http
        if http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
        self._read_on()
        return http.our_state is h11.IDLE and self.is_open()

    def close(self) -> None:
        """Close the connection, without waiting for a request that the other side does not take."""
        self._transport.abort()

    async def _drain(self) -> None:
        """Wait until what was written has left."""
        if self._writer is not None and not self._is_lost:
            await self._writer

    def _read_on(self) -> None:
        self._unread = 0
        self._transport.resume_reading()

    async def _event(self) -> Any:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._error is not None:
                raise self._error
            self._read_on()
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


@contextlib.contextmanager
def _errors() -> Generator[None]:
    """Raise errors as those of httpx."""
    try:
        yield
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error)) from error
    except h11.RemoteProtocolError as error:
        raise httpx.RemoteProtocolError(str(error)) from error
    except OSError as error:
        raise httpx.ReadError(str(error)) from error
