"""JSON bodies that may be large, read and written message by message.

Python's JSON scanner is one C call during which no other thread runs: a body of 59 MB stops every
stream of the server, whichever thread parses it. So only values below the second level (one
message) are left to it, and between two of them other threads get their turn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from json.decoder import JSONDecoder
from typing import Any

# The standard library's own parser of one level; typeshed does not list its functions.
_DECODER: Any = import_module("json.decoder")
# Size from which a body is parsed in a thread, in bytes: below, parsing takes about a millisecond,
# and the way to a thread and back a tenth of that.
_LARGE = 128 << 10
# Python's scanner, in C: returns the value at an index, and the index after it.
_SCAN: Callable[[str, int], tuple[Any, int]] = JSONDecoder().scan_once  # type: ignore[attr-defined]


async def read(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body without stopping the event loop; ``None`` if none."""
    return await asyncio.to_thread(parse, raw) if len(raw) > _LARGE else parse(raw)


async def write(body: Mapping[str, Any], size: int) -> bytes:
    """Return a body as JSON, without stopping the event loop; ``size`` is that of the original."""
    return await asyncio.to_thread(dump, body) if size > _LARGE else dump(body)


def parse(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body, as ``json.loads`` does; ``None`` if it has none."""
    try:
        if len(raw) <= _LARGE:
            found = json.loads(raw)
            return found if isinstance(found, dict) else None
        text = raw.decode(json.detect_encoding(raw), "surrogatepass")
        start = _DECODER.WHITESPACE.match(text, 0).end()
        if text[start : start + 1] != "{":
            return None
        members: dict[str, Any]
        members, end = _DECODER.JSONObject((text, start + 1), True, _member, None, None)  # noqa: FBT003
        return members if _DECODER.WHITESPACE.match(text, end).end() == len(text) else None
    except (ValueError, RecursionError, StopIteration):
        return None


def _member(text: str, at: int) -> tuple[Any, int]:
    if text[at : at + 1] == "[":
        items: tuple[list[Any], int] = _DECODER.JSONArray((text, at + 1), _SCAN)
        return items
    return _SCAN(text, at)


def dump(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON, as ``json.dumps`` does."""
    members = (f"{json.dumps(name)}: {_value(value)}" for name, value in body.items())
    return f"{{{', '.join(members)}}}".encode()


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(json.dumps, value))}]"
    return json.dumps(value)
