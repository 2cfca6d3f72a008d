"""Responses of an upstream, inspected before they go back to the caller."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from json.decoder import JSONDecoder
from typing import Any

import httpx
from botocore.eventstream import EventStreamBuffer, ParserError

from compacter.gateway.serve.guard import error_body
from compacter.gateway.serve.upstream import end_to_end
from compacter.messages.bodies import DocumentWatch, EventWatch

# Longest JSON response that is read, in bytes; a longer one is passed on unread.
_LONGEST_DOCUMENT = 16 << 20
# Longest error response that is read, in bytes.
_LONGEST_REFUSAL = 1 << 20
# Size from which a body is parsed in a thread, in bytes: below, parsing takes about a millisecond,
# and the way to a thread and back a tenth of that.
_LARGE = 128 << 10
_PACKED = ("gzip", "deflate")


class Answer(dict[str, Any]):
    """The upstream's response. As a dict: its JSON object, or, for a stream that begins with a
    refusal, the token limit as ``error``.
    """

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.status = response.status_code
        self.headers = end_to_end(response.headers.raw)
        self.held: list[bytes] = []
        """The chunks of the body read so far, unchanged."""
        self._response = response
        self._rest: AsyncIterator[bytes] = response.aiter_raw()
        self._failure: httpx.HTTPError | None = None

    async def hold(self, watch: Callable[[bytes], object], most: int) -> bool:
        """Read the body of the response, and keep the chunks. Stop when ``watch`` returns true, or
        after more than ``most`` bytes. Return whether the whole body was read.
        """
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
        """Yield the body: the part that was read, and the rest. Raises ``httpx.HTTPError`` if it
        breaks off.
        """
        for chunk in self.held:
            yield chunk
        if self._failure is not None:
            raise self._failure
        async for chunk in self._rest:
            yield chunk

    async def aclose(self) -> None:
        """Close the response without reading the rest."""
        await self._response.aclose()


def own_error(
    status: int, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Answer:
    """Return an error of this server."""
    text = json.dumps(error_body(code, message)).encode()
    own = {"content-type": "application/json", "content-length": str(len(text))}
    stream = httpx.ByteStream(text)  # httpx counts other content as read already.
    return Answer(httpx.Response(status, headers={**own, **(headers or {})}, stream=stream))


class Refused(Exception):  # noqa: N818 - the upstream's response, not an error of ours
    """The upstream responded with an error status; the response was read completely."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"the upstream answered {answer.status}")
        self.answer = answer
        self.status_code = answer.status
        self.body: object = dict(answer) or (
            b"".join(answer.held).decode("utf-8", "replace") if answer.held else None
        )


Watches = Callable[[str, str], DocumentWatch | None]
"""Function of a content type and a content encoding that returns the reader for a stream's
beginning; ``None`` for anything but a stream."""


def watch_events(kind: str, packed: str) -> DocumentWatch | None:
    """Return the reader for server-sent events."""
    return EventWatch(packed) if "event-stream" in kind else None


async def look_into(
    answer: Answer,
    watches: Watches = watch_events,
    hold: Callable[[Answer], object] = lambda _: None,
) -> None:
    """Read a JSON response completely, a stream up to its first content. Raises ``Refused`` for an
    error status.

    Args:
        answer: The response.
        watches: Returns the reader of its beginning.
        hold: Called with a stream before it is read.
    """
    headers = dict(answer.headers)
    encoding = headers.get(b"content-encoding", b"").decode("latin-1").strip().lower()
    packed = encoding.replace("identity", "")
    kind = headers.get(b"content-type", b"").decode("latin-1").lower()
    failed = answer.status >= 400
    watch = None
    if not failed and packed in ("", *_PACKED):
        watch = watches(kind, packed)
    if watch is not None:
        if not packed:
            hold(answer)
        if await answer.hold(watch.read, _LONGEST_REFUSAL):
            watch.end()
        if watch.found is not None:
            answer["error"] = watch.found
    elif failed or ("json" in kind and "event-stream" not in kind):
        most = _LONGEST_REFUSAL if failed else _LONGEST_DOCUMENT
        whole = await answer.hold(lambda _: False, most)
        if whole:
            answer.update(await _document(b"".join(answer.held), packed))
        if failed and whole:
            await answer.aclose()
            raise Refused(answer)


