"""Reading a field of a message that may be a dict or an SDK object, and encoding a message for a digest."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import lru_cache
from itertools import chain
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

if TYPE_CHECKING:
    from compacter.messages.format import Message


Json: TypeAlias = Any
"""JSON-like data: dicts, lists, strings, numbers, and bytes where an SDK holds them."""

_SCALARS = frozenset({str, type(None), bool, int, float})
_PLAIN = _SCALARS | {list, dict}
_JSON = json.JSONEncoder(ensure_ascii=False)


class Unencodable(Exception):  # noqa: N818 - the name that the memory knows it by
    """A message's content cannot be encoded so that it differs from the encoding of every other content."""


def field(item: Message, name: str) -> Json:
    """The field ``name`` of ``item``, or ``None`` where it has no such field or cannot give it.

    A member of an enumeration of texts, and any other subclass of ``str``, is returned as plain text: such members do
    not always have the hash of their text, and are then not found in a dict.
    """
    kind: Any = type(item)
    if kind is dict:
        value = item.get(name)
    elif item is None:
        return None
    else:
        try:
            read = _reader(kind, name)
            value = getattr(item, name, None) if read is None else read(item)
        except Exception:  # noqa: BLE001 - a property of somebody else's class
            return None
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Enum) and isinstance(value.value, str):
        return str.__str__(value.value)
    return value


@lru_cache(4096)
def _reader(kind: type, name: str) -> Callable[[Any], Any] | None:
    """How objects of this class are read faster than by ``getattr``; ``None`` where that is the way.

    ``getattr`` for a field that a pydantic model does not have takes microseconds, and replies are asked for many.
    """
    if issubclass(kind, Mapping):
        return methodcaller("get", name)
    if not issubclass(kind, BaseModel) or hasattr(kind, name):
        return None
    return lambda item: item.__dict__[name] if name in item.__dict__ else (item.__pydantic_extra__ or {}).get(name)


def word(item: Message, name: str) -> str | None:
    """The field ``name`` where it is text, such as a role or a type, else ``None``."""
    value = field(item, name)
    return value if type(value) is str else None


def text_field(item: Message, name: str) -> str:
    """The field ``name`` as text; empty where there is none."""
    value = field(item, name)
    if type(value) is str:
        return value
    return "" if value is None else str(value)


def plain(item: Message, *, shown: bool = False) -> Json:
    """``item`` as JSON-like data: SDK objects (pydantic models and their like) become dicts; bytes stay.

    However deeply it is nested, and also where it holds itself. Made to be read, not to be compared: see
    :func:`faithful`. With ``shown`` cache marks and ``None`` fields are left out, and bytes become base64 text.
    """
    made: dict[int, tuple[object, Json]] = {}  # The objects too: what is gone may leave its id to another one.
    top = [item]
    waiting: list[Json] = [top]
    while waiting:
        container = waiting.pop()
        for key, value in container.items() if type(container) is dict else enumerate(container):
            if type(value) in _SCALARS:
                continue
            known = made.get(id(value))
            if known is None:
                known = made[id(value)] = value, _opened(value, shown=shown)
                if type(known[1]) in (dict, list):
                    waiting.append(known[1])
            container[key] = known[1]
    return top[0]


def _opened(item: object, *, shown: bool) -> Json:
    """A new dict or list of what an item holds, or the item where that is nothing."""
    while isinstance(item, Enum):
        item = item.value
    if isinstance(item, (bytes, bytearray)) and shown:
        return base64.b64encode(item).decode("ascii")
    if item is None or isinstance(item, (str, int, float, bytes, bytearray)):
        return item
    if isinstance(item, (list, tuple)):
        return list(item)
    if not isinstance(item, Mapping):
        dump, members = getattr(item, "model_dump", None), getattr(item, "__dict__", None)
        if callable(dump):
            # SDKs put plain data where their models say otherwise; pydantic would warn of it on each message.
            return _opened(dump(exclude_none=True, warnings=False), shown=shown)
        if members is None:
            return str(item)
        item = {key: value for key, value in members.items() if not key.startswith("_")}
    if shown:
        return {key: value for key, value in item.items() if value is not None and key not in _MARKS}
    return dict(item)


