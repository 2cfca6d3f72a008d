"""The sender of a request: its body, as it comes, and whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class Gone(Exception):  # noqa: N818 - a state
    """The sender has disconnected."""


class Stalled(Exception):  # noqa: N818 - a state
    """The body did not come in time."""


class TooLarge(Exception):  # noqa: N818 - a state
    """The body is larger than allowed."""


@dataclass
class Sender:
    """The sender of a request.

    Args:
        receive: ASGI function.
        most: Largest body, in bytes; ``None`` for any.
        seconds: Longest pause in the body.
    """

    receive: Receive
    most: int | None
    seconds: float
    _size: int = 0
    _sent: asyncio.Event = field(default_factory=asyncio.Event)

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the rest of the body. Raises ``Gone``, ``Stalled`` or ``TooLarge``."""
        while not self._sent.is_set():
            try:
                message = await asyncio.wait_for(self.receive(), self.seconds)
            except TimeoutError:
                raise Stalled from None
            if message["type"] != "http.request":
                raise Gone
            if not message.get("more_body", False):
                self._sent.set()
            chunk = message.get("body", b"")
            self._size += len(chunk)
            if self.most is not None and self._size > self.most:
                raise TooLarge
            yield chunk

    async def waits_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``work``. If the sender disconnects, cancel it and raise
        ``Gone``.
        """
        task = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self._leave())
        try:
            await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Gone
            return task.result()
        finally:
            task.cancel()
            leaving.cancel()
            await asyncio.gather(task, leaving, return_exceptions=True)

    async def _leave(self) -> None:
        await self._sent.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass
