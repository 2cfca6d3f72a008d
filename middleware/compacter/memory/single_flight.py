"""One flight at a time: who needs the same compaction waits for the one who makes it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitTimeoutError
from contextvars import ContextVar

LONGEST_WAIT = 600.0
"""Seconds after which a waiting call makes its own summary."""


class _Flight:
    __slots__ = ("done", "task", "thread")

    def __init__(self, task: object) -> None:
        self.done: Future[None] = Future()
        self.thread = threading.get_ident()
        self.task = task


_OWN: ContextVar[tuple[_Flight, ...]] = ContextVar("compacter_own_flights", default=())
"""Flights that this context has begun. What a hook or a summarizer starts, a task or a thread, inherits it."""


class Flights:
    """Claims of this process, by key; across threads, tasks and event loops."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._flights)

    def _join(self, key: str, task: object = None) -> _Flight | None:
        """The flight under way, or ``None`` when the caller has just begun it."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is None:
                begun = self._flights[key] = _Flight(task)
                _OWN.set((*(own for own in _OWN.get() if not own.done.done()), begun))
            return flight

    def claim(self, key: str, seconds: float = LONGEST_WAIT) -> bool | None:
        """Begin (False), or wait for the one who began (True).

        ``None`` when that took longer than ``seconds``, and at once where waiting would be for oneself: for
        this thread's own flight, for a task of the event loop that this thread is keeping from running, or for
        the call that has started this one (its hook or its summarizer calls the wrapped function again).
        """
        flight = self._join(key)
        if flight is None:
            return False
        if flight.thread == threading.get_ident() or flight in _OWN.get():
            return None
        try:
            flight.done.result(seconds)
        except WaitTimeoutError:
            return None
        return True

    async def aclaim(self, key: str, seconds: float = LONGEST_WAIT) -> bool | None:
        """As ``claim``, without blocking the event loop; the task that began and what it has started do not wait."""
        task = asyncio.current_task()
        flight = self._join(key, task)
        if flight is None:
            return False
        if flight.task is task or flight in _OWN.get():
            return None
        loop = asyncio.get_running_loop()
        landed = loop.create_future()

        def wake(_: Future[None]) -> None:
            # A waiter that was cancelled may have taken its loop with it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_finish, landed)

        flight.done.add_done_callback(wake)
        try:
            async with asyncio.timeout(seconds):
                await landed
        except TimeoutError:
            return None
        return True

    def release(self, key: str) -> None:
        """End a flight; whoever waits goes on."""
        with self._lock:
            flight = self._flights.pop(key, None)
        if flight is not None:
            flight.task = None
            flight.done.set_result(None)


def _finish(landed: asyncio.Future[None]) -> None:
    if not landed.done():
        landed.set_result(None)
