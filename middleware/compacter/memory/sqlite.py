"""Memory in a SQLite file, which outlives the process and is shared by the processes of one
machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from compacter.errors import ConfigurationError, seconds, whole_number
from compacter.memory.lease import LEASE, Lease
from compacter.memory.protocol import DEADLINE, PER_KEY, WEEK, MemoryUnavailable
from compacter.memory.record import Record
from compacter.memory.sqlite_file import (
    DAMAGED,
    LOCKED,
    Connection,
    is_made_here,
    is_undamaged,
    result_code,
)
from compacter.memory.stored import Encryption, StoringMemory

# Smallest time in seconds between two updates of a record's last use, so that reading seldom
# writes.
_TOUCH = 60.0


class SQLiteMemory(StoringMemory):
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
        quotes: Whether the lines that a summary quotes from the conversation are stored too. If
            not, only the process that made a summary has them, and a summary that consists of
            nothing else, as no model wrote it, is not stored.

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
        quotes: bool = True,
    ) -> None:
        super().__init__()
        self.path = _file_name(path)
        self._open_codec(encryption, quotes, self.path)
        self.max_entries = whole_number("max_entries", max_entries, least=1, of="records")
        self.ttl = None if ttl is None else seconds("ttl", ttl)
        self.deadline = seconds("deadline", deadline)
        tell = self._reports.append
        self._writing = Connection(self.path, self.deadline, tell)
        # With a write-ahead log readers do not wait for writers, so they must not share a
        # connection.
        self._reading = (
            self._writing if self.path == ":memory:" else Connection(self.path, self.deadline, tell)
        )
        self.circuits = tuple({self._writing.circuit, self._reading.circuit})
        try:
            self._check_file()
        except MemoryUnavailable:
            pass
        except ConfigurationError:  # It names the file and the remedy.
            raise
        except (OSError, ValueError, sqlite3.Error) as error:
            # A file that another process has locked will be opened when it is used.
            if result_code(error) not in LOCKED:
                reason = str(error)
                if isinstance(error, FileNotFoundError):
                    reason = "its folder is not there; make it, or name another file"
                raise ConfigurationError(
                    f"SQLiteMemory cannot use {self.path!r}: {reason}"
                ) from error

    def __repr__(self) -> str:
        return f"SQLiteMemory({self.path!r}, max_entries={self.max_entries}, ttl={self.ttl})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same file and keys by its own connections.
        made = partial(
            type(self), deadline=self.deadline, encryption=self._encryption, quotes=self._quotes
        )
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
        return self._decode(keys, [body for _, body, _ in rows])

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        encoded = self._encode(record)
        if encoded is None:
            return
        record, body = encoded
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
        # A claim that ends impossibly late was made before the clock was set back.
        stale = "(expires <= ? OR expires > ?)"
        with self._reading.use() as connection:
            query = f"SELECT 1 FROM claims WHERE key = ? AND NOT {stale}"  # noqa: S608 - of this method
            if connection.execute(query, (key, now, now + 2 * LEASE)):
                return None
        with self._writing.write() as connection:
            connection.execute(f"DELETE FROM claims WHERE {stale}", (now, now + 2 * LEASE))  # noqa: S608
            connection.execute(
                "INSERT OR IGNORE INTO claims (key, owner, expires) VALUES (?, ?, ?)",
                (key, owner, now + lease),
            )
            granted = connection.changes()
        if not granted:
            return None
        writing = self._writing

        async def renew() -> bool:
            with writing.write() as connection:
                connection.execute(
                    "UPDATE claims SET expires = ? WHERE key = ? AND owner = ?",
                    (time.time() + LEASE, key, owner),
                )
                return connection.changes() > 0

        async def give_back() -> None:
            with writing.write() as connection:
                connection.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

        return Lease(seconds, renew, give_back)

    def clear(self) -> None:
        """Delete all records."""
        if self._own is not None:
            self._own.clear()
        with self._writing.write() as connection:
            connection.execute("DELETE FROM records")

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._writing.close()
        self._reading.close()

    def reports(self, error: BaseException) -> bool:
        """Return whether the circuits count such a failure.

        Args:
            error: What a method raised.
        """
        return isinstance(error, (MemoryUnavailable, sqlite3.Error, OSError))

    def _check_file(self) -> None:
        """Open the file, and replace it by a new one if it is damaged."""
        try:
            with self._writing.use() as connection:
                if self.path == ":memory:" or is_undamaged(connection):
                    return
        except sqlite3.DatabaseError as error:
            if result_code(error) not in DAMAGED or not is_made_here(self.path):
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
            self._writing.use(patient=False) as connection,
        ):
            used = [(now, name.decode("utf-8", "replace")) for name in names]
            connection.executemany("UPDATE records SET used = ? WHERE id = ?", used)


def _file_name(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"path takes a file name, not {path!r}")
    return name
