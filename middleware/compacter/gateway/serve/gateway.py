"""The ASGI application: inspects the requests that can be compacted, and passes all others on.

A request of a known protocol is read completely and sent as a wrapped call; the body of any other
one is streamed. A response goes back chunk by chunk, and is not read from the upstream faster than
the caller reads it. When the caller disconnects, its work is cancelled and the connection to the
upstream closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import httpx
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from compacter.call.wrap import OWN_OPTIONS
from compacter.errors import CompacterError
from compacter.gateway.metrics import ORIGIN, Origin
from compacter.gateway.serve.answers import Answer, own_error, read
from compacter.gateway.serve.aws import is_signed
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.exchange import Exchange
from compacter.gateway.serve.guard import raw_path
from compacter.gateway.serve.protocols import Protocol, protocol_of
from compacter.gateway.serve.targets import Setup, Target
from compacter.gateway.serve.upstream import end_to_end

# Largest request that is inspected, in bytes; a larger one is passed on. The largest window of
# today, two million tokens, is a tenth of that.
_LARGEST_BODY = 64 << 20
# Seconds after which a program should try again while the upstream is away.
_RETRY = {"retry-after": "5"}
_CLOSING = {"connection": "close"}


class Gateway:
    """ASGI application that passes each request on to its upstream, and the response back to the
    caller. It compacts calls that the upstream refuses as too long.
    """

    def __init__(self, setup: Setup, board: Board) -> None:
        self.board = board
        self.open = 0
        """Number of requests that are being handled."""
        self.setup = setup

    async def aclose(self) -> None:
        """Close all connections to the upstreams. It is called when the server ends."""
        for target in self.setup.targets:
            await target.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        settings = self.setup.settings
        tenant_class = Headers(scope=scope).get(settings.class_header, "other")
        ORIGIN.set(Origin(tenant_class=tenant_class))
        self.board.count("requests")
        sender = Sender(receive, settings.body_timeout)
        lifeline = Lifeline(send)
        handler = _Handler(self.board, self.setup, sender, scope, lifeline)
        self.open += 1
        try:
            await sender.waits_for(handler.handle(send))
        except Gone:
            pass
        finally:
            await lifeline.end()
            self.open -= 1


@dataclass
class _Handler:
    """One request, on its way to an upstream."""

    board: Board
    setup: Setup
    sender: Sender
    scope: Scope
    lifeline: Lifeline
    upstream: str = ""

    async def handle(self, send: Send) -> None:
        """Answer the request."""
        answer = await self.answer()
        try:
            await self.lifeline.end()
            await self.relay(answer, send)
        finally:
            await answer.aclose()

    async def answer(self) -> Answer:
        """Return the upstream's response, or else an error of this server."""
        target, tail = self._target(raw_path(self.scope))
        if target is None:
            names = ", ".join(f"/{one.upstream.name}" for one in self.setup.targets)
            message = f"the path must begin with one of {names}"
            return own_error(404, "unknown_upstream", message)
        ORIGIN.set(replace(ORIGIN.get(), upstream=target.upstream.name))
        self.upstream = target.upstream.base_url
        try:
            answer = await self._from(target, tail)
            self.board.print_status(self.upstream)
            return answer
        except Stalled:
            message = "the body of the request did not come in time"
            return own_error(408, "request_timeout", message, _CLOSING)
        except (httpx.InvalidURL, UnicodeError):
            return own_error(400, "invalid_path", "the path is not valid in a URL")
        except (httpx.HTTPError, OSError) as error:
            self._note_away("cannot be reached", error)
            message = f"compacter serve could not reach the upstream: {type(error).__name__}"
            return own_error(502, "upstream_unreachable", message, _RETRY)
        except CompacterError as error:
            message = f"compacter could not compact: {type(error).__name__}"
            return own_error(500, "compaction_failed", message)

    async def relay(self, answer: Answer, send: Send) -> None:
        """Send a response to the caller. If it breaks off, it is left incomplete so that the caller
        can see it.
        """
        try:
            if not self.lifeline.begun:
                headers = answer.headers
                start = {"type": "http.response.start", "status": answer.status, "headers": headers}
                await send(start)
            async with contextlib.aclosing(self.lifeline.chunks(answer)) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except httpx.HTTPError as error:
            self._note_away("broke off its response", error)

    def _note_away(self, what: str, error: Exception) -> None:
        """Count that the upstream is away, and print it once until it answers."""
        self.board.count("unreachable")
        self.board.print_status(self.upstream, f"{what}: {type(error).__name__}")

    def _target(self, path: str) -> tuple[Target | None, str]:
        for target in self.setup.targets:
            start = f"/{target.upstream.name}"
            if start == "/":
                return target, target.upstream.tail(path)
            if path == start or path.startswith(f"{start}/"):
                return target, target.upstream.tail(path[len(start) :])
        return None, ""

    async def _from(self, target: Target, tail: str) -> Answer:
        headers = self.scope["headers"]
        query = self.scope["query_string"].decode("latin-1")
        url = target.upstream.url(tail, query)
        protocol = protocol_of(self.scope["method"], tail)
        if protocol is None or Headers(scope=self.scope).get("content-encoding"):
            return await self._pass_on(target, url, b"")
        if protocol.aws and target.signer is None and is_signed(headers):
            self.board.print_once(
                "a request that is signed for AWS cannot be changed, and was passed on; "
                "see --aws-region, or use an API key"
            )
            return await self._pass_on(target, url, b"")
        chunks = bytearray()
        try:
            async with asyncio.timeout(self.setup.settings.body_timeout):
                async for chunk in self.sender.body():
                    chunks += chunk
                    if len(chunks) > _LARGEST_BODY:
                        break
        except TimeoutError:
            raise Stalled from None
        raw = bytes(chunks)
        body = await read(raw) if len(raw) <= _LARGEST_BODY else None
        if body is None or OWN_OPTIONS in body or not protocol.fits(body):
            return await self._pass_on(target, url, raw)
        caller = self.setup.callers.digest(headers, query, body, self.scope)
        model = protocol.model_of(tail) or str(body.get("model") or "")
        ORIGIN.set(replace(ORIGIN.get(), model=model))
        hold = partial(self.lifeline.begin, protocol)
        exchange = Exchange(target, protocol, url, headers, raw, body, model, hold)
        return await exchange.call(self.board, caller)

    async def _pass_on(self, target: Target, url: httpx.URL, head: bytes) -> Answer:
        """Return the response to a request that is not inspected; ``head`` is the part of its body
        that was read.
        """
        self.board.count("passed_on")

        async def content() -> AsyncGenerator[bytes]:
            yield head
            async for chunk in self.sender.body():
                yield chunk

        given = Headers(scope=self.scope)
        has_body = bool(given.get("content-length") or given.get("transfer-encoding"))
        if not has_body:
            async for _ in self.sender.body():
                pass
        headers = end_to_end(self.scope["headers"], b"host", b"expect")
        body = content() if has_body else None
        return await target.send(self.scope["method"], url, headers, body)


