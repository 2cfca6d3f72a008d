"""SQLite databases that a fork does not catch at work.

SQLite has locks for the whole process. A child that is forked while another thread of its parent
holds one of them would wait for it for ever, even with a database of its own. So each use of
SQLite here is inside ``SQLITE``, for which a fork waits.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from compacter.locks import GuardedLibrary

SQLITE = GuardedLibrary("SQLite")
"""SQLite, as this package uses it in this process."""

_INHERITED: list[sqlite3.Connection] = []
"""Connections of a parent process. A child must not even close them:
https://www.sqlite.org/howtocorrupt.html, 2.6."""


class Database:
    """A connection to a database. Its methods raise ``sqlite3.Error``; those that use SQLite also
    raise ``LibraryUnusableError`` in a child that was forked while SQLite was busy.

    Not thread-safe: its owner has a lock. Closed at the latest when it is garbage-collected; not
    used in a forked child.

    Args:
        path: File name, or ``":memory:"``.
        text_as_bytes: Whether texts are returned as bytes, so that one which is not UTF-8 does not
            fail a whole query.
    """

    def __init__(self, path: str, *, text_as_bytes: bool = False) -> None:
        with SQLITE:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if text_as_bytes:
            self._connection.text_factory = bytes
        self._end = weakref.finalize(self, _close, self._connection, os.getpid())
        # At the end of the process the operating system closes it.
        self._end.atexit = False

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, and return its rows."""
        with SQLITE:
            return self._connection.execute(statement, values).fetchall()

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of these rows."""
        with SQLITE:
            self._connection.executemany(statement, rows)

    def changes(self) -> int:
        """Return the number of rows that the last statement changed."""
        ((number,),) = self.execute("SELECT changes()")
        return int(number)

    def copy_to(self, other: Database) -> None:
        """Replace the contents of another database by those of this one."""
        with SQLITE:
            self._connection.backup(other._connection)

    def stop_when(self, question: Any, every: int) -> None:  # noqa: ANN401 - a function or None
        """Stop a statement when ``question()`` is true, which is asked after ``every`` of its
        instructions.
        """
        with SQLITE:
            self._connection.set_progress_handler(question, every)

    def close(self) -> None:
        """Close the database. Only the first call has an effect."""
        self._end()


def _close(connection: sqlite3.Connection, process: int) -> None:
    if process != os.getpid() or not SQLITE.usable:
        _INHERITED.append(connection)
        return
    with SQLITE:
        connection.close()