async def _document(body: bytes, packed: str) -> dict[str, Any]:
    """Return the JSON object in a body; an empty one if it has none, or its encoding is unknown."""
    try:
        if packed in _PACKED:
            unpack = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress
            body = await asyncio.to_thread(unpack, body, _LONGEST_DOCUMENT)
        return await read(body) or {}
    except zlib.error:
        return {}


async def read_events(answer: Answer) -> tuple[Any, ...]:
    """Return the data of all server-sent events of a response, and close it."""
    await answer.hold(lambda _: False, _LONGEST_DOCUMENT)
    await answer.aclose()
    lines = b"".join(answer.held).splitlines()
    data = [line.removeprefix(b"data:") for line in lines if line.startswith(b"data:")]
    return tuple([await read(each) or {} for each in data])


async def read(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body; ``None`` if it has none."""
    try:
        found = await asyncio.to_thread(json.loads, raw) if len(raw) > _LARGE else json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


async def write(body: Mapping[str, Any], size: int) -> bytes:
    """Return a body as JSON; ``size`` is that of the original."""
    text = await asyncio.to_thread(json.dumps, body) if size > _LARGE else json.dumps(body)
    return text.encode()


# -- other streams: a JSON array, lines of JSON, binary frames -------------------------------------

_DECODER = JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")


def watch_gemini(kind: str, packed: str) -> DocumentWatch | None:
    """Return the reader for a stream of Gemini: events, or, without ``alt=sse``, an array."""
    return watch_events(kind, packed) or (ArrayWatch(packed) if "json" in kind else None)


def watch_ollama(kind: str, packed: str) -> DocumentWatch | None:
    """Return the reader for lines of JSON."""
    return LinesWatch(packed) if "ndjson" in kind else None


def watch_bedrock(kind: str, packed: str) -> DocumentWatch | None:
    """Return the reader for frames: https://smithy.io/2.0/aws/amazon-eventstream.html."""
    return FramesWatch(packed) if "vnd.amazon.eventstream" in kind else None


class ArrayWatch(DocumentWatch):
    """Reads the elements of a JSON array as they come, or one object."""

    def _take(self, chunk: bytes) -> bool:  # noqa: ARG002 - all of the text so far is read
        text = self._text.decode("utf-8", "ignore").lstrip()
        is_array = text.startswith("[")
        at = int(is_array)
        while True:
            between = _BETWEEN.match(text, at)
            try:
                element, at = _DECODER.raw_decode(text, between.end() if between else at)
            except ValueError:  # It is still incomplete.
                return False
            if self.judge(element) or not is_array:
                return True


class LinesWatch(DocumentWatch):
    """Reads lines of JSON."""

    def _take(self, chunk: bytes) -> bool:  # noqa: ARG002 - all of the text so far is read
        *lines, rest = bytes(self._text).split(b"\n")
        self._text = bytearray(rest)
        return any(self._judge(line) for line in lines if line.strip())


class FramesWatch(DocumentWatch):
    """Reads binary frames, of Converse and of InvokeModel."""

    def __init__(self, packed: str) -> None:
        super().__init__(packed)
        self._frames = EventStreamBuffer()

    def _take(self, chunk: bytes) -> bool:
        self._frames.add_data(chunk)
        try:
            return any(self._frame(frame.headers, frame.payload) for frame in self._frames)
        except (ParserError, ValueError):  # These are not frames.
            return True

    def _frame(self, headers: Mapping[str, Any], payload: bytes) -> bool:
        data = json.loads(payload or b"{}")
        if headers.get(":message-type") == "exception":
            return self.judge({"error": {"type": headers.get(":exception-type", ""), **data}})
        if "bytes" in data:
            return self.judge(json.loads(base64.b64decode(data["bytes"])))
        return self.judge({headers.get(":event-type", ""): data})
