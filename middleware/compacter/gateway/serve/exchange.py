"""One call of a known protocol: send its requests to the upstream, and inspect the responses before
they go back.

The members of a request body are the arguments of the SDKs' methods, so a call here is wrapped like
theirs. An unchanged body is sent byte for byte.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx

from compacter.call.wrap import wrap_function
from compacter.clients.openai import Responses, compacting, output_param
from compacter.compaction.calibration import CHARS_PER_TOKEN
from compacter.gateway.serve.answers import (
    Answer,
    Refused,
    Watches,
    look_into,
    read_events,
    watch_events,
    write,
)
from compacter.gateway.serve.aws import is_signed
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.protocols import Protocol
from compacter.gateway.serve.targets import Target
from compacter.gateway.serve.upstream import Headers, end_to_end
from compacter.messages.refusals import UNSAID, detect_in_reply

# Headers that are valid for one body. With the first request's idempotency key, the server would
# repeat its response.
_BODY_HEADERS = frozenset(
    {b"idempotency-key", b"content-digest", b"content-md5", b"digest", b"repr-digest"}
)


@dataclass
class Exchange:
    """Makes and sends the requests of one call to the upstream: the request as the caller has sent
    it, the same request with a compacted history, and the request for a summary.
    """

    target: Target
    """The upstream that gets them."""
    protocol: Protocol
    """Protocol of the call."""
    url: httpx.URL
    """URL of the caller's request."""
    headers: Headers
    """Headers of the caller's request; without compression, as the response is inspected."""
    raw: bytes
    """Its body."""
    body: Mapping[str, Any]
    """The members of the body."""
    model: str
    """Name of the model, in the path or in the body."""
    hold: Callable[[Answer], object]
    """Called with a stream that is not passed on before its first content."""
    sent: object = None
    """Messages of the last request, if they are not the caller's."""
    attempts: int = 0
    refusals: int = 0
    waited: float = 0.0
    """Seconds that the caller has waited for anything but the upstream's answers."""
    answered: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        is_resigned = self.protocol.aws and is_signed(self.headers)
        self.signer = self.target.signer if is_resigned else None
        gone = (b"host", b"content-length", b"accept-encoding", b"expect")
        self.headers = [*end_to_end(self.headers, *gone), (b"accept-encoding", b"identity")]
        self.arguments = self.protocol.arguments(self.body, self.model)

    async def call(self, board: Board, caller: str) -> Answer:
        """Return the response to a wrapped call; the upstream's own refusal if the call is given
        up. Summaries come from the same upstream, with the caller's key.
        """
        target = self.target
        protocol = self.protocol
        plain = str(protocol.summary_url(self.url, None)).partition("?")[0]
        # Part of the memory's scope: compactions are not shared with other callers or servers, and
        # are shared by streams and plain calls.
        betas = b" ".join(
            value for name, value in self.headers if name == b"anthropic-beta"
        ).decode("latin-1")
        server = f"serve {plain} {caller} {target.summarizer or ''} {betas}"
        binding = protocol.binding(
            wire_format=protocol.wire_format,
            messages_param=protocol.param,
            vendors=True,
            output_param=protocol.output_param or output_param(target.upstream),
            summary_function=self.summary,
            server=lambda: server,
            betas=lambda: betas,
        )
        create: Any = Exchange.create
        if protocol.binding is Responses:
            create = compacting(target.state, create)
        function = partial(create, self)
        # Replaces the model's name where a body has none: for Azure's deployments the path has it.
        function.__dict__["__qualname__"] = self.url.path
        call = wrap_function(target.state, function, binding, asynchronous=True)
        try:
            answer: Answer = await call(**self.arguments)
        except Refused as refused:
            return refused.answer
        finally:
            if self.refusals:
                board.metrics.add("refusals", self.refusals)
                if target.dry_run:
                    board.count("dry_runs")
            if self.attempts > 1:
                board.metrics.observe("wait_seconds", self.waited)
        if self.sent is not None:
            sizes = [self.arguments.get(protocol.param), self.sent]
            before, after = await asyncio.to_thread(list, map(_characters, sizes))
            saved = int(max(0, before - after) / CHARS_PER_TOKEN)
            board.metrics.add("tokens_saved", saved)
            answer.headers += (
                (b"x-compacter-rounds", b"%d" % (self.attempts - 1)),
                (b"x-compacter-tokens-saved", b"%d" % saved),
            )
        return answer

    async def create(self, /, **arguments: Any) -> Answer:
        """Send a request and return the response. Raises ``Refused``, or ``httpx.HTTPError`` if the
        connection fails.
        """
        self.attempts += 1
        self.sent = None
        headers = self.headers
        content = self.raw
        if not self._is_original(arguments):
            self.sent = arguments.get(self.protocol.param)
            body = self.protocol.body(arguments, self.body)
            headers = self._change_headers(body)
            content = await write(body, len(self.raw))
        self.waited += time.monotonic() - self.answered
        try:
            answer = await self._answer("POST", self.url, headers, content, hold=self.hold)
        except Refused as refused:
            self.refusals += self.target.state.detect(refused) is not None
            raise
        finally:
            self.answered = time.monotonic()
        found = detect_in_reply(answer)
        self.refusals += found is not None and found.source not in UNSAID
        return answer

    async def summary(self, /, **arguments: Any) -> Mapping[str, Any] | tuple[Any, ...]:
        """Ask for a summary, and return the reply; a stream as a tuple of its events."""
        model = self.target.summarizer
        protocol = self.protocol
        if model is not None and not protocol.plain_verb:
            arguments["model"] = model
        body = protocol.plain(protocol.body(arguments, self.body))
        url = protocol.summary_url(self.url, model)
        answer = await self._send(body, url, watch_events)
        return await read_events(answer) if body.get("stream") else protocol.reply(answer)

    async def compact(
        self,
        /,
        *,
        model: str,
        previous_response_id: str,
        instructions: str | None = None,
        prompt_cache_key: str | None = None,
        service_tier: str | None = None,
    ) -> Answer:
        """``responses.compact``: ask the upstream to compact a history that it stores."""
        body = {
            "model": model,
            "previous_response_id": previous_response_id,
            "instructions": instructions,
            "prompt_cache_key": prompt_cache_key,
            "service_tier": service_tier,
        }
        given = {name: value for name, value in body.items() if value is not None}
        return await self._send(given, self._beside("compact"))

    async def retrieve(self, response_id: str, /) -> Answer:
        """``responses.retrieve``: fetch a stored response."""
        url = self._beside(quote(response_id, safe=""))
        return await self._answer("GET", url, self._change_headers({}), None)

    def _beside(self, name: str) -> httpx.URL:
        path, _, query = self.url.raw_path.decode("ascii").partition("?")
        return self.url.copy_with(
            raw_path=f"{path}/{name}{'?' * bool(query)}{query}".encode("ascii")
        )

    def _is_original(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether these are the caller's. Each attempt has a new list of the caller's
        message objects, so that no text is compared.
        """
        param = self.protocol.param
        came = self.arguments.get(param)
        sent = arguments.get(param)
        # A string is one message of the user.
        forms = [came, [{"role": "user", "content": came}]] if isinstance(came, str) else [came]
        same = (list(sent) if isinstance(sent, tuple) else sent) in forms
        return same and {**arguments, param: came} == self.arguments

    def _change_headers(self, body: Mapping[str, Any]) -> list[tuple[bytes, bytes]]:
        is_plain = not body.get("stream")
        return [
            (name, b"application/json" if is_plain and name == b"accept" else value)
            for name, value in self.headers
            if name not in _BODY_HEADERS
        ]

    async def _send(
        self, body: Mapping[str, Any], url: httpx.URL, watches: Watches | None = None
    ) -> Answer:
        content = await write(body, len(self.raw))
        return await self._answer("POST", url, self._change_headers(body), content, watches)

    async def _answer(
        self,
        method: str,
        url: httpx.URL,
        headers: Headers,
        content: bytes | None,
        watches: Watches | None = None,
        hold: Callable[[Answer], object] = lambda _: None,
    ) -> Answer:
        if self.signer is not None:
            headers = self.signer.signed(method, url, headers, content or b"")
        answer = await self.target.send(method, url, headers, content)
        try:
            await look_into(answer, watches or self.protocol.watches, hold)
        except BaseException:
            await answer.aclose()
            raise
        return answer


def _characters(messages: object) -> int:
    return len(json.dumps(messages, ensure_ascii=False))
