"""Locks and state that survive ``os.fork`` (gunicorn, celery and multiprocessing on Linux).

A child gets a copy of every lock as it was: one that another thread of the parent was holding would stay locked for
ever. See https://docs.python.org/3/library/os.html#os.register_at_fork.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds that a fork waits for a lock. Most are held for microseconds; a child is not worth a deadlock."""
_IMPORTED_LATE = frozenset({"compacter", "structlog", "litellm", "redis"})

_registered: dict[int, weakref.ref[ForkAware]] = {}
_locks: dict[int, weakref.ref[threading.RLock]] = {}
_held: dict[int, list[threading.RLock]] = {}
"""The locks that a fork under way holds, by its thread."""


class ForkAware:
    """What has to know of a fork. Objects are not kept alive for it."""

    def __init__(self) -> None:
        name = id(self)
        _registered[name] = weakref.ref(self, lambda _: _registered.pop(name, None))

    def before_fork(self) -> None:
        """Called in the thread that is about to fork."""

    def after_fork_in_parent(self) -> None:
        """Called when that is done."""

    def after_fork_in_child(self) -> None:
        """Called in the child, which has one thread: make locks and connections anew."""


def Lock() -> threading.RLock:  # noqa: N802 - as ``threading.RLock``, which it makes
    """A ``threading.RLock`` for short critical sections.

    Nobody is inside at the moment of a fork, so that a child finds what the lock protects whole, and the lock free.
    """
    lock = threading.RLock()
    name = id(lock)
    _locks[name] = weakref.ref(lock, lambda _: _locks.pop(name, None))
    return lock


def _forget_unfinished_imports() -> None:
    """Let this child import anew what another thread of the parent was importing.

    The import system makes its own lock anew in a child, but not those of single modules: whoever imports such a module
    would wait for a thread that does not exist.
    """
    # Not public; a Python that has no such table needs none of this.
    locks: dict[str, Callable[[], Any]] = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name in list(locks):
        lock = locks[name]()
        if name.partition(".")[0] in _IMPORTED_LATE and lock is not None and lock.owner != threading.get_ident():
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
        # What ``threading`` and ``logging`` do with theirs.
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001
    for item in _all(_registered):
        item.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


class kept(Generic[T]):  # noqa: N801 - a decorator
    """``functools.cached_property`` without its lock.

    Python 3.11 has one such lock for a class, and a child that is forked while another thread has it waits for ever
    (https://github.com/python/cpython/issues/87634). Two threads may both work the value out; it is the same.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> kept[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> kept[T] | T:
        """The value, worked out once for each object."""
        if instance is None:
            return self
        value = self.function(instance)
        # What stands in the object's own dict is found there from now on.
        vars(instance)[self.function.__name__] = value
        return value
