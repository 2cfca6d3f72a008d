"""Single flight: of several calls in this process that need the same summary, one makes it and the
others wait.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compacter.locks import ForkAware

if TYPE_CHECKING:
    import asyncio

LONGEST_WAIT = 120.0
"""Seconds after which a waiting call makes its own summary."""
LOOK_AGAIN = 1.0
"""Seconds after which a waiting call should check whether the leader is still there
(``Flight.over``)."""


@dataclass(eq=False, slots=True)
class _Running:
    """State shared by the calls of one flight: whether it is done, and the thread and event loop of
    its leader.
    """

    loop: asyncio.AbstractEventLoop | None
    done: Future[None] = field(default_factory=Future)
    thread: int = field(default_factory=threading.get_ident)

    def over(self) -> bool:
        return self.done.done() or (self.loop is not None and self.loop.is_closed())


# Flights begun in this context; inherited by tasks and threads that a hook or a summarizer starts.
_OWN: ContextVar[tuple[_Running, ...]] = ContextVar("compacter_own_flights", default=())


@dataclass(eq=False)
class Flight:
    """One call's part in a flight: it leads and has to ``release`` it, or it waits for the leader.

    A leader that is garbage-collected (after an exception, or with its coroutine) ends its flight.
    """

    key: str
    running: _Running
    table: dict[str, _Running]
    leads: bool = False
    """Whether this call makes the summary."""

    @property
    def done(self) -> Future[None]:
        """Future that is set when the leader has finished, with or without success. Cancelling it
        has no effect.
        """
        return self.running.done

    def over(self) -> bool:
        """Return whether to stop waiting: the leader has finished, or its event loop was closed."""
        return self.running.over()

    def release(self) -> None:
        """End the flight, so that waiting calls continue. Only the first release by the leader has
        an effect.
        """
        if self.leads:
            if self.table.get(self.key) is self.running:
                self.table.pop(self.key, None)
            with contextlib.suppress(InvalidStateError):  # It has ended already.
                self.running.done.set_result(None)
            # Last, so that after an interrupt in here ``__del__`` does the rest.
            self.leads = False

    __del__ = release


class SingleFlight(ForkAware):
    """Flights of this process by key, for all threads, tasks and event loops that share this
    object.

    A forked child begins without any, as their leaders do not run there. The table has no lock,
    which a fork or a signal handler could find locked; it relies on ``dict.setdefault`` being
    atomic.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def join(self, key: str, *, blocks: bool) -> Flight | None:
        """Begin the flight of this key, or join the one in progress.

        ``blocks``: whether the caller waits by blocking its thread. Returns ``None`` if waiting
        would be a deadlock:
        the flight was begun by the call whose hook or summarizer makes this one, or, for a caller
        that blocks, by this thread or a task of the event loop that this thread runs.
        """
        loop = None
        if "asyncio" in sys.modules:  # Else there is no event loop.
            import asyncio

            # None in sync code and under trio, where the public function raises: that exception
            # must not become the context of an error on its way to the caller.
            loop = asyncio._get_running_loop()  # noqa: SLF001
        mine = _Running(loop)
        # Cancelling one waiter's view of a future cancels the future itself, unless it is running.
        mine.done.set_running_or_notify_cancel()
        while True:
            # Made before it is in the table, so that its flight is ended in any case when it is
            # garbage-collected.
            flight = Flight(key, mine, self._running, leads=True)
            running = self._running.setdefault(key, mine)
            if running is mine:
                _OWN.set((*(own for own in _OWN.get() if not own.done.done()), mine))
                return flight
            flight.leads = False
            if running in _OWN.get() or (blocks and running.thread == threading.get_ident()):
                return None
            if not running.over():
                flight.running = running
                return flight
            if self._running.get(key) is running:
                self._running.pop(key, None)

    def after_fork_in_child(self) -> None:
        """Forget the parent's flights."""
        self._running = {}
