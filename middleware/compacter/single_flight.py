"""Single flight: of several calls in this process that need the same summary, one makes it and the
others wait.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compacter.locks import ForkAware

if TYPE_CHECKING:
    import asyncio

LONGEST_WAIT = 120.0
"""Seconds after which a waiting call makes its own summary."""
LOOK_AGAIN = 1.0
"""Seconds after which a waiting call should check whether the leader is still there
(``Flight.over``)."""


# What ends the flights begun in this context; inherited by tasks and threads that a hook or a
# summarizer starts.
_OWN: ContextVar[tuple[Future[None], ...]] = ContextVar("compacter_own_flights", default=())


@dataclass(eq=False)
class Flight:
    """One call's part in a flight: it leads and has to ``release`` it, or it waits for the leader.

    A leader that is garbage-collected (after an exception, or with its coroutine) ends its flight:
    the table has only a weak reference to it, and those who wait have a copy.
    """

    key: str
    table: dict[str, weakref.ref[Flight]]
    loop: asyncio.AbstractEventLoop | None
    """Event loop of the leader."""
    leads: bool = False
    """Whether this call makes the summary."""
    reference: weakref.ref[Flight] | None = None
    done: Future[None] = field(default_factory=Future)
    """Future that is set when the leader has finished, with or without success. Cancelling it has
    no effect."""
    thread: int = field(default_factory=threading.get_ident)
    """Thread of the leader."""

    def over(self) -> bool:
        """Return whether to stop waiting: the leader has finished, or its event loop was closed."""
        return self.done.done() or (self.loop is not None and self.loop.is_closed())

    def release(self) -> None:
        """End the flight, so that waiting calls continue. Only the first release by the leader has
        an effect.
        """
        if self.leads:
            if self.table.get(self.key) is self.reference:
                self.table.pop(self.key, None)
            with contextlib.suppress(InvalidStateError):  # It has ended already.
                self.done.set_result(None)
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
        self._table: dict[str, weakref.ref[Flight]] = {}

    def join(self, key: str, *, blocks: bool) -> Flight | None:
        """Begin the flight of this key, or join the one in progress.

        ``blocks``: whether the caller waits by blocking its thread. Returns ``None`` if waiting
        would be a deadlock: the flight was begun by the call whose hook or summarizer makes this
        one, or, for a caller that blocks, by this thread or a task of the event loop that this
        thread runs.
        """
        # Made before it is in the table, so that its flight is ended in any case when it is
        # garbage-collected.
        mine = Flight(key, self._table, running_loop())
        mine.reference = weakref.ref(mine)
        mine.leads = True
        # Cancelling one waiter's view of a future cancels the future itself, unless it is running.
        mine.done.set_running_or_notify_cancel()
        while True:
            reference = self._table.setdefault(key, mine.reference)
            leader = reference()
            if leader is mine:
                _OWN.set((*(own for own in _OWN.get() if not own.done()), mine.done))
                return mine
            if leader is not None and not leader.over():
                is_here = blocks and leader.thread == threading.get_ident()
                return (
                    None if is_here or leader.done in _OWN.get() else replace(leader, leads=False)
                )
            if self._table.get(key) is reference:
                self._table.pop(key, None)

    def after_fork_in_child(self) -> None:
        """Forget the parent's flights."""
        self._table = {}


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread; ``None`` in sync code and under trio."""
    # Without the module there is no event loop. Its public function raises: that exception must not
    # become the context of an error on its way to the caller.
    asyncio = sys.modules.get("asyncio")
    return asyncio._get_running_loop() if asyncio else None  # noqa: SLF001
