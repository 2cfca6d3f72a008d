"""Memory in a SQLite file, which outlives the process and is shared by the processes of one
machine.

Each operation is one transaction. The file stays open between them, but is opened anew if another
file has its name by then, or none. A write is not forced to the disk: the operating system does
that some seconds later. So a killed process loses nothing, and a computer that loses its power the
newest records, or the file, which is then replaced by a new one.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from compacter.errors import ConfigurationError, seconds, whole_number, with_hints
from compacter.memory.protocol import Claim, HeldClaim
from compacter.memory.record import Record
from compacter.memory.stored import (
    DEADLINE,
    PER_KEY,
    WEEK,
    Encryption,
    MemoryUnavailable,
    StoringMemory,
)
from compacter.runtime.locks import Lock, was_forked_busy

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

# Smallest time in seconds between two updates of a record's last use, so that reading seldom
# writes.
_TOUCH = 60.0
# Seconds between two attempts while another process writes, which takes milliseconds.
_AGAIN = 0.01
# `PRAGMA user_version` of the file. A file with an older schema is emptied: its records can be made
# again.
_SCHEMA = 3
# `PRAGMA application_id`: "cmpt".
_APPLICATION = 0x636D7074
_TABLES = f"""
DROP TABLE IF EXISTS records;
DROP TABLE IF EXISTS claims;
CREATE TABLE records (id TEXT PRIMARY KEY, key TEXT NOT NULL,
    body TEXT NOT NULL, used REAL NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX records_by_key ON records (key, used);
CREATE INDEX records_by_use ON records (used);
CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL,
    expires REAL NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_SCHEMA}
