"""One remembered compaction: these messages of a conversation are now this view of them."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from compacter.messages.fields import Json, Unencodable, plain
from compacter.messages.format import Message

VERSION = 2
"""Of the stored form; a record of another version is ignored."""
_BYTES = "compacter:bytes"
_FRAME = 1_000
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
    """What a memory keeps. It holds digests of what was folded, never the folded messages themselves.

    Positions count the messages that are not system messages, from 0.
    """

    key: str
    """Digest of the scope and of where the folded messages begin: what a lookup starts from."""
    boundary: int
    """Messages from this position on stand verbatim."""
    kept: tuple[int, ...]
    """Positions before the boundary that stand verbatim too, ascending."""
    literals: tuple[StoredMessage, ...]
    """The messages that were put in, in order."""
    digest: str
    """Of the content of everything before the boundary that is not kept."""
    last: str
    """Digest of the last of these alone: distinguishes most histories without reading them whole."""
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
        """Bytes that it keeps alive."""
        return _FRAME + 32 * len(self.kept) + sum(_FRAME + footprint(literal.message) for literal in self.literals)

    def to_json(self) -> str:
        """The record as ASCII text with a seal; messages of an SDK's own class become dicts.

        Raises ``Unencodable`` for what would not come back from the text as it was.
        """
        try:
            body = json.dumps(
                {
                    "key": self.key,
                    "boundary": self.boundary,
                    "kept": self.kept,
                    "literals": [
                        [literal.position, _storable(literal.message), literal.behind_system]
                        for literal in self.literals
                    ],
                    "digest": self.digest,
                    "last": self.last,
                    "folded_user": self.folded_user,
                }
            )
        except (TypeError, ValueError, RecursionError) as error:
            raise Unencodable(f"a record has no text form: {type(error).__name__}") from error
        return f"{VERSION} {_seal(body)} {body}"

    @classmethod
    def from_json(cls, text: str | bytes) -> Record | None:
        """The record; ``None`` for a ``text`` of another version, one that was altered, or one that is not a record."""
        try:
            version, seal, body = (text if isinstance(text, str) else str(text, "ascii")).split(" ", 2)
            if version != str(VERSION) or seal != _seal(body):
                return None
            data = json.loads(body, object_hook=_restored)
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


def footprint(value: Json) -> int:
    """Bytes that JSON-like data and SDK objects keep alive, roughly: pictures by all of their text or bytes."""
    total, left, seen = 0, [value], set[int]()
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        total += sys.getsizeof(item, 64)
        if isinstance(item, dict):
            left.extend(item.keys())
            left.extend(item.values())
        elif isinstance(item, (list, tuple)):
            left.extend(item)
        elif isinstance(getattr(item, "__dict__", None), dict):
            left.append(item.__dict__)
    return total


def _seal(body: str) -> str:
    return blake2b(body.encode("ascii"), digest_size=16, person=b"compacter record").hexdigest()


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def _storable(value: Json) -> Json:
    """``value`` as what JSON gives back unchanged."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, (list, tuple)):
        return [_storable(inner) for inner in value]
    if not isinstance(value, Mapping):
        members = plain(value)
        if not isinstance(members, dict):
            raise Unencodable(f"{type(value).__name__} has no text form")
        value = members
    if _BYTES in value or not all(isinstance(key, str) for key in value):
        raise Unencodable("a message has keys that do not come back from a text")
    return {key: _storable(inner) for key, inner in value.items()}


def _restored(value: dict[str, Json]) -> Json:
    if len(value) == 1 and isinstance(value.get(_BYTES), str):
        return base64.b64decode(value[_BYTES], validate=True)
    return value
