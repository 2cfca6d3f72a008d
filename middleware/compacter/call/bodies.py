"""The HTTP body behind a raw response or a stream of an SDK: its beginning is read here, and put
back.

With ``with_raw_response`` and ``with_streaming_response`` the SDK returns the response unread, and
frameworks use them for streams, to get the headers. Behind a stream the SDK skips what is no event,
such as a JSON document. Later readers of events, lines or bytes get every byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compacter.io import IO
from compacter.messages.bodies import PACKINGS, DocumentWatch, EventWatch
from compacter.messages.fields import field
from compacter.objects import with_special_methods

_BEGINNING = "_compacter_beginning"


async def look_into(io: IO, response: Any) -> DocumentWatch:
    """Return what the beginning of a body says: nothing if its type or encoding is unknown.

    Args:
        io: Sync or async.
        response: A response of httpx.
    """
    watch = _watch(response)
    if watch is None:
        return DocumentWatch()
    if field(response, "is_stream_consumed") is not False:
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
        with_special_methods(response.stream, {"__iter__": _iterate, "__aiter__": _iterate})
    watch.end()
    return watch


def _watch(response: Any) -> DocumentWatch | None:
    """Return the reader for a body of this type; ``None`` if the type or its encoding is
    unknown.
    """
    headers = field(response, "headers")
    stream = field(response, "stream")
    if not isinstance(headers, Mapping) or not hasattr(stream, "__dict__"):
        return None
    packed = ""  # httpx has decoded what it has read.
    if field(response, "is_stream_consumed") is False:
        packed = headers.get("content-encoding", "").lower()
    if packed not in PACKINGS:
        return None
    kind = headers.get("content-type", "").lower()
    if "event-stream" in kind:
        return EventWatch(packed)
    return DocumentWatch(packed) if "json" in kind else None


class _Beginning:
    """An iterator over a body: the part that was read, an error in between, and the rest of it."""

    def __init__(self, rest: Any) -> None:
        self.held: list[bytes] = []
        self.rest = rest
        self.error: Exception | None = None

    def _is_held(self) -> bool:
        """Return whether the next chunk was read already. Raises the error that came next."""
        if self.error is not None and not self.held:
            raise self.error
        return bool(self.held)

    def __iter__(self) -> Any:
        return self

    __aiter__ = __iter__

    def __next__(self) -> Any:
        return self.held.pop(0) if self._is_held() else next(self.rest)

    async def __anext__(self) -> Any:
        # No generator: one that is not read to its end is closed late, of which trio warns.
        return self.held.pop(0) if self._is_held() else await anext(self.rest)


def _iterate(self: Any) -> Any:
    return self.__dict__[_BEGINNING]
