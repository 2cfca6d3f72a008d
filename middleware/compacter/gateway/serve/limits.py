"""What one caller may take of the server: sizes, times and summaries at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """Limits of the server. The defaults stop what hangs, and no program that works."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_body: int | None = Field(default=None, ge=1)
    """Largest body of a request, in bytes; ``None`` for any, as the upstream has a limit itself."""
    header_timeout: float = Field(default=30.0, gt=0)
    """Seconds until the head of a request must have come. A head is one packet or two."""
    body_timeout: float = Field(default=300.0, gt=0)
    """Seconds until the body of an inspected request must have come, and the longest pause in that
    of another one: 64 MiB over a slow line (2 Mbit/s) take 270."""
    max_summaries: int = Field(default=64, ge=1)
    """Summaries that are requested at the same time; further ones wait. An upstream's rate limit
    would refuse many more."""
    max_summaries_each: int = Field(default=8, ge=1)
    """The same for one caller, so that it cannot take all."""


class Slots:
    """Places for summaries, for all callers and for each; who waits longest is next."""

    def __init__(self, limits: Limits) -> None:
        self._each = limits.max_summaries_each
        self._all = asyncio.Semaphore(limits.max_summaries)
        # Each lives as long as somebody waits or holds a place.
        self._by_caller: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self.taken = 0
        """Number of summaries that are being requested."""
        self.waiting = 0
        """Number of summaries that wait for a place."""

    @contextlib.asynccontextmanager
    async def place(self, caller: str) -> AsyncGenerator[None]:
        """Wait for a place, and hold it while the context lasts."""
        own = self._by_caller.setdefault(caller, asyncio.Semaphore(self._each))
        async with contextlib.AsyncExitStack() as places:
            self.waiting += 1
            try:
                await places.enter_async_context(own)
                await places.enter_async_context(self._all)
            finally:
                self.waiting -= 1
            self.taken += 1
            try:
                yield
            finally:
                self.taken -= 1
