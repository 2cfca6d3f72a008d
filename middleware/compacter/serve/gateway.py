"""The ASGI application: inspects the requests that can be compacted, and passes all others on.

A request of a known protocol is read completely and sent as a wrapped call; the body of any other one is streamed. A
response goes back chunk by chunk, and is not read from the upstream faster than the caller reads it. When the caller
disconnects, its work is cancelled and the connection to the upstream closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from compacter.call.state import State
from compacter.call.wrap import OWN_OPTIONS
from compacter.errors import CompacterError, ConfigurationError
from compacter.events import Event
from compacter.options import Options, validated
from compacter.serve.board import Board
from compacter.serve.exchange import Answer, Exchange, Protocol, Refused, protocol_of, wrapped
from compacter.serve.upstream import Headers, Upstream, climbs, end_to_end, is_loopback, parse_upstreams

T = TypeVar("T")
_LARGEST_BODY = 64 << 20
"""Largest request that is inspected, in bytes; a larger one is passed on."""
_CONNECT = 15.0
"""Timeout for connecting to an upstream, in seconds. The time for its response is limited by the caller alone."""
_SUMMARIES = 300.0
"""Default of the option ``timeout``, in seconds: the limit for the summaries of one call."""
_PRIVATE = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
            "content-security-policy": "frame-ancestors 'none'"}  # fmt: skip
"""Headers of the server's own pages; the report itself contains the policy for what it may load."""


def create_app(
    upstream: str | Iterable[str],
    *,
    summarizer: str | Callable[..., object] | None = None,
    dry_run: bool = False,
    board: Board | None = None,
    hosts: Callable[[str], bool] = is_loopback,
    **options: Any,
) -> Starlette:
    """Return the application, for an ASGI server of your own.

    Args:
        upstream: Base URL of the server to pass requests on to, such as ``https://api.openai.com/v1``. Several have a
            name each, ``openai=https://...``, and are reached under it: ``http://127.0.0.1:8484/openai``.
        summarizer: Writer of summaries: ``None`` for the model that is called, the name of another model of the same
            upstream (with the caller's key in both cases), ``"extractive"`` for no model, or a function as for the
            option ``summarizer``.
        dry_run: Whether only to report what would be folded, and change nothing.
        board: Object that keeps counts and events; ``None`` for a new one.
        hosts: Function that returns whether a request's ``Host``, in lower case and without a port, is allowed. This
            protects against web pages whose own name resolves to this machine (DNS rebinding).
        **options: Further options of ``Compacter``.

    Raises:
        ConfigurationError: An argument is invalid; the message names it.
    """
    if not callable(hosts):
        raise ConfigurationError(f"hosts takes a function of a host's name, not {hosts!r}")
    board = Board() if board is None else board
    checked, model = _options(summarizer, board, options, dry_run=dry_run)
    targets = [Target(one, _BoardState(checked, board), model, _client(one)) for one in parse_upstreams(upstream)]
    board.totals.extend(target.state.totals.snapshot for target in targets)
    gateway = Gateway(targets, board)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for target in targets:
                if target.client.is_closed:  # The application ran before.
                    target.client = _client(target.upstream)
                stack.push_async_callback(target.client.aclose)
            yield

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def page(request: Request) -> Response:
        headers = {**_PRIVATE, "etag": board.tag()}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return HTMLResponse(await asyncio.to_thread(board.page), headers=headers)

    async def counts(_: Request) -> Response:
        return JSONResponse(board.as_json(), headers=_PRIVATE)

    return Starlette(
        routes=[
            Route("/healthz", health),
            Route("/compacter", page),
            Route("/compacter.json", counts),
            Mount("", app=gateway),
        ],
        middleware=[Middleware(_Guard, hosts=hosts)],
        lifespan=lifespan,
    )


def _options(summarizer: object, board: Board, options: dict[str, Any], *, dry_run: bool) -> tuple[Options, str | None]:
    """Return the validated options, and the upstream's model that writes summaries."""
    given: dict[str, object] = {"timeout": _SUMMARIES, **options}
    model = None
    known = validated({"summarizer": summarizer}).summarizer
    if isinstance(known, str) and known != "extractive":
        model = known.strip()
    else:
        given["summarizer"] = known
    if dry_run:
        given |= {"before_compaction": board.veto, "adjust_max_tokens": False, "memory": None}
    return validated(given), model


