"""One flight at a time: who needs the same compaction waits for the one who makes it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, TimeoutError as WaitTimeoutError
from dataclasses import dataclass, field

LONGEST_WAIT = 600.0
"""Seconds after which a waiting call makes its own summary."""


@dataclass(slots=True)
class _Flight:
    done: Future[None] = field(default_factory=Future)
    thread: int = field(default_factory=threading.get_ident)


class Flights:
    """Claims of this process, by key; across threads, tasks and event loops."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}
        self._lock = threading.Lock()

    def _join(self, key: str) -> _Flight | None:
        """The flight under way, or ``None`` when the caller has just begun it."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                self._flights[key] = _Flight()
            return flight

    def claim(self, key: str, seconds: float = LONGEST_WAIT) -> bool | None:
        """Begin (False), or wait for the one who began (True). ``None`` without waiting where waiting would be for oneself."""
        flight = self._join(key)
        if flight is None:
            return False
        if flight.thread == threading.get_ident():
            return None
        try:
            flight.done.result(seconds)
        except WaitTimeoutError:
            return None
        return True

    async def aclaim(self, key: str, seconds: float = LONGEST_WAIT) -> bool | None:
        """As ``claim``, without blocking the event loop."""
        flight = self._join(key)
        if flight is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                # Shielded: one waiter's cancellation must not cancel the flight of all.
                await asyncio.shield(asyncio.wrap_future(flight.done))
        except TimeoutError:
            return None
        return True

    def release(self, key: str) -> None:
        """End a flight; whoever waits goes on."""
        with self._lock:
            flight = self._flights.pop(key, None)
        if flight is not None and not flight.done.done():
            flight.done.set_result(None)
