"""Refusals inside HTTP 200 that are read through ``with_raw_response`` and ``with_streaming_response``.

With these the SDK returns the response unread, and frameworks use them for streams, to get the headers. A refusal may
then be the first event of an unread body. So the beginning of the body is read here, up to the first event with visible
content, and put back: later readers of events, lines or bytes get every byte. A response that says "too long" gets the
provider's ``error`` as an attribute, where ``detect_in_reply`` finds it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from compacter.call.arguments import RAW_RESPONSE_HEADER, Options
from compacter.call.io import IO
from compacter.call.streams import has_content, with_special_methods
from compacter.clients.copying import diverted
from compacter.messages.fields import field
from compacter.overflow import TokenLimit, detect_in_reply

_LONGEST_BEGINNING = 1 << 20
"""Largest part of a body that is read, in bytes; a refusal is never that long."""
_BEGINNING = "_compacter_beginning"


def looking_into_raw(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the SDK's method; the raw responses that it returns are inspected first."""

    async def looked(io: IO, *args: Any, **kwargs: Any) -> Any:
        return await _looked(io, await io.call(function, *args, **kwargs))

    return diverted(function, asks_for_raw, looked)


def asks_for_raw(kwargs: Options) -> bool:
    """Return whether a call is one of ``with_raw_response`` or ``with_streaming_response``."""
    headers = kwargs.get("extra_headers")
    return isinstance(headers, Mapping) and any(str(name).lower() == RAW_RESPONSE_HEADER for name in headers)


async def _looked(io: IO, reply: Any) -> Any:
    """Return the reply; a refusal gets an attribute ``error``, and can be closed."""
    response = field(reply, "http_response")
    watch = _watch(response)
    if watch is None:
        return reply
    if getattr(response, "is_stream_consumed", True):
        watch.read(response.content)
    else:
        rest = aiter(response.stream) if io.asynchronous else iter(response.stream)
        beginning = Beginning(rest)
        try:
            while (chunk := await io.call(io.step, rest, None)) is not None:
                beginning.held.append(chunk)
                if watch.read(chunk):
                    break
        except Exception as error:  # noqa: BLE001 - raised when the body is read
            beginning.error = error
        response.stream.__dict__[_BEGINNING] = beginning
        with_special_methods(response.stream, _READING[io.asynchronous])
    watch.end()
    if watch.refusal is not None:
        vars(reply)["error"] = watch.refusal
        if not hasattr(reply, "close"):
            vars(reply)["close"] = response.aclose if io.asynchronous else response.close
    return reply


class Beginning:
    """The part of a body that was read, the rest of it, and an error in between."""

    def __init__(self, rest: Any) -> None:
        self.held: list[bytes] = []
        self.rest = rest
        self.error: Exception | None = None


def _iterate(self: Any) -> Iterator[bytes]:
    beginning: Beginning = self.__dict__[_BEGINNING]
    yield from beginning.held
    if beginning.error is not None:
        raise beginning.error
    yield from beginning.rest


async def _aiterate(self: Any) -> AsyncIterator[bytes]:
    beginning: Beginning = self.__dict__[_BEGINNING]
    for chunk in beginning.held:
        yield chunk
    if beginning.error is not None:
        raise beginning.error
    async for chunk in beginning.rest:
        yield chunk


_READING: tuple[Mapping[str, Callable[..., Any]], ...] = ({"__iter__": _iterate}, {"__aiter__": _aiterate})


def _watch(response: Any) -> EventWatch | DocumentWatch | None:
    """Return the reader for a body of this type; ``None`` if the type or its encoding is unknown."""
    headers, stream = field(response, "headers"), field(response, "stream")
    if not isinstance(headers, Mapping) or not hasattr(stream, "__dict__"):
        return None
    read = getattr(response, "is_stream_consumed", True)  # httpx has decoded it then.
    packed = "" if read else str(headers.get("content-encoding", "")).lower()
    if packed not in ("", "identity", "gzip", "deflate"):
        return None
    kind = str(headers.get("content-type", "")).lower()
    if "event-stream" in kind:
        return EventWatch(packed)
    return DocumentWatch(packed) if "json" in kind else None


class DocumentWatch:
    """Reads a whole JSON body and its ``error``."""

    def __init__(self, packed: str = "") -> None:
        self.found: TokenLimit | None = None
        self.refusal: object = None
        """The provider's ``error``, if it is a token limit."""
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed in ("gzip", "deflate") else None
        self._seen = 0
        self._settled = False
        self._text = bytearray()

    def read(self, chunk: bytes) -> bool:
        """Read a chunk, and return whether enough was read."""
        if self._unpack is not None:
            try:
                chunk = self._unpack.decompress(chunk, _LONGEST_BEGINNING)
            except zlib.error:
                self._settled = True
                return True
        self._seen += len(chunk)
        self._settled = self._take(chunk) or self._seen > _LONGEST_BEGINNING
        return self._settled

    def _take(self, chunk: bytes) -> bool:
        self._text += chunk
        return len(self._text) > _LONGEST_BEGINNING

    def end(self) -> None:
        """End reading: there is no more of the body."""
        if not self._settled:
            self._judge(bytes(self._text))

    def _judge(self, text: bytes) -> bool:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return True
        return self.judge(data)

    def judge(self, data: object) -> bool:
        """Return whether a document or an event is a refusal, or has visible content."""
        self.found = detect_in_reply(data)
        if self.found is None:
            return has_content(data)
        self.refusal = field(data, "error") or field(field(data, "response"), "error")
        return True


class EventWatch(DocumentWatch):
    """Reads server-sent events up to the first with visible content or an error.

    The format: https://html.spec.whatwg.org/multipage/server-sent-events.html.
    """

    def __init__(self, packed: str = "") -> None:
        super().__init__(packed)
        self._data: list[bytes] = []

    def _take(self, chunk: bytes) -> bool:
        self._text += chunk
        if b"\n" not in chunk:
            return False
        *lines, rest = bytes(self._text).split(b"\n")
        self._text = bytearray(rest)
        return any(self._line(line.rstrip(b"\r")) for line in lines)

    def _line(self, line: bytes) -> bool:
        if line.startswith(b"data:"):
            self._data.append(line.removeprefix(b"data:").strip())
            return False
        if line or not self._data:
            return False
        data, self._data = b"\n".join(self._data), []
        return data == b"[DONE]" or self._judge(data)

    def end(self) -> None:
        """End reading; the last event may lack its final blank line."""
        if not self._settled and not self._line(bytes(self._text)) and self._data:
            self._judge(b"\n".join(self._data))
