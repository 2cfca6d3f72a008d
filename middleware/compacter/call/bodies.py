"""The HTTP body behind a raw response or a stream of an SDK: its beginning is read here, and put
back.

With ``with_raw_response`` and ``with_streaming_response`` the SDK returns the response unread, and
frameworks use them for streams, to get the headers. Behind a stream the SDK skips what is no event,
such as a JSON document. Later readers of events, lines or bytes get every byte.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from compacter.io import IO
from compacter.messages.bodies import PACKINGS, DocumentInEvents, DocumentWatch, EventWatch
from compacter.messages.fields import field
from compacter.objects import with_special_methods
from compacter.overflow import TokenLimit

_BEGINNING = "_compacter_beginning"


async def look_into(
    io: IO, response: Any, events: type[EventWatch] = EventWatch
) -> TokenLimit | None:
    """Return the token limit that the beginning of a body states; ``None`` if it states none, or
    its type or encoding is unknown.

    Args:
        io: Sync or async.
        response: A response of httpx.
        events: Reader of a body that is a stream of events.
    """
    watch = _watch(response, events)
    if watch is None:
        return None
    if getattr(response, "is_stream_consumed", True):
        watch.read(response.content)
    else:
        rest = aiter(response.stream) if io.asynchronous else iter(response.stream)
        beginning = _Beginning(rest)
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
    return watch.found


def _watch(response: Any, events: type[EventWatch]) -> DocumentWatch | None:
    """Return the reader for a body of this type; ``None`` if the type or its encoding is
    unknown.
    """
    headers = field(response, "headers")
    stream = field(response, "stream")
    if not isinstance(headers, Mapping) or not hasattr(stream, "__dict__"):
        return None
    read = getattr(response, "is_stream_consumed", True)  # httpx has decoded it then.
    packed = "" if read else str(headers.get("content-encoding", "")).lower()
    if packed not in PACKINGS:
        return None
    kind = str(headers.get("content-type", "")).lower()
    if "event-stream" in kind:
        return events(packed)
    return DocumentWatch(packed) if "json" in kind else None


class _Beginning:
    """The part of a body that was read, the rest of it, and an error in between."""

    def __init__(self, rest: Any) -> None:
        self.held: list[bytes] = []
        self.rest = rest
        self.error: Exception | None = None


def _iterate(self: Any) -> Iterator[bytes]:
    beginning: _Beginning = self.__dict__[_BEGINNING]
    yield from beginning.held
    if beginning.error is not None:
        raise beginning.error
    yield from beginning.rest


async def _aiterate(self: Any) -> AsyncIterator[bytes]:
    beginning: _Beginning = self.__dict__[_BEGINNING]
    for chunk in beginning.held:
        yield chunk
    if beginning.error is not None:
        raise beginning.error
    async for chunk in beginning.rest:
        yield chunk


_READING: tuple[Mapping[str, Callable[..., Any]], ...] = (
    {"__iter__": _iterate},
    {"__aiter__": _aiterate},
)


async def look_behind(io: IO, stream: Any) -> TokenLimit | None:
    """Return the token limit in a JSON document that a server has sent in place of a stream's
    events.

    The SDKs keep the response as an attribute of the stream. The body of any other stream is left
    alone.
    """
    response = field(stream, "response")
    if getattr(response, "is_stream_consumed", True) is not False:
        return None
    return await look_into(io, response, DocumentInEvents)
