"""Read each stream up to its first content, then return the vendor's own object as if unread.

Bodies behind raw responses and streams of an SDK are read that way too. With ``with_raw_response``
and ``with_streaming_response`` the SDK returns the response unread, and frameworks use them for
streams, to get the headers. A stream's own reader skips whatever is not an event, such as a JSON
document. Later readers of events, lines or bytes get every byte.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from compacter.call.warm import detected
from compacter.messages.bodies import PACKINGS, DocumentWatch, EventWatch
from compacter.messages.fields import field
from compacter.messages.refusals import detect_empty, detect_empty_stream, detect_in_reply
from compacter.messages.replies import Reply, ends_empty, has_content
from compacter.overflow import TokenLimit
from compacter.runtime.io import ASYNC, IO, SYNC, Stopped, run
from compacter.runtime.objects import with_special_methods


def _shapes(kind: type) -> tuple[str, ...]:
    # ``hasattr`` is true of any special method of a ``MagicMock``.
    names = ("__next__", "__anext__", "__await__")
    return tuple(name for name in names if callable(inspect.getattr_static(kind, name, None)))


shapes: Callable[[type], tuple[str, ...]] = lru_cache(256)(_shapes)
"""Return the methods of a stream, an async stream and an awaitable that a type's objects have;
empty for replies. Streams are iterators, not mere collections."""


def core(stream: Any) -> Any:
    """Return the stream of the provider's events inside a helper stream, which accumulates the
    events read from it.
    """
    inner = getattr(stream, "_raw_stream", None)
    return inner if inner is not None and shapes(type(inner)) else stream


async def opened(
    io: IO,
    raw: Any,
    detect: Callable[[BaseException], TokenLimit | None],
    quiet: Callable[[Any], bool] | None = None,
    on_error: Callable[[Exception], None] | None = None,
) -> Reply:
    """Return what a function returned as a reply, with its token limit if it is a refusal.

    A stream is read up to its first content, its end or an error, and returned as if unread.
    ``quiet`` returns whether a chunk has no content; ``None`` for the vendors' chunks. A token
    limit before the first content is in the reply, with its exception as ``error``; the stream is
    then closed. ``on_error`` is called with an exception after it.
    """
    if type(raw) is dict or io.iterates not in shapes(type(raw)):
        return Reply(raw=raw, token_limit=detect_in_reply(raw) or detect_empty(raw))
    held: deque[Any] = deque()
    source = core(raw)
    response = field(source, "response")
    limit: TokenLimit | None = None
    if field(response, "is_stream_consumed") is False:
        # The SDKs skip whatever is not an event, such as a JSON document.
        body = await look_into(io, response)
        if body.shows and quiet is None:
            # The SDK has not read the body, so its response still returns all bytes.
            return Reply(raw=raw if on_error is None else replay(raw, held, on_error))
        limit = body.found if body.is_document else None

    # The end of a stream without content, from the chunk with its finish reason on.
    ended: list[Any] = []
    while limit is None:
        try:
            chunk = await io.call(io.step, source, END)
        except Exception as error:  # noqa: BLE001 - raised when the reader gets this far
            held.append(error)
            limit = await detected(io, detect, error)
            if limit is not None:
                await close(io, raw)
                return Reply(token_limit=limit, error=error)
            break
        if chunk is END:
            limit = detect_empty_stream(ended) if ended else None
            break
        held.append(chunk)
        limit = detect_in_reply(chunk)
        if quiet is None and (ended or ends_empty(chunk)):
            ended.append(chunk)
        elif has_content(chunk) if quiet is None else not quiet(chunk):
            break
    return Reply(raw=replay(raw, held, on_error) if held else raw, token_limit=limit)


END: Any = object()
"""Stands for the end of a stream."""


def replay(
    stream: Any, held: deque[Any], on_error: Callable[[Exception], None] | None = None
) -> Any:
    """Return the vendor's stream so that it yields the chunks that were read already, or raises the
    exception that came next, then goes on. ``on_error`` is called with a later exception.

    Until then its class is replaced by a subclass; if that is not possible, that of a `Proxy`.
    """
    inner = core(stream)
    if inner is not stream:
        # ``core`` reads this attribute too.
        stream._raw_stream = replay(inner, held, on_error)  # noqa: SLF001
        return stream
    try:
        reader = Replay(stream.__dict__.get(_READER), type(stream), held, on_error)
        if reader.inner is None:
            with_special_methods(stream, _those_of(stream, _READING))
        stream.__dict__[_READER] = reader
    except (TypeError, AttributeError):
        proxy = with_special_methods(Proxy(stream), _those_of(stream, _PASSED_ON))
        return replay(proxy, held, on_error)
    return stream


_READER = "_compacter_reader"


@dataclass(eq=False, slots=True)
class Replay:
    """Iterates over a stream from its first chunk, although some chunks have been read already:
    these are returned first.
    """

    inner: Any
    """Reader that the stream had before: it is wrapped twice."""
    kind: Any
    """The stream's own class."""
    held: deque[Any]
    on_error: Callable[[Exception], None] | None

    async def step(self, io: IO, stream: Any) -> Any:
        """Return the next chunk. Raises what the stream's own method raises."""
        if self.held:
            return _taken(self.held)
        if self.on_error is None:
            self._leave(stream)
        try:
            if self.inner is not None:
                return await self.inner.step(io, stream)
            return await io.call(getattr(self.kind, io.iterates), stream)
        except Exception as error:
            self._leave(stream)
            if self.on_error and not isinstance(error, (Stopped, StopAsyncIteration)):
                self.on_error(error)
            raise

    def _leave(self, stream: Any) -> None:
        """Have the stream read as it was before."""
        if stream.__dict__.get(_READER) is not self:
            return
        stream.__dict__[_READER] = self.inner
        if self.inner is None:
            del stream.__dict__[_READER]
            stream.__class__ = self.kind


