"""One summary for all calls that need it at the same time: by flights in this process, by claims of
the memory among processes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from compacter.call.state import State
from compacter.runtime.io import IO
from compacter.runtime.single_flight import LONGEST_WAIT

# Duration of a claim, and longest wait for another process's claim, in seconds. Most summaries take
# less; where its process has died, nobody waits for longer.
_CLAIM_SECONDS = 30.0
# Seconds between two requests for a claim: short beside a summary, long beside a round trip.
_CLAIM_POLL = 0.05


class OneSummary:
    """The flight and the claims of one call."""

    def __init__(self, state: State, io: IO) -> None:
        self._state = state
        self._io = io
        # Functions that release the flight and the claims.
        self._held: list[Callable[[], object]] = []
        self._is_closed = False

    async def lead(self, key: str, seconds: float) -> None:
        """Become the call that makes this compaction, or wait for the call that already does, here
        or in another process. A memory that never grants a claim is not waited for.

        Args:
            key: Digest of what is compacted, with its scope.
            seconds: Longest wait.
        """
        state = self._state
        flight, leads = state.flights.join(key)
        if not leads:
            await flight.wait(self._io, min(LONGEST_WAIT, seconds))
            return
        self._hold(flight.release)
        if state.memory is None or not state.memory.blocking:
            return
        end = time.monotonic() + min(_CLAIM_SECONDS, seconds)
        while not await self._is_granted(key):
            if state.grants is None:
                state.grants = await self._is_granted(f"probe {secrets.token_hex()}")
            if not state.grants or time.monotonic() > end:
                return
            await self._io.sleep(_CLAIM_POLL)
        state.grants = True

    async def _is_granted(self, key: str) -> bool:
        """Request the claim, and return whether it was granted; True if the memory fails. It is
        released when the call is closed.
        """
        state = self._state
        memory: Any = state.memory

        def claim() -> bool:
            # Kept in the thread, so that a claim granted after a cancellation is released too.
            claimed: Any = True
            with state.safely("memory"):
                claimed = memory.claim(key, _CLAIM_SECONDS)
            release = getattr(claimed, "release", None)
            if callable(release):
                self._hold(partial(self._io.beside, partial(self._give_back, release)))
            return claimed is not None and claimed is not False

        return await self._io.thread(claim)

    def _give_back(self, release: Callable[[], object]) -> None:
        """Release a flight or a claim; its failure is logged."""
        with self._state.safely("memory"):
            release()

    def _hold(self, release: Callable[[], object]) -> None:
        """Have a flight or a claim released when the call is closed; at once if it is."""
        self._held.append(release)
        if self._is_closed:
            self.release()

    def release(self) -> None:
        """Release the flight and the claims."""
        with suppress(IndexError):  # None is left: a thread with a late claim may be here too.
            while True:
                self._give_back(self._held.pop())

    def close(self) -> None:
        """Release the flight and the claims, and those that are granted later."""
        self._is_closed = True
        self.release()
