"""Locks and state that survive ``os.fork`` (gunicorn, celery and multiprocessing on Linux).

A child gets a copy of every lock in its present state: a lock of another thread of the parent would
stay locked for ever. So a fork of the process waits a moment for the locks made here. If a lock
does not get free, the resource of its thread may be locked in the child (``was_forked_busy``). See
https://docs.python.org/3/library/os.html#os.register_at_fork.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from importlib import import_module
from pkgutil import iter_modules

PATIENCE = 1.5
"""Longest wait before a fork for all locks together, in seconds. It avoids a deadlock. Most locks
are released after microseconds, but writing a file may take long."""

# By ``id``, as two locks may be equal.
_locks: weakref.WeakValueDictionary[int, threading.RLock] = weakref.WeakValueDictionary()
# Modules and packages to import before the next fork.
_late: set[str] = set()
# For the thread that forks: the locks that it has acquired, and those that were not free in time.
_fork = threading.local()
# In a child: the locks that were not free.
_missed: list[threading.RLock] = []


def was_forked_busy() -> bool:
    """Return whether this process was forked while another thread kept one of the locks for long.

    A C library that the thread was using, with locks of its own such as SQLite, may be locked here
    for ever.
    """
    return bool(_missed)


def Lock() -> threading.RLock:  # noqa: N802 - as ``threading.RLock``
    """Return a ``threading.RLock`` for short critical sections.

    It is acquired for each fork, so that in the child it is free and the data it protects is
    consistent.
    """
    lock = threading.RLock()
    _locks[id(lock)] = lock
    return lock


def _all_locks() -> list[threading.RLock]:
    # ``list`` copies in one step, even if other threads add locks meanwhile.
    return [lock for reference in _locks.valuerefs() if (lock := reference()) is not None]


def import_before_fork(*names: str) -> None:
    """Import these modules (of a package, all its modules) before the next fork.

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
    _fork.free = []
    _fork.busy = []
    _finish_imports()
    end = time.monotonic() + PATIENCE
    for lock in _all_locks():
        is_free = lock.acquire(timeout=max(0.0, end - time.monotonic()))
        (_fork.free if is_free else _fork.busy).append(lock)


def _after_in_parent() -> None:
    for lock in _fork.free:
        lock.release()


def _after_in_child() -> None:
    _missed.extend(_fork.busy)
    for lock in _all_locks():
        # As ``threading`` and ``logging`` do with their locks.
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
