"""One call of a known protocol: send its requests to the upstream, and inspect the responses before
they go back.

The members of a request body are the arguments of the SDKs' methods, so a call here is wrapped as
theirs are. An unchanged body is sent byte for byte as it was received.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx

from compacter.call.wrap import wrap_function
from compacter.clients.openai import Responses, compacting, output_param
from compacter.compaction.sizes import CHARS_PER_TOKEN
from compacter.gateway.serve.answers import (
    Answer,
    Refused,
    Watches,
    look_into,
    watch_events,
    write,
)
from compacter.gateway.serve.aws import is_signed
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.protocols import Protocol
from compacter.gateway.serve.targets import Target
from compacter.gateway.serve.upstream import Headers, end_to_end
from compacter.messages.replies import detect_in_reply

# Headers that are valid for one body. With the first request's idempotency key, its response would
# come again.
_BODY_HEADERS = frozenset(
    {b"idempotency-key", b"content-digest", b"content-md5", b"digest", b"repr-digest"}
)


class Exchange:
    """The requests of one call: as the caller sent it, with a compacted history, and for a summary.

    Args:
        target: Where they go.
        protocol: What the call is one of.
        url: Where the caller's request goes.
        headers: Those of the caller's request.
        raw: Its body.
        body: The members of that.
        model: Name of the model, in the path or in the body.
        hold: Called with a stream that is held until its first content.
    """

    def __init__(
        self,
        target: Target,
        protocol: Protocol,
        url: httpx.URL,
        headers: Headers,
        raw: bytes,
        body: Mapping[str, Any],
        model: str,
        hold: Callable[[Answer], object],
    ) -> None:
        self._target = target
        self._hold = hold
        self._signer = target.signer if protocol.aws and is_signed(headers) else None
        self._protocol = protocol
        self._url = url
        # Without compression: the response is inspected before it is passed on.
        gone = (b"host", b"content-length", b"accept-encoding", b"expect")
        self._headers = [*end_to_end(headers, *gone), (b"accept-encoding", b"identity")]
        self._raw = raw
        self._body = body
        self._arguments = protocol.arguments(body, model)
        # Messages of the last request, if they are not the caller's.
        self._sent: object = None
        self._attempts = 0
        self._refusals = 0
        # Seconds that the caller has waited for something else than the upstream's answers.
        self._waited = 0.0
        self._answered = time.monotonic()

    async def call(self, board: Board, caller: str) -> Answer:
        """Return the response to a wrapped call; the upstream's own refusal if it is given up. The
        same upstream writes summaries, with the caller's key.
        """
        target = self._target
        protocol = self._protocol
        plain = protocol.summary_url(self._url, None).copy_with(query=None)
        # Part of the memory's scope: compactions are not shared with other callers or servers, and
        # are shared by streams and plain calls.
        server = f"serve {plain} {caller} {target.summarizer or ''}"
        binding = protocol.binding(
            wire_format=protocol.wire_format,
            messages_param=protocol.param,
            vendors=True,
            output_param=protocol.output_param or output_param(target.upstream),
            summary_function=self.summary,
            server=lambda: server,
            has_one_server=True,
        )
        create: Any = Exchange.create
        if protocol.binding is Responses:
            create = compacting(target.state, create)
        function = partial(create, self)
        # Replaces the model's name where a body has none: for Azure's deployments the path has it.
        function.__dict__["__qualname__"] = self._url.path
        call = wrap_function(target.state, function, binding)
        try:
            answer: Answer = await call(**self._arguments)
        except Refused as refused:
            return refused.answer
        finally:
            if self._refusals:
                board.metrics.add("refusals", self._refusals)
                if target.dry_run:
                    board.count("dry_runs")
            if self._attempts > 1:
                board.metrics.observe("wait_seconds", self._waited)
        if self._sent is not None:
            sizes = [self._arguments.get(protocol.param), self._sent]
            before, after = await asyncio.to_thread(list, map(_characters, sizes))
            saved = int(max(0, before - after) / CHARS_PER_TOKEN)
            board.metrics.add("tokens_saved", saved)
            answer.headers += (
                (b"x-compacter-rounds", b"%d" % (self._attempts - 1)),
                (b"x-compacter-tokens-saved", b"%d" % saved),
            )
        return answer

    async def create(self, /, **arguments: Any) -> Answer:
        """Send a request and return the response. Raises ``Refused``, or ``httpx.HTTPError`` if the
        connection fails.
        """
        self._attempts += 1
        self._sent = None
        headers = self._headers
        content = self._raw
        if not self._is_original(arguments):
            self._sent = arguments.get(self._protocol.param)
            body = self._protocol.body(arguments, self._body)
            headers = self._change_headers(body)
            content = await write(body, len(self._raw))
        self._waited += time.monotonic() - self._answered
        try:
            answer = await self._answer("POST", self._url, headers, content, hold=self._hold)
        except Refused as refused:
            self._refusals += self._target.state.detect(refused) is not None
            raise
        finally:
            self._answered = time.monotonic()
        self._refusals += detect_in_reply(answer) is not None
        return answer

    async def summary(self, /, **arguments: Any) -> Mapping[str, Any]:
        """Ask for a summary, and return the reply."""
        model = self._target.summarizer
        protocol = self._protocol
        if model is not None and not protocol.plain_verb:
            arguments["model"] = model
        body = protocol.plain(protocol.body(arguments, self._body))
        url = protocol.summary_url(self._url, model)
        return protocol.reply(await self._send(body, url, watch_events))

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
        """``responses.compact``: have the upstream compact a history that it stores."""
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
        path, _, query = self._url.raw_path.decode("ascii").partition("?")
        return self._url.copy_with(
            raw_path=f"{path}/{name}{'?' * bool(query)}{query}".encode("ascii")
        )

    def _is_original(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether these are the caller's. Each attempt has a new list, but of the same
        messages, so that no text is compared.
        """
        param = self._protocol.param
        came = self._arguments.get(param)
        sent = arguments.get(param)
        # A string stands for one message of the user.
        forms = [came, [{"role": "user", "content": came}]] if isinstance(came, str) else [came]
        same = (list(sent) if isinstance(sent, tuple) else sent) in forms
        return same and {**arguments, param: came} == self._arguments

    def _change_headers(self, body: Mapping[str, Any]) -> list[tuple[bytes, bytes]]:
        is_plain = not body.get("stream")
        return [
            (name, b"application/json" if is_plain and name == b"accept" else value)
            for name, value in self._headers
            if name not in _BODY_HEADERS
        ]

    async def _send(
        self, body: Mapping[str, Any], url: httpx.URL, watches: Watches | None = None
    ) -> Answer:
        content = await write(body, len(self._raw))
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
        if self._signer is not None:
            headers = self._signer.signed(method, url, headers, content or b"")
        request = httpx.Request(method, url, headers=list(headers), content=content)
        client = self._target.client
        answer = Answer(await client.send(request, stream=True, follow_redirects=False))
        try:
            await look_into(answer, watches or self._protocol.watches, hold)
        except BaseException:
            await answer.aclose()
            raise
        return answer


def _characters(messages: object) -> int:
    return len(json.dumps(messages, ensure_ascii=False))
