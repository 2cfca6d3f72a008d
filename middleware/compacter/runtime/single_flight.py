"""Single flight: if several calls in this process need one summary, one call makes it and the
others wait.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compacter.runtime.io import imported

if TYPE_CHECKING:
    import asyncio

    from compacter.runtime.io import IO

LONGEST_WAIT = 120.0
"""Seconds after which a waiting call makes its own summary."""
# Seconds between two checks whether the loop of the leader still runs: a loop that stops notifies
# nobody.
_LOOK_AGAIN = 1.0
# Ends the flights begun in this context; inherited by tasks and threads that a hook or a summarizer
# starts.
_OWN: ContextVar[tuple[Future[None], ...]] = ContextVar("compacter_own_flights", default=())


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread; ``None`` in sync code and under trio."""
    # Without the module there is no event loop. Its public function raises: that exception must not
    # become the context of an error on its way to the caller.
    asyncio = imported("asyncio")
    return asyncio._get_running_loop() if asyncio else None  # noqa: SLF001


@dataclass(eq=False)
class Flight:
    """A result that one call, the leader, makes and others wait for. The leader has to ``release``
    it.
    """

    loop: asyncio.AbstractEventLoop | None = field(default_factory=running_loop)
    """Event loop of the leader."""
    thread: int = field(default_factory=threading.get_ident)
    """Thread of the leader; 0 for one that runs nothing else."""
    process: int = field(default_factory=os.getpid)
    """Process of the leader, which does not run in a forked child."""
    began: float = field(default_factory=time.monotonic)
    """When it began, on Python's monotonic clock."""
    done: Future[None] = field(default_factory=Future)
    """Future that is set when the leader has finished, with or without success."""

    def enter(self) -> None:
        """Mark the present context as a part of this flight. Code that runs in this context then
        never waits for the flight, which would be a deadlock.
        """
        _OWN.set((*(own for own in _OWN.get() if not own.done()), self.done))

    def over(self) -> bool:
        """Return whether to stop waiting, because the leader has finished or was stopped."""
        return (
            self.done.done()
            or self.process != os.getpid()
            or (self.loop is not None and not self.loop.is_running())
        )

    async def wait(self, io: IO, seconds: float) -> None:
        """Wait until it is over, for ``seconds`` at most; not at all if that would be a deadlock.

        It would be one in a hook or in the summarizer of the leader, and for a sync call in the
        leader's thread or in the thread of its event loop.
        """
        is_here = self.thread == threading.get_ident() and not io.asynchronous
        if is_here or self.done in _OWN.get():
            return
        end = time.monotonic() + seconds
        while not self.over() and (left := end - time.monotonic()) > 0:
            await io.wait(self.done, min(_LOOK_AGAIN, left))

    def release(self) -> None:
        """End the flight, so that waiting calls continue. A second time has no effect."""
        with contextlib.suppress(InvalidStateError):
            self.done.set_result(None)


class SingleFlight:
    """Flights of this process by key, for all threads, tasks and event loops that share this
    object.

    The table has no lock, which a fork or a signal handler could find locked; it relies on
    ``dict.setdefault`` being atomic.
    """

    def __init__(self) -> None:
        self._table: dict[str, Flight] = {}

    def join(self, key: str) -> tuple[Flight, bool]:
        """Begin the flight of this key, or join the one in progress. Return it, and whether the
        caller leads it, and so makes the summary.

        An interrupt may come between a leader and its ``release``; so a flight that has lasted
        longer than the longest wait is not joined.
        """
        mine = Flight()
        while (flight := self._table.setdefault(key, mine)) is not mine:
            if not flight.over() and mine.began - flight.began < LONGEST_WAIT:
                return flight, False
            self._forget(key, flight)
        mine.done.add_done_callback(lambda _: self._forget(key, mine))
        mine.enter()
        return mine, True

    def _forget(self, key: str, flight: Flight) -> None:
        if self._table.get(key) is flight:
            self._table.pop(key, None)