def join(stream: Any, joined: Any) -> Any:
    """Return the vendor's stream, which `opened` has returned, so that it yields the chunks of the
    steps of ``joined``.
    """
    inner = core(stream)
    if inner is not stream:
        stream._raw_stream = join(inner, joined)  # noqa: SLF001 - as above
        return stream
    if _READER not in getattr(stream, "__dict__", ()):
        stream = replay(stream, deque())
    joined.begin(stream, stream.__dict__[_READER])
    stream.__dict__[_READER] = joined
    return stream


def _those_of(stream: Any, methods: Mapping[str, Any]) -> dict[str, Any]:
    return {name: method for name, method in methods.items() if hasattr(type(stream), name)}


def _taken(held: deque[Any]) -> Any:
    """Return the next chunk that was read already, or raise the exception that came next."""
    chunk = held.popleft()
    if isinstance(chunk, Exception):
        raise chunk
    return chunk


def _next(self: Any) -> Any:
    chunk = run(self.__dict__[_READER].step(SYNC, self))
    if chunk is END:
        raise StopIteration
    return chunk


async def _anext(self: Any) -> Any:
    chunk = await self.__dict__[_READER].step(ASYNC, self)
    if chunk is END:
        raise StopAsyncIteration
    return chunk


_READING: Mapping[str, Callable[..., Any]] = {
    "__next__": _next,
    "__iter__": lambda self: self,
    "__anext__": _anext,
    "__aiter__": lambda self: self,
}


class Proxy:
    """Proxy of a stream whose class cannot be replaced, with the stream's special methods."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _enter(self: Any) -> Any:
    self._stream.__enter__()
    return self


async def _aenter(self: Any) -> Any:
    await self._stream.__aenter__()
    return self


_PASSED_ON: Mapping[str, Callable[..., Any]] = {
    **_READING,
    "__next__": lambda self: next(self._stream),
    "__anext__": lambda self: anext(self._stream),
    "__enter__": _enter,
    "__exit__": lambda self, *error: self._stream.__exit__(*error),
    "__aenter__": _aenter,
    "__aexit__": lambda self, *error: self._stream.__aexit__(*error),
}


# -- bodies ----------------------------------------------------------------------------------------

_BEGINNING = "_compacter_beginning"


async def look_into(io: IO, response: Any) -> DocumentWatch:
    """Read the beginning of a body, and return the watch; it has found nothing if the body's type
    or encoding is unknown.

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
        held: deque[Any] = deque()
        try:
            while (chunk := await io.call(io.step, rest, None)) is not None:
                held.append(chunk)
                if watch.read(chunk):
                    break
        except Exception as error:  # noqa: BLE001 - raised when the body is read
            held.append(error)
        # Not a generator: trio warns of one that is not read to its end, as it is closed late.
        response.stream.__dict__[_BEGINNING] = replay(rest, held)
        with_special_methods(response.stream, {"__iter__": _iterate, "__aiter__": _iterate})
    watch.end()
    return watch


def _iterate(self: Any) -> Any:
    return self.__dict__[_BEGINNING]


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


async def close(io: IO, stream: Any) -> None:
    """Close a stream that is not returned to the caller; an exception from it is ignored."""
    method = getattr(stream, "aclose", None) if io.asynchronous else None
    method = method or getattr(stream, "close", None)
    if not callable(method):
        return
    with suppress(Exception):  # The stream is not used any more.
        outcome = await io.call(method)
        if hasattr(outcome, "__await__"):
            outcome.close()


def iterate_later(opened: Callable[..., Awaitable[Any]]) -> Callable[..., AsyncIterator[Any]]:
    """Return an async generator function that opens the stream at its first chunk."""

    async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        chunks = await opened(*args, **kwargs)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await close(ASYNC, chunks)

    return call
