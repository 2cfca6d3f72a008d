"""The file of ``SQLiteMemory``: its tables, its locks, and a connection that threads share."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from compacter.database import Database, LibraryUnusableError
from compacter.errors import ConfigurationError
from compacter.locks import PATIENCE, ForkAware
from compacter.memory.circuit import Circuit, Report
from compacter.memory.protocol import MemoryUnavailable

# `PRAGMA user_version` of the file. A file with an older schema is emptied: its records can be made
# again.
_SCHEMA = 2
# `PRAGMA application_id`: "cmpt".
_APPLICATION = 0x636D7074
_TABLES = {
    "records": "CREATE TABLE records "
    "(id TEXT PRIMARY KEY, key TEXT NOT NULL, body TEXT NOT NULL, used REAL NOT "
    "NULL) STRICT, WITHOUT ROWID",
    "records_by_key": "CREATE INDEX records_by_key ON records (key, used)",
    "records_by_use": "CREATE INDEX records_by_use ON records (used)",
    "claims": "CREATE TABLE claims "
    "(key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) STRICT, WITHOUT ROWID",
}
# Seconds that a statement may run after its deadline, if it had to wait for a lock.
_GRACE = 0.1
# Most seconds that a thread waits for the others of this process, each of which has a deadline.
_LONGEST_QUEUE = 30.0
# Seconds after which such a thread looks whether the file is left alone by now.
_LOOK_AGAIN = 0.1
# Most seconds that count between two looks at a running statement, which are microseconds of its
# work: more passed because the machine was busy.
_SLICE = 0.01
# Longest wait for a lock of the file inside SQLite, in seconds; a longer one is made of several. A
# fork waits until no thread is inside, for `PATIENCE` seconds.
_LONGEST_WAIT = 0.4
# Most seconds for the check of a file for damage when it is opened.
_CHECK = 0.25
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Connection(ForkAware):
    """Connection to the file, used by one thread at a time.

    Args:
        path: File name.
        deadline: Seconds that one use may wait for locks of the file, or compute.
        tell: Called with a report when the file is left alone, and when it can be used again.
    """

    def __init__(self, path: str, deadline: float, tell: Callable[[Report], object]) -> None:
        super().__init__()
        self._path = path
        self._deadline = deadline
        self.circuit = Circuit("the SQLite file", path, tell)
        self._lock = threading.Lock()
        self._open: Database | None = None
        self._forking = False

    @contextlib.contextmanager
    def use(self, *, patient: bool = True) -> Generator[Database]:
        """Provide the connection.

        Raises ``MemoryUnavailable``, ``sqlite3.Error`` or ``OSError``. If it is not ``patient``, it
        does not wait, and a failure does not count.
        """
        began = self.circuit.check()
        self._enter(began, patient=patient)
        try:
            self.circuit.check(began)
            yield self._connect(_Budget(self._deadline if patient else 0.0))
            self.circuit.succeed()
        except LibraryUnusableError as error:
            raise MemoryUnavailable(str(error)) from None
        except (sqlite3.Error, OSError) as error:
            if patient:
                self.circuit.fail(error)
            if result_code(error) not in LOCKED:
                # The next use opens the file again: it may have been replaced meanwhile.
                self._drop()
            raise
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def write(self) -> Generator[Database]:
        """As ``use``, inside a transaction that writes."""
        with self.use() as connection, _transaction(connection, _Budget(self._deadline)):
            yield connection

    def _enter(self, began: float, *, patient: bool) -> None:
        """Wait for the other threads of this process, until the file is left alone.

        Each of them has its deadline for the file, so this wait says nothing about the file.
        """
        while not self._lock.acquire(timeout=_LOOK_AGAIN if patient else 0):
            self.circuit.check(began)
            if not patient or time.monotonic() - began > _LONGEST_QUEUE:
                raise MemoryUnavailable("too many threads of this process wait for the SQLite file")

    def close(self) -> None:
        """Close the file, and forget earlier failures."""
        with self._lock:
            self._drop()
            self.circuit.reset()

    def before_fork(self) -> None:
        """Close the file, as a child does not inherit its locks
        (https://www.sqlite.org/howtocorrupt.html, 2.6).
        """
        self._forking = self._lock.acquire(timeout=PATIENCE)
        if self._forking and self._path != ":memory:":
            with contextlib.suppress(sqlite3.Error):
                self._drop()

    def after_fork_in_parent(self) -> None:
        """Release the other threads; the next use opens the file again."""
        if self._forking:
            self._forking = False
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Start with a new connection."""
        self._open = None
        self._lock = threading.Lock()
        self._forking = False

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connect(self, budget: _Budget) -> Database:
        connection = self._open
        if connection is not None:
            _limit(connection, budget)
            return connection
        if self._path != ":memory:":
            # SQLite gives its other files the permissions of this one.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        # Text that is not UTF-8 is one corrupt record, not a failed query.
        connection = Database(self._path, text_as_bytes=True)
        try:
            _prepare(connection, self._path, budget)
        except BaseException:
            connection.close()
            raise
        self._open = connection
        return connection


class _Budget:
    """Time that one use of the file may take: seconds in which SQLite waits for a lock, and as many
    in which it computes.

    A wall clock would also count the time in which the interpreter or the machine was busy with
    something else.
    """

    def __init__(self, seconds: float) -> None:
        self.patience = min(seconds, _LONGEST_WAIT)
        """Seconds that SQLite waits for a lock at a time."""
        self._waiting = seconds
        self._computing = seconds + _GRACE
        self._looked = time.monotonic()

    def is_waited_out(self, waited: float) -> bool:
        """Return whether an attempt to get a lock, which took ``waited`` seconds, was the last."""
        self._waiting -= min(waited, self.patience)
        return self._waiting <= 0

    def is_computed_out(self) -> bool:
        """Return whether the running statement is to be stopped. Called all the time by SQLite."""
        now = time.monotonic()
        self._computing -= min(now - self._looked, _SLICE)
        self._looked = now
        return self._computing < 0


def _limit(connection: Database, budget: _Budget) -> None:
    """Let the next statements wait for locks of the file, for a part of the time at once, and stop
    one that runs much longer.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(budget.patience * 1000)}")
    connection.stop_when(budget.is_computed_out, 10_000)


@contextlib.contextmanager
def _transaction(connection: Database, budget: _Budget, kind: str = "IMMEDIATE") -> Generator[None]:
    """Run the block in a transaction, for whose beginning it waits as long as the budget allows."""
    while True:
        began = time.monotonic()
        try:
            connection.execute(f"BEGIN {kind}")
            break
        except sqlite3.OperationalError as error:
            over = budget.is_waited_out(time.monotonic() - began)
            if result_code(error) not in LOCKED or over:
                raise
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some failures have ended the transaction already.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _prepare(connection: Database, path: str, budget: _Budget) -> None:
    """Create or check the tables. Raises ``ConfigurationError`` if the file must not be changed."""
    _limit(connection, budget)
    # Fails if another process is setting it right now, which is enough: it is a property of the
    # file.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    _limit(connection, budget)
    # One snapshot for all queries: another process may be creating the tables right now.
    with _transaction(connection, budget, "DEFERRED"):
        ready = _has_tables(connection, path)
    if ready:
        return
    _limit(connection, budget)
    with _transaction(connection, budget):
        if _has_tables(connection, path):
            return
        for table in ("records", "claims"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES.values():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA}")


def _has_tables(connection: Database, path: str) -> bool:
    """Return whether the file has the tables of this version."""
    ((application,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    tables = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
    if application != _APPLICATION and (application or version or tables):
        raise ConfigurationError(
            f"SQLiteMemory cannot use {path!r}: it is another program's database; name a file "
            f"of its own"
        )
    if version > _SCHEMA:
        raise ConfigurationError(
            f"SQLiteMemory cannot use {path!r}: a newer version of compacter made it "
            f"(schema {version}, this one reads {_SCHEMA}); upgrade llm-compacter, or name another "
            f"file"
        )
    wanted = {name.encode(): statement.encode() for name, statement in _TABLES.items()}
    return bool(version == _SCHEMA and wanted.items() <= tables.items())


def is_undamaged(connection: Database) -> bool:
    """Return whether a check of limited time does not find damage."""
    end = time.monotonic() + _CHECK
    connection.stop_when(lambda: time.monotonic() > end, 1_000)
    try:
        faults = connection.execute("PRAGMA quick_check(1)")
    except sqlite3.OperationalError:
        return True
    return faults == [(b"ok",)]


def is_made_here(path: str) -> bool:
    """Return whether a file that SQLite reports as damaged begins like the files of this class."""
    with Path(path).open("rb") as file:
        header = file.read(100)
    return header.startswith(b"SQLite format 3\0") and header[68:72] == _APPLICATION.to_bytes(
        4, "big"
    )


def result_code(error: BaseException) -> int | None:
    """Return SQLite's primary result code, see https://www.sqlite.org/rescode.html."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None
