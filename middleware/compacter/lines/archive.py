"""The archive of a ``History``: text of the messages that it no longer has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace

from compacter.lines.said import Redact
from compacter.lines.talk import Talk
from compacter.messages.fields import Json
from compacter.messages.parts import Part
from compacter.runtime.locks import Lock

# Largest size of an archive in bytes, with its index; the oldest texts are dropped.
_ARCHIVE_BYTES = 16_000_000


class Archive:
    """Text of the compacted messages of a ``History``, which no longer has them.

    ``entries`` come from another archive; ``shift`` is the number of messages that the compactions
    removed.
    """

    def __init__(self, entries: Sequence[Part] = (), shift: int = 0) -> None:
        self.talk = Talk(entries, max_bytes=_ARCHIVE_BYTES)
        """The texts of it."""
        self._shift = shift
        self._lock = Lock()

    def __bool__(self) -> bool:
        """Return whether anything was compacted."""
        return bool(self.talk.parts)

    @property
    def characters(self) -> int:
        """Size of its texts, in characters."""
        return sum(len(entry.text) for entry in self.talk.parts)

    @property
    def removed(self) -> int:
        """Number of messages by which the compactions made the list shorter."""
        return self._shift

    def add(self, compacted: Iterable[Part], removed: int, redact: Redact | None) -> None:
        """Add the entries of one compaction, with indexes in the list before it, which was
        ``removed`` messages longer. ``redact`` is applied to their text.
        """
        with self._lock:
            moved = [replace(part, index=part.index + self._shift) for part in compacted]
            self.talk = self.talk.extend(moved, redact)
            self._shift += removed

    def copy(self) -> Archive:
        """Return an independent copy."""
        with self._lock:
            return copy(self)

    def snapshot(self) -> Json:
        """Return the archive as JSON."""
        entries = [[e.role, e.kind, e.text, e.name, e.index] for e in self.talk.parts]
        return {"shift": self._shift, "entries": entries}

    @classmethod
    def restored(cls, snapshot: Json) -> Archive:
        """Return the archive of a ``snapshot()``; an empty one for ``None``.

        Raises ``ValueError``, ``TypeError`` or ``LookupError`` for anything else.
        """
        if snapshot is None:
            return cls()
        shift = snapshot["shift"]
        kinds = {tuple(map(type, entry)) for entry in snapshot["entries"]}
        if type(shift) is not int or kinds - {(str, str, str, str, int)}:
            raise ValueError(
                "an archive needs an integer shift, and entries of four strings and an index"
            )
        return cls([Part(*entry) for entry in snapshot["entries"]], shift)
