"""SQLite databases that a fork does not catch at work.

SQLite has locks for the whole process. A child that is forked while another thread of its parent
holds one of them would wait for it for ever, even with a database of its own. So each use of
SQLite here is inside ``SQLITE``, for which a fork waits.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from compacter.locks import PATIENCE, ForkAware, fork_last


class LibraryUnusableError(RuntimeError):
    """This process was forked while another thread was inside a C library, whose locks may be
    locked for ever here.
    """


class GuardedLibrary(ForkAware):
    """A C library that has locks of its own: ``with SQLITE: ...`` around each use.

    A fork waits until no other thread is inside. If one still is after ``PATIENCE`` seconds, the
    child does not use the library: ``usable`` is false there, and entering raises
    ``LibraryUnusableError``. Made once for a library, at import.
    """

    def __init__(self, name: str) -> None:
        # Not registered as others are: it is called after them.
        self.name = name
        self.usable = True
        self._clean = True
        self._begin()
        fork_last(self)

    def _begin(self) -> None:
        # Its lock is re-entrant, as a garbage collection at any moment may close a database.
        self._changed = threading.Condition()
        # For each thread that is inside, how often it has entered.
        self._inside: dict[int, int] = {}
        # The thread that is about to fork, which may enter while the others wait.
        self._forking: int | None = None

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._changed:
            while self._forking not in (None, thread) and thread not in self._inside:
                self._changed.wait()
            if not self.usable:
                raise LibraryUnusableError(
                    f"{self.name} is not used in this process: it was forked while {self.name} was "
                    f"busy"
                )
            self._inside[thread] = self._inside.get(thread, 0) + 1

    def __exit__(self, *_: object) -> None:
        thread = threading.get_ident()
        with self._changed:
            self._inside[thread] -= 1
            if not self._inside[thread]:
                del self._inside[thread]
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Let no other thread enter, and wait for those that are inside."""
        thread = threading.get_ident()
        with self._changed:
            # Another thread may be forking too.
            self._changed.wait_for(lambda: self._forking is None, PATIENCE)
            self._forking = thread
            self._clean = self._changed.wait_for(lambda: self._inside.keys() <= {thread}, PATIENCE)

    def after_fork_in_parent(self) -> None:
        """Let the other threads enter."""
        with self._changed:
            self._forking = None
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Begin anew, without the parent's threads."""
        self.usable = self.usable and self._clean
        self._begin()


SQLITE = GuardedLibrary("SQLite")
"""SQLite, as this package uses it in this process."""

# Connections of a parent process. A child must not even close them:
# https://www.sqlite.org/howtocorrupt.html, 2.6.
_INHERITED: list[sqlite3.Connection] = []


class Database:
    """A connection to a database. Its methods raise ``sqlite3.Error``; those that use SQLite also
    raise ``LibraryUnusableError`` in a child that was forked while SQLite was busy.

    Not thread-safe: its owner has a lock. Closed at the latest when it is garbage-collected; not
    used in a forked child.

    Args:
        path: File name, or ``":memory:"``.
    """

    def __init__(self, path: str) -> None:
        with SQLITE:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._end = weakref.finalize(self, _close, self._connection, os.getpid())
        # At the end of the process the operating system closes it.
        self._end.atexit = False

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, and return its rows."""
        with SQLITE:
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the database. Only the first call has an effect."""
        self._end()


def _close(connection: sqlite3.Connection, process: int) -> None:
    if process != os.getpid() or not SQLITE.usable:
        _INHERITED.append(connection)
        return
    with SQLITE:
        connection.close()
