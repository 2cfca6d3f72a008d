"""The application with its own pages: the report, health, readiness and metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial
from typing import Any, cast

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from compacter.errors import ConfigurationError
from compacter.gateway.counting import is_open
from compacter.gateway.metrics import MEMORY_OPEN, MEMORY_OPEN_TEXT, show
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.callers import Callers
from compacter.gateway.serve.gateway import Gateway
from compacter.gateway.serve.guard import Guard
from compacter.gateway.serve.limits import Limits, Slots
from compacter.gateway.serve.readiness import Readiness
from compacter.gateway.serve.targets import Setup, make_targets
from compacter.gateway.serve.upstream import is_loopback

GAUGES: dict[str, tuple[str, Callable[[Gateway], float]]] = {
    MEMORY_OPEN: (
        MEMORY_OPEN_TEXT,
        lambda gateway: any(is_open(target.state) for target in gateway.setup.targets),
    ),
    "summaries_running": (
        "Summaries that are being requested",
        lambda gateway: gateway.slots.taken,
    ),
    "summaries_waiting": (
        "Summaries that wait for their turn",
        lambda gateway: gateway.slots.waiting,
    ),
    "requests_open": ("Requests that are being handled", lambda gateway: gateway.open),
    "draining": ("1 while new requests are refused, else 0", lambda gateway: gateway.draining),
}
"""Gauge name -> description, and function that reads it when the page is asked for."""
# Headers of the server's own pages; the report itself contains the policy for what it may load.
_PRIVATE = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "frame-ancestors 'none'",
}


def create_app(
    upstream: str | Iterable[str],
    *,
    summarizer: str | Callable[..., object] | None = None,
    dry_run: bool = False,
    board: Board | None = None,
    hosts: Callable[[str], bool] = is_loopback,
    limits: Limits | None = None,
    caller_names: Iterable[str] = (),
    keyless: str = "connection",
    origins: Iterable[str] = (),
    aws_region: str | None = None,
    class_header: str = "",
    **options: Any,
) -> Starlette:
    """Return the application, for an ASGI server of your own.

    Args:
        upstream: Base URL of the server to pass requests on to, such as
            ``https://api.openai.com/v1``. Several have a name each, ``openai=https://...``, and are
            reached under it: ``http://127.0.0.1:8484/openai``.
        summarizer: Writer of summaries: ``None`` for the model that is called, the name of another
            model of the same upstream (with the caller's key in both cases), ``"extractive"`` for
            no model, or a function as for the option ``summarizer``.
        dry_run: Whether only to report what would be compacted, and change nothing.
        board: Object that keeps counts and events; ``None`` for a new one.
        hosts: Function that returns whether a request's ``Host``, in lower case and without a port,
            is allowed. This protects against web pages whose own name resolves to this machine (DNS
            rebinding).
        limits: Sizes, times and numbers that one caller may take; ``None`` for the defaults.
        caller_names: Names of further headers or query parameters that tell callers apart.
        keyless: What callers without a key share: ``"connection"`` for nothing beyond a connection,
            ``"shared"`` for all summaries, on a machine with one user. An ASGI server of your own
            does not tell connections apart, so nothing is shared.
        origins: Origins of other sites whose web pages may use the server, such as
            ``https://chat.example.com``.
        aws_region: Region for which requests that are signed for AWS are signed anew, with the
            credentials that boto3 finds: whoever reaches the server uses these. ``None`` passes
            signed requests on unread.
        class_header: Header whose value is the class that a caller's figures are counted for; what
            stands before the server sets it.
        **options: Further options of ``Compacter``.

    Raises:
        ConfigurationError: An argument is invalid; the message names it.
    """
    if not callable(hosts):
        raise ConfigurationError(f"hosts takes a function of a host's name, not {hosts!r}")
    board = Board() if board is None else board
    setup = make_setup(
        board,
        upstream,
        summarizer=summarizer,
        dry_run=dry_run,
        limits=limits,
        caller_names=caller_names,
        keyless=keyless,
        origins=origins,
        aws_region=aws_region,
        class_header=class_header,
        **options,
    )
    return app_of(setup, board, hosts)


def app_of(setup: Setup, board: Board, hosts: Callable[[str], bool]) -> Starlette:
    """Return the application with this configuration; ``app.state.gateway`` takes another one."""
    gateway = Gateway(setup, board)
    app = Starlette(
        routes=[*_pages(gateway, board), Mount("", app=gateway)],
        middleware=[Middleware(Guard, hosts=hosts)],
        lifespan=_lifespan(gateway),
    )
    app.state.gateway = gateway
    return app


def make_setup(
    board: Board,
    upstream: str | Iterable[str],
    *,
    summarizer: object = None,
    dry_run: bool = False,
    limits: Limits | None = None,
    caller_names: Iterable[str] = (),
    keyless: str = "connection",
    origins: Iterable[str] = (),
    aws_region: str | None = None,
    class_header: str = "",
    **options: Any,
) -> Setup:
    """Return one configuration; the arguments are those of ``create_app``."""
    if keyless not in ("connection", "shared"):
        raise ConfigurationError(f"keyless takes connection or shared, not {keyless!r}")
    targets = make_targets(
        upstream, board, summarizer, options, dry_run=dry_run, aws_region=aws_region
    )
    state = targets[0].state
    shown: dict[str, object] = {
        "upstream": ", ".join(target.upstream.base_url for target in targets),
        "summarizer": summarizer if isinstance(summarizer, str | None) else "a function",
        "memory": "none" if state.memory is None else type(state.memory).__name__,
        "dry_run": dry_run,
        "keyless": keyless,
        "aws_region": aws_region,
    }
    shown |= {name: value for name, value in options.items() if _is_plain(value)}
    return Setup(
        targets,
        Limits() if limits is None else limits,
        Callers(frozenset(name.lower() for name in caller_names), cast("Any", keyless)),
        frozenset(origin.lower().rstrip("/") for origin in origins),
        class_header.lower().encode(),
        {**shown, **(limits or Limits()).model_dump(exclude_none=True)},
    )


def limits_of(given: dict[str, Any]) -> Limits:
    """Return the limits of these values. Raises ``ConfigurationError`` that names the one that is
    invalid.
    """
    try:
        return Limits(**given)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        raise ConfigurationError(f"{name}: {problem['msg']} (got {problem['input']!r})") from None


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bool))


def _lifespan(gateway: Gateway) -> Callable[[Starlette], Any]:
    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        gateway.setup.reopen()  # The application may have run before, on another event loop.
        gateway.slots = Slots(gateway.setup.limits)
        gateway.draining = False
        try:
            yield
        finally:
            await gateway.setup.aclose()

    return lifespan


def _pages(gateway: Gateway, board: Board) -> list[Route]:
    """Return the routes of the server's own pages."""
    readiness = Readiness(gateway)
    gauges = CollectorRegistry()
    for name, (text, read) in GAUGES.items():
        show(name, text, partial(read, gateway), gauges)

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        found = await readiness.check(request.query_params.get("ignore", ""))
        return JSONResponse(found, 200 if found["status"] == "ready" else 503, headers=_PRIVATE)

    async def metrics(_: Request) -> Response:
        page = generate_latest(board.registry) + generate_latest(gauges)
        return Response(page, headers={**_PRIVATE, "content-type": CONTENT_TYPE_PLAIN_0_0_4})

    async def page(request: Request) -> Response:
        headers = {**_PRIVATE, "etag": board.tag()}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        shown = await asyncio.to_thread(board.page, gateway.setup.shown)
        return HTMLResponse(shown, headers=headers)

    async def counts(_: Request) -> Response:
        return JSONResponse(board.as_json(gateway.setup.shown), headers=_PRIVATE)

    return [
        Route("/healthz", health),
        Route("/readyz", ready),
        Route("/metrics", metrics),
        Route("/compacter", page),
        Route("/compacter.json", counts),
    ]
