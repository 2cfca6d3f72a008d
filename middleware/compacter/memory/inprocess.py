"""The memory of this process, which is the default."""

from __future__ import annotations

from collections.abc import Sequence

from compacter.errors import whole_number, with_hints
from compacter.memory.protocol import BaseMemory, Claim, HeldClaim
from compacter.memory.record import Record, footprint
from compacter.runtime.locks import Lock


@with_hints
class InProcessMemory(BaseMemory):
    """Memory in this process, which keeps the most recently used records: the default.

    Thread-safe; may be shared by several ``Compacter``; a forked child continues with its own copy.
    Its methods do not raise exceptions.

    Args:
        max_entries: Most records to keep, at least 1.
        max_bytes: Most bytes of records to keep alive, at least 1.

    Raises:
        ConfigurationError: An argument is not an integer of at least 1.
    """

    blocking = False

    def __init__(self, max_entries: int = 1_000, max_bytes: int = 64 << 20) -> None:
        super().__init__()
        self.max_entries = whole_number("max_entries", max_entries, least=1, of="records")
        self.max_bytes = whole_number("max_bytes", max_bytes, least=1, of="bytes")
        # The records by key and id, and their sizes by id; the least recently used keys first.
        self._records: dict[str, dict[str, Record]] = {}
        self._sizes: dict[str, int] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._sizes)

    def __bool__(self) -> bool:
        # An empty memory is true as well.
        return True

    def __repr__(self) -> str:
        return f"InProcessMemory(max_entries={self.max_entries}, max_bytes={self.max_bytes})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, begins empty: records belong to the process that made them.
        return type(self), (self.max_entries, self.max_bytes)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``."""
        with self._lock:
            for key in self._records.keys() & set(keys):
                self._records[key] = self._records.pop(key)
            return [record for key in keys for record in self._records.get(key, {}).values()]

    def save(self, record: Record) -> None:
        """Save ``record``, and drop the least recently used if there are too many.

        A record that is larger than ``max_bytes`` is not saved.
        """
        size = footprint(record)
        if size > self.max_bytes:
            return
        with self._lock:
            records = self._records.pop(record.key, {})
            records.pop(record.id, None)
            self._records[record.key] = {**records, record.id: record}
            self._sizes[record.id] = size
            while len(self) > self.max_entries or sum(self._sizes.values()) > self.max_bytes:
                oldest = next(iter(self._records))
                name = next(iter(self._records[oldest]))
                del self._records[oldest][name], self._sizes[name]
                if not self._records[oldest]:
                    del self._records[oldest]

    def claim(self, key: str, seconds: float) -> Claim:  # noqa: ARG002
        """Return a claim at once, whatever ``key`` and ``seconds`` are. No other process uses this
        memory, and threads and tasks of one process wait for each other in another way.
        """
        return HeldClaim()

    def clear(self) -> None:
        """Delete all records."""
        with self._lock:
            self._records.clear()
            self._sizes.clear()
            self.matches.clear()

    def empty(self) -> bool:
        """Return whether the memory is empty."""
        return not self._sizes  # A plain dict, for speed: every call uses this.
