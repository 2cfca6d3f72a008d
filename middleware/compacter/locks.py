"""Locks and state that survive ``os.fork`` (gunicorn, celery and multiprocessing on Linux), and single flight.

A child gets a copy of every lock in its present state: one that another thread of the parent held would stay locked
for ever. See https://docs.python.org/3/library/os.html#os.register_at_fork.

Single flight: of several calls in this process that need the same summary, one makes it and the others wait.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

PATIENCE = 1.0
"""Longest wait for a lock before a fork, in seconds, to avoid a deadlock. Most are held for microseconds."""

T = TypeVar("T")

_registered: dict[int, weakref.ref[ForkAware]] = {}
_locks: dict[int, weakref.ref[threading.RLock]] = {}
_held: dict[int, list[threading.RLock]] = {}
"""Locks acquired for a fork in progress, by its thread."""


class ForkAware:
    """Base of classes with methods to call before and after a fork. Keeps no objects alive."""

    def __init__(self) -> None:
        name = id(self)
        _registered[name] = weakref.ref(self, lambda _: _registered.pop(name, None))

    def before_fork(self) -> None:
        """Called in the thread that is about to fork."""

    def after_fork_in_parent(self) -> None:
        """Called in the same thread after the fork."""

    def after_fork_in_child(self) -> None:
        """Called in the child, which has one thread, to replace locks and connections."""


def Lock() -> threading.RLock:  # noqa: N802 - as ``threading.RLock``
    """Return a ``threading.RLock`` for short critical sections.

    It is acquired for each fork, so that in the child it is free and the data it protects is consistent.
    """
    lock = threading.RLock()
    name = id(lock)
    _locks[name] = weakref.ref(lock, lambda _: _locks.pop(name, None))
    return lock


def _forget_unfinished_imports() -> None:
    """Remove the modules that another thread of the parent was importing, so that this child can import them.

    The import system replaces its own lock in a child, but not those of single modules; importing such a module would
    wait for a thread that does not exist. Modules that are imported lazily (structlog, litellm, redis) import many
    others, so this applies to modules of any name.
    """
    # Private to Python; a version without this table is not affected.
    locks: dict[str, Callable[[], Any]] = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name in list(locks):
        lock = locks[name]()
        if lock is not None and lock.owner not in (None, threading.get_ident()):
            locks.pop(name, None)
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


def _all(references: dict[int, weakref.ref[T]]) -> list[T]:
    return [item for reference in list(references.values()) if (item := reference()) is not None]


def _before() -> None:
    _held[threading.get_ident()] = [lock for lock in _all(_locks) if lock.acquire(timeout=PATIENCE)]
    for item in _all(_registered):
        item.before_fork()


def _after_in_parent() -> None:
    for item in _all(_registered):
        item.after_fork_in_parent()
    for lock in _held.pop(threading.get_ident(), ()):
        lock.release()


def _after_in_child() -> None:
    _held.clear()
    _forget_unfinished_imports()
    for lock in _all(_locks):
        # As ``threading`` and ``logging`` do with their locks.
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001
    for item in _all(_registered):
        item.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


# -- single flight -----------------------------------------------------------------------------------------------------

LONGEST_WAIT = 120.0
"""Seconds after which a waiting call makes its own summary."""
LOOK_AGAIN = 1.0
"""Seconds after which a waiting call should check whether the leader is still there (``Flight.over``)."""


@dataclass(eq=False, slots=True)
class _Running:
    """State shared by the calls of one flight: whether it is done, and the thread and event loop of its leader."""

    loop: asyncio.AbstractEventLoop | None
    done: Future[None] = field(default_factory=Future)
    thread: int = field(default_factory=threading.get_ident)

    def over(self) -> bool:
        return self.done.done() or (self.loop is not None and self.loop.is_closed())


_OWN: ContextVar[tuple[_Running, ...]] = ContextVar("compacter_own_flights", default=())
"""Flights begun in this context; inherited by tasks and threads that a hook or a summarizer starts."""


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
        """Future that is set when the leader has finished, with or without success. Cancelling it has no effect."""
        return self.running.done

    def over(self) -> bool:
        """Return whether to stop waiting: the leader has finished, or its event loop was closed."""
        return self.running.over()

    def release(self) -> None:
        """End the flight, so that waiting calls continue. Only the first release by the leader has an effect."""
        if self.leads:
            self.leads = False
            if self.table.get(self.key) is self.running:
                self.table.pop(self.key, None)
            with contextlib.suppress(InvalidStateError):  # It has ended already.
                self.running.done.set_result(None)

    __del__ = release


class SingleFlight(ForkAware):
    """Flights of this process by key, for all threads, tasks and event loops that share this object.

    A forked child begins without any, as their leaders do not run there. The table has no lock, which a fork or a
    signal handler could find locked; it relies on ``dict.setdefault`` being atomic.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def join(self, key: str, *, blocks: bool) -> Flight | None:
        """Begin the flight of this key, or join the one in progress.

        ``blocks``: whether the caller waits by blocking its thread. Returns ``None`` if waiting would be a deadlock:
        the flight was begun by the call whose hook or summarizer makes this one, or, for a caller that blocks, by
        this thread or a task of the event loop that this thread runs.
        """
        loop = None
        if "asyncio" in sys.modules:  # Else there is no event loop.
            import asyncio

            # None in sync code and under trio, where the public function raises: that exception must not become the
            # context of an error on its way to the caller.
            loop = asyncio._get_running_loop()  # noqa: SLF001
        mine = _Running(loop)
        # Cancelling one waiter's view of a future cancels the future itself, unless it is running.
        mine.done.set_running_or_notify_cancel()
        while True:
            # Made before it is in the table, so that its flight is ended in any case when it is garbage-collected.
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
