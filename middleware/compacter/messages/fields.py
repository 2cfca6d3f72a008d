"""Reading a field of a message that may be a dict or an SDK object."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from compacter.messages.format import Message


Json: TypeAlias = Any
"""JSON-like data: dicts, lists, strings, numbers, and bytes where an SDK holds them."""


class Unencodable(Exception):  # noqa: N818 - the name that the memory knows it by
    """A message's content cannot be encoded so that it is told apart from every other content."""


def field(item: Message, name: str) -> Json:
    """The field ``name`` of ``item``, or ``None`` where it has no such field."""
    if type(item) is dict or isinstance(item, Mapping):
        return item.get(name)
    return getattr(item, name, None)


def plain(item: Message) -> Json:
    """``item`` as JSON-like data: SDK objects (pydantic models and their like) become dicts; bytes stay."""
    if item is None or isinstance(item, (str, int, float, bool, bytes, bytearray)):
        return item
    if isinstance(item, (dict, Mapping)):
        return {key: plain(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [plain(value) for value in item]
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        # SDKs put plain data where their models say otherwise; pydantic would warn of it on each message.
        return plain(dump(exclude_none=True, warnings=False))
    members = getattr(item, "__dict__", None)
    if members is not None:
        return {key: plain(value) for key, value in members.items() if not key.startswith("_")}
    return str(item)


_MARKS = frozenset({"cache_control"})


def unmarked(value: Json) -> Json:
    """``value``, as :func:`plain` makes it, without cache marks and ``None`` fields; bytes as base64.

    So a message has the same content as dict and as SDK object, and wherever the caller puts the cache's
    mark.
    """
    if isinstance(value, dict):
        return {key: unmarked(inner) for key, inner in value.items() if inner is not None and key not in _MARKS}
    if isinstance(value, list):
        return [unmarked(inner) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return value


def replaced(item: Message, **updates: Json) -> Message:
    """A copy of ``item`` with some fields changed: a dict of a dict, the same class of a pydantic model."""
    if isinstance(item, (dict, Mapping)):
        return {**item, **updates}
    copy = getattr(item, "model_copy", None)
    if callable(copy):
        return copy(update=updates)
    return {**plain(item), **updates}


def json_text(value: Json) -> str:
    """``value`` as text: a string as it is, nothing as the empty string, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(unmarked(plain(value)), ensure_ascii=False)


def listed(content: Json) -> list[Json] | tuple[Json, ...]:
    """``content`` as a sequence of parts, whether the caller wrote a list, one part, or nothing."""
    if content is None:
        return ()
    return content if isinstance(content, (list, tuple)) else (content,)


def characters(value: Json) -> int:
    """Characters of every string, number and key inside a JSON-like value (a size without encoding it)."""
    if isinstance(value, str):
        return len(value)
    if value is None:
        return 0
    if isinstance(value, (dict, Mapping)):
        return sum(len(str(key)) + 4 + characters(inner) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return sum(map(characters, value)) + 2 * len(value)
    if isinstance(value, (bool, int, float)):
        return len(str(value))
    if isinstance(value, (bytes, bytearray)):
        return 0
    return characters(plain(value))
