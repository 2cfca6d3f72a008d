"""The file of ``SQLiteMemory``: its tables, its locks, and a connection that threads share."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

from compacter.errors import ConfigurationError
from compacter.memory.circuit import Circuit, MemoryUnavailable, Report
from compacter.runtime.database import Database, LibraryUnusableError
from compacter.runtime.locks import ForkAware, Lock

T = TypeVar("T")
Work = Callable[[Database], T]

# `PRAGMA user_version` of the file. A file with an older schema is emptied: its records can be made
# again.
_SCHEMA = 2
# `PRAGMA application_id`: "cmpt".
_APPLICATION = 0x636D7074
_TABLES = """
CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, key TEXT NOT NULL,
    body TEXT NOT NULL, used REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_key ON records (key, used);
CREATE INDEX IF NOT EXISTS records_by_use ON records (used);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL,
    expires REAL NOT NULL) STRICT, WITHOUT ROWID
"""
# In one statement, as another process may be creating the tables right now.
_STATE = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master), "
    "(SELECT count(*) FROM sqlite_master WHERE name IN ('records', 'claims')) "
    "FROM pragma_application_id, pragma_user_version"
)
# Longest wait for a lock of the file inside SQLite, in seconds; a longer one is made of several. A
# fork waits until no thread is inside, for `runtime.locks.PATIENCE` seconds.
_LONGEST_WAIT = 0.4
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class File(ForkAware):
    """A connection to the file, used by one thread at a time, and opened when it is used.

    Args:
        path: File name.
        deadline: Seconds that one use may wait for locks of the file.
        report: Called with a report when a pause begins, and when the file works again.
    """

    def __init__(self, path: str, deadline: float, report: Callable[[Report], object]) -> None:
        super().__init__()
        self._path = path
        self._deadline = deadline
        self.circuit = Circuit("the SQLite file", path, report)
        self._lock = Lock()
        self._open: Database | None = None

    def use(self, work: Work[T], *, writes: bool = False, patient: bool = True) -> T:
        """Return the result of ``work``, which gets the database.

        A damaged file is replaced by a new one. Raises ``MemoryUnavailable``, ``sqlite3.Error`` or
        ``OSError``.

        Args:
            work: What to do with it.
            writes: Whether it runs in a transaction that writes.
            patient: Whether it waits for others; if not, a failure does not count.
        """
        deadline = self._deadline if patient else 0.0
        if not self._lock.acquire(timeout=deadline):
            raise MemoryUnavailable("too many threads of this process wait for the SQLite file")
        try:
            with self.circuit.count((sqlite3.Error, OSError) if patient else ()):
                return self._run(work, writes, deadline)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the file, and forget earlier failures."""
        with self._lock:
            self._drop()
            self.circuit.reset()

    def before_fork(self) -> None:
        """Close the file, as a child does not inherit its locks
        (https://www.sqlite.org/howtocorrupt.html, 2.6).
        """
        # The fork has waited for other threads: one that is still inside is left alone.
        if self._path != ":memory:" and self._lock.acquire(blocking=False):
            with contextlib.suppress(sqlite3.Error):
                self._drop()
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Start with a new connection."""
        self._open = None

    def _run(self, work: Work[T], writes: bool, deadline: float, attempts: int = 3) -> T:  # noqa: FBT001 - not public
        try:
            database = self._open or self._connect(deadline)
            _limit(database, deadline)
            with _transaction(database, deadline) if writes else contextlib.nullcontext():
                return work(database)
        except LibraryUnusableError as error:
            raise MemoryUnavailable(str(error)) from None
        except (sqlite3.Error, OSError) as error:
            code = result_code(error)
            if code in LOCKED:
                raise
            # The next use opens the file again: it may have been replaced meanwhile.
            self._drop()
            if code not in DAMAGED or attempts == 1 or (attempts == 2 and not self._replace()):
                raise
        return self._run(work, writes, deadline, attempts - 1)

    def _connect(self, deadline: float) -> Database:
        if self._path != ":memory:":
            # SQLite gives its other files the permissions of this one.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        database = Database(self._path)
        try:
            _limit(database, deadline)
            _prepare(database, self._path, deadline)
        except BaseException:
            database.close()
            raise
        self._open = database
        return database

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _replace(self) -> bool:
        """Remove the file if its header is that of this class; return whether it was removed."""
        with Path(self._path).open("rb") as file:
            if file.read(72)[68:] != b"cmpt":
                return False
        for suffix in ("", "-wal", "-shm"):
            Path(self._path + suffix).unlink(missing_ok=True)
        return True


def _limit(database: Database, deadline: float) -> None:
    """Let the next statements wait for locks of the file, for a part of the time at once."""
    database.execute(f"PRAGMA busy_timeout = {int(1000 * min(deadline, _LONGEST_WAIT))}")


@contextlib.contextmanager
def _transaction(database: Database, deadline: float) -> Generator[None]:
    """Run the block in a transaction that writes, which waits so long to begin."""
    end = time.monotonic() + deadline
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if result_code(error) not in LOCKED or time.monotonic() >= end:
                raise
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        # Some failures have ended the transaction already.
        with contextlib.suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise


def _prepare(database: Database, path: str, deadline: float) -> None:
    """Create or check the tables. Raises ``ConfigurationError`` if the file must not be changed."""
    # Fails if another process is setting it right now, which is enough: it is a property of the
    # file.
    with contextlib.suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    ((application, version, every, tables),) = database.execute(_STATE)
    is_foreign = application != _APPLICATION and every
    if is_foreign or version > _SCHEMA:
        fault = (
            "it is another program's database; name a file of its own"
            if is_foreign
            else "a newer version of compacter made it; upgrade llm-compacter, or name another file"
        )
        raise ConfigurationError(f"SQLiteMemory cannot use {path!r}: {fault}")
    if version == _SCHEMA and tables == 2:
        return
    with _transaction(database, deadline):
        for table in ("records", "claims") if every and version != _SCHEMA else ():
            database.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
        database.execute(f"PRAGMA user_version = {_SCHEMA}")


def result_code(error: BaseException) -> int:
    """Return SQLite's primary result code, see https://www.sqlite.org/rescode.html."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
