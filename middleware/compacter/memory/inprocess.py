"""Records in this process: the default."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from compacter.memory.base import whole_number
from compacter.memory.record import Record
from compacter.memory.single_flight import Flights

_MEGABYTE = 1 << 20


class InProcessMemory:
    """Keeps the most recently used records, at most ``max_entries`` and ``max_bytes`` (estimated) of them.

    Recognising a long history quickly takes copies of its messages' structure (the strings are shared with
    the caller); these are bounded by ``max_entries`` and ``max_bytes`` once more. Thread-safe; may be shared
    by several ``Compacter``. Raises ``ConfigurationError`` for a bound that is no whole number from 1 on.
    """

    blocking = False

    def __init__(self, max_entries: int = 1_000, max_bytes: int = 64 * _MEGABYTE) -> None:
        self.max_entries = whole_number("max_entries", max_entries)
        self.max_bytes = whole_number("max_bytes", max_bytes)
        self.flights = Flights()
        """Compactions under way, for all that share this memory."""
        self._records: OrderedDict[str, tuple[Record, int]] = OrderedDict()
        self._keys: dict[str, dict[str, None]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        # An empty memory is a memory.
        return True

    def __repr__(self) -> str:
        return f"InProcessMemory(max_entries={self.max_entries}, max_bytes={self.max_bytes})"

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these keys."""
        with self._lock:
            found = []
            for key in keys:
                for name in self._keys.get(key, ()):
                    self._records.move_to_end(name)
                    found.append(self._records[name][0])
            return found

    def save(self, record: Record) -> None:
        """Keep a record, and drop the least recently used where there are too many.

        One that is larger than ``max_bytes`` is not kept.
        """
        size = record.size
        with self._lock:
            self._drop(record.id)
            if size > self.max_bytes:
                return
            self._records[record.id] = record, size
            self._keys.setdefault(record.key, {})[record.id] = None
            self._bytes += size
            while len(self._records) > self.max_entries or self._bytes > self.max_bytes:
                self._drop(next(iter(self._records)))

    def claim(self, key: str, seconds: float) -> bool:  # noqa: ARG002
        """Always granted: threads and tasks of this process are kept apart by ``flights``."""
        return True

    def release(self, key: str) -> None:
        """Nothing to give back."""

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._records.clear()
            self._keys.clear()
            self._bytes = 0

    def _drop(self, name: str) -> None:
        held = self._records.pop(name, None)
        if held is None:
            return
        record, size = held
        self._bytes -= size
        names = self._keys[record.key]
        del names[name]
        if not names:
            del self._keys[record.key]
