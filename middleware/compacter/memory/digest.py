"""Digests of messages: by their content, not by marks such as ``cache_control``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice

from compacter.messages.fields import Json
from compacter.messages.format import Message, Wire

_STARTS = 4
"""How many places a lookup tries as the beginning of what was folded: pinned messages may stand before it."""
_RUN = 4
"""Messages that the beginning is known by, where as many were folded in a row: first messages repeat."""
_CLIP = 8_192
"""Characters of a text that count for the beginning; a lookup must not encode a book each time."""
_LOOK_AT = 64
"""Messages among which the beginning is looked for."""


def encoded(wire: Wire, message: Message) -> bytes:
    """The content of one message; no encoding is the beginning of another one."""
    return _bytes(wire.content(message))


def chain(parts: Iterable[bytes], start: str = "") -> str:
    """Digest of encoded messages, in order."""
    digest = blake2b(start.encode("utf-8", "surrogatepass"), digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def chain_digest(scope: str, wire: Wire, messages: Sequence[Message]) -> str:
    """Digest of the content of these messages, in order, for calls of this scope."""
    return chain((encoded(wire, message) for message in messages), scope)


def conversation_digest(wire: Wire, messages: Sequence[Message]) -> str:
    """What names a conversation in events: a digest of its first message that is no system message."""
    first = lead(wire, messages)
    return chain([_opening(wire, messages[first])])[:16] if first < len(messages) else ""


def is_system(wire: Wire, message: Message) -> bool:
    """Whether a message stands outside what is folded and counted."""
    return wire.speaker(message) == "system"


def lead(wire: Wire, messages: Sequence[Message]) -> int:
    """How many system messages a history begins with."""
    for index, message in enumerate(messages):
        if not is_system(wire, message):
            return index
    return len(messages)


def lookup_keys(scope: str, wire: Wire, messages: Sequence[Message], first: int) -> list[str]:
    """The keys under which records of this history may be.

    ``first`` is where its leading system messages end.
    """
    window = islice(messages, first, first + _LOOK_AT)
    spoken = (message for message in window if not is_system(wire, message))
    openings = [_opening(wire, message) for message in islice(spoken, _STARTS + _RUN - 1)]
    keys: dict[str, None] = {}
    for start in range(min(_STARTS, len(openings))):
        keys[chain(openings[start : start + 1], scope)] = None
        if start + _RUN <= len(openings):
            keys[chain(openings[start : start + _RUN], scope)] = None
    return list(keys)


def record_key(scope: str, wire: Wire, body: Sequence[Message], folded: Sequence[int]) -> str:
    """The key of a record: one of the lookup keys of every history that it matches.

    ``body`` is the history without system messages, ``folded`` the positions in it that were folded,
    ascending.
    """
    start = folded[0]
    if start >= _STARTS:
        return chain([_opening(wire, body[0])], scope)
    run = _RUN if folded[_RUN - 1 : _RUN] == [start + _RUN - 1] else 1
    return chain((_opening(wire, message) for message in body[start : start + run]), scope)


def _opening(wire: Wire, message: Message) -> bytes:
    return _bytes(_clipped(wire.content(message)))


def _clipped(value: Json) -> Json:
    if isinstance(value, str):
        return value if len(value) <= _CLIP else [len(value), value[:_CLIP]]
    if isinstance(value, dict):
        return {key: _clipped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_clipped(inner) for inner in value]
    return value


def _bytes(content: Json) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
