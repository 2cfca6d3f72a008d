"""Locks and state that survive ``os.fork`` (gunicorn, celery and multiprocessing on Linux).

A child gets a copy of every lock in its present state: one that another thread of the parent held
would stay locked for ever. So a fork of the process waits a moment for the locks made here, and for
the threads that are inside a library with locks of its own. See
https://docs.python.org/3/library/os.html#os.register_at_fork.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

PATIENCE = 1.5
"""Longest wait before a fork, in seconds: for all locks together, and again for the libraries. It
avoids a deadlock. Most locks are held for microseconds, but a memory may wait its ``deadline`` of
one second for a file."""

T = TypeVar("T")

_registered: dict[int, weakref.ref[ForkAware]] = {}
_locks: dict[int, weakref.ref[threading.RLock]] = {}
# Objects to call after all others before a fork, and before all others after it.
_last: list[ForkAware] = []
# Modules and packages to import before the next fork.
_late: set[str] = set()
# Locks acquired for a fork in progress, by its thread.
_held: dict[int, list[threading.RLock]] = {}


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


def fork_last(item: ForkAware) -> None:
    """Have an object called after all others before each fork: a C library with locks of its own,
    which a thread may need before it releases one of ours. It is kept alive.
    """
    _last.append(item)


def Lock() -> threading.RLock:  # noqa: N802 - as ``threading.RLock``
    """Return a ``threading.RLock`` for short critical sections.

    It is acquired for each fork, so that in the child it is free and the data it protects is
    consistent.
    """
    lock = threading.RLock()
    name = id(lock)
    _locks[name] = weakref.ref(lock, lambda _: _locks.pop(name, None))
    return lock


def _all(references: dict[int, weakref.ref[T]]) -> list[T]:
    return [item for reference in list(references.values()) if (item := reference()) is not None]


def import_before_fork(*names: str) -> None:
    """Have these modules, and of packages all modules, imported before the next fork.

    A child that imports a module which another thread of its parent was importing waits for ever.
    Calls import some modules late; with this none of them can be half imported in a child.
    """
    _late.update(names)


def _finish_imports() -> None:
    for name in sorted(_late):
        path = getattr(import_module(name), "__path__", ())
        for module in iter_modules(path, f"{name}."):
            import_module(module.name)
    _late.clear()


def _before() -> None:
    _finish_imports()
    end = time.monotonic() + PATIENCE
    _held[threading.get_ident()] = [
        lock for lock in _all(_locks) if lock.acquire(timeout=max(0.0, end - time.monotonic()))
    ]
    for item in _all(_registered):
        item.before_fork()
    # A thread that has one of the locks above may need a library before it releases it.
    for item in _last:
        item.before_fork()


def _after_in_parent() -> None:
    for item in _last:
        item.after_fork_in_parent()
    for item in _all(_registered):
        item.after_fork_in_parent()
    for lock in _held.pop(threading.get_ident(), ()):
        lock.release()


def _after_in_child() -> None:
    _held.clear()
    for item in _last:
        item.after_fork_in_child()
    for lock in _all(_locks):
        # As ``threading`` and ``logging`` do with their locks.
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001
    for item in _all(_registered):
        item.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