"""
_STATE = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master), "
    "(SELECT count(*) FROM sqlite_master WHERE name IN ('records', 'claims')) "
    "FROM pragma_application_id, pragma_user_version"
)
# Connections of a parent process, which a child must not even close:
# https://www.sqlite.org/howtocorrupt.html, 2.6.
_INHERITED: list[sqlite3.Connection] = []
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@with_hints
class SQLiteMemory(StoringMemory):
    """Memory in a SQLite file, which is created if missing, readable by its owner only.

    Thread-safe, and safe among processes of one machine and across forks. It uses a write-ahead
    log, so the file must not be on a network file system: https://www.sqlite.org/wal.html

    A file made by an older version is emptied, and a damaged file of this class is replaced by a
    new one, as the records can be made again. Errors after opening raise ``sqlite3.Error`` or
    ``MemoryUnavailable`` from a method; a call then continues without the memory. Records can be
    read while another process is writing. Without ``encryption`` the file contains the text of
    summaries, and anyone who can write to it can change what models read.

    Args:
        path: File name; ``":memory:"`` for a database of this object alone.
        max_entries: Most records to keep, at least 1; the least recently used are dropped.
        ttl: Seconds after which an unused record is deleted; ``None``: never.
        deadline: Seconds that one operation may wait, even if another process has locked the file.
        encryption: A key of ``cryptography``'s ``Fernet.generate_key()``; several, of which the
            first one encrypts and all decrypt; or a ``Fernet`` or ``MultiFernet``. ``None`` stores
            plain text.

    Raises:
        ImportError: The package ``cryptography`` is needed but not installed.
        ConfigurationError: The file cannot be opened, is not a database, belongs to another
            program, or was made by a newer version.
    """

    kind = "the SQLite file"
    failures = (MemoryUnavailable, sqlite3.Error, OSError)

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_entries: int = 10_000,
        ttl: float | None = WEEK,
        *,
        deadline: float = DEADLINE,
        encryption: Encryption = None,
    ) -> None:
        self.path = _file_name(path)
        super().__init__(self.path, deadline, encryption)
        self.max_entries = whole_number("max_entries", max_entries, least=1, of="records")
        self.ttl = None if ttl is None else seconds("ttl", ttl)
        self._lifetime = self.ttl or math.inf
        # Two connections, as a thread that reads must not wait for one that writes.
        self._reading = _File(self.path)
        self._writing = self._reading if self.path == ":memory:" else _File(self.path)
        try:
            self._writing.run(lambda _: None)
        except MemoryUnavailable:
            pass
        except (OSError, sqlite3.Error) as error:
            # A file that another process has locked will be opened when it is used.
            if _code(error) not in _LOCKED:
                reason = f"{error}; name another file"
                if isinstance(error, FileNotFoundError):
                    reason = "its folder is not there; make it, or name another file"
                raise ConfigurationError(
                    f"SQLiteMemory cannot use {self.path!r}: {reason}"
                ) from error

    def __repr__(self) -> str:
        return f"SQLiteMemory({self.path!r}, max_entries={self.max_entries}, ttl={self.ttl})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same file and keys.
        return partial(type(self), **self._options), (self.path, self.max_entries, self.ttl)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``, without those that were altered since
        they were saved.
        """
        now = time.time()
        oldest = now - self._lifetime
        stale = now - min(_TOUCH, self._lifetime / 10)
        # As bytes, since text that is not UTF-8 is one corrupt record, and not a failed query.
        marks = ",".join("?" * len(keys))
        query = (
            f"SELECT CAST(body AS BLOB), used < ? FROM records WHERE key IN ({marks}) AND used >= ?"  # noqa: S608 - marks only
        )
        rows = self._use(
            lambda database: database.execute(query, (stale, *keys, oldest)).fetchall()
        )
        if any(is_stale for _, is_stale in rows):
            touch = f"UPDATE records SET used = ? WHERE key IN ({marks}) AND used >= ?"  # noqa: S608 - as above
            # Without waiting or failing if another process is writing.
            with suppress(*self.failures):
                self._writing.run(lambda database: database.execute(touch, (now, *keys, oldest)))
        return self._decode(body for body, _ in rows)

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        body = self._encode(record)
        now = time.time()

        def work(database: sqlite3.Connection) -> None:
            database.execute(
                "INSERT OR REPLACE INTO records (id, key, body, used) VALUES (?, ?, ?, ?)",
                (record.id, record.key, body, now),
            )
            database.execute("DELETE FROM records WHERE used < ?", (now - self._lifetime,))
            for where, most in ("WHERE key = ?1", PER_KEY), ("", self.max_entries):
                database.execute(
                    f"DELETE FROM records WHERE id IN (SELECT id FROM records {where} "  # noqa: S608 - of this line
                    "ORDER BY id = ?2 DESC, used DESC LIMIT -1 OFFSET ?3)",
                    (record.key, record.id, most),
                )

        self._use(work, writes=True)

    def claim(self, key: str, seconds: float) -> Claim | None:
        """Return the right to make the summary identified by ``key`` for ``seconds``, or ``None``
        while another process has it.
        """
        owner = self.owner
        now = time.time()

        def take(database: sqlite3.Connection) -> object:
            database.execute("DELETE FROM claims WHERE expires <= ?", (now,))
            granted = database.execute(
                "INSERT INTO claims (key, owner, expires) VALUES (?, ?, ?) ON CONFLICT (key) "
                "DO UPDATE SET expires = excluded.expires WHERE owner = excluded.owner RETURNING 1",
                (key, owner, now + seconds),
            )
            return granted.fetchone()

        def give_back(database: sqlite3.Connection) -> None:
            database.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

        if self._use(take, writes=True) is None:
            return None
        return HeldClaim(partial(self._use, give_back, writes=True))

    def clear(self) -> None:
        """Delete all records."""
        self._use(lambda database: database.execute("DELETE FROM records"), writes=True)

    def close(self) -> None:
        """Close the file; the next use opens it again. Drop the records of ``":memory:"``."""
        self._reading.close()
        self._writing.close()

    def _use(self, work: Work[T], *, writes: bool = False) -> T:
        """Return the result of ``work``, which gets the open database.

        It runs in one transaction, again and again until the deadline while another process has
        locked the file. Raises ``MemoryUnavailable``, ``sqlite3.Error`` or ``OSError``.
        """
        end = time.monotonic() + self.deadline
        kind, file = ("writing", self._writing) if writes else ("reading", self._reading)
        with self.watched(kind):
            while True:
                try:
                    return file.run(work, writes=writes)
                except sqlite3.Error as error:
                    if _code(error) not in _LOCKED or time.monotonic() >= end:
                        raise
                time.sleep(_AGAIN)


