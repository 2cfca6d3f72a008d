"""One summary for all calls that need it: calls of this process are found by flights, those of
other processes by claims in the memory.
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
# less time; if the claiming process has died, others wait no longer than this.
_CLAIM_SECONDS = 30.0
# Seconds between two requests for a claim: short beside a summary, long beside a round trip.
_CLAIM_POLL = 0.05


class Lead:
    """The flight and the claims of one call that makes a compaction."""

    def __init__(self, state: State, io: IO) -> None:
        self._state = state
        self._io = io
        # Functions that release them.
        self._held: list[Callable[[], object]] = []
        self._is_closed = False

    async def take(self, key: str, seconds: float) -> None:
        """Become the call that makes this compaction, or wait for the call that already does, for
        ``seconds`` at most. If the memory never grants a claim, do not wait.

        ``key`` is the digest of the compacted messages, with their scope.
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
        """Request the claim, and return whether it was granted; True if the memory fails."""
        memory: Any = self._state.memory

        def claim() -> bool:
            # Kept in the thread, so that a claim granted after a cancellation is released too.
            claimed: Any = True
            with self._state.safely("memory"):
                claimed = memory.claim(key, _CLAIM_SECONDS)
            release = getattr(claimed, "release", None)
            if callable(release):
                self._hold(partial(self._io.beside, partial(self._give_back, release)))
            return claimed is not None and claimed is not False

        return await self._io.thread(claim)

    def _give_back(self, release: Callable[[], object]) -> None:
        with self._state.safely("memory"):
            release()

    def _hold(self, release: Callable[[], object]) -> None:
        """Keep what releases a flight or a claim; release it at once if the call has ended."""
        self._held.append(release)
        if self._is_closed:
            self.release()

    def release(self) -> None:
        """Release the flight and the claims, so that waiting calls continue."""
        with suppress(IndexError):  # The list is empty: another thread may release too.
            while True:
                self._give_back(self._held.pop())

    def close(self) -> None:
        """Release the flight and the claims, and release at once any claim that the memory grants
        later.
        """
        self._is_closed = True
        self.release()
