"""Reading a field of a message that may be a dict or an SDK object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compacter.history.message import Message


def field(item: Message, name: str) -> Any:
    """The field ``name`` of ``item``, or ``None`` where it has no such field."""
    if isinstance(item, Mapping):
        return item.get(name)
    return getattr(item, name, None)


def plain(item: Any) -> Any:
    """``item`` as JSON-like data: SDK objects (pydantic models and their like) become dicts."""
    if item is None or isinstance(item, (str, int, float, bool)):
        return item
    if isinstance(item, Mapping):
        return {key: plain(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [plain(value) for value in item]
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        return plain(dump(exclude_none=True))
    if isinstance(item, (bytes, bytearray)):
        return {"bytes": len(item)}
    members = getattr(item, "__dict__", None)
    if members is not None:
        return {key: plain(value) for key, value in members.items() if not key.startswith("_")}
    return str(item)


def characters(value: Any) -> int:
    """Characters of every string, number and key inside a JSON-like value (a size without encoding it)."""
    if isinstance(value, str):
        return len(value)
    if value is None:
        return 0
    if isinstance(value, Mapping):
        return sum(len(str(key)) + 4 + characters(inner) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return sum(characters(inner) for inner in value) + 2 * len(value)
    if isinstance(value, (bool, int, float)):
        return len(str(value))
    if isinstance(value, (bytes, bytearray)):
        return 0
    return characters(plain(value))
