"""The HTTP server below the application: connections with names, and an end that loses no
answer.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from compacter.gateway.serve.callers import CONNECTION

# Seconds between the last listening and the end: whoever had connected by then, or sends on a
# connection that was kept open, still gets an answer. Without them a call that came with the end is
# cut off. A connection that the loop has not accepted yet is reset nevertheless: balancers then try
# another server, as for a refused connection.
_LAST_CALLS = 0.5
# Largest head of a request, in bytes. Cookies and tokens of companies exceed 16 kB at times.
_LARGEST_HEAD = 64 << 10
# Seconds for the head of a request, from the opening of its connection, or from its first bytes on
# a connection that was kept open. A connection without a complete head occupies a descriptor.
HEAD_SECONDS = 30.0
# Seconds without a byte of a request's body after which the request is given up at the end of the
# server: its sender has left, or sends again to another server.
BODY_PAUSE = 2.0


class Protocol(H11Protocol):
    """uvicorn's protocol: a connection has a name, and is closed if its request does not come."""

    _head_timer: asyncio.TimerHandle | None = None
    _arrivals = 0

    def connection_made(self, transport: Any) -> None:
        """Name the connection, and wait for the head of its first request."""
        # asyncio does so only for sockets with a stated protocol, which ``create_server`` leaves
        # out: the end of an answer would wait 40 ms for the acknowledgement of its beginning.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self.app_state = {**self.app_state, CONNECTION: secrets.token_hex(16)}
        self._time_head()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        self._arrivals += 1
        super().data_received(data)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for requests."""
        super().connection_lost(exc)
        self._stop_timer()

    def _unsupported_upgrade_warning(self) -> None:
        """Do not advise to install a library for WebSockets: the application refuses them."""

    def shutdown(self) -> None:
        """Close the connection if it is idle, or as soon as the body of its request stalls."""
        super().shutdown()
        self._close_stalled(-1)

    def _time_head(self) -> None:
        """Close the connection later, unless the head of a request has arrived by then."""
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close_stalled(self, arrivals: int) -> None:
        """Close the connection if a body is incomplete, and nothing has come since ``arrivals``."""
        if self.conn.their_state is not h11.SEND_BODY or self.transport.is_closing():
            return
        if arrivals == self._arrivals and not self.flow.read_paused:
            self.transport.close()
            return
        self.loop.call_later(BODY_PAUSE, self._close_stalled, self._arrivals)


class Server(uvicorn.Server):
    """uvicorn's server. At its end it answers open requests, and those that still arrive."""

    print_line: Callable[[str], object] = staticmethod(lambda _: None)
    """Called with a line if answers are open at the end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal's
        """At the first signal, begin to end with the exit code 0; at the second, end at once."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        """Stop listening, and wait for the requests in progress."""
        for listening in self.servers:
            listening.close()
        self.server_state.default_headers = [(b"connection", b"close")]
        open_requests = len(self.server_state.tasks)
        if open_requests:
            seconds = self.config.timeout_graceful_shutdown
            self.print_line(f"ending: {open_requests} open requests have {seconds} seconds")
        if self.server_state.connections:
            await asyncio.sleep(_LAST_CALLS)
        await super().shutdown(sockets)


def server(app: ASGIApp, drain: float = 5.0) -> Server:
    """Return a server for the application, which adds no headers to responses and logs no
    requests.

    Args:
        app: Result of ``create_app``.
        drain: Seconds that requests in progress have at the end.
    """
    return Server(
        uvicorn.Config(
            app,
            http=Protocol,  # Other parsers drop the host of an absolute URL before it is refused.
            h11_max_incomplete_event_size=_LARGEST_HEAD,
            ws="none",
            lifespan="on",
            log_config=None,  # The loggers are the program's.
            log_level="warning",
            access_log=False,  # Some APIs accept keys in the query.
            server_header=False,
            date_header=False,
            proxy_headers=False,
            # uvicorn's default of 5 seconds is also that of clients: both would close a connection
            # at once.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=int(drain),
        )
    )
