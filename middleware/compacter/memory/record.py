"""The record of one compaction, the digests by which it is found, and its text.

Equal digests mean equal content; a message that cannot be encoded faithfully does not get one.
System messages stay verbatim in every view and may change with every call, so digests of a history
do not include them.
"""

from __future__ import annotations

import base64
import json
import marshal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import islice
from typing import Any, NamedTuple

from compacter.messages.fields import Json, Unencodable, members
from compacter.messages.format import Message, MessageFormat

VERSION = 6
"""Version of the stored form; a record of another version is ignored."""
BYTES = "compacter:bytes"
"""Key of an object in place of bytes, which JSON does not have."""
# Number of positions that a lookup tries as the start of the compacted messages; pinned ones may
# precede it.
_STARTS = 4
# Number of messages in the key, if as many were compacted in a row: many conversations share the
# first message.
_RUN = 4
# Bytes of a message that count for a key: a lookup must not read a book each time.
_CLIP = 65_536
# Version of `marshal` that encodes equal data to equal bytes; many times as fast as JSON.
PLAIN = 2
# Approximate overhead of an entry in a memory, in bytes.
_OVERHEAD = 2_000


class Bound(NamedTuple):
    """States for which view of a conversation the model's newer thinking was made. The thinking is
    valid only with the messages of that view before it.
    """

    view: str = ""
    """Name of the view, equal in later calls; empty if none is kept."""
    older: int = 0
    """Number of messages of the view whose thinking is older."""


UNBOUND = Bound()
"""The caller's own messages."""


@dataclass(frozen=True)
class Record:
    """A compaction as a memory keeps it. It has digests of the compacted messages, never the
    messages themselves.

    Positions count the messages that are not system messages, from 0.
    """

    key: str
    """Digest of the scope and the first compacted messages, by which a lookup finds the record."""
    boundary: int
    """Position from which on all messages stay verbatim."""
    view: tuple[int | Message | None, ...]
    """The messages between the leading system messages and those, in order: the position of a
    message that stays verbatim; ``None`` for a system message; or an inserted message: a summary, a
    filler, or an edited message in place of an original."""
    digest: str
    """Digest of the compacted messages: all before the boundary that are not in ``view``."""
    last: str
    """Digest of the last compacted message, which distinguishes most histories without reading them
    whole."""
    compacted_user: int = -1
    """Position of the last genuine user message that was compacted, or -1."""
    window: int | None = None
    """Context window of the model in tokens, if it was known then, so that a restarted program need
    not learn it from another refusal."""
    spent: tuple[float, ...] = ()
    """Sums that the conversation had spent by then: tokens, those for summaries, USD; empty without
    the option ``spending``."""
    thinking: int = 0
    """Position from which on thinking was made against this view: older thinking is left out, as
    providers check that nothing before it has changed."""

    @property
    def id(self) -> str:
        """Identifier of the record, computed from the compacted messages. A later record for the
        same messages has the same identifier, and so replaces this record.
        """
        return f"{self.key}:{self.boundary}:{self.digest}"

    @property
    def kept(self) -> list[int]:
        """Positions of the messages before the boundary that are not replaced by the summary, but
        stay word for word.
        """
        return [item for item in self.view if isinstance(item, int)]

    def to_json(self) -> str:
        """Return the record as ASCII text with a checksum; messages of an SDK's own class become
        dicts.

        Raises ``Unencodable`` for data that could not be read back unchanged.
        """
        try:
            body = json.dumps({**vars(self), "view": storable(self.view)})
        except (TypeError, ValueError, RecursionError) as error:
            raise Unencodable(
                f"a record cannot be stored as JSON: {type(error).__name__}"
            ) from error
        return f"{VERSION} {_checksum(body)} {body}"

    @classmethod
    def from_json(cls, text: str | bytes) -> Record | None:
        """Return the record; ``None`` if ``text`` has another version, was altered, or is not a
        record.
        """
        with suppress(Exception):  # The text may be anything else.
            version, checksum, body = (text if isinstance(text, str) else text.decode()).split(
                " ", 2
            )
            if version == str(VERSION) and checksum == _checksum(body):
                fields = json.loads(body, object_hook=restore_bytes)
                fields["view"] = tuple(fields["view"])
                return cls(**{**fields, "spent": tuple(fields.get("spent", ()))})
        return None


def _checksum(body: str) -> str:
    return blake2b(body.encode("ascii"), digest_size=16).hexdigest()


def footprint(record: Record) -> int:
    """Return an estimate of the bytes that a record keeps alive, rather too high than too low."""
    return _OVERHEAD + 2 * sys.getsizeof(repr(record.view))


