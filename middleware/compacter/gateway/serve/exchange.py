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
from dataclasses import replace
from functools import partial
from operator import is_
from typing import Any
from urllib.parse import quote

import httpx

from compacter.call.wrap import wrap_function
from compacter.clients.openai import Responses, compacting, output_param
from compacter.compaction.plan import DEFAULT
from compacter.gateway.serve.answers import Answer, Refused, Watches, look_into, watch_events
from compacter.gateway.serve.aws import is_signed
from compacter.gateway.serve.bodies import write
from compacter.gateway.serve.limits import Slots
from compacter.gateway.serve.protocols import Protocol
from compacter.gateway.serve.targets import Target
from compacter.gateway.serve.upstream import Headers, end_to_end
from compacter.messages.refusals import detect_in_reply

# Headers that are valid for one body. With the first request's idempotency key, its response would
# come again.
_BODY_HEADERS = frozenset(
    {b"idempotency-key", b"content-digest", b"content-md5", b"digest", b"repr-digest"}
)


class Exchange:
    """The requests of one call: as the caller sent it, with a compacted history, and for a
    summary.
    """

    def __init__(
        self,
        target: Target,
        protocol: Protocol,
        url: httpx.URL,
        headers: Headers,
        raw: bytes,
        body: Mapping[str, Any],
    ) -> None:
        self._client = target.client
        self._signer = target.signer if protocol.aws and is_signed(headers) else None
        self._protocol = protocol
        self._url = url
        self._summary_url = protocol.summary_url(url, target.summarizer)
        self._summarizer = target.summarizer
        # Without compression: the response is inspected before it is passed on.
        gone = (b"host", b"content-length", b"accept-encoding", b"expect")
        self._headers = [*end_to_end(headers, *gone), (b"accept-encoding", b"identity")]
        self._raw = raw
        self._body = body
        self._sent: object = None
        self._detect = target.state.detect
        self.attempts = 0
        self.refusals = 0
        self.waited = 0.0
        """Seconds that the caller has waited for something else than the upstream's answers."""
        self._answered = time.monotonic()

    @property
    def url(self) -> httpx.URL:
        """Where the caller's request goes."""
        return self._url

    async def create(self, /, **body: Any) -> Answer:
        """Send a body and return the response. Raises ``Refused``, or ``httpx.HTTPError`` if the
        connection fails.
        """
        self.attempts += 1
        self._sent = None
        headers = self._headers
        content = self._raw
        if not self._is_original(body):
            self._sent = body.get(self._protocol.param)
            headers = self._change_headers(body)
            content = await write(body, len(self._raw))
        self.waited += time.monotonic() - self._answered
        try:
            answer = await self._answer("POST", self._url, headers, content)
        except Refused as refused:
            self.refusals += self._detect(refused) is not None
            raise
        finally:
            self._answered = time.monotonic()
        self.refusals += detect_in_reply(answer) is not None
        return answer

    async def tokens_saved(self) -> int | None:
        """Return an estimate of the tokens by which the last request was smaller; ``None`` if it
        was the caller's own.
        """
        if self._sent is None:
            return None
        sizes = [self._body.get(self._protocol.param), self._sent]
        before, after = await asyncio.to_thread(list, map(_characters, sizes))
        return int(max(0, before - after) / DEFAULT)

    async def summary(self, /, **body: Any) -> Mapping[str, Any]:
        """Send a body that asks for a summary, and return the reply."""
        if self._summarizer is not None and self._summary_url == self._url:
            body["model"] = self._summarizer
        content = await write(body, len(self._raw))
        headers = self._change_headers(body)
        url = self._summary_url
        reply = await self._answer("POST", url, headers, content, watch_events)
        return self._protocol.reply(reply)

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
        given = {
            "instructions": instructions,
            "prompt_cache_key": prompt_cache_key,
            "service_tier": service_tier,
        }
        body = {"model": model, "previous_response_id": previous_response_id}
        body |= {name: value for name, value in given.items() if value is not None}
        content = await write(body, 0)
        return await self._answer(
            "POST", self._beside("compact"), self._change_headers(body), content
        )

    async def retrieve(self, response_id: str, /) -> Answer:
        """``responses.retrieve``: fetch a stored response."""
        return await self._answer(
            "GET", self._beside(quote(response_id, safe="")), self._change_headers({}), None
        )

    def _beside(self, name: str) -> httpx.URL:
        path, _, query = self._url.raw_path.decode("ascii").partition("?")
        return self._url.copy_with(
            raw_path=f"{path}/{name}{'?' * bool(query)}{query}".encode("ascii")
        )

    def _is_original(self, body: Mapping[str, Any]) -> bool:
        """Return whether this is the caller's body; each attempt has a new list, but of the same
        messages.
        """
        original = self._body
        sent = body.get(self._protocol.param)
        came = original.get(self._protocol.param)
        if isinstance(came, str):  # Stands for one message of the user.
            same = sent in (came, [{"role": "user", "content": came}])
        elif isinstance(came, list) and isinstance(sent, (list, tuple)):
            same = len(sent) == len(came) and all(map(is_, sent, came))
        else:
            same = sent is came
        others = body.keys() - {self._protocol.param}
        return (
            same
            and body.keys() == original.keys()
            and all(body[name] is original[name] for name in others)
        )

    def _change_headers(self, body: Mapping[str, Any]) -> list[tuple[bytes, bytes]]:
        headers = [(name, value) for name, value in self._headers if name not in _BODY_HEADERS]
        if not body.get("stream"):
            headers = [
                (name, b"application/json" if name == b"accept" else value)
                for name, value in headers
            ]
        return headers

    async def _answer(
        self,
        method: str,
        url: httpx.URL,
        headers: Headers,
        content: bytes | None,
        watches: Watches | None = None,
    ) -> Answer:
        if self._signer is not None:
            headers = self._signer.signed(method, url, headers, content or b"")
        request = httpx.Request(method, url, headers=list(headers), content=content)
        answer = Answer(await self._client.send(request, stream=True, follow_redirects=False))
        try:
            await look_into(answer, watches or self._protocol.watches)
        except BaseException:
            await answer.aclose()
            raise
        return answer


def _characters(messages: object) -> int:
    return len(json.dumps(messages, ensure_ascii=False))


def wrapped(
    target: Target, exchange: Exchange, protocol: Protocol, model: str, caller: str, slots: Slots
) -> Callable[..., Any]:
    """Return the wrapper of the exchange's ``create``. The same upstream writes summaries, with the
    caller's key.
    """
    url = exchange.url
    plain = protocol.summary_url(url, None).copy_with(query=None)

    def server() -> str:
        # Part of the memory's scope: compactions are not shared with other callers or servers, and
        # are shared by streams and plain calls.
        return f"serve {plain} {caller} {target.summarizer or ''}"

    async def ask(**body: Any) -> Mapping[str, Any]:
        async with slots.place(caller):
            return await exchange.summary(**body)

    binding = protocol.binding(
        wire_format=protocol.wire_format,
        messages_param=protocol.param,
        vendors=True,
        output_param=protocol.output_param or output_param(target.upstream),
        summary_function=ask,
        server=server,
    )
    if protocol.plain_verb:  # The path names the model.
        changes: dict[str, Any] = {"model": model}
        binding = replace(binding, **changes)
    if protocol.binding is Responses:
        function = partial(compacting(target.state, Exchange.create), exchange)
    else:
        function = partial(Exchange.create, exchange)
    # Replaces the model's name where a body has none: for Azure's deployments the path has it.
    function.__dict__["__qualname__"] = url.path
    return wrap_function(target.state, function, binding, asynchronous=True)
