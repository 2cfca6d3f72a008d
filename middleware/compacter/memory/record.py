"""One remembered compaction: these messages of a conversation are now this view of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from compacter.messages.fields import Json, characters, plain
from compacter.messages.format import Message

VERSION = 1
"""Of the stored form; a record of another version is ignored."""
_BYTES = "compacter:bytes"
_FRAME = 400
"""Bytes that a record and its entry in a memory take beside its messages, roughly."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message that was put in: a summary, a filler, or an edited message in place of an original."""

    position: int
    """The message before which it stands."""
    message: Message
    behind_system: bool = False
    """Whether it stands behind the system messages that precede that position, or before them."""


@dataclass(frozen=True, slots=True)
class Record:
    """Positions count the messages that are not system messages, from 0."""

    key: str
    """Digest of the scope and of where the folded messages begin: what a lookup starts from."""
    boundary: int
    """Messages from this position on stand verbatim."""
    kept: tuple[int, ...]
    """Positions before the boundary that stand verbatim too, ascending."""
    literals: tuple[StoredMessage, ...]
    digest: str
    """Of the content of everything before the boundary that is not kept."""
    last: str
    """Digest of the last of these alone: tells most histories apart without reading them whole."""
    folded_user: int = -1
    """Position of the last genuine user message that is not kept; -1 when there is none."""

    @property
    def id(self) -> str:
        """Names this record among all: what was folded. Another view of the same takes its place."""
        return f"{self.key}:{self.boundary}:{self.digest}"

    @property
    def folded(self) -> int:
        """How many messages are no longer there verbatim."""
        return self.boundary - len(self.kept)

    @property
    def size(self) -> int:
        """Bytes it takes, roughly."""
        return _FRAME + 8 * len(self.kept) + sum(_FRAME + 2 * characters(literal.message) for literal in self.literals)

    def to_json(self) -> str:
        """The record as ASCII text. Messages of an SDK's own class become dicts."""
        return json.dumps(
            {
                "version": VERSION,
                "key": self.key,
                "boundary": self.boundary,
                "kept": self.kept,
                "literals": [[literal.position, literal.message, literal.behind_system] for literal in self.literals],
                "digest": self.digest,
                "last": self.last,
                "folded_user": self.folded_user,
            },
            default=_storable,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Record | None:
        """The record, or ``None`` for what is corrupt or of another version."""
        try:
            data = json.loads(text, object_hook=_restored)
            if not isinstance(data, Mapping) or data["version"] != VERSION:
                return None
            record = cls(
                key=_typed(data["key"], str),
                boundary=_typed(data["boundary"], int),
                kept=tuple(_typed(position, int) for position in data["kept"]),
                literals=tuple(
                    StoredMessage(_typed(position, int), _typed(message, dict), _typed(behind, bool))
                    for position, message, behind in data["literals"]
                ),
                digest=_typed(data["digest"], str),
                last=_typed(data["last"], str),
                folded_user=_typed(data["folded_user"], int),
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return record if record.sound() else None

    def sound(self) -> bool:
        """Whether its positions make sense together."""
        return (
            self.boundary > 0
            and all(0 <= position < self.boundary for position in self.kept)
            and all(one < other for one, other in zip(self.kept, self.kept[1:], strict=False))
            and self.folded > 0
            and all(0 <= literal.position <= self.boundary for literal in self.literals)
            and -1 <= self.folded_user < self.boundary
        )


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _storable(value: object) -> Json:
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    return plain(value)


def _restored(value: dict[str, Json]) -> Json:
    if len(value) == 1 and isinstance(value.get(_BYTES), str):
        return base64.b64decode(value[_BYTES], validate=True)
    return value