_MARKS = frozenset({"cache_control"})
_DEEPEST = 100
"""Levels of nesting that are encoded; far fewer than Python's recursion limit allows."""
_LARGEST = 8_192
"""Bits of the largest number that is encoded; Python refuses to write numbers of more than 4,300 digits."""
_SDKS = frozenset({"openai", "litellm", "anthropic", "google"})
"""Packages whose private attributes hold bookkeeping only (request ids, timings)."""
_EMPTY: tuple[object, ...] = (None, "", (), [], {}, frozenset())


def faithful(item: Message, own: frozenset[str] = frozenset()) -> Json:
    """``item`` as data of dicts, lists, texts and whole numbers that equals that of no other content.

    Equal data means equal content, by ``==`` and as JSON: flags and fractions become marked texts, since ``True == 1``
    and ``1.0 == 1``. Keys are in order. Cache marks and ``None`` fields are left out and bytes are base64 text, so that
    a message has one content as dict and as SDK object, and wherever the caller puts the mark of the cache. Below the
    keys ``own``, which hold what a tool or a model made, everything counts.

    Raises :class:`Unencodable` for objects with data that cannot be seen (behind properties, in private attributes),
    keys that are not text, more than 100 levels of nesting and numbers of more than 8,192 bits.
    """
    try:
        return _faithful(item, own, 0, False)  # noqa: FBT003
    except Unencodable:
        raise
    except Exception as error:  # whatever somebody else's class does when it is read
        raise Unencodable(f"{type(item).__name__} cannot be read: {type(error).__name__}") from error


def _faithful(value: object, own: frozenset[str], depth: int, inside: bool) -> Json:  # noqa: FBT001 - not public
    if type(value) is not dict and (value is None or isinstance(value, (str, int, float, bytes, bytearray, Enum))):
        return _scalar(value)
    if depth > _DEEPEST:
        raise Unencodable("nested too deeply")
    if isinstance(value, (list, tuple)):
        return [_faithful(inner, own, depth + 1, inside) for inner in value]
    members = value.items() if isinstance(value, (dict, Mapping)) else _members(value)
    found: dict[str, Json] = {}
    for key, inner in sorted(members):
        if not isinstance(key, str):
            raise Unencodable(f"a key is {type(key).__name__}, not text")
        name = str.__str__(key)
        if not inside and (inner is None or (name in _MARKS and isinstance(inner, Mapping))):
            continue
        if name in found:
            raise Unencodable("two keys have one text")
        if type(inner) is str and inner[:1] != "\0":
            found[name] = inner
        else:
            found[name] = _faithful(inner, own, depth + 1, inside or name in own)
    return found


def _scalar(value: object) -> Json:
    """A text, number or flag; marked where Python takes it for equal to something else."""
    if isinstance(value, str):
        text = str.__str__(value)
        return f"\0{text}" if text[:1] == "\0" else text
    if isinstance(value, bool):
        return "\0true" if value else "\0false"
    if isinstance(value, int):
        if value.bit_length() > _LARGEST:
            raise Unencodable("a number is too large")
        return int(value)
    if isinstance(value, float):
        return f"\0{float(value)!r}"
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return _scalar(value.value) if isinstance(value, Enum) else None


