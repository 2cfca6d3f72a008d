"""One call of a known protocol: send its requests to the upstream, and inspect the responses before they go back.

The members of a request body are the arguments of the SDKs' methods, so a call here is wrapped as theirs are. An
unchanged body is sent byte for byte as it was received.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any
from urllib.parse import quote

import httpx

from compacter.call.arguments import Binding
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.anthropic import Messages
from compacter.clients.openai import Responses, compacting, output_param
from compacter.clients.raw import EventWatch
from compacter.messages.format import FormatName
from compacter.serve.upstream import Headers, Upstream, caller, end_to_end

_LONGEST_DOCUMENT = 16 << 20
"""Longest JSON response that is read, in bytes; a longer one is passed on unread."""
_LONGEST_REFUSAL = 1 << 20
"""Longest error response that is read, in bytes."""
_PACKED = ("gzip", "deflate")
_BODY_HEADERS = frozenset({b"idempotency-key", b"content-digest", b"content-md5", b"digest", b"repr-digest"})
"""Headers that are valid for one body. With the first request's idempotency key, its response would come again."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A kind of call that can be compacted."""

    suffix: str
    """End of its path."""
    param: str
    """Member of its body that contains the messages."""
    wire_format: FormatName
    binding: type[Binding] = Binding
    output_param: str = ""
    """Member that limits the output; empty if it depends on the server."""


PROTOCOLS = (
    Protocol("/chat/completions", "messages", "openai"),
    Protocol("/responses", "input", "responses", Responses, "max_output_tokens"),
    Protocol("/messages", "messages", "anthropic", Messages, "max_tokens"),
)


def protocol_of(method: str, tail: str) -> Protocol | None:
    """Return the protocol of a request by its method and path, or ``None``. Its body is checked later."""
    if method != "POST":
        return None
    return next((one for one in PROTOCOLS if tail == one.suffix or tail.endswith(one.suffix)), None)


class Answer(dict[str, Any]):
    """The upstream's response. As a dict: its JSON object, or the error found at the beginning of a stream."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.status = response.status_code
        self.headers = end_to_end(response.headers.raw)
        self.held: list[bytes] = []
        """The part of the body that was read, as it was received."""
        self._response = response
        self._rest: AsyncIterator[bytes] = response.aiter_raw()
        self._failure: httpx.HTTPError | None = None

    async def hold(self, watch: Callable[[bytes], object], most: int) -> bool:
        """Read until ``watch`` returns true, or more than ``most`` bytes. Return whether the whole body was read."""
        size = 0
        try:
            async for chunk in self._rest:
                self.held.append(chunk)
                size += len(chunk)
                if watch(chunk) or size > most:
                    return False
        except httpx.HTTPError as error:
            self._failure = error
            return False
        return True

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body: the part that was read, and the rest. Raises ``httpx.HTTPError`` if it breaks off."""
        for chunk in self.held:
            yield chunk
        if self._failure is not None:
            raise self._failure
        async for chunk in self._rest:
            yield chunk

    async def aclose(self) -> None:
        """Close the response without reading the rest."""
        await self._response.aclose()


