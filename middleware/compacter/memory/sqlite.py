"""Memory in a SQLite file, which outlives the process and is shared by the processes of one
machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

from compacter.database import Database, LibraryUnusableError
from compacter.errors import ConfigurationError, whole_number
from compacter.locks import PATIENCE, ForkAware
from compacter.memory.base import (
    DEADLINE,
    LEASE,
    PER_KEY,
    WEEK,
    BaseMemory,
    Circuit,
    Lease,
    MemoryUnavailable,
    seconds,
)
from compacter.memory.record import Codec, Encryption, Record

_SCHEMA = 2
"""``PRAGMA user_version`` of the file. A file with an older schema is emptied: its records can be
made again."""
_APPLICATION = 0x636D7074
"""``PRAGMA application_id``: "cmpt"."""
_TABLES = {
    "records": "CREATE TABLE records "
    "(id TEXT PRIMARY KEY, key TEXT NOT NULL, body TEXT NOT NULL, used REAL NOT "
    "NULL) STRICT, WITHOUT ROWID",
    "records_by_key": "CREATE INDEX records_by_key ON records (key, used)",
    "records_by_use": "CREATE INDEX records_by_use ON records (used)",
    "claims": "CREATE TABLE claims "
    "(key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) STRICT, WITHOUT ROWID",
}
_TOUCH = 60.0
"""Smallest time in seconds between two updates of a record's last use, so that reading seldom
writes."""
_GRACE = 0.1
"""Seconds that a statement may run after its deadline, if it had to wait for a lock."""
_LONGEST_WAIT = 0.4
"""Longest wait for a lock of the file inside SQLite, in seconds; a longer one is made of several. A
fork waits until no thread is inside, for ``PATIENCE`` seconds."""
_CHECK = 0.25
"""Most seconds for the check of a file for damage when it is opened."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class SQLiteMemory(BaseMemory):
    """Memory in a SQLite file, which is created if missing, readable by its owner only.

    Thread-safe, and safe among processes of one machine and across forks. It uses a write-ahead
    log, so the file must not be on a network file system: https://www.sqlite.org/wal.html

    A file made by an older version is emptied, and a damaged file of this class is replaced by a
    new one, as the records can be made again. Errors after opening raise ``sqlite3.Error`` or
    ``MemoryUnavailable`` from a method; a call then continues without the memory, which is not used
    for five seconds. Records can be read while another process is writing. Without ``encryption``
    the file contains the text of summaries, and anyone who can write to it can change what models
    read.

    Args:
        path: File name; ``":memory:"`` for a database of this object alone.
        max_entries: Most records to keep, at least 1; the least recently used are dropped.
        ttl: Seconds after which an unused record is deleted; ``None``: never.
        deadline: Seconds that one operation may take, even if another process has locked the file.
        encryption: A key of ``cryptography``'s ``Fernet.generate_key()``; several, of which the
            first one encrypts and all decrypt; or a ``Fernet`` or ``MultiFernet``. ``None`` stores
            plain text.

    Raises:
        ImportError: The package ``cryptography`` is needed but not installed.
        ConfigurationError: The file cannot be opened, is not a database, belongs to another
            program, or was made by a newer version.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_entries: int = 10_000,
        ttl: float | None = WEEK,
        *,
        deadline: float = DEADLINE,
        encryption: Encryption = None,
    ) -> None:
        super().__init__()
        self._encryption = encryption
        self._codec = Codec(encryption)
        self.path = _file_name(path)
        self.max_entries = whole_number("max_entries", max_entries, least=1, of="records")
        self.ttl = None if ttl is None else seconds("ttl", ttl)
        self.deadline = seconds("deadline", deadline)
        self._writing = _Connection(self.path, self.deadline)
        # With a write-ahead log readers do not wait for writers, so they must not share a
        # connection.
        self._reading = (
            self._writing if self.path == ":memory:" else _Connection(self.path, self.deadline)
        )
        try:
            self._check_file()
        except MemoryUnavailable:
            pass
        except (OSError, ValueError, sqlite3.Error) as error:
            # A file that another process has locked will be opened when it is used.
            if _code(error) not in _LOCKED:
                raise ConfigurationError(
                    f"SQLiteMemory cannot use {self.path!r}: {error}"
                ) from error

    def __repr__(self) -> str:
        return f"SQLiteMemory({self.path!r}, max_entries={self.max_entries}, ttl={self.ttl})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same file and keys by its own connections.
        made = partial(type(self), deadline=self.deadline, encryption=self._encryption)
        return made, (self.path, self.max_entries, self.ttl)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``, without those that were altered since
        they were saved.
        """
        now = time.time()
        marks = ",".join("?" * len(keys))
        with self._reading.use() as connection:
            rows = connection.execute(
                f"SELECT id, body, used FROM records WHERE key IN ({marks}) AND used >= ?",  # noqa: S608 - marks only
                (*keys, self._oldest(now)),
            )
        touch = _TOUCH if self.ttl is None else min(_TOUCH, self.ttl / 10)
        self._touch(
            now, [name for name, _, used in rows if isinstance(used, float) and now - used >= touch]
        )
        records = [self._codec.decode(body) for _, body, _ in rows]
        return [record for record in records if record is not None]

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        body = self._codec.encode(record)
        now = time.time()
        with self._writing.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO records (id, key, body, used) VALUES (?, ?, ?, ?)",
                (record.id, record.key, body, now),
            )
            connection.execute("DELETE FROM records WHERE used < ?", (self._oldest(now),))
            for where, most in ("WHERE key = ?", PER_KEY), ("", self.max_entries):
                connection.execute(
                    f"DELETE FROM records WHERE id IN (SELECT id FROM records {where} "  # noqa: S608 - of this line
                    f"ORDER BY id = ? DESC, used DESC LIMIT -1 OFFSET {most})",
                    (*((record.key,) if where else ()), record.id),
                )

    def claim(self, key: str, seconds: float) -> Lease | None:
        """Return the right to make the summary identified by ``key``, or ``None`` while another
        caller has it.

        Valid for ``seconds`` at most. It is renewed while its process lives, and expires two
        seconds after it has died.
        """
        owner = secrets.token_hex(16)
        now = time.time()
        lease = min(seconds, LEASE)
        end = time.monotonic() + self.deadline
        # A claim that ends impossibly late was made before the clock was set back.
        stale = "(expires <= ? OR expires > ?)"
        with self._reading.use(end) as connection:
            query = f"SELECT 1 FROM claims WHERE key = ? AND NOT {stale}"  # noqa: S608 - of this method
            if connection.execute(query, (key, now, now + 2 * LEASE)):
                return None
        with self._writing.write(end) as connection:
            connection.execute(f"DELETE FROM claims WHERE {stale}", (now, now + 2 * LEASE))  # noqa: S608
            connection.execute(
                "INSERT OR IGNORE INTO claims (key, owner, expires) VALUES (?, ?, ?)",
                (key, owner, now + lease),
            )
            granted = connection.changes()
        if not granted:
            return None
        writing = self._writing

        def renew() -> bool:
            with writing.write() as connection:
                connection.execute(
                    "UPDATE claims SET expires = ? WHERE key = ? AND owner = ?",
                    (time.time() + LEASE, key, owner),
                )
                return connection.changes() > 0

        def give_back() -> None:
            with writing.write() as connection:
                connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

        return Lease(seconds, renew, give_back)

    def clear(self) -> None:
        """Delete all records."""
        with self._writing.write() as connection:
            connection.execute("DELETE FROM records")

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._writing.close()
        self._reading.close()

    def _check_file(self) -> None:
        """Open the file, and replace it by a new one if it is damaged."""
        try:
            with self._writing.use() as connection:
                if self.path == ":memory:" or _undamaged(connection):
                    return
        except sqlite3.DatabaseError as error:
            if _code(error) not in _DAMAGED or not _made_here(self.path):
                raise
        self._writing.close()
        for suffix in ("", "-wal", "-shm"):
            Path(self.path + suffix).unlink(missing_ok=True)
        with self._writing.use():
            pass

    def _oldest(self, now: float) -> float:
        return 0.0 if self.ttl is None else now - self.ttl

    def _touch(self, now: float, names: list[bytes]) -> None:
        """Update the last use of these records, without waiting or failing if another process is
        writing.
        """
        if not names:
            return
        with (
            contextlib.suppress(sqlite3.Error, MemoryUnavailable),
            self._writing.use(0.0) as connection,
        ):
            used = [(now, name.decode("utf-8", "replace")) for name in names]
            connection.executemany("UPDATE records SET used = ? WHERE id = ?", used)


