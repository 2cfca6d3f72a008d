"""SQLite connections that are safe across ``os.fork``.

SQLite has locks for the whole process. A child that is forked while another thread of its parent
holds one of them would wait for it for ever, even with a database of its own. So each use of SQLite
here is inside one of our locks, for which a fork waits: see ``locks.was_forked_busy``.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Sequence
from typing import Any

from compacter.runtime.locks import Lock, was_forked_busy

# Connections of a parent process. A child must not even close them:
# https://www.sqlite.org/howtocorrupt.html, 2.6.
_INHERITED: list[sqlite3.Connection] = []
# For databases that are garbage-collected, whose owners have not acquired a lock.
_COLLECTING = Lock()


class LibraryUnusableError(RuntimeError):
    """This process was forked while another thread was inside SQLite, whose locks may be locked for
    ever here.
    """


class Database:
    """A connection to a database. Its methods raise ``sqlite3.Error``.

    Not thread-safe: its owner holds a ``runtime.locks.Lock`` around each use. Closed at the latest
    when it is garbage-collected; not used in a forked child.

    Args:
        path: File name, or ``":memory:"``.

    Raises:
        LibraryUnusableError: This process was forked while SQLite was busy.
    """

    def __init__(self, path: str) -> None:
        if was_forked_busy():
            raise LibraryUnusableError(
                "SQLite is not used in this process: it was forked while SQLite was busy"
            )
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._end = weakref.finalize(self, _collect, self._connection, os.getpid())
        # At the end of the process the operating system closes it.
        self._end.atexit = False

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, and return its rows."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except UnicodeDecodeError:
            # SQLite's message quotes a name in the file, and is decoded strictly.
            damage = sqlite3.DatabaseError("the file is damaged: a name in it is not UTF-8")
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage from None

    def close(self) -> None:
        """Close the database. Only the first call has an effect."""
        alive = self._end.detach()
        if alive is not None:
            _close(*alive[2])


def _close(connection: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        connection.close()
    else:
        _INHERITED.append(connection)


def _collect(connection: sqlite3.Connection, process: int) -> None:
    # A garbage collection may begin in a thread that holds any lock, so it waits for none.
    if not _COLLECTING.acquire(blocking=False):
        _INHERITED.append(connection)
        return
    try:
        _close(connection, process)
    finally:
        _COLLECTING.release()
