"""Records in this process: the default."""

from __future__ import annotations

from collections.abc import Sequence

from cachetools import LRUCache

from compacter.memory.base import BaseMemory, whole_number
from compacter.memory.record import Record

_MEGABYTE = 1 << 20


class InProcessMemory(BaseMemory):
    """Keeps the most recently used records of this process.

    Thread-safe; may be shared by several ``Compacter``; a forked child goes on with a copy of its own. Its methods
    raise nothing.

    Args:
        max_entries: Number of records, from 1 on.
        max_bytes: Bytes that the memory keeps alive, from 1 on: the records and, in the room that they leave, what
            recognises a long history quickly.

    Raises:
        ConfigurationError: A bound is not a whole number from 1 on.
    """

    blocking = False

    def __init__(self, max_entries: int = 1_000, max_bytes: int = 64 * _MEGABYTE) -> None:
        self.max_entries = whole_number("max_entries", max_entries)
        super().__init__(max_bytes)
        self._records: LRUCache[str, Record] = LRUCache(self.max_bytes, getsizeof=_size)
        self._ids: dict[str, dict[str, None]] = {}
        """The ids of the records under each key, in the order in which they came."""

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        # An empty memory is a memory.
        return True

    def __repr__(self) -> str:
        return f"InProcessMemory(max_entries={self.max_entries}, max_bytes={self.max_bytes})"

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these ``keys``."""
        with self._lock:
            return [self._records[name] for key in keys for name in self._ids.get(key, ())]

    def save(self, record: Record) -> None:
        """Keep ``record``, and drop the least recently used where there are too many.

        One that is larger than ``max_bytes`` is not kept.
        """
        size = record.size
        with self._lock:
            if record.id in self._records:
                self._forget(record.id, self._records.pop(record.id))
            if size > self.max_bytes:
                return
            while self._records and (
                len(self._records) >= self.max_entries or self._records.currsize + size > self.max_bytes
            ):
                self._forget(*self._records.popitem())
            self._records[record.id] = record
            self._ids.setdefault(record.key, {})[record.id] = None
            self._fit()

    def claim(self, key: str, seconds: float) -> Granted:  # noqa: ARG002
        """Always granted, whatever ``key`` and ``seconds``: threads and tasks wait for each other by ``flights``."""
        return Granted()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._records.clear()
            self._ids.clear()
            self._attached.clear()

    def empty(self) -> bool:
        """Whether there is no record."""
        return len(self) == 0

    def _room(self) -> int:
        return self.max_bytes - int(self._records.currsize)

    def _forget(self, name: str, record: Record) -> None:
        names = self._ids[record.key]
        del names[name]
        if not names:
            del self._ids[record.key]


class Granted:
    """A claim in a memory that only this process uses."""

    def release(self) -> None:
        """Nothing to give back."""


def _size(record: Record) -> int:
    return record.size
