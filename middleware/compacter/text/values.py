"""Read JSON, also inside the texts of JSON: tools answer in it, of any depth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any] | list[Any]


def parse(text: str) -> Json | None:
    """Return the object or list that ``text`` is, or ``None`` if it is not JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def records(text: str) -> Iterator[Json]:
    """Yield each object and list inside a text that is JSON, the outer ones first."""
    waiting: list[Any] = [text]
    while waiting:
        item = waiting.pop()
        record = parse(item) if isinstance(item, str) else item
        if isinstance(record, (dict, list)):
            yield record
            waiting += reversed(list(record.values()) if isinstance(record, dict) else record)
