"""What a message is compared with to see, at the speed of C, whether it is still the one that was encoded before.

A copy of the message's structure, compared from the left: ``comparable(message) == message``. It shares the short texts
with the message and keeps none of the long ones, and it tells apart what has different digests but is equal to Python.
"""

from __future__ import annotations

from pydantic import BaseModel

from compacter.messages.fields import Json
from compacter.messages.format import Message

_LONG = 2_048
"""Characters from which a text is compared by its hash instead of being kept."""


def comparable(message: Message) -> Json:
    """What equals this message as long as it stays as it is, and equals nothing that has another digest."""
    try:
        return _frozen(message)
    except Exception:  # noqa: BLE001 - as in ``message_digest``
        return _DIFFERENT


def _frozen(value: Json) -> Json:
    kind = type(value)
    if kind is str or kind is bytes:
        return value if len(value) < _LONG else _Long(value)
    if value is None:
        return None
    if kind is dict:
        # As keys, 1 and True would be the same too.
        return {key: _frozen(inner) for key, inner in value.items()} if all(map(_is_text, value)) else _DIFFERENT
    if kind is list:
        return [_frozen(inner) for inner in value]
    if kind is tuple:
        return tuple(_frozen(inner) for inner in value)
    if kind in (bool, int, float):
        return _Number(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, BaseModel):
        return _Model(value)
    return _DIFFERENT


def _is_text(key: object) -> bool:
    return type(key) is str


class _Long:
    """Stands for a long text, by its length and its hash.

    Python makes the hash with a key of the process and keeps it in the text, so that comparing costs next to nothing.
    """

    __slots__ = ("_hash", "_kind", "_length")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: str | bytes) -> None:
        self._kind, self._length, self._hash = type(value), len(value), hash(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and len(other) == self._length and hash(other) == self._hash

    def __sizeof__(self) -> int:
        return 128


class _Number:
    """Stands for a number: to Python ``True == 1 == 1.0`` and ``0.0 == -0.0``."""

    __slots__ = ("_kind", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float) -> None:
        self._kind, self._value = type(value), value

    def __eq__(self, other: object) -> bool:
        if type(other) is not self._kind:
            return False
        return other == self._value and (self._kind is not float or repr(other) == repr(self._value))

    def __sizeof__(self) -> int:
        return 80


class _Model:
    """Stands for a pydantic model, by its class and its fields."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, model: BaseModel) -> None:
        self._kind = type(model)
        self._fields = _frozen(model.__dict__)
        self._extra = _frozen(model.__pydantic_extra__)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and self._fields == other.__dict__ and self._extra == other.__pydantic_extra__


class _Different:
    """Stands for what has to be encoded to be compared."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


_DIFFERENT = _Different()