def _members(item: object) -> Iterator[tuple[str, object]]:
    """Names and values of an object's data. Raises ``Unencodable`` where it may hold more than can be seen."""
    kind: Any = type(item)
    if isinstance(item, type) or callable(item):
        raise Unencodable(f"{kind.__name__} is not data")
    fields = getattr(kind, "model_fields", None)
    if isinstance(fields, Mapping):
        private = getattr(item, "__pydantic_private__", None) or {}
        if kind.__module__.partition(".")[0] not in _SDKS and any(value not in _EMPTY for value in private.values()):
            raise Unencodable(f"{kind.__name__} has private attributes")
        extra = getattr(item, "__pydantic_extra__", None) or {}
        return chain(((name, value) for name, value in vars(item).items() if name in fields), extra.items())
    found: dict[str, object] = {}
    for ancestor in kind.__mro__[-2::-1]:
        found.update(_declared(item, ancestor))
    found.update(getattr(item, "__dict__", {}))
    hidden = [name for name, value in found.items() if name.startswith("_") and value not in _EMPTY]
    if hidden or not found:
        raise Unencodable(f"{kind.__name__} has data that cannot be seen")
    return iter((name, value) for name, value in found.items() if not name.startswith("_"))


def _declared(item: object, ancestor: type) -> Iterator[tuple[str, object]]:
    """What a class and its slots say of an object."""
    members = vars(ancestor)
    slots = members.get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else tuple(slots):
        if name.startswith("_") and name not in ("__dict__", "__weakref__"):
            raise Unencodable(f"{ancestor.__name__} has private attributes")
        if not name.startswith("_") and hasattr(item, name):
            yield name, getattr(item, name)
    if not is_dataclass(ancestor):
        # What all objects of a class have in common tells it apart from another class.
        for name, value in members.items():
            if not name.startswith("_") and isinstance(value, (str, int, float, list, tuple, dict)):
                yield name, value


def replaced(item: Message, **updates: Json) -> Message:
    """A copy of ``item`` with some fields changed: a dict of a dict, the same class of a pydantic model."""
    if isinstance(item, Mapping):
        return {**item, **updates}
    copy = getattr(item, "model_copy", None)
    if callable(copy):
        return copy(update=updates)
    return {**plain(item), **updates}


def json_text(value: Json) -> str:
    """``value`` as text: a string as it is, nothing as the empty string, anything else as JSON.

    What cannot be JSON (nested too deeply, a number without end, an object of no known kind) is the texts it holds.
    """
    if type(value) is str or value is None:
        return value or ""
    if isinstance(value, str):
        return str(value)
    try:
        return _JSON.encode(plain(value, shown=True))
    except (RecursionError, TypeError, ValueError):
        return " ".join(_leaves(value))


def flat(text: str) -> str:
    """``text`` on one line, white space folded."""
    return " ".join(text.split())


def listed(content: Json) -> list[Json] | tuple[Json, ...]:
    """``content`` as a sequence of parts, whether the caller wrote a list, one part, or nothing."""
    if content is None:
        return ()
    return content if isinstance(content, (list, tuple)) else (content,)


def characters(value: Json) -> int:
    """Characters of every string, number and key inside a JSON-like value (a size without encoding it)."""
    try:
        return _characters(value)
    except (RecursionError, ValueError):
        return sum(map(len, _leaves(value)))


def _characters(value: Json) -> int:
    if isinstance(value, str):
        return len(value)
    if value is None:
        return 0
    if isinstance(value, Mapping):
        return sum(len(str(key)) + 4 + _characters(inner) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return sum(map(_characters, value)) + 2 * len(value)
    if isinstance(value, (bool, int, float)):
        return len(str(value))
    if isinstance(value, (bytes, bytearray)):
        return 0
    return _characters(plain(value))


def _leaves(value: Json) -> Iterator[str]:
    """The texts and keys of a value that is nested too deeply for recursion, or holds itself; in order."""
    waiting: list[Json] = [value]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield str.__str__(item)
        elif isinstance(item, Mapping) and id(item) not in seen:
            seen.add(id(item))
            yield from map(str, item)
            waiting.extend(reversed(list(item.values())))
        elif isinstance(item, (list, tuple)) and id(item) not in seen:
            seen.add(id(item))
            waiting.extend(reversed(item))
        elif isinstance(item, int):
            yield str(item) if item.bit_length() < _LARGEST else hex(item)
