"""The archive of a ``History``: text of the messages that it no longer has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from compacter.locks import ForkAware, Lock
from compacter.messages.fields import Json
from compacter.messages.parts import Part
from compacter.recall.index import Index, Redact, SearchUnavailableError

# Largest size of an archive in bytes, with its index; the oldest texts are dropped.
_ARCHIVE_BYTES = 16_000_000


class Archive(ForkAware):
    """Text of the compacted messages of a ``History``, which no longer has them; read and indexed
    at the first search.

    ``entries`` are those of another archive, ``shift`` is the number of messages that the
    compactions removed.
    """

    def __init__(
        self, entries: Sequence[Part] = (), shift: int = 0, redact: Redact | None = None
    ) -> None:
        super().__init__()
        self._entries = entries
        self._shift = shift
        self._redact = redact
        self._index: Index | None = None
        self._lock = Lock()
        self._waiting: list[Callable[[], list[Part]]] = []

    def after_fork_in_child(self) -> None:
        """Index the texts again at the next search: a child does not use its parent's databases."""
        self._index = None

    def __bool__(self) -> bool:
        """Return whether anything was compacted."""
        return bool(self._entries or self._waiting)

    def add(self, folded: Callable[[], list[Part]], removed: int, redact: Redact | None) -> None:
        """Add the messages of one compaction. ``redact`` is applied to their text.

        ``folded`` reads their entries, with indexes in the list before the compaction, which was
        ``removed`` messages longer.
        """
        shift = self._shift
        with self._lock:
            self._redact = redact or self._redact
            self._shift += removed
            self._waiting.append(
                lambda: [replace(part, index=part.index + shift) for part in folded()]
            )

    def index(self) -> Index:
        """Return the index of the archive. Raises ``SearchUnavailableError`` if SQLite
        lacks FTS5.
        """
        with self._lock:
            if self._index is None:
                self._index = Index.restored(self._entries, self._redact, _ARCHIVE_BYTES)
            self._index.redact = self._redact
            while self._waiting:
                self._index.add(self._waiting[0]())
                self._entries = list(self._index.entries)
                del self._waiting[0]
            return self._index

    def copy(self) -> Archive:
        """Return an independent copy."""
        with self._lock:
            clone = Archive(self._entries, self._shift, self._redact)
            clone._waiting = list(self._waiting)
            return clone

    def snapshot(self) -> Json:
        """Return the archive as JSON; without the texts if it cannot be searched."""
        try:
            entries = self.index().entries
        except SearchUnavailableError:
            entries = []
        return {
            "shift": self._shift,
            "entries": [[e.role, e.kind, e.text, e.name, e.index] for e in entries],
        }

    @classmethod
    def restored(cls, snapshot: Json) -> Archive:
        """Return the archive of a ``snapshot()``; an empty one for ``None``.

        Raises ``ValueError``, ``TypeError`` or ``LookupError`` for anything else.
        """
        if snapshot is None:
            return cls()
        entries = [Part(*entry) for entry in snapshot["entries"]]
        shift = snapshot["shift"]
        if type(shift) is not int or not all(
            [type(e.role), type(e.kind), type(e.text), type(e.name), type(e.index)]
            == [str, str, str, str, int]
            for e in entries
        ):
            raise ValueError(
                "an archive needs an integer shift, and entries of four strings and an index"
            )
        return cls(entries, shift)
