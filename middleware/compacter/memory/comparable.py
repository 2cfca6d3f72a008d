"""Copies of messages that are compared with later ones in C, and keep no long text alive."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pydantic import BaseModel

from compacter.memory.record import footprint
from compacter.messages.fields import Json
from compacter.messages.format import Message

# Length in characters from which a text is compared by its hash instead of being kept.
_LONG = 2_048

SHORT = 400
"""Size in bytes of a message with a role and a text, without the text, and of a digest."""


def comparables(messages: Iterable[Message]) -> tuple[list[Json], int]:
    """Return comparable copies of these messages, and their size in bytes."""
    found: list[Json] = []
    size = 0
    for message in messages:
        text = message.get("content") if type(message) is dict and len(message) == 2 else None
        if type(text) is str and len(text) < _LONG and type(message.get("role")) is str:
            found.append(message.copy())
            size += SHORT + sys.getsizeof(text)
        else:
            found.append(_comparable(message))
            size += footprint(found[-1])
    return found, size


# Placeholder for a value that has to be encoded to be compared; not equal to any message.
_DIFFERENT = object()


def _comparable(value: Json) -> Json:
    """Return an object that equals this value until it changes, and no value with another digest;
    compared in C.

    It is a copy of the structure, for the left side: ``_comparable(message) == message``. It shares
    the short texts with the message, does not keep the long ones, and distinguishes values like 1
    and ``True``.
    """
    kind = type(value)
    if kind is str or kind is bytes:
        return value if len(value) < _LONG else _Long(value)
    if value is None:
        return None
    if kind is dict:
        # As keys, 1 and True are equal too.
        return (
            {key: _comparable(inner) for key, inner in value.items()}
            if set(map(type, value)) <= {str}
            else _DIFFERENT
        )
    if kind is list:
        return [_comparable(inner) for inner in value]
    if kind is tuple:
        return tuple(_comparable(inner) for inner in value)
    if kind in (bool, int, float):
        return _Number(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, BaseModel):
        return _Model(value)
    return _DIFFERENT


class _Long:
    """Comparable copy of a long text: its length and its hash.

    Python keys the hash to the process and caches it in the text, so comparing costs next to
    nothing.
    """

    __slots__ = ("_hash", "_kind", "_length")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: str | bytes) -> None:
        self._kind = type(value)
        self._length = len(value)
        self._hash = hash(value)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is self._kind and len(other) == self._length and hash(other) == self._hash
        )

    def __sizeof__(self) -> int:
        return 128


class _Number:
    """Comparable copy of a number, as in Python ``True == 1 == 1.0`` and ``0.0 == -0.0``."""

    __slots__ = ("_kind", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float) -> None:
        self._kind = type(value)
        self._value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not self._kind:
            return False
        return other == self._value and (
            self._kind is not float or repr(other) == repr(self._value)
        )

    def __sizeof__(self) -> int:
        return 80


class _Model:
    """Comparable copy of a pydantic model: its class and its fields."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, model: BaseModel) -> None:
        self._kind = type(model)
        self._fields = _comparable(model.__dict__)
        self._extra = _comparable(model.__pydantic_extra__)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is self._kind
            and self._fields == other.__dict__
            and self._extra == other.__pydantic_extra__
        )
