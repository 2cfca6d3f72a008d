"""Naming histories and messages by digests of their content.

Equal digests mean equal content: what cannot be encoded faithfully has none. System messages stay verbatim in every
view and may change with every call, so they are in no digest of a history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from uuid import uuid4

from compacter.memory.record import Record
from compacter.messages.fields import Json, Unencodable
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Kind

_STARTS = 4
"""How many places a lookup tries as the beginning of what was folded: pinned messages may stand before it."""
_RUN = 4
"""Messages that the beginning is known by, where as many were folded in a row: first messages repeat."""
_CLIP = 8_192
"""Characters of a text that count for the beginning; a lookup must not encode a book each time."""
_LOOK_AT = 64
"""Messages among which the beginning is looked for."""
_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True)


def message_digest(form: MessageFormat, message: Message, *, clipped: bool = False) -> bytes:
    """Digest of the content of one message; of the beginnings of its texts only when ``clipped``.

    Raises ``Unencodable``, and nothing else, for a message that cannot be told apart from every other one.
    """
    try:
        content = form.content(message)
        text = _JSON.encode(_clipped(content) if clipped else content)
    except Unencodable:
        raise
    except Exception as error:  # whatever somebody else's class does when it is read
        raise Unencodable(f"{type(message).__name__} cannot be encoded: {type(error).__name__}") from error
    return _digest(text.encode("utf-8", "surrogatepass"))


def chain(parts: Iterable[bytes], scope: str = "") -> str:
    """Digest of message digests, in order, for calls of this scope."""
    return _digest(b"".join((_digest(scope.encode("utf-8", "surrogatepass")), *parts))).hex()


def flight_key(scope: str, form: MessageFormat, messages: Sequence[Message]) -> str:
    """Names the compaction of these messages among those under way; unique for what cannot be encoded."""
    try:
        return chain([message_digest(form, message) for message in messages], scope)
    except Unencodable:
        return uuid4().hex


def conversation_digest(form: MessageFormat, messages: Sequence[Message]) -> str:
    """What names a conversation in events: a digest of its first message that is no system message.

    Empty where there is none, and for one that cannot be encoded.
    """
    first = lead(form, messages)
    if first == len(messages):
        return ""
    try:
        return chain([message_digest(form, messages[first], clipped=True)])[:16]
    except Unencodable:
        return ""


def is_system(form: MessageFormat, message: Message) -> bool:
    """Whether a message stands outside what is folded and counted."""
    return form.speaker(message) == "system"


def is_user(form: MessageFormat, message: Message) -> bool:
    """Whether it is a genuine user message."""
    return form.outline([message]).kinds[0] is Kind.USER


def lead(form: MessageFormat, messages: Sequence[Message]) -> int:
    """How many system messages a history begins with."""
    for index, message in enumerate(messages):
        if not is_system(form, message):
            return index
    return len(messages)


def lookup_keys(scope: str, form: MessageFormat, messages: Sequence[Message], first: int) -> list[str]:
    """The keys under which records of this history may be.

    ``first`` is where its leading system messages end. Messages that cannot be encoded begin nothing.
    """
    window = islice(messages, first, first + _LOOK_AT)
    spoken = [message for message in window if not is_system(form, message)]
    openings: list[bytes] = []
    for message in islice(spoken, _STARTS + _RUN - 1):
        try:
            openings.append(message_digest(form, message, clipped=True))
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
    """The key of a record: one of the lookup keys of every history that it matches.

    ``body`` is the history without system messages, ``folded`` the positions in it that were folded, ascending.
    Raises ``Unencodable``.
    """
    start, run = folded[0], 1
    if start >= _STARTS:
        start = 0
    elif folded[_RUN - 1 : _RUN] == [start + _RUN - 1]:
        run = _RUN
    return chain([message_digest(form, message, clipped=True) for message in body[start : start + run]], scope)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _clipped(value: Json) -> Json:
    if isinstance(value, str):
        return value if len(value) <= _CLIP else [len(value), value[:_CLIP]]
    if isinstance(value, dict):
        return {key: _clipped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_clipped(inner) for inner in value]
    return value


class Sent:
    """One history as it was sent; each message is encoded once, however many records are tried."""

    def __init__(self, form: MessageFormat, messages: Sequence[Message]) -> None:
        self.form = form
        self.messages = messages
        self.first = lead(form, messages)
        """Where its leading system messages end."""
        self.keys: list[str] = []
        """What records of it are looked up by."""
        self._digests: dict[int, bytes] = {}
        self._body: list[int] = []

    @property
    def body(self) -> list[int]:
        """The indexes of the messages that are not system messages: positions of a record count these."""
        if not self._body:
            self._body = [index for index, message in enumerate(self.messages) if not is_system(self.form, message)]
        return self._body

    def digest(self, index: int) -> bytes:
        """Digest of the message at this index. Raises ``Unencodable``."""
        found = self._digests.get(index)
        if found is None:
            found = self._digests[index] = message_digest(self.form, self.messages[index])
        return found

    def matches(self, record: Record) -> bool:
        """Whether the record folded what this history holds in its place. Raises ``Unencodable``."""
        body = self.body
        if len(body) < record.boundary:
            return False
        kept = set(record.kept)
        folded = [body[position] for position in range(record.boundary) if position not in kept]
        if chain([self.digest(folded[-1])]) != record.last:
            return False
        return chain(map(self.digest, folded)) == record.digest
