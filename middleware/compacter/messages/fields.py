"""Read the fields of messages, which are dicts or SDK objects, and encode a message for a
digest.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias

from pydantic import BaseModel

Json: TypeAlias = Any
"""JSON-like data: dicts, lists, strings, numbers, and bytes of SDK objects."""

_SCALARS = frozenset({str, type(None), bool, int, float})
_PLAIN = _SCALARS | {list, dict}
_BYTES = (bytes, bytearray)


class Unencodable(Exception):  # noqa: N818 - the established name in the memory
    """A message cannot be encoded as text in a way that distinguishes it from all other
    messages.
    """


def field(item: Json, name: str) -> Json:
    """Return the field ``name`` of ``item``, or ``None`` if it has none or reading it raises.

    Members of string enumerations and other subclasses of ``str`` are returned as plain strings, as
    their hash may differ from that of the string.
    """
    kind: Any = type(item)
    if kind is dict:
        value = item.get(name)
    elif item is None or isinstance(item, str):
        return None
    else:
        try:
            if isinstance(item, BaseModel):
                # ``getattr`` takes microseconds for a field that is missing, and many are.
                value = item.__dict__.get(name)
                if value is None:
                    value = (item.__pydantic_extra__ or {}).get(name)
            elif isinstance(item, Mapping):
                value = item.get(name)
            else:
                value = getattr(item, name, None)
        except Exception:  # noqa: BLE001 - a property of a foreign class
            return None
    # By far the most common: the checks below take longer than the reading.
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Enum) and isinstance(value.value, str):
        return str.__str__(value.value)
    return value


@lru_cache(256)
def camel(name: str) -> str:
    """Convert a name from snake case to camel case (``max_tokens`` to ``maxTokens``), and return
    it.
    """
    head, *others = name.split("_")
    return head + "".join(map(str.capitalize, others))


def dig(thing: object, path: str) -> Json:
    """Return the value at a path, else ``None``.

    A path has names of members with dots between them. ``0`` is the first item of a list, and an
    empty path leads to the object itself. A name in snake case also finds the member in camel case.
    """
    value: Json = thing
    for name in path.split(".") if path else ():
        if name == "0":
            value = value[0] if value else None
            continue
        inner = field(value, name)
        value = field(value, camel(name)) if inner is None and "_" in name else inner
    return value


def first(thing: object, paths: Iterable[str]) -> Json:
    """Return the value at the first of these paths that has one, else an empty value at one of
    them, or ``None``.
    """
    empty = None
    for path in paths:
        value = dig(thing, path)
        if value:
            return value
        empty = value if empty is None else empty
    return empty


def word(item: Json, name: str) -> str:
    """Return the field ``name`` of ``item`` if it is a string, such as a role or a type; otherwise
    return an empty string.
    """
    value = field(item, name)
    return value if type(value) is str else ""


def members(item: Json) -> Json:
    """Return the members of an object as a dict. Without members, return a value for JSON: the
    value of an enumeration, base64 for bytes, else a text.
    """
    if isinstance(item, Enum):
        return item.value
    if isinstance(item, _BYTES):
        return base64.b64encode(item).decode("ascii")
    if isinstance(item, Mapping):
        return dict(item)
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        # SDKs store data that does not match their models' types, of which pydantic would warn.
        return dump(exclude_none=True, warnings=False)
    inner = getattr(item, "__dict__", None)
    if inner is None:
        return str(item)
    return {key: value for key, value in inner.items() if not key.startswith("_")}


_MARKS = frozenset({"cache_control", "cachePoint"})
# Largest depth of nesting that is encoded, well below Python's recursion limit.
_DEEPEST = 100


def faithful(
    value: Json, own: frozenset[str] = frozenset(), depth: int = 0, *, inside: bool = False
) -> Json:
    """Return ``value`` as dicts, lists, texts and numbers, whose JSON differs for different
    contents.

    Keys are sorted. Cache marks and empty fields are left out and bytes become base64, so that a
    dict and an SDK object with the same content are equal, wherever the caller sets cache marks.
    Below the keys ``own``, which contain data of a tool or a model, nothing is left out.

    Raises :class:`Unencodable` for objects that may have hidden data (all but pydantic models
    without private attributes, and dataclasses) and more than 100 levels of nesting; and whatever a
    foreign class or a key that is not a string raises.
    """
    while isinstance(value, (Enum, *_BYTES)):
        value = members(value)
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        # Also of a subclass, such as NumPy's.
        return int(value) if isinstance(value, int) else float(value)
    if depth > _DEEPEST:
        raise Unencodable("nested too deeply")
    if isinstance(value, (list, tuple)):
        items = [faithful(inner, own, depth + 1, inside=inside) for inner in value]
        return [item for item in items if inside or item != {}]
    data: dict[str, Json] = {}
    for key, inner in sorted(_fields(value).items()):
        name = str.__str__(key)  # Raises for a key that is not a string.
        is_inside = inside or name in own
        if not inside and (inner is None or (name in _MARKS and isinstance(inner, Mapping))):
            continue
        is_plain = type(inner) is str  # By far the most common.
        read = inner if is_plain else faithful(inner, own, depth + 1, inside=is_inside)
        if is_inside or read not in ([], {}):
            data[name] = read
    return data


def _fields(item: object) -> Mapping[str, object]:
    """Return names and values of an object's data. Raises ``Unencodable`` if it may have hidden
    data.
    """
    if isinstance(item, Mapping):
        return item
    if is_dataclass(item) and not isinstance(item, type):
        return {each.name: getattr(item, each.name) for each in fields(item)}
    if not isinstance(item, BaseModel):
        raise Unencodable(f"{type(item).__name__} is not a dict, a pydantic model or a dataclass")
    kind = type(item)
    if any((item.__pydantic_private__ or {}).values()):
        raise Unencodable(f"{kind.__name__} has private attributes")
    # Computed fields of a model are beside its declared fields.
    declared = {name: value for name, value in vars(item).items() if name in kind.model_fields}
    return {**declared, **(item.__pydantic_extra__ or {})}


def replaced(item: Json, **updates: Json) -> Json:
    """Return a copy of ``item`` with some fields changed: of the same class for a pydantic model,
    else a dict.
    """
    copy = getattr(item, "model_copy", None)
    return copy(update=updates) if callable(copy) else {**members(item), **updates}


def without(item: Json, *names: str) -> Json:
    """Return ``item`` without these fields: the item itself if it has none of them, else a dict."""
    if all(field(item, name) is None for name in names):
        return item
    return {name: value for name, value in members(item).items() if name not in names}


_JSON = json.JSONEncoder(ensure_ascii=False, default=members)


def json_text(value: Json) -> str:
    """Return ``value`` as text: a string unchanged, ``None`` as an empty string, anything else as
    JSON.

    A value that JSON cannot encode (nested too deeply, too large a number), and no provider takes,
    becomes the name of its type.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    try:
        return _JSON.encode(value)
    except Exception:  # noqa: BLE001 - a foreign object may raise anything
        return f"[{type(value).__name__}]"


def flat(text: str) -> str:
    """Return ``text`` on one line, with white space collapsed."""
    return " ".join(text.split())


def text_of(value: Json) -> str | None:
    """Return the text of a string, a block or a list of blocks; ``None`` if there is no text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "".join(filter(None, map(text_of, value)))
    text = field(value, "text")
    return text if isinstance(text, str) else None


def listed(content: Json) -> list[Json] | tuple[Json, ...]:
    """Return ``content`` as a sequence of parts, whether it is a list, a single part, or
    ``None``.
    """
    if content is None:
        return ()
    return content if isinstance(content, (list, tuple)) else (content,)