class Refused(Exception):  # noqa: N818 - the upstream's response, not an error of ours
    """The upstream responded with an error status; the response was read completely."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"the upstream answered {answer.status}")
        self.answer = answer
        self.status_code = answer.status
        self.body: object = dict(answer) or (b"".join(answer.held).decode("utf-8", "replace") if answer.held else None)


class Exchange:
    """The requests of one call: as the caller sent it, with a folded history, and for a summary."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: httpx.URL,
        headers: Headers,
        raw: bytes,
        body: Mapping[str, Any],
        param: str,
    ) -> None:
        self._client = client
        self._url = url
        # Without compression: the response is inspected before it is passed on.
        gone = (b"host", b"content-length", b"accept-encoding", b"expect")
        self._headers = [*end_to_end(headers, *gone), (b"accept-encoding", b"identity")]
        self._raw = raw
        self._body = body
        self._param = param

    async def create(self, /, **body: Any) -> Answer:
        """Send a body and return the response. Raises ``Refused``, or ``httpx.HTTPError`` if the connection fails."""
        if self._is_original(body):
            return await self._answer("POST", self._url, self._headers, self._raw)
        return await self._answer("POST", self._url, self._changed_headers(body), json.dumps(body).encode())

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
        given = {"instructions": instructions, "prompt_cache_key": prompt_cache_key, "service_tier": service_tier}
        body = {"model": model, "previous_response_id": previous_response_id}
        body |= {name: value for name, value in given.items() if value is not None}
        url = self._beside("compact")
        return await self._answer("POST", url, self._changed_headers(body), json.dumps(body).encode())

    async def retrieve(self, response_id: str, /) -> Answer:
        """``responses.retrieve``: fetch a stored response."""
        return await self._answer("GET", self._beside(quote(response_id, safe="")), self._changed_headers({}), None)

    def _beside(self, name: str) -> httpx.URL:
        path, _, query = self._url.raw_path.decode("ascii").partition("?")
        return self._url.copy_with(raw_path=f"{path}/{name}{'?' * bool(query)}{query}".encode("ascii"))

    def _is_original(self, body: Mapping[str, Any]) -> bool:
        """Return whether this is the caller's body; each attempt has a new list, but of the same messages."""
        original = self._body
        sent, came = body.get(self._param), original.get(self._param)
        if isinstance(came, str):  # Stands for one message of the user.
            same = sent in (came, [{"role": "user", "content": came}])
        elif isinstance(came, list) and isinstance(sent, (list, tuple)):
            same = len(sent) == len(came) and all(map(is_, sent, came))
        else:
            same = sent is came
        others = body.keys() - {self._param}
        return same and body.keys() == original.keys() and all(body[name] is original[name] for name in others)

    def _changed_headers(self, body: Mapping[str, Any]) -> list[tuple[bytes, bytes]]:
        headers = [(name, value) for name, value in self._headers if name not in _BODY_HEADERS]
        if not body.get("stream"):
            headers = [(name, b"application/json" if name == b"accept" else value) for name, value in headers]
        return headers

    async def _answer(self, method: str, url: httpx.URL, headers: Headers, content: bytes | None) -> Answer:
        request = httpx.Request(method, url, headers=list(headers), content=content)
        answer = Answer(await self._client.send(request, stream=True, follow_redirects=False))
        try:
            await _look_into(answer)
        except BaseException:
            await answer.aclose()
            raise
        return answer


async def _look_into(answer: Answer) -> None:
    """Read a JSON response completely, a stream up to its first content. Raises ``Refused`` for an error status."""
    headers = dict(answer.headers)
    packed = headers.get(b"content-encoding", b"").decode("latin-1").strip().lower().replace("identity", "")
    kind = headers.get(b"content-type", b"").lower()
    failed = answer.status >= 400
    if not failed and b"event-stream" in kind:
        if packed in ("", *_PACKED):
            watch = EventWatch(packed)
            if await answer.hold(watch.read, _LONGEST_REFUSAL):
                watch.end()
            if watch.refusal is not None:
                answer["error"] = watch.refusal
    elif failed or b"json" in kind:
        whole = await answer.hold(lambda _: False, _LONGEST_REFUSAL if failed else _LONGEST_DOCUMENT)
        if whole:
            answer.update(_document(b"".join(answer.held), packed))
        if failed and whole:
            await answer.aclose()
            raise Refused(answer)


def _document(body: bytes, packed: str) -> dict[str, Any]:
    """Return the JSON object in a body; an empty one if it has none, or its encoding is unknown."""
    try:
        if packed in _PACKED:
            body = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, _LONGEST_DOCUMENT)
        found = json.loads(body)
    except (ValueError, RecursionError, zlib.error):
        return {}
    return found if isinstance(found, dict) else {}


def wrapped(
    state: State, exchange: Exchange, protocol: Protocol, upstream: Upstream, url: httpx.URL, headers: Headers,
    summarizer: str | None,
) -> Callable[..., Any]:  # fmt: skip
    """Return the wrapper of the exchange's ``create``. The same upstream writes summaries, with the caller's key."""

    def server() -> str:
        # Part of the memory's scope: compactions are not shared with other callers or servers.
        return f"serve {url.copy_with(query=None)} {caller(headers)} {summarizer or ''}"

    async def ask(**body: Any) -> Answer:
        return await exchange.create(**(body if summarizer is None else {**body, "model": summarizer}))

    binding = protocol.binding(
        wire_format=protocol.wire_format,
        messages_param=protocol.param,
        vendors=True,
        output_param=protocol.output_param or output_param(upstream),
        summary_function=ask,
        server=server,
    )
    if protocol.binding is Responses:
        function = partial(compacting(state, Exchange.create, exchange), exchange)
    else:
        function = partial(Exchange.create, exchange)
    # Replaces the model's name where a body has none: for Azure's deployments the path has it.
    function.__dict__["__qualname__"] = url.path
    return wrap_function(state, function, binding, asynchronous=True)