class _Connection(ForkAware):
    """Connection to the file, used by one thread at a time."""

    def __init__(self, path: str, deadline: float) -> None:
        super().__init__()
        self._path = path
        self._deadline = deadline
        self._circuit = Circuit("the SQLite file")
        self._lock = threading.Lock()
        self._open: Database | None = None
        self._forking = False

    @contextlib.contextmanager
    def use(self, end: float | None = None) -> Generator[Database]:
        """Provide the connection until ``end`` (``time.monotonic()``; default: after the deadline).

        Waiting for other threads and locks of the file ends then. Raises ``MemoryUnavailable``,
        ``sqlite3.Error`` or ``OSError``. With an ``end`` of 0 it does not wait, and a failure does
        not count.
        """
        began = self._circuit.check()
        if end is None:
            end = began + self._deadline
        if not self._lock.acquire(timeout=max(0.0, end - began)):
            if end:
                self._circuit.failed()
            raise MemoryUnavailable(
                f"the SQLite file did not answer within {self._deadline:g} seconds"
            )
        try:
            self._circuit.check(began)
            yield self._connected(end)
            self._circuit.succeeded()
        except LibraryUnusableError as error:
            raise MemoryUnavailable(str(error)) from None
        except (sqlite3.Error, OSError) as error:
            if end:
                self._circuit.failed()
            if _code(error) not in _LOCKED:
                # The next use opens the file again: it may have been replaced meanwhile.
                self._drop()
            raise
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def write(self, end: float | None = None) -> Generator[Database]:
        """As ``use``, inside a transaction that writes."""
        if end is None:
            end = time.monotonic() + self._deadline
        with self.use(end) as connection, _transaction(connection, end):
            yield connection

    def close(self) -> None:
        """Close the file, and forget earlier failures."""
        with self._lock:
            self._drop()
            self._circuit.reset()

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
        self._circuit.reset()

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connected(self, end: float) -> Database:
        connection = self._open
        if connection is not None:
            _limit(connection, end)
            return connection
        if self._path != ":memory:":
            # SQLite gives its other files the permissions of this one.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        # Text that is not UTF-8 is one corrupt record, not a failed query.
        connection = Database(self._path, text_as_bytes=True)
        try:
            _prepare(connection, self._path, end)
        except BaseException:
            connection.close()
            raise
        self._open = connection
        return connection


