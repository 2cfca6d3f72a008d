"""Locks and state that survive ``os.fork`` (gunicorn, celery and multiprocessing on Linux).

A child gets a copy of every lock in its present state: one that another thread of the parent held would stay locked
for ever. See https://docs.python.org/3/library/os.html#os.register_at_fork.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

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
