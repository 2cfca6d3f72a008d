"""One summary for all calls that need it at the same time: by flights in this process, by claims of
the memory among processes.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from compacter.call.perform import Performer
from compacter.memory.protocol import BaseMemory
from compacter.single_flight import LONGEST_WAIT, LOOK_AGAIN

# Duration of a claim, and longest wait for another process's claim, in seconds. Most summaries take
# less; where its process has died, nobody waits for longer.
_CLAIM_SECONDS = 30.0
# Seconds between two requests for a claim: short beside a summary, long beside a round trip.
_CLAIM_POLL = 0.05


@dataclass(kw_only=True, eq=False)
class OneSummary(Performer):
    """A call that shares its summary with others. `close` ends its flight and its claims."""

    # Functions that release this call's flight and claims.
    _held: list[Callable[[], object]] = field(default_factory=list, init=False)
    _closed: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def close(self, *, for_good: bool = True) -> None:
        """Release this call's flight and claims; ``for_good``: also a claim that is granted
        later.
        """
        with self._lock:
            held = self._held
            self._held = []
            self._closed = self._closed or for_good
        for give_back in held:
            self.state.safely("memory", give_back)

    async def lead(self, key: str) -> None:
        """Become the call that makes this compaction, or wait for the call that already does."""
        memory = self.state.memory
        flight = self.state.flights.join(key, blocks=not self.io.asynchronous)
        if flight is None:
            return
        if flight.leads:
            self._held.append(flight.release)
            if memory is not None and memory.blocking:
                await self.claim(memory, key)
            return
        end = time.monotonic() + min(LONGEST_WAIT, self.time_left())
        while not flight.over() and (remaining := end - time.monotonic()) > 0:
            await self.io.wait(flight.done, min(LOOK_AGAIN, remaining))

    async def claim(self, memory: BaseMemory, key: str) -> None:
        """Claim the compaction among all processes, or wait for the process that has claimed it."""
        end = time.monotonic() + min(_CLAIM_SECONDS, self.time_left())
        while not await self.is_granted(memory, key):
            if not await self.grants_any(memory) or time.monotonic() > end:
                return
            await self.io.sleep(_CLAIM_POLL)
        self.state.grants = True

    async def grants_any(self, memory: BaseMemory) -> bool:
        """Return whether the memory grants claims at all: one that never does is not waited for."""
        state = self.state
        if state.grants is None:
            state.grants = await self.is_granted(memory, f"probe {secrets.token_hex()}")
        return state.grants

    async def is_granted(self, memory: BaseMemory, key: str) -> bool:
        """Request the claim, and return whether it was granted; True if the memory fails."""
        state = self.state

        def claim() -> bool:
            # Kept in the thread, so that a claim granted after a cancellation is released too.
            request: Callable[[], Any] = partial(memory.claim, key, _CLAIM_SECONDS)
            claimed: Any = state.safely("memory", request, otherwise=True)
            state.log_reports(memory)
            return self._hold(claimed)

        return await self.io.thread(claim)

    def _hold(self, claim: Any) -> bool:
        """Return whether the claim was granted, and have it released when this call is closed."""
        if claim is None or isinstance(claim, bool):
            return bool(claim)
        give_back = getattr(claim, "release", None)
        if not callable(give_back):
            return True
        release: Callable[[], object] = partial(self.state.safely, "memory", give_back)
        with self._lock:
            if not self._closed:
                self._held.append(partial(self.io.beside, release))
                return True
        self.io.beside(release)
        return True
