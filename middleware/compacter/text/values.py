"""Read JSON as values in order, each with its path and its record.

Tools answer in JSON of any depth. A reader needs a value with the key that names it, and the values
of one record together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Json = dict[str, Any] | list[Any]


# Keys of a path that are kept: enough to know a value by, and deep JSON stays linear.
_STEPS = 3


class Value(NamedTuple):
    """A text, a number or a truth value inside JSON."""

    path: tuple[str, ...]
    """Keys and positions from the outside in, the last three."""
    text: str
    """The text itself, or the number or truth value as JSON writes it."""
    record: int
    """Number of the object or list that holds it directly."""


def parse(text: str) -> Json | None:
    """Return the object or list that ``text`` is, or ``None`` if it is not JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def values(data: Json) -> Iterator[Value]:
    """Yield the values inside ``data`` in order, without ``null`` and empty texts. JSON inside a
    text is read too.
    """
    waiting: list[tuple[tuple[str, ...], Any, int]] = [((), data, 0)]
    records = 0
    while waiting:
        path, item, record = waiting.pop()
        if isinstance(item, str) and (inner := parse(item)) is not None:
            item = inner
        if isinstance(item, (dict, list)):
            records += 1
            members = item.items() if isinstance(item, dict) else enumerate(item)
            inside = [((*path, str(key))[-_STEPS:], member, records) for key, member in members]
            waiting.extend(reversed(inside))
        elif item is not None and item != "":
            text = item if isinstance(item, str) else json.dumps(item)
            yield Value(path, text, record)