def storable(value: Json) -> Json:
    """Return ``value`` in a form that JSON returns unchanged. Raises ``Unencodable``."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return {BYTES: base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [*map(storable, value)]
    fields = members(value)
    if not isinstance(fields, Mapping) or BYTES in fields or set(map(type, fields)) - {str}:
        raise Unencodable(f"{type(value).__name__} cannot be stored as JSON")
    return {key: storable(inner) for key, inner in fields.items()}


def restore_bytes(value: dict[str, Json]) -> Json:
    """Return the bytes that an object of JSON encodes; any other object unchanged."""
    if len(value) == 1 and isinstance(value.get(BYTES), str):
        return base64.b64decode(value[BYTES], validate=True)
    return value


def prefix_digest(form: MessageFormat, messages: Iterable[Message], scope: str = "") -> str:
    """Return the digest of the content of messages, in order, for calls of this scope.

    Raises only ``Unencodable``, for a message that cannot be distinguished from all others.
    """
    return prefix_digests(form, messages, 0, scope)[1]


def prefix_digests(
    form: MessageFormat, messages: Iterable[Message], count: int, scope: str = ""
) -> tuple[str, str]:
    """Return two digests: one of the first ``count`` messages together, one of all messages. Each
    message is read once. Raises the exceptions of ``prefix_digest``.
    """
    digest = sha256(marshal.dumps(scope, PLAIN))  # Most processors have instructions for it.
    part = digest
    for at, message in enumerate(messages):
        if at == count:
            part = digest.copy()
        digest.update(_encode(form, message))
    return part.hexdigest()[:32], digest.hexdigest()[:32]


def _encode(form: MessageFormat, message: Message) -> bytes:
    """Return the content of one message as bytes, for every digest. Raises ``Unencodable``."""
    if type(message) is dict and len(message) == 2:
        # The most common form needs no conversion.
        role = message.get("role")
        text = message.get("content")
        if type(role) is str and type(text) is str and text[:1] != "\0":
            return marshal.dumps({"content": text, "role": role}, PLAIN)
    return marshal.dumps(form.content(message), PLAIN)


def _message_digest(form: MessageFormat, message: Message) -> bytes:
    """Return the digest of the beginning and the length of one message. Raises as
    ``prefix_digest`` does.
    """
    data = _encode(form, message)
    return _digest([data[:_CLIP], len(data)])


def _digest(values: list[Any]) -> bytes:
    return blake2b(marshal.dumps(values, PLAIN), digest_size=16).digest()


def openings(form: MessageFormat, messages: Sequence[Message]) -> tuple[bytes, ...]:
    """Return a digest of each of the first messages of a conversation, system messages left out.
    They identify the conversation and its records. A message that cannot be encoded has an empty
    digest.
    """
    spoken = (message for message in messages if form.speaker(message) != "system")
    return tuple(message_key(form, message) for message in islice(spoken, _STARTS + _RUN - 1))


def message_key(form: MessageFormat, message: Message) -> bytes:
    """Return the digest of one message; empty if it cannot be encoded."""
    try:
        return _message_digest(form, message)
    except Unencodable:
        return b""


def conversation_digest(first: Sequence[bytes], count: int = 3) -> str:
    """Return the digest that identifies a conversation in events, made from the ``openings`` of its
    first messages.

    Many conversations begin with a common greeting, so one message is not enough. Empty if no
    message can be encoded.
    """
    digests = [*filter(None, first[:count])]
    return _digest(digests).hex()[:16] if digests else ""


def lookup_keys(scope: str, first: Sequence[bytes]) -> list[str]:
    """Return the keys of the records that may match a history with these ``openings``;
    ``record_key`` of each match is among them. Keys with a message that cannot be encoded are left
    out.
    """
    runs = [
        first[start : start + run]
        for start in range(_STARTS)
        for run in (1, _RUN)
        if start + run <= len(first)
    ]
    return [*dict.fromkeys(_digest([scope, *parts]).hex() for parts in runs if all(parts))]


def record_key(
    scope: str, form: MessageFormat, body: Sequence[Message], compacted: Sequence[int]
) -> str:
    """Return the key of a record.

    ``body`` is the history without system messages, ``compacted`` the positions in it that were
    compacted, ascending. Raises ``Unencodable``.
    """
    start = compacted[0] if compacted[0] < _STARTS else 0
    run = _RUN if [*compacted[:_RUN]] == [*range(start, start + _RUN)] else 1
    parts = (_message_digest(form, message) for message in body[start : start + run])
    return _digest([scope, *parts]).hex()
