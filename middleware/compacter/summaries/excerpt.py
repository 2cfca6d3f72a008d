"""Beginning and end of one long text, with a receipt of what was left out between them."""

from __future__ import annotations

import json
import re

from compacter.summaries.chunks import boundary

_DATA_URL = re.compile(r"data:[\w.+/-]+;base64,[A-Za-z0-9+/=]*")
_RECEIPT = " […{left:,} characters left out…] "
_RECEIPT_SIZE = 44
_SHORTEST = 40
_HEAD_SHARE = 0.6


def shorten(text: str, size: int) -> str:
    """``text`` in at most ``size`` characters (or a little over where a JSON structure alone is larger).

    Cut between characters as people see them, never inside a data URL. A text that is a JSON value stays one: its long
    strings are shortened, its long lists lose their middle.
    """
    if len(text) <= size:
        return text
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, (dict, list)):
            short = _json(value, size)
            if len(short) < len(text):
                return short
    return _words(text, size)


def _words(text: str, size: int) -> str:
    room = max(size - _RECEIPT_SIZE, _SHORTEST)
    head = boundary(text, int(room * _HEAD_SHARE))
    tail = len(text) - boundary_back(text, room - head)
    for match in _DATA_URL.finditer(text):
        start, end = match.span()
        if start < head < end:
            head = start
        if start < tail < end:
            tail = end
    return text[:head].rstrip() + _RECEIPT.format(left=tail - head) + text[tail:].lstrip()


def boundary_back(text: str, count: int) -> int:
    """How many characters at the end make at most ``count``, cut at a boundary."""
    at = boundary(text, len(text) - count)
    return len(text) - at if at >= len(text) - count else len(text) - _after(text, len(text) - count)


def _after(text: str, index: int) -> int:
    while index < len(text) and boundary(text, index) != index:
        index += 1
    return index


def _json(value: object, size: int) -> str:
    longest, items = max(size // 2, _SHORTEST), 200
    short = json.dumps(value, ensure_ascii=False)
    while len(short) > size and (longest > _SHORTEST or items > 1):
        short = json.dumps(_pruned(value, longest, items), ensure_ascii=False)
        longest, items = max(longest // 2, _SHORTEST), max(items // 2, 1)
    return short


def _pruned(value: object, longest: int, items: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= longest + _RECEIPT_SIZE else _words(value, longest)
    if isinstance(value, dict):
        kept = list(value.items())
        left = len(kept) - items * 2
        pruned = {key: _pruned(inner, longest, items) for key, inner in kept[: items * 2]}
        return {**pruned, "…": f"{left} more entries left out"} if left > 0 else pruned
    if isinstance(value, list) and len(value) > items * 2:
        left = len(value) - items * 2
        ends = [_pruned(inner, longest, items) for inner in (*value[:items], *value[-items:])]
        return [*ends[:items], f"[…{left} more items left out…]", *ends[items:]]
    if isinstance(value, list):
        return [_pruned(inner, longest, items) for inner in value]
    return value