class _BoardState(State):
    """State that passes every event to the board. With an event hook instead, every reply would be inspected."""

    def __init__(self, options: Options, board: Board) -> None:
        super().__init__(options)
        self._board = board

    def record(self, event: Event) -> list[Callable[..., object]]:
        """Pass an event to the board, and return the hooks to call with it."""
        self.safely("hook", lambda: self._board.hear(event))
        return super().record(event)


def _client(upstream: Upstream) -> httpx.AsyncClient:
    try:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            # Proxy settings of the environment do not apply to this machine.
            trust_env=not upstream.is_loopback,
        )
    except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"requests to {upstream.base_url} cannot be made with the proxies (HTTPS_PROXY, ALL_PROXY) or certificates "
            f"(SSL_CERT_FILE) of this environment: {error}"
        ) from None


class _Guard:
    """Middleware that refuses requests for any other server: this is not an open proxy."""

    def __init__(self, app: ASGIApp, hosts: Callable[[str], bool]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = "" if scope["type"] == "lifespan" else self._problem(scope)
        await (error_response(400, "not_a_proxy", problem) if problem else self._app)(scope, receive, send)

    def _problem(self, scope: Scope) -> str:
        path = raw_path(scope)
        if not path.startswith("/"):
            return "compacter serve is not a proxy: send the path alone; requests go to the upstreams set at its start"
        if climbs(path):
            return 'the path has a segment "." or ".."'
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or not self._hosts(_without_port(named[0])):
            return "the Host header does not name this server"
        return ""


def raw_path(scope: Scope) -> str:
    """Return the path as it was sent, with its percent-encoding, below the place where this application is mounted."""
    path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    return str(path, "latin-1").removeprefix(quote(scope.get("root_path", "")))


def _without_port(host: str) -> str:
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdigit() else host.strip().lower()


def error_response(status: int, code: str, message: str) -> JSONResponse:
    """Return an error of this server, in a form that both OpenAI's and Anthropic's SDKs read."""
    return JSONResponse(
        {"type": "error", "error": {"type": "compacter_error", "code": code, "message": message}}, status
    )


@dataclass(slots=True)
class Target:
    """An upstream, and the state that its calls share."""

    upstream: Upstream
    state: State
    summarizer: str | None
    """The upstream's model that writes summaries; ``None`` for the model that is called."""
    client: httpx.AsyncClient


class Gone(Exception):  # noqa: N818 - a state
    """The caller has disconnected."""


class Caller:
    """The sender of a request: its body, and whether it is still connected."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._sent = asyncio.Event()

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the rest of the body. Raises ``Gone`` if the caller disconnects."""
        while not self._sent.is_set():
            message = await self._receive()
            if message["type"] != "http.request":
                raise Gone
            if not message.get("more_body", False):
                self._sent.set()
            yield message.get("body", b"")

    async def waits_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``work``. If the caller disconnects, cancel it and raise ``Gone``."""
        task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._leave())
        try:
            await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone
            return task.result()
        finally:
            task.cancel()
            leaving.cancel()
            await asyncio.gather(task, leaving, return_exceptions=True)

    async def _leave(self) -> None:
        await self._sent.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Gateway:
    """Application that sends requests to the upstreams, and their responses back."""

    def __init__(self, targets: list[Target], board: Board) -> None:
        self._targets = targets
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003, "reason": "compacter serve has no WebSockets"})
            return
        self._board.requests += 1
        caller = Caller(receive)
        try:
            found = await self._answer(scope, caller)
            if isinstance(found, Response):
                await found(scope, receive, send)
            else:
                await self._relay(found, caller, send)
        except Gone:
            pass

    async def _answer(self, scope: Scope, caller: Caller) -> Answer | Response:
        """Return the upstream's response, or an error of this server if there is none."""
        target, tail = self._target(raw_path(scope))
        if target is None:
            names = ", ".join(f"/{one.upstream.name}" for one in self._targets)
            return error_response(404, "unknown_upstream", f"the path must begin with one of {names}")
        try:
            return await self._from(target, tail, scope, caller)
        except (httpx.InvalidURL, UnicodeError):
            return error_response(400, "invalid_path", "the path is not valid in a URL")
        except (httpx.HTTPError, OSError) as error:
            self._board.unreachable += 1
            self._board.say(f"{target.upstream.base_url} cannot be reached: {type(error).__name__}")
            message = f"compacter serve could not reach the upstream: {type(error).__name__}"
            return error_response(502, "upstream_unreachable", message)
        except CompacterError as error:
            return error_response(500, "compaction_failed", f"compacter could not compact: {type(error).__name__}")

    def _target(self, path: str) -> tuple[Target | None, str]:
        for target in self._targets:
            start = f"/{target.upstream.name}"
            if start == "/":
                return target, target.upstream.tail(path)
            if path == start or path.startswith(f"{start}/"):
                return target, target.upstream.tail(path[len(start) :])
        return None, ""

    async def _from(self, target: Target, tail: str, scope: Scope, caller: Caller) -> Answer:
        url = target.upstream.url(tail, scope["query_string"].decode("latin-1"))
        method, headers = scope["method"], scope["headers"]
        protocol = protocol_of(method, tail)
        if protocol is None or has(headers, b"content-encoding"):
            return await self._passed_on(target, method, url, headers, caller, b"")
        held = bytearray()
        async for chunk in caller.body():
            held += chunk
            if len(held) > _LARGEST_BODY:
                return await self._passed_on(target, method, url, headers, caller, bytes(held))
        raw = bytes(held)
        body = _arguments(raw, protocol)
        if body is None:
            return await self._passed_on(target, method, url, headers, caller, raw)
        return await caller.waits_for(_called(target, protocol, url, headers, raw, body))

    async def _passed_on(
        self, target: Target, method: str, url: httpx.URL, headers: Headers, caller: Caller, held: bytes
    ) -> Answer:
        """Return the response to a request that is not inspected; ``held`` is the part of its body that was read."""
        self._board.passed += 1

        async def content() -> AsyncGenerator[bytes]:
            yield held
            async for chunk in caller.body():
                yield chunk

        chunked = has(headers, b"transfer-encoding")
        has_body = chunked or has(headers, b"content-length")
        if not has_body:
            async for _ in caller.body():
                pass
        # Chunks override a Content-Length: https://www.rfc-editor.org/rfc/rfc9112#section-6.3
        gone = (b"host", b"expect", *((b"content-length",) if chunked else ()))
        request = httpx.Request(
            method, url, headers=end_to_end(headers, *gone), content=content() if has_body else None
        )
        return Answer(await caller.waits_for(target.client.send(request, stream=True, follow_redirects=False)))

    async def _relay(self, answer: Answer, caller: Caller, send: Send) -> None:
        """Send a response to the caller. If it breaks off, it is left incomplete so that the caller can see it."""

        async def work() -> None:
            await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
            async with contextlib.aclosing(answer.chunks()) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        try:
            await caller.waits_for(work())
        except httpx.HTTPError as error:
            self._board.unreachable += 1
            self._board.say(f"the upstream broke off its response: {type(error).__name__}")
        finally:
            await answer.aclose()


async def _called(
    target: Target, protocol: Protocol, url: httpx.URL, headers: Headers, raw: bytes, body: dict[str, Any]
) -> Answer:
    """Return the response to a wrapped call; the upstream's own refusal if the call is given up."""
    exchange = Exchange(target.client, url, headers, raw, body, protocol.param)
    call = wrapped(target.state, exchange, protocol, target.upstream, url, headers, target.summarizer)
    try:
        answer: Answer = await call(**body)
    except Refused as refused:
        return refused.answer
    return answer


def has(headers: Headers, name: bytes) -> bool:
    """Return whether there is a header of this name."""
    return any(known == name for known, _ in headers)


def _arguments(raw: bytes, protocol: Protocol) -> dict[str, Any] | None:
    """Return the members of a request's body; ``None`` if it does not fit the protocol, or sets compacter's options."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    held = body.get(protocol.param) if isinstance(body, dict) and OWN_OPTIONS not in body else None
    return body if isinstance(held, (list, str)) else None
