"""JSON as short lines of text: ``name: key: value, key: value``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

_RUN = 60
"""Characters of fields put on one line."""


def flatten(text: str) -> list[str] | None:
    """Return the lines of JSON ``text``, None when it is not an object or an array.

    An object's plain values stand on lines after its name; a value that the name says already is left out.
    Longer strings keep their own lines.
    """
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return None
    try:
        return list(_flat(json.loads(stripped), ""))
    except (ValueError, RecursionError):
        return None


def _flat(value: object, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _runs(
            name,
            [f"{key}: {_scalar(item)}" for key, item in value.items() if _is_plain(item) and str(item) not in name],
        )
        for key, item in value.items():
            if not _is_plain(item):
                yield from _flat(item, str(key))
    elif isinstance(value, list):
        yield from _runs(name, [_scalar(item) for item in value if _is_plain(item)])
        for item in value:
            if not _is_plain(item):
                yield from _flat(item, name)
    else:
        text = _scalar(value)
        inner = flatten(text)
        yield from text.splitlines() if inner is None else inner


def _is_plain(item: object) -> bool:
    """Whether a JSON value fits on a line beside others."""
    if isinstance(item, str):
        return len(item) <= _RUN and "\n" not in item
    return not (isinstance(item, (dict, list)) and item)


def _scalar(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _runs(name: str, fields: Iterable[str]) -> Iterator[str]:
    """Yield the fields joined into lines of bounded length, the first one after the object's name."""
    run = f"{name}:" if name else ""
    empty = True
    for field in fields:
        if not empty and len(run) + len(field) > _RUN:
            yield run
            run, empty = "", True
        run += (" " if run and empty else ", " if run else "") + field
        empty = False
    if not empty:
        yield run
