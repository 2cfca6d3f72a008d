"""Memory in a SQLite file, which outlives the process and is shared by the processes of one
machine.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from collections.abc import Sequence
from functools import partial

from compacter.errors import ConfigurationError, seconds, whole_number
from compacter.memory.circuit import MemoryUnavailable
from compacter.memory.protocol import (
    DEADLINE,
    PER_KEY,
    WEEK,
    Claim,
    HeldClaim,
)
from compacter.memory.record import Record
from compacter.memory.sqlite_file import DAMAGED, LOCKED, File, result_code
from compacter.memory.stored import Encryption, StoringMemory
from compacter.runtime.database import Database

# Smallest time in seconds between two updates of a record's last use, so that reading seldom
# writes.
_TOUCH = 60.0
# Seconds for which a claim is granted at most. One that would end later was made before the clock
# was set back, and counts as expired.
_LONGEST_CLAIM = 600.0


class SQLiteMemory(StoringMemory):
    """Memory in a SQLite file, which is created if missing, readable by its owner only.

    Thread-safe, and safe among processes of one machine and across forks. It uses a write-ahead
    log, so the file must not be on a network file system: https://www.sqlite.org/wal.html

    A file made by an older version is emptied, and a damaged file of this class is replaced by a
    new one, as the records can be made again. Errors after opening raise ``sqlite3.Error`` or
    ``MemoryUnavailable`` from a method; a call then continues without the memory, which is not used
    for thirty seconds after three failures in a row. Records can be read while another process is
    writing. Without ``encryption`` the file contains the text of summaries, and anyone who can
    write to it can change what models read.

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
        report = self._reports.append
        self._writing = File(self.path, self.deadline, report)
        # With a write-ahead log readers do not wait for writers, so they must not share a
        # connection.
        self._reading = (
            self._writing if self.path == ":memory:" else File(self.path, self.deadline, report)
        )
        self.circuits = (self._writing.circuit, self._reading.circuit)
        try:
            self._writing.use(lambda _: None)
        except MemoryUnavailable:
            pass
        except (OSError, sqlite3.Error) as error:
            # A file that another process has locked will be opened when it is used.
            if result_code(error) not in LOCKED:
                reason = str(error)
                if isinstance(error, FileNotFoundError):
                    reason = "its folder is not there; make it, or name another file"
                elif result_code(error) in DAMAGED:
                    reason = f"{reason}; name another file"
                raise ConfigurationError(
                    f"SQLiteMemory cannot use {self.path!r}: {reason}"
                ) from error

    def __repr__(self) -> str:
        return f"SQLiteMemory({self.path!r}, max_entries={self.max_entries}, ttl={self.ttl})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same file and keys by its own connections.
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
        rows = self._reading.use(lambda database: database.execute(query, (stale, *keys, oldest)))
        if any(is_stale for _, is_stale in rows):
            touch = f"UPDATE records SET used = ? WHERE key IN ({marks}) AND used >= ?"  # noqa: S608 - as above
            # Without waiting or failing if another process is writing.
            with contextlib.suppress(sqlite3.Error, MemoryUnavailable):
                self._writing.use(
                    lambda database: database.execute(touch, (now, *keys, oldest)), patient=False
                )
        return self._decode(body for body, _ in rows)

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        body = self._encode(record)
        now = time.time()

        def work(database: Database) -> None:
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

        self._writing.use(work, writes=True)

    def claim(self, key: str, seconds: float) -> Claim | None:
        """Return the right to make the summary identified by ``key`` for ``seconds``, or ``None``
        while another process has it.
        """
        owner = self.owner
        now = time.time()

        def take(database: Database) -> bool:
            database.execute(
                "DELETE FROM claims WHERE expires <= ? OR expires > ?", (now, now + _LONGEST_CLAIM)
            )
            granted = database.execute(
                "INSERT INTO claims (key, owner, expires) VALUES (?, ?, ?) ON CONFLICT (key) "
                "DO UPDATE SET expires = excluded.expires WHERE owner = excluded.owner RETURNING 1",
                (key, owner, now + min(seconds, _LONGEST_CLAIM)),
            )
            return bool(granted)

        def give_back(database: Database) -> None:
            database.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (key, owner))

        use = self._writing.use
        return HeldClaim(partial(use, give_back, writes=True)) if use(take, writes=True) else None

    def clear(self) -> None:
        """Delete all records."""
        self._writing.use(lambda database: database.execute("DELETE FROM records"), writes=True)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._writing.close()
        self._reading.close()


def _file_name(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"path takes a file name, not {path!r}")
    return name