# -- signs of life ---------------------------------------------------------------------------------

# Longest silence in seconds, as clients allow two and more.
SILENCE = 1.0


class Lifeline:
    """The part of a response that is sent before its answer is known.

    A stream is not passed on before its first content, as a refusal may follow, but clients give up
    after some silence. So a caller who has waited for a second gets the head of the response, and
    from then on bytes that clients of the protocol skip. A failure afterwards is sent inside the
    stream.

    Args:
        send: ASGI function.
    """

    def __init__(self, send: Send) -> None:
        self.begun: Protocol | None = None
        """Protocol of the response whose head was sent; ``None`` before."""
        self._send = send
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, protocol: Protocol, opened: Answer) -> None:
        """Send signs of life from now on, if the protocol has them.

        Args:
            protocol: The protocol of the call.
            opened: The beginning of a stream that the upstream has sent with a status of success.
        """
        if self._task is None and protocol.beat:
            self._task = asyncio.create_task(self._keep_alive(opened, protocol))

    def chunks(self, answer: Answer) -> AsyncGenerator[bytes]:
        """Return the body of an answer; a failure is an event if the stream has begun."""
        if self.begun is None or answer.status < 400:
            return answer.chunks()
        return _failure(answer, self.begun.failure)

    async def end(self) -> None:
        """Stop sending bytes that keep the caller waiting; the answer follows."""
        self._over.set()
        if self._task is not None:
            await self._task

    async def _keep_alive(self, opened: Answer, protocol: Protocol) -> None:
        # An event ends it, as a cancelled ``send`` may or may not have sent.
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), SILENCE)
                return
            if self.begun is None:
                # The upstream's stream had another length.
                headers = [pair for pair in opened.headers if pair[0] != b"content-length"]
                start = {"type": "http.response.start", "status": opened.status, "headers": headers}
                await self._send(start)
                self.begun = protocol
            await self._send(
                {"type": "http.response.body", "body": protocol.beat, "more_body": True}
            )


async def _failure(answer: Answer, form: bytes) -> AsyncGenerator[bytes]:
    """Yield an error of the upstream, or of this server, as an event."""
    body = b"".join([chunk async for chunk in answer.chunks()])
    error = await read(body) or {"error": {"message": body.decode("utf-8", "replace")}}
    yield form % json.dumps(error).encode()


# -- the sender of a request -----------------------------------------------------------------------


class Gone(Exception):  # noqa: N818 - a state
    """The sender has disconnected."""


class Stalled(Exception):  # noqa: N818 - a state
    """The body did not come in time."""


@dataclass
class Sender:
    """The sender of a request.

    Args:
        receive: ASGI function.
        seconds: Longest pause in the body.
    """

    receive: Receive
    seconds: float
    _sent: asyncio.Event = field(default_factory=asyncio.Event)

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the rest of the body. Raises ``Gone`` or ``Stalled``."""
        while not self._sent.is_set():
            try:
                async with asyncio.timeout(self.seconds):
                    message = await self.receive()
            except TimeoutError:
                raise Stalled from None
            if message["type"] != "http.request":
                raise Gone
            if not message.get("more_body", False):
                self._sent.set()
            yield message.get("body", b"")

    async def waits_for(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry out ``work``. If the sender disconnects, cancel it and raise ``Gone``."""
        task = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self._leave())
        try:
            await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone
            task.result()
        finally:
            task.cancel()
            leaving.cancel()
            await asyncio.gather(task, leaving, return_exceptions=True)

    async def _leave(self) -> None:
        await self._sent.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass
