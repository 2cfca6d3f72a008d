"""Locks and state that survive ``os.fork`` (gunicorn, celery and multiprocessing on Linux).

A child gets a copy of every lock as it was: one that another thread of the parent was holding would stay locked for
ever. See https://docs.python.org/3/library/os.html#os.register_at_fork.
"""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import Any, Protocol

_PATIENCE = 1.0
"""Seconds that a fork waits for a lock. They are held for microseconds; a child is not worth a deadlock."""


class Renewable(Protocol):
    """What has state of this process alone."""

    def after_fork(self) -> None:
        """Called in a forked child, which has one thread: make locks and connections anew."""


_renewables: dict[int, weakref.ref[Any]] = {}
_locks: dict[int, weakref.ref[Any]] = {}


def renew_after_fork(owner: Renewable) -> None:
    """Have ``owner.after_fork()`` called in every child; ``owner`` is not kept alive."""
    _register(_renewables, owner)


class Lock:
    """A ``threading.Lock`` for short critical sections.

    Nobody is inside at the moment of a fork, so that a child finds what the lock protects whole, and the lock free.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forking = False
        _register(_locks, self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def before_fork(self) -> None:
        """Wait until nobody holds the lock."""
        self._forking = self._lock.acquire(timeout=_PATIENCE)

    def after_fork_in_parent(self) -> None:
        """Let the others go on."""
        if self._forking:
            self._forking = False
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew."""
        self._forking = False
        self._lock = threading.Lock()


def _register(table: dict[int, weakref.ref[Any]], item: object) -> None:
    name = id(item)
    table[name] = weakref.ref(item, lambda _: table.pop(name, None))


def _living(table: dict[int, weakref.ref[Any]]) -> list[Any]:
    return [item for reference in list(table.values()) if (item := reference()) is not None]


def _before() -> None:
    for lock in _living(_locks):
        lock.before_fork()


def _after_in_parent() -> None:
    for lock in _living(_locks):
        lock.after_fork_in_parent()


def _after_in_child() -> None:
    for lock in _living(_locks):
        lock.after_fork_in_child()
    for owner in _living(_renewables):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
