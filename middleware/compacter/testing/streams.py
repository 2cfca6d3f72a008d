"""The stream objects of the scripted model: iterators that can be closed, as the SDKs give them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from compacter.testing.replies import Chunk, ReplyType, Struct, shaped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


class _Source:
    """The chunks of one stream, and what became of it."""

    def __init__(self, chunks: Iterator[dict[str, Any]], reply_type: ReplyType) -> None:
        self._chunks = chunks
        self._reply_type: ReplyType = reply_type
        self.response = Struct(status_code=200, headers={"content-type": "text/event-stream"})
        """The HTTP response below the stream."""
        self.closed = False
        """True once the connection is given back: by ``close()``, at the end, or after an error."""
        self.delivered = 0
        """Chunks handed out so far."""

    def _step(self) -> Chunk | None:
        """Return the next chunk, or None at the end."""
        if self.closed:
            return None
        try:
            chunk = next(self._chunks, None)
        except BaseException:
            self.closed = True
            raise
        if chunk is None:
            self.closed = True
            return None
        self.delivered += 1
        return shaped(chunk, self._reply_type)


class ScriptedStream(_Source):
    """A synchronous stream of chunks."""

    def __iter__(self) -> Self:
        """Return itself: a stream is read once."""
        return self

    def __next__(self) -> Chunk:
        """Return the next chunk; raises what the script or the window says."""
        chunk = self._step()
        if chunk is None:
            raise StopIteration
        return chunk

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the stream."""
        self.close()

    def close(self) -> None:
        """Give the connection back; no chunk follows."""
        self.closed = True


class AsyncScriptedStream(_Source):
    """An asynchronous stream of chunks. Lets other tasks run before each chunk, as a network does."""

    def __aiter__(self) -> Self:
        """Return itself: a stream is read once."""
        return self

    async def __anext__(self) -> Chunk:
        """Return the next chunk; raises what the script or the window says."""
        await asyncio.sleep(0)
        chunk = self._step()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the stream."""
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connection back; no chunk follows."""
        self.closed = True

    async def close(self) -> None:
        """Do the same under the name that OpenAI's SDK uses."""
        await self.aclose()
