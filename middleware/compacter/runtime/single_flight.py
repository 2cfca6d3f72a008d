"""Single flight: of several calls in this process that need the same summary, one makes it and the
others wait.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import weakref
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compacter.runtime.locks import ForkAware

if TYPE_CHECKING:
    import asyncio

    from compacter.runtime.io import IO

LONGEST_WAIT = 120.0
"""Seconds after which a waiting call makes its own summary."""
# Seconds between two checks whether the loop of the leader still runs: a loop that stops notifies
# nobody.
_LOOK_AGAIN = 1.0
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
    thread: int
    """Thread of the leader; 0 for one that runs nothing else."""
    reference: weakref.ref[Flight] | None = None
    done: Future[None] = field(default_factory=Future)
    """Future that is set when the leader has finished, with or without success."""
    leads: bool = False
    """Whether this call makes the summary. The last to be set, as only then it can be released."""

    def enter(self) -> None:
        """Mark the present context as part of the flight, which it then never waits for."""
        _OWN.set((*(own for own in _OWN.get() if not own.done()), self.done))

    def over(self) -> bool:
        """Return whether to stop waiting: the leader has finished, or its event loop does not
        run.
        """
        return self.done.done() or (self.loop is not None and not self.loop.is_running())

    async def wait(self, io: IO, seconds: float) -> None:
        """Wait until it is over, for ``seconds`` at most; not where that would be a deadlock.

        That is so in the hook or the summarizer of the leader, and for a caller that blocks in its
        thread or in that of its event loop.
        """
        is_here = self.thread == threading.get_ident() and not io.asynchronous
        if is_here or self.done in _OWN.get():
            return
        end = time.monotonic() + seconds
        while not self.over() and (left := end - time.monotonic()) > 0:
            await io.wait(self.done, min(_LOOK_AGAIN, left))

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

    def join(self, key: str) -> Flight:
        """Begin the flight of this key, or join the one in progress."""
        # Made before it is in the table, so that its flight is ended in any case when it is
        # garbage-collected.
        mine = Flight(key, self._table, running_loop(), threading.get_ident(), leads=True)
        mine.reference = weakref.ref(mine)
        while True:
            reference = self._table.setdefault(key, mine.reference)
            leader = reference()
            if leader is mine:
                mine.enter()
                return mine
            if leader is not None and not leader.over():
                return replace(leader, leads=False)
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
