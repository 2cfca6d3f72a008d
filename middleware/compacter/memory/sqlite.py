"""Records in a file: they outlive the process, and the processes of one machine share them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence

from compacter.errors import ConfigurationError
from compacter.memory.base import Tokens, seconds, whole_number
from compacter.memory.record import Record

_SCHEMA = 1
"""``PRAGMA user_version`` of the file. One of an older schema is emptied: all it held can be made again."""
_APPLICATION = 0x636D7074
"""``PRAGMA application_id``: "cmpt"."""
_TABLES = """
    CREATE TABLE records (
        id TEXT PRIMARY KEY, key TEXT NOT NULL, body TEXT NOT NULL, used REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX records_by_key ON records (key, used);
    CREATE INDEX records_by_use ON records (used);
    CREATE TABLE claims (
        key TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
"""
_BUSY = 2.0
"""Seconds that a call waits for another process to finish writing."""
_PER_KEY = 32
"""Records under one key: the newest of one conversation count, its older ones only for forks."""
_TOUCH = 60.0
"""Seconds between two notes that a record was used, so that reading seldom writes."""
_WEEK = 7 * 86_400.0


class SQLiteMemory:
    """Keeps records in the SQLite file at ``path``; it is made where there is none, for its owner only.

    At most ``max_entries``, the least recently used dropped; one that nobody used for ``ttl`` seconds is
    forgotten (``None``: never). Thread-safe, and safe among processes of one machine (it uses a write-ahead
    log: no network file system); ``":memory:"`` is a database of this object alone.

    Raises ``ConfigurationError`` at construction where the file cannot be opened, is no database, belongs to
    another program, or was made by a newer version. What goes wrong later raises ``sqlite3.Error``, which
    costs a call nothing but the memory. The file holds the text of summaries: whoever can write to it can
    change what models are told.
    """

    blocking = True

    def __init__(self, path: str | os.PathLike[str], max_entries: int = 10_000, ttl: float | None = _WEEK) -> None:
        self.path = _file_name(path)
        self.max_entries = whole_number("max_entries", max_entries)
        self.ttl = None if ttl is None else seconds("ttl", ttl)
        self._tokens = Tokens()
        self._lock = threading.Lock()
        self._process = 0
        self._connection: sqlite3.Connection | None = None
        self._parents: sqlite3.Connection | None = None
        try:
            with self._open():
                pass
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"SQLiteMemory cannot use {self.path!r}: {error}") from error

    def __repr__(self) -> str:
        return f"SQLiteMemory({self.path!r}, max_entries={self.max_entries}, ttl={self.ttl})"

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these keys; corrupt ones are left out."""
        now = time.time()
        marks = ",".join("?" * len(keys))
        with self._open() as connection:
            rows = connection.execute(
                f"SELECT id, body, used FROM records WHERE key IN ({marks}) AND used >= ?",  # noqa: S608 - marks only
                (*keys, self._oldest(now)),
            ).fetchall()
            stale = [(now, name.decode("utf-8", "replace")) for name, _, used in rows if now - used >= self._touch()]
            if stale:
                # Another process that is writing is no reason to wait, nor to fail.
                with contextlib.suppress(sqlite3.OperationalError), self._impatient(connection):
                    connection.executemany("UPDATE records SET used = ? WHERE id = ?", stale)
        records = [Record.from_json(body) for _, body, _ in rows]
        return [record for record in records if record is not None]

    def save(self, record: Record) -> None:
        """Keep a record; one with the same ``id`` is replaced."""
        body = record.to_json()
        now = time.time()
        with self._open() as connection, _transaction(connection):
            connection.execute(
                "INSERT OR REPLACE INTO records (id, key, body, used) VALUES (?, ?, ?, ?)",
                (record.id, record.key, body, now),
            )
            connection.execute("DELETE FROM records WHERE used < ?", (self._oldest(now),))
            for where, most in ("WHERE key = ?", _PER_KEY), ("", self.max_entries):
                connection.execute(
                    f"DELETE FROM records WHERE id IN (SELECT id FROM records {where} "  # noqa: S608 - of this line
                    f"ORDER BY id = ? DESC, used DESC LIMIT -1 OFFSET {most})",
                    (*((record.key,) if where else ()), record.id),
                )

    def claim(self, key: str, seconds: float) -> bool:
        """Whether this caller may do the work, for ``seconds`` at most."""
        token, now = self._tokens.new(), time.time()
        with self._open() as connection, _transaction(connection):
            connection.execute("DELETE FROM claims WHERE expires <= ?", (now,))
            granted = connection.execute(
                "INSERT OR IGNORE INTO claims (key, owner, expires) VALUES (?, ?, ?)",
                (key, token, now + seconds),
            ).rowcount
        if granted:
            self._tokens.hold(key, token)
        return bool(granted)

    def release(self, key: str) -> None:
        """Give a claim back, if it is still this caller's."""
        token = self._tokens.give_back(key)
        if token is not None:
            with self._open() as connection:
                connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, token))

    def clear(self) -> None:
        """Forget every record."""
        with self._open() as connection:
            connection.execute("DELETE FROM records")

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        # An argument that was refused leaves an object without these.
        if getattr(self, "_connection", None) is not None:
            self.close()

    def _oldest(self, now: float) -> float:
        return 0.0 if self.ttl is None else now - self.ttl

    def _touch(self) -> float:
        return _TOUCH if self.ttl is None else min(_TOUCH, self.ttl / 10)

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """The connection, for one thread at a time."""
        with self._lock:
            if self._connection is None or self._process != os.getpid():
                # A connection must not be used across a fork, not even to close it: the child holds on to it.
                self._parents = self._connection
                self._connection, self._process = self._connected(), os.getpid()
            yield self._connection

    def _connected(self) -> sqlite3.Connection:
        if self.path != ":memory:":
            # SQLite gives its own further files the permissions of this one.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            # Text that is no UTF-8 is one corrupt record, not a failed query.
            connection.text_factory = bytes
            _prepare(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _impatient(self, connection: sqlite3.Connection) -> Generator[None]:
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            yield
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(_BUSY * 1000)}")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Generator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Make or check the tables. Raises ``ConfigurationError`` for a file that is not ours to change."""
    # Refused where another process is switching it on right now, which does: it is a property of the file.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    # One snapshot of all that is asked: another process may be making the tables right now.
    with _transaction(connection, "DEFERRED"):
        ready = _ours(connection, path)
    if ready:
        return
    with _transaction(connection):
        if _ours(connection, path):
            return
        for table in ("records", "claims"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA}")


def _ours(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the tables are there, in this version's form."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION and (application or version or tables):
        raise ConfigurationError(f"SQLiteMemory cannot use {path!r}: it is another program's database")
    if version > _SCHEMA:
        raise ConfigurationError(
            f"SQLiteMemory cannot use {path!r}: a newer version of compacter made it "
            f"(schema {version}, this one reads {_SCHEMA})"
        )
    return bool(version == _SCHEMA)


def _file_name(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"path takes the name of a file, not {path!r}")
    return name
