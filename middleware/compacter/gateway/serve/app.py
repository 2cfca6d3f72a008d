"""The application with its own pages: the report, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial
from typing import Unpack

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from compacter.errors import ConfigurationError
from compacter.gateway.metrics import MEMORY_OPEN, MEMORY_OPEN_TEXT, is_open, show
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.config import ServeOptions
from compacter.gateway.serve.gateway import Gateway
from compacter.gateway.serve.guard import Guard
from compacter.gateway.serve.targets import Setup, make_setup
from compacter.gateway.serve.upstream import is_loopback

GAUGES: dict[str, tuple[str, Callable[[Gateway], float]]] = {
    MEMORY_OPEN: (MEMORY_OPEN_TEXT, lambda gateway: is_open(gateway.setup.targets[0].state)),
    "requests_open": ("Requests that are being handled", lambda gateway: gateway.open),
}
"""Gauge name -> description, and function that reads it when the page is asked for. All upstreams
have one memory."""
# Headers of the server's own pages; the report itself contains its policy for loading.
_PRIVATE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "frame-ancestors 'none'",
}


def create_app(
    upstream: str | Iterable[str],
    *,
    board: Board | None = None,
    hosts: Callable[[str], bool] = is_loopback,
    **options: Unpack[ServeOptions],
) -> Starlette:
    """Return ``compacter serve`` as an ASGI application (Starlette), to run it in an ASGI server of
    your own or to mount it in another application.

    Args:
        upstream: Base URL of the provider's server, to which requests are passed on, such as
            ``https://api.openai.com/v1``. To use several servers, pass a list of texts
            ``NAME=URL``, such as ``openai=https://api.openai.com/v1``. Callers then put the name
            first in the path: ``http://127.0.0.1:8484/openai``.
        board: Object that counts requests and keeps events for the report; ``None`` makes a new
            one.
        hosts: Function that takes the host name in a request's ``Host`` header, in lower case and
            without a port, and returns whether to accept the request. It protects against a web
            page whose own host name resolves to this machine (DNS rebinding). The default accepts
            the loopback names and addresses of this machine.
        **options: The options of ``run``, except ``host``, ``port``, ``show_text``, ``drain`` and
            ``log``. An ASGI server of your own does not tell compacter which connection a request
            came over, so callers without an API key share no summaries, not even on one connection,
            unless ``keyless`` is ``"shared"``.

    Raises:
        ConfigurationError: An argument is invalid; the message names it.
    """
    if not callable(hosts):
        raise ConfigurationError(f"hosts takes a function of a host's name, not {hosts!r}")
    board = Board() if board is None else board
    return app_of(make_setup(board, {"upstream": upstream, **options}), board, hosts)


def app_of(setup: Setup, board: Board, hosts: Callable[[str], bool]) -> Starlette:
    """Return the application with this configuration."""
    gateway = Gateway(setup, board)
    pages = _pages(gateway, board)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await gateway.aclose()

    guard = Middleware(
        Guard,
        hosts=hosts,
        origins=lambda: gateway.setup.settings.origins,
        pages=[page.path for page in pages],
    )
    app = Starlette(routes=[*pages, Mount("", app=gateway)], middleware=[guard], lifespan=lifespan)
    app.state.gateway = gateway
    return app


def _pages(gateway: Gateway, board: Board) -> list[Route]:
    """Return the routes of the server's own pages."""
    gauges = CollectorRegistry()
    for name, (text, read) in GAUGES.items():
        show(name, text, partial(read, gateway), gauges)

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(_: Request) -> Response:
        page = generate_latest(board.registry) + generate_latest(gauges)
        return Response(page, headers={**_PRIVATE, "content-type": CONTENT_TYPE_PLAIN_0_0_4})

    async def page(_: Request) -> Response:
        shown = await asyncio.to_thread(board.page)
        return HTMLResponse(shown, headers=_PRIVATE)

    return [
        Route("/healthz", health),
        Route("/readyz", health),
        Route("/metrics", metrics),
        Route("/compacter", page),
    ]
