"""One remembered compaction: these messages of a conversation are now this view of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compacter.history.message import Message

VERSION = 1
"""Of the stored form; a record of another version is ignored."""


@dataclass(frozen=True, slots=True)
class Record:
    """Positions count the messages that are not system messages, from 0."""

    key: str
    """Digest of scope and anchor (the first folded message, or the first of all): what a lookup starts from."""
    boundary: int
    """Messages from this position on stand verbatim."""
    kept: tuple[int, ...]
    """Positions before the boundary that stand verbatim too, ascending."""
    literals: tuple[tuple[int, Message], ...]
    """Messages that were put in, each before the position it is given with."""
    digest: str
    """Of the content of everything before the boundary that is not kept."""
    user_kept: bool = True
    """Whether the last user message before the boundary is kept (or there is none)."""

    @property
    def id(self) -> str:
        """Names this record among all."""
        return f"{self.key}:{self.boundary}:{self.digest}"

    def to_json(self) -> str:
        """The record as JSON text."""
        return json.dumps(
            {
                "version": VERSION,
                "key": self.key,
                "boundary": self.boundary,
                "kept": self.kept,
                "literals": self.literals,
                "digest": self.digest,
                "user_kept": self.user_kept,
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Record | None:
        """The record, or ``None`` for what is corrupt or of another version."""
        try:
            data = json.loads(text)
            if not isinstance(data, Mapping) or data["version"] != VERSION:
                return None
            record = cls(
                key=_typed(data["key"], str),
                boundary=_typed(data["boundary"], int),
                kept=tuple(_typed(position, int) for position in data["kept"]),
                literals=tuple(
                    (_typed(position, int), _typed(message, dict)) for position, message in data["literals"]
                ),
                digest=_typed(data["digest"], str),
                user_kept=_typed(data["user_kept"], bool),
            )
        except (ValueError, KeyError, TypeError):
            return None
        return record if record.boundary > 0 else None

    @property
    def size(self) -> int:
        """Bytes it takes, roughly."""
        return len(self.to_json())


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
