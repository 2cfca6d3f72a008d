"""Single flight: of several calls in this process that need the same summary, one makes it and the others wait.

The table holds no lock, so that neither a fork nor a signal handler can find it locked: it relies on
``dict.setdefault`` being one step.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as WaitTimeoutError
from contextvars import ContextVar
from typing import TYPE_CHECKING

from compacter.fork import ForkAware

if TYPE_CHECKING:
    import asyncio

LONGEST_WAIT = 600.0
"""Seconds after which a waiting call makes its own summary."""
LOOK_AGAIN = 1.0
"""Seconds after which a call that waits should look whether the leader is still there (``Flight.over``)."""


class _Running:
    """What the calls of one flight share."""

    __slots__ = ("done", "loop", "thread")

    def __init__(self) -> None:
        self.done: Future[None] = Future()
        # Cancelling one waiter's view of a future cancels the future itself, unless it is running.
        self.done.set_running_or_notify_cancel()
        self.thread = threading.get_ident()
        self.loop = _running_loop()

    def end(self) -> None:
        if not self.done.done():
            # Another thread may have been faster.
            with contextlib.suppress(InvalidStateError):
                self.done.set_result(None)


_OWN: ContextVar[tuple[_Running, ...]] = ContextVar("compacter_own_flights", default=())
"""Flights that this context has begun. What a hook or a summarizer starts, a task or a thread, inherits it."""


class Flight:
    """One call's part in a flight: it leads and has to ``release`` it, or it waits for the one that leads.

    A leader that is lost (an exception between two lines, a coroutine that is thrown away) ends its flight.
    """

    leads = False
    """Whether this call makes the summary."""

    def __init__(self, key: str, running: _Running, table: dict[str, _Running], *, leads: bool) -> None:
        self._key = key
        self._table = table
        self.running = running
        self.leads = leads

    @property
    def done(self) -> Future[None]:
        """Set when the leader has finished, whatever came of it. Cancelling it has no effect."""
        return self.running.done

    def over(self) -> bool:
        """Whether there is nothing to wait for any more: the leader has finished, or its event loop was closed."""
        loop = self.running.loop
        if not self.running.done.done() and loop is not None and loop.is_closed():
            self._leave()
        return self.running.done.done()

    def wait(self, seconds: float = LONGEST_WAIT) -> bool:
        """Block this thread until the flight is over. False when that took longer than ``seconds``."""
        end = time.monotonic() + seconds
        while not self.over():
            left = end - time.monotonic()
            if left <= 0:
                return False
            with contextlib.suppress(WaitTimeoutError):
                self.running.done.result(min(left, LOOK_AGAIN))
        return True

    def release(self) -> None:
        """End the flight; whoever waits goes on. Without effect for a call that does not lead, and a second time."""
        if self.leads:
            self.leads = False
            self._leave()

    def __del__(self) -> None:
        self.release()

    def _leave(self) -> None:
        if self._table.get(self._key) is self.running:
            self._table.pop(self._key, None)
        self.running.end()


class SingleFlight(ForkAware):
    """The flights of this process by key, for all threads, tasks and event loops that share this object.

    A forked child begins without any: nobody there would end them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def join(self, key: str, *, blocks: bool) -> Flight | None:
        """Begin the flight of this key, or join the one that is under way.

        ``blocks`` says that the caller would wait by blocking its thread. ``None`` where waiting would be for
        oneself: the flight was begun by the call whose hook or summarizer makes this one, or, for a caller that
        blocks, by this thread or a task of the event loop that this thread runs.
        """
        while True:
            flight = Flight(key, _Running(), self._running, leads=True)
            running = self._running.setdefault(key, flight.running)
            if running is flight.running:
                _OWN.set((*(own for own in _OWN.get() if not own.done.done()), running))
                return flight
            if running in _OWN.get() or (blocks and running.thread == threading.get_ident()):
                return None
            flight = Flight(key, running, self._running, leads=False)
            if not flight.over():
                return flight

    def after_fork_in_child(self) -> None:
        """Forget the parent's flights."""
        self._running = {}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """The asyncio event loop that runs in this thread; ``None`` in plain code and under trio."""
    if "asyncio" not in sys.modules:
        return None
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