class _File:
    """The file, used by one thread at a time, and opened when it is used.

    SQLite has locks for the whole process, which stay locked in a child that is forked while
    another thread holds them. So a fork waits for each use of it here.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = Lock()
        self._open: sqlite3.Connection | None = None
        self._identity: tuple[int, ...] = ()

    def __del__(self) -> None:
        if self._open is not None:
            self.close()

    def run(self, work: Work[T], *, writes: bool = False) -> T:
        """Run ``work`` in one transaction, without waiting for other processes; first replace the
        file if it is damaged.
        """
        with self._lock:
            try:
                return self._run(work, writes=writes)
            except sqlite3.Error as error:
                if _code(error) in _LOCKED:
                    raise
                self._shut()  # What is open may be the fault.
                if _code(error) not in _DAMAGED or not self._remove():
                    raise
            return self._run(work, writes=writes)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._shut()

    def _run(self, work: Work[T], *, writes: bool) -> T:
        if was_forked_busy():
            raise MemoryUnavailable(
                "SQLite is not used in this process: it was forked while SQLite was busy"
            )
        try:
            with self._connection() as database:
                _prepare(database, self._path)
                if writes:
                    database.execute("BEGIN IMMEDIATE")
                return work(database)
        except UnicodeDecodeError:
            # SQLite's message quotes a name in the file, and is decoded strictly.
            damage = sqlite3.DatabaseError("the file is damaged: a name in it is not UTF-8")
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage from None

    def _connection(self) -> sqlite3.Connection:
        """Return the connection. Open the file if it is not open, or if its name belongs to another
        file now.
        """
        identity = (os.getpid(), *self._number())
        if self._open is None or identity != self._identity:
            self._shut()
            self._open = _open(self._path)
            self._identity = identity
        return self._open

    def _number(self) -> tuple[int, ...]:
        """Return the device and the number of the file, which is created if missing."""
        if self._path == ":memory:":
            return ()
        if not os.path.exists(self._path):  # noqa: PTH110 - it does not raise
            # SQLite gives its other files the permissions of this one.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        found = Path(self._path).stat()
        return found.st_dev, found.st_ino

    def _shut(self) -> None:
        database, self._open = self._open, None
        if database is not None and self._identity[0] == os.getpid():
            database.close()
        elif database is not None:
            _INHERITED.append(database)

    def _remove(self) -> bool:
        """Remove the file if its header is that of this class; return whether it was removed."""
        with Path(self._path).open("rb") as file:
            if file.read(72)[68:] != b"cmpt":
                return False
        # The file last: what another process makes beside a new one must stay.
        for suffix in ("-wal", "-shm", "-journal", ""):
            Path(self._path + suffix).unlink(missing_ok=True)
        return True


def _open(path: str) -> sqlite3.Connection:
    """Open the file, without changing one that belongs to another program."""
    database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        _is_ready(database, path)
        database.execute("PRAGMA synchronous = OFF")
        # With a write-ahead log readers do not wait for writers.
        database.execute("PRAGMA journal_mode = WAL")
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: str) -> None:
    """Create the tables if they are missing, or if they are of an older version."""
    if _is_ready(database, path):
        return
    database.execute("BEGIN IMMEDIATE")
    if not _is_ready(database, path):  # Another process may just have created them.
        for statement in _TABLES.split(";"):
            database.execute(statement)
    database.execute("COMMIT")


def _is_ready(database: sqlite3.Connection, path: str) -> bool:
    """Return whether the tables are there. Raises ``ConfigurationError`` if the file must not be
    changed.
    """
    application, version, every, own = database.execute(_STATE).fetchone()
    is_foreign = application != _APPLICATION and every
    if is_foreign or version > _SCHEMA:
        fault = (
            "it is another program's database; name a file of its own"
            if is_foreign
            else "a newer version of compacter made it; upgrade llm-compacter, or name another file"
        )
        raise ConfigurationError(f"SQLiteMemory cannot use {path!r}: {fault}")
    return (version, own) == (_SCHEMA, 2)


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code, see https://www.sqlite.org/rescode.html."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def _file_name(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"path takes a file name, not {path!r}")
    return name
