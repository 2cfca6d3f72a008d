"""The HTTP server below the application: time limits for heads, and an end that loses no answer."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from compacter.gateway.serve.callers import CONNECTION
from compacter.gateway.serve.gateway import Gateway

_PROCESS = secrets.token_hex(8)
_CONNECTIONS = itertools.count()
# Seconds for connections to close at the end, after `drain`; also at Ctrl-C.
_LAST_ANSWERS = 5
# Seconds of draining after which it is told; most requests have ended by then.
_TELLING = 0.5
_TICK = 0.1
# Seconds between the last listening and the end: whoever had connected by then, or sends on a
# connection that was kept open, still gets an answer. Without them a call that came with the end is
# cut off. A connection that the kernel has taken, and the loop has not accepted yet, is reset all
# the same: balancers go on at that as at a refused one.
_LAST_CALLS = 0.5
# Largest head of a request, in bytes. Cookies and tokens of companies exceed 16 kB at times.
_LARGEST_HEAD = 64 << 10


class Protocol(H11Protocol):
    """uvicorn's protocol; each connection has a name, and its heads must come in time."""

    header_timeout = 30.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head."""
        # asyncio does so only for sockets that say their protocol, which ``create_server`` leaves
        # out: the end of an answer would wait 40 ms for the acknowledgement of its beginning.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        name = f"{_PROCESS} {next(_CONNECTIONS)}"
        self.app_state = {**self.app_state, CONNECTION: name}
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; the timer runs while a head is incomplete."""
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()
        elif self._waiting is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return not getattr(self.cycle, "response_complete", True)

    def _wait_for_head(self) -> None:
        self._waiting = self.loop.call_later(self.header_timeout, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._is_answering():
            self.transport.close()


class Server(uvicorn.Server):
    """uvicorn's server, which drains at SIGTERM: requests in progress end, new ones are refused.

    Args:
        config: uvicorn's configuration.
        gateway: The application whose requests are waited for.
        drain: Longest time for that, in seconds.
        reload: Called after SIGHUP.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        gateway: Gateway | None = None,
        drain: float = 0.0,
        reload: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._drain = drain
        self._reload = reload
        self._draining: asyncio.Task[None] | None = None
        self._asked_to_reload = False

    def run(self, sockets: Any = None) -> None:
        """Run until a signal ends it."""
        hangup = getattr(signal, "SIGHUP", None)  # Windows has none.
        if self._reload is not None and hangup is not None:
            signal.signal(hangup, self._ask_to_reload)
        super().run(sockets)

    def _ask_to_reload(self, *_: object) -> None:
        self._asked_to_reload = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first SIGTERM; end at the second one, and at Ctrl-C."""
        gateway = self._gateway
        if sig != signal.SIGTERM or gateway is None or gateway.draining or not self._drain:
            super().handle_exit(sig, frame)
            return
        gateway.draining = True

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; return whether to end."""
        if self._asked_to_reload and self._reload is not None:
            self._asked_to_reload = False
            await self._reload()
        gateway = self._gateway
        if gateway is not None and gateway.draining and self._draining is None:
            self._draining = asyncio.create_task(self._drain_requests(gateway))
        return await super().on_tick(counter)

    async def _drain_requests(self, gateway: Gateway) -> None:
        """Wait for the requests in progress, and end."""
        end = time.monotonic() + self._drain
        telling = time.monotonic() + _TELLING
        while gateway.open and time.monotonic() < end:
            await asyncio.sleep(_TICK)
            if time.monotonic() > telling:
                telling = end
                gateway.board.say(
                    f"ending: {gateway.open} open requests have {end - time.monotonic():.0f} "
                    "seconds, new ones are refused"
                )
        if gateway.open:
            gateway.board.say(f"{gateway.open} open requests did not end in time")
        else:
            for listening in self.servers:
                listening.close()
            await asyncio.sleep(_LAST_CALLS)
        self.should_exit = True


def server(
    app: ASGIApp,
    *,
    drain: float = 0.0,
    header_timeout: float = Protocol.header_timeout,
    reload: Callable[[], Awaitable[object]] | None = None,
) -> Server:
    """Return a server for the application, which adds no headers to responses and logs no
    requests.

    Args:
        app: Result of ``create_app``.
        drain: Seconds that requests in progress have after SIGTERM.
        header_timeout: Seconds until the head of a request must have come.
        reload: Called after SIGHUP.
    """
    config = uvicorn.Config(
        app,
        # Other parsers drop the host of an absolute URL before it can be refused.
        http=type("Protocol", (Protocol,), {"header_timeout": header_timeout}),
        h11_max_incomplete_event_size=_LARGEST_HEAD,
        ws="none",
        lifespan="on",
        log_config=None,  # The loggers are the program's.
        log_level="warning",
        access_log=False,  # Some APIs accept keys in the query.
        server_header=False,
        date_header=False,
        proxy_headers=False,
        # uvicorn's default is 5 seconds, as is that of clients: both would close a connection
        # at the same moment.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_LAST_ANSWERS,
    )
    gateway = getattr(getattr(app, "state", None), "gateway", None)
    return Server(config, gateway, drain, reload)