def _limit(connection: Database, end: float) -> None:
    """Let the next statement wait for locks of the file until ``end``, for a part of the time at
    once, and stop one that runs much longer.
    """
    patience = min(max(0.0, end - time.monotonic()), _LONGEST_WAIT)
    connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
    connection.stop_when(lambda: time.monotonic() > end + _GRACE, 10_000)


@contextlib.contextmanager
def _transaction(connection: Database, end: float, kind: str = "IMMEDIATE") -> Generator[None]:
    """Run the block in a transaction, for whose beginning it waits until ``end``."""
    while True:
        try:
            connection.execute(f"BEGIN {kind}")
            break
        except sqlite3.OperationalError as error:
            if _code(error) not in _LOCKED or time.monotonic() >= end:
                raise
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some failures have ended the transaction already.
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _prepare(connection: Database, path: str, end: float) -> None:
    """Create or check the tables. Raises ``ConfigurationError`` if the file must not be changed."""
    _limit(connection, end)
    # Fails if another process is setting it right now, which is enough: it is a property of the
    # file.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    _limit(connection, end)
    # One snapshot for all queries: another process may be creating the tables right now.
    with _transaction(connection, end, "DEFERRED"):
        ready = _has_tables(connection, path)
    if ready:
        return
    _limit(connection, end)
    with _transaction(connection, end):
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
            f"SQLiteMemory cannot use {path!r}: it is another program's database"
        )
    if version > _SCHEMA:
        raise ConfigurationError(
            f"SQLiteMemory cannot use {path!r}: a newer version of compacter made it "
            f"(schema {version}, this one reads {_SCHEMA})"
        )
    wanted = {name.encode(): statement.encode() for name, statement in _TABLES.items()}
    return bool(version == _SCHEMA and wanted.items() <= tables.items())


def _undamaged(connection: Database) -> bool:
    """Return whether a check of limited time does not find damage."""
    end = time.monotonic() + _CHECK
    connection.stop_when(lambda: time.monotonic() > end, 1_000)
    try:
        faults = connection.execute("PRAGMA quick_check(1)")
    except sqlite3.OperationalError:
        return True
    return faults == [(b"ok",)]


def _made_here(path: str) -> bool:
    """Return whether a file that SQLite reports as damaged begins like the files of this class."""
    with Path(path).open("rb") as file:
        header = file.read(100)
    return header.startswith(b"SQLite format 3\0") and header[68:72] == _APPLICATION.to_bytes(
        4, "big"
    )


def _code(error: BaseException) -> int | None:
    """Return SQLite's primary result code, see https://www.sqlite.org/rescode.html."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _file_name(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"path takes a file name, not {path!r}")
    return name
