"""The ASGI application: which requests are looked into, and how bytes go through.

A request of a known protocol is read whole and sent as a wrapped call; every other one is passed on as it comes. An
answer goes back chunk by chunk: nothing is read from the upstream faster than the caller takes it. When the caller goes
away, what was begun for it is cancelled, and the connection to the upstream closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

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
"""Bytes of a request that are read to look into it; a larger one is passed on."""
_CONNECT = 15.0
"""Seconds for reaching an upstream. How long it may think is for the caller to say."""
_SUMMARIES = 300.0
"""Seconds that the summaries of one call may take, unless the option ``timeout`` says otherwise."""
_PRIVATE = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
            "content-security-policy": "frame-ancestors 'none'"}  # fmt: skip
"""Of our own pages; the report says itself what it may load."""


def create_app(
    upstream: str | Iterable[str],
    *,
    summarizer: str | Callable[..., object] | None = None,
    dry_run: bool = False,
    board: Board | None = None,
    hosts: Callable[[str], bool] = is_loopback,
    **options: Any,
) -> Starlette:
    """The application, for an ASGI server of your own.

    Args:
        upstream: Base URL of the server that requests go to, such as ``https://api.openai.com/v1``. Several have a name
            each, ``openai=https://...``, and are reached under it: ``http://127.0.0.1:8484/openai``.
        summarizer: Who writes summaries: ``None`` for the model that the caller calls, another model's name at the same
            upstream (with the caller's key in both cases), ``"extractive"`` for no model, or a function as the option
            ``summarizer`` takes it.
        dry_run: Whether only to tell what would be folded. Nothing is changed then.
        board: Where counts go.
        hosts: Whether requests may name this host, which is lower case and without a port. A web page whose own name
            was made to mean this machine names its own.
        **options: Further options of ``Compacter``.

    Raises:
        ConfigurationError: An argument is unusable; it is named.
    """
    board = Board() if board is None else board
    checked, model = _options(summarizer, board, options, dry_run=dry_run)
    targets = [Target(one, _Told(checked, board), model) for one in parse_upstreams(upstream)]
    board.totals.extend(target.state.totals.snapshot for target in targets)
    gateway = Gateway(targets, board)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for target in targets:
                target.client = await stack.enter_async_context(_client(target.upstream))
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
    """The options, validated, and the model at the upstream that writes summaries."""
    given: dict[str, object] = {"timeout": _SUMMARIES, **options}
    model = None
    if isinstance(summarizer, str) and summarizer != "extractive":
        model = summarizer.strip()
        if not model:
            raise ConfigurationError('summarizer takes the name of a model, "extractive", or a function')
    elif summarizer is not None:
        given["summarizer"] = summarizer
    if dry_run:
        given |= {"before_compaction": board.veto, "adjust_max_tokens": False, "memory": None}
    return validated(given), model


class _Told(State):
    """Tells the board of every event. As a hook for events it would have each reply looked into."""

    def __init__(self, options: Options, board: Board) -> None:
        super().__init__(options)
        self._board = board

    def told(self, event: Event) -> list[Callable[..., object]]:
        """The hooks that are to be told of this event, after the board."""
        self.safely("hook", lambda: self._board.hear(event))
        return super().told(event)


def _client(upstream: Upstream) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=httpx.Timeout(None, connect=_CONNECT),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        # A proxy of the environment does not lead to this machine.
        trust_env=not upstream.is_loopback,
    )


class _Guard:
    """Refuses what asks for another server: an open proxy is none of ours."""

    def __init__(self, app: ASGIApp, hosts: Callable[[str], bool]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = "" if scope["type"] == "lifespan" else self._problem(scope)
        await (error_response(400, "not_a_proxy", problem) if problem else self._app)(scope, receive, send)

    def _problem(self, scope: Scope) -> str:
        path = raw_path(scope)
        if not path.startswith("/"):
            return "compacter serve is no proxy: send the path alone, to the upstreams it was started with"
        if climbs(path):
            return "the path leads upwards"
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or not self._hosts(_without_port(named[0])):
            return "the Host header does not name this server"
        return ""


def raw_path(scope: Scope) -> str:
    """The path as it was sent, percent signs and all."""
    path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    return str(path, "latin-1")


def _without_port(host: str) -> str:
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdigit() else host.strip().lower()


def error_response(status: int, code: str, message: str) -> JSONResponse:
    """An error of our own, in a form that both OpenAI's and Anthropic's SDKs read."""
    return JSONResponse(
        {"type": "error", "error": {"type": "compacter_error", "code": code, "message": message}}, status
    )


@dataclass(slots=True)
class Target:
    """An upstream, and what the calls to it share."""

    upstream: Upstream
    state: State
    summarizer: str | None
    """The model there that writes summaries; ``None`` for the one that the caller calls."""
    client: httpx.AsyncClient | None = None


class Gone(Exception):  # noqa: N818 - a state
    """The caller has gone away."""


class Caller:
    """Who sent a request: its body, and whether somebody is still there."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._sent = asyncio.Event()

    async def body(self) -> AsyncGenerator[bytes]:
        """What comes of the body. Raises ``Gone``."""
        while not self._sent.is_set():
            message = await self._receive()
            if message["type"] != "http.request":
                raise Gone
            if not message.get("more_body", False):
                self._sent.set()
            yield message.get("body", b"")

    async def waits_for(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work, which is cancelled when the caller goes away. Raises ``Gone`` then."""
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
    """Sends requests to the upstreams, and their answers back."""

    def __init__(self, targets: list[Target], board: Board) -> None:
        self._targets = targets
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
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
        """The upstream's answer, or one of our own where it has none."""
        target, tail = self._target(raw_path(scope))
        if target is None:
            names = ", ".join(f"/{one.upstream.name}" for one in self._targets)
            return error_response(404, "unknown_upstream", f"the path begins with none of {names}")
        try:
            return await self._from(target, tail, scope, caller)
        except (httpx.InvalidURL, UnicodeError):
            return error_response(400, "invalid_path", "the path is not one that can be passed on")
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
        """The answer to a request that is not looked into; ``held`` is what was read of its body."""
        assert target.client is not None  # noqa: S101 - made as the server starts
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
        # A length beside chunks is no length: https://www.rfc-editor.org/rfc/rfc9112#section-6.3
        gone = (b"host", b"expect", *((b"content-length",) if chunked else ()))
        request = httpx.Request(
            method, url, headers=end_to_end(headers, *gone), content=content() if has_body else None
        )
        return Answer(await caller.waits_for(target.client.send(request, stream=True, follow_redirects=False)))

    async def _relay(self, answer: Answer, caller: Caller, send: Send) -> None:
        """Hand an answer on. One that breaks off is not ended properly, so that the caller sees it."""

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
            self._board.say(f"the upstream broke off: {type(error).__name__}")
        finally:
            await answer.aclose()


async def _called(
    target: Target, protocol: Protocol, url: httpx.URL, headers: Headers, raw: bytes, body: dict[str, Any]
) -> Answer:
    """The answer to a call that is compacted where that is needed; the upstream's own refusal where it is given up."""
    assert target.client is not None  # noqa: S101 - as above
    exchange = Exchange(target.client, url, headers, raw, body, protocol.param)
    call = wrapped(target.state, exchange, protocol, target.upstream, url, headers, target.summarizer)
    try:
        answer: Answer = await call(**body)
    except Refused as refused:
        return refused.answer
    return answer


def has(headers: Headers, name: bytes) -> bool:
    """Whether there is a header of this name."""
    return any(known == name for known, _ in headers)


def _arguments(raw: bytes, protocol: Protocol) -> dict[str, Any] | None:
    """The members of a request's body; ``None`` where it is not of the protocol, or asks for options of our own."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    held = body.get(protocol.param) if isinstance(body, dict) and OWN_OPTIONS not in body else None
    return body if isinstance(held, (list, str)) else None
