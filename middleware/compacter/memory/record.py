"""One remembered compaction (these messages are now this view of them), and the digests that it is found by.

Equal digests mean equal content: what cannot be encoded faithfully has none. System messages stay verbatim in every
view and may change with every call, so they are in no digest of a history.
"""

from __future__ import annotations

import base64
import json
import marshal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import islice
from typing import TypeVar

from compacter.messages.fields import Json, Unencodable, plain
from compacter.messages.format import Message, MessageFormat

VERSION = 4
"""Of the stored form; a record of another version is ignored."""
_BYTES = "compacter:bytes"
_STARTS = 4
"""How many places a lookup tries as the beginning of what was folded: pinned messages may stand before it."""
_RUN = 4
"""Messages that the beginning is known by, where as many were folded in a row: first messages repeat."""
LONGEST_OPENING = _STARTS + _RUN - 1
"""Messages that are looked at to find the beginning."""
_CLIP = 8_192
"""Characters of a text that count for the beginning; a lookup must not encode a book each time."""
_BLOCK = 64
"""Messages that are encoded at a time: few enough to stay in the processor's cache."""
_PLAIN = 2
"""The version of ``marshal`` that encodes equal data alike: one text for one value, many times as fast as JSON."""
_LOOK_AT = 64
"""Messages among which the beginning is looked for."""
_ENTRY = 1_000
"""Bytes that an entry in a memory takes beside what it holds, roughly."""

T = TypeVar("T")


@dataclass(frozen=True)
class StoredMessage:
    """A message that was put in: a summary, a filler, or an edited message in place of an original."""

    position: int
    """The message before which it stands."""
    message: Message
    behind_system: bool = False
    """Whether it stands behind the system messages that precede that position, or before them."""


@dataclass(frozen=True)
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
    window: int = 0
    """The model's context window in tokens, as it was known then: a program that starts again need not learn it from
    another refusal. 0 where it was not known."""

    @property
    def id(self) -> str:
        """Names this record among all: what was folded. Another view of the same takes its place."""
        return f"{self.key}:{self.boundary}:{self.digest}"

    @property
    def folded(self) -> int:
        """How many messages are no longer there verbatim."""
        return self.boundary - len(self.kept)

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
                    "window": self.window,
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
                window=_typed(data["window"], int),
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
            and self.window >= 0
        )


def footprint(value: Json) -> int:
    """Bytes that JSON-like data and SDK objects keep alive, roughly: pictures by all of their text or bytes."""
    total, left, seen = _ENTRY, [value], set[int]()
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


def prefix_digest(form: MessageFormat, messages: Sequence[Message], scope: str = "") -> str:
    """Digest of the content of messages, in order, for calls of this scope.

    Raises ``Unencodable``, and nothing else, for a message that cannot be told apart from every other one.
    """
    digest = sha256(marshal.dumps(scope, _PLAIN))  # Most processors have instructions for it.
    for start in range(0, len(messages), _BLOCK):
        contents: list[Json] = []
        for message in messages[start : start + _BLOCK]:
            if type(message) is dict and len(message) == 2:
                # The most common form is its own content.
                role, text = message.get("role"), message.get("content")
                if type(role) is str and type(text) is str and text[:1] != "\0":
                    contents.append((text, role))
                    continue
            content = form.content(message)
            plain_text = isinstance(content, dict) and list(content) == ["content", "role"]
            contents.append(tuple(content.values()) if plain_text else content)
        digest.update(marshal.dumps(contents, _PLAIN))
    return digest.hexdigest()[:32]


def message_digest(form: MessageFormat, message: Message) -> bytes:
    """Digest of the beginnings of the texts of one message. Raises as ``prefix_digest``."""
    return blake2b(marshal.dumps(_clipped(form.content(message)), _PLAIN), digest_size=16).digest()


def _clipped(value: Json) -> Json:
    if isinstance(value, str):
        return value if len(value) <= _CLIP else [len(value), value[:_CLIP]]
    if isinstance(value, dict):
        return {key: _clipped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_clipped(inner) for inner in value]
    return value


def chain(parts: Iterable[bytes], scope: str = "") -> str:
    """Digest of message digests, in order, for calls of this scope."""
    begin = blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return blake2b(b"".join((begin, *parts)), digest_size=16).hexdigest()


def conversation_digest(form: MessageFormat, messages: Sequence[Message], count: int = 3) -> str:
    """What names a conversation in events: a digest of its first messages, those of the system aside.

    Many begin with the same greeting, so that one is not enough. Empty where none can be encoded.
    """
    found: list[bytes] = []
    for message in islice((item for item in messages if form.speaker(item) != "system"), count):
        try:
            found.append(message_digest(form, message))
        except Unencodable:
            break
    return chain(found)[:16] if found else ""


def lookup_keys(scope: str, form: MessageFormat, messages: Sequence[Message], first: int) -> list[str]:
    """The keys under which records of this history may be: one of them is ``record_key`` of each that it matches.

    ``first`` is where its leading system messages end. Messages that cannot be encoded begin nothing.
    """
    window = islice(messages, first, first + _LOOK_AT)
    openings: list[bytes] = []
    for message in islice((item for item in window if form.speaker(item) != "system"), LONGEST_OPENING):
        try:
            openings.append(message_digest(form, message))
        except Unencodable:
            openings.append(b"")
    keys: dict[str, None] = {}
    for start in range(min(_STARTS, len(openings))):
        for run in (1, _RUN):
            parts = openings[start : start + run]
            if len(parts) == run and all(parts):
                keys[chain(parts, scope)] = None
    return list(keys)


def record_key(scope: str, form: MessageFormat, body: Sequence[Message], folded: Sequence[int]) -> str:
    """The key of a record.

    ``body`` is the history without system messages, ``folded`` the positions in it that were folded, ascending.
    Raises ``Unencodable``.
    """
    start, run = folded[0], 1
    if start >= _STARTS:
        start = 0
    elif folded[_RUN - 1 : _RUN] == [start + _RUN - 1]:
        run = _RUN
    return chain([message_digest(form, message) for message in body[start : start + run]], scope)
