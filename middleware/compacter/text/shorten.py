"""Shorten one long text to its beginning and end, with a receipt of the omitted size between
them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*,[^\s\"'<>()\\]*")
# A possible beginning of a JSON value inside prose.
_OPENING = re.compile(r"(?:^|(?<=[\s:=`(>]))[\[{]")
# Openings tried as the beginning of a JSON value, each of which may read all of the rest.
_MOST_ATTEMPTS = 50
_LEFT_OUT = " […{left:,} characters left out…] "
_CUT = re.compile(r" \[…(\d[\d,]{0,14}) characters left out…\] ")
# Characters that are planned for the note of what is left out.
_LEFT_OUT_SIZE = 44
_MORE = re.compile(r"(?:\[…)?(\d{1,12}) more (?:items|entries) left out(?:…\])?")
_JOINER = "\u200d"
_ENCLOSING = ("Mn", "Me", "Mc")
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)
_HIGH = range(0xD800, 0xDC00)
_LOW = range(0xDC00, 0xE000)
# Characters of a text that are kept at least.
_SHORTEST = 40
# Share of what is kept that is the beginning of the text; the rest is its end.
_HEAD_SHARE = 0.6
# Smallest JSON value to shorten, in characters; a smaller one is kept or omitted whole.
_LEAST_VALUE = 400

Span = tuple[int, int]


def shorten(text: str, size: int) -> str:
    """Return ``text`` in at most ``size`` characters, or slightly more if a JSON structure alone is
    larger.

    The text is never cut inside a user-perceived character, a data URL or a JSON value. A JSON
    value that is too large stays valid: its long strings are shortened, and its long lists lose
    their middle.
    """
    if len(text) <= size:
        return text
    whole = _parse(text)
    if whole is not None:
        short = _json(whole, size)
        if len(short) < len(text):
            return short
    spans = _values(text)
    shorter = _values_shortened(text, spans, size)
    if len(shorter) < len(text):
        if len(shorter) <= size:
            return shorter
        spans = _values(shorter)
    short = _words(shorter, size, spans, original_size(text))
    return short if len(short) < len(shorter) else shorter


def original_size(text: str) -> int:
    """Return the size of a text, in characters, with what earlier cuts have left out of it."""
    return len(text) + sum(
        int(cut[1].replace(",", "")) - len(cut[0]) for cut in _CUT.finditer(text)
    )


def pieces(short: str) -> list[str]:
    """Return the pieces of a shortened text that stand before, between and after its receipts."""
    return _CUT.split(short)[::2]


def _parse(text: str) -> dict[str, object] | list[object] | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _values(text: str) -> list[Span]:
    """Return the positions of JSON values in a text: lines of JSON, a value below a heading, or in
    a code block.
    """
    decoder = json.JSONDecoder()
    found = list[Span]()
    start = 0
    attempts = 0
    while attempts < _MOST_ATTEMPTS and (opening := _OPENING.search(text, start)):
        begin = opening.start()
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            attempts += 1
            end = begin + 1
        else:
            found.append((begin, end))
        start = end
    return found


def _values_shortened(text: str, spans: Sequence[Span], size: int) -> str:
    """Return the text with its large JSON values shortened in proportion to ``size``."""
    large = [span for span in spans if span[1] - span[0] > _LEAST_VALUE]
    if not large:
        return text
    held = sum(end - begin for begin, end in large)
    room = max(size - (len(text) - held), size // 2)
    out = list[str]()
    at = 0
    for begin, end in large:
        share = max((end - begin) * room // held, _LEAST_VALUE)
        short = (
            text[begin:end] if end - begin <= share else _json(json.loads(text[begin:end]), share)
        )
        out += [text[at:begin], min(short, text[begin:end], key=len)]
        at = end
    return "".join([*out, text[at:]])


def _words(text: str, size: int, whole: Sequence[Span] = (), original: int = 0) -> str:
    """Return the beginning and end of the text, and between them how much of the original is
    missing.

    ``whole`` are the positions of values that are not cut. ``original`` is the size before earlier
    cuts, by default that of ``text``.
    """
    room = max(size - _LEFT_OUT_SIZE, _SHORTEST)
    head = _boundary(text, int(room * _HEAD_SHARE), -1)
    tail = _boundary(text, len(text) - (room - head), 1)
    for start, end in (*whole, *(match.span() for match in _DATA_URL.finditer(text))):
        if start < head < end:
            head = start
        if start < tail < end:
            tail = end
    before = text[:head].rstrip()
    after = text[tail:].lstrip()
    missing = (original or original_size(text)) - original_size(before) - original_size(after)
    return before + _LEFT_OUT.format(left=missing) + after


def _json(value: object, size: int) -> str:
    longest = size
    items = 400
    short = json.dumps(value, ensure_ascii=False)
    while len(short) > size and items > 1:
        longest = max(longest // 2, _SHORTEST)
        items = max(items // 2, 1)
        short = json.dumps(_prune(value, longest, items), ensure_ascii=False)
    return short


def _prune(value: object, longest: int, items: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= longest + _LEFT_OUT_SIZE else _words(value, longest)
    if isinstance(value, dict):
        kept = list(value.items())
        left = len(kept) - items * 2 + _count_left_before(value.get("…"))
        pruned = {key: _prune(inner, longest, items) for key, inner in kept[: items * 2]}
        return {**pruned, "…": f"{left} more entries left out"} if left > 0 else pruned
    if isinstance(value, list) and len(value) > items * 2:
        left = len(value) - items * 2 + sum(map(_count_left_before, value[items:-items]))
        ends = [_prune(inner, longest, items) for inner in (*value[:items], *value[-items:])]
        return [*ends[:items], f"[…{left} more items left out…]", *ends[items:]]
    if isinstance(value, list):
        return [_prune(inner, longest, items) for inner in value]
    return value


def _count_left_before(item: object) -> int:
    """Return the number of items for which a member of a value stands, beside itself; 0 for any
    other member.
    """
    found = _MORE.fullmatch(item) if isinstance(item, str) else None
    return int(found[1]) - 1 if found else 0


def _boundary(text: str, index: int, step: int) -> int:
    """Return the nearest index in the direction of ``step`` where a cut splits no user-perceived
    character.
    """
    while 0 < index < len(text) and _is_joined(text, index):
        index += step
    return index


def _is_joined(text: str, index: int) -> bool:
    """Return whether the code points on both sides of ``index`` belong to one user-perceived
    character.
    """
    before = text[index - 1]
    after = text[index]
    if after < "\u0300":
        return False
    code = ord(after)
    return (
        unicodedata.category(after) in _ENCLOSING
        or _JOINER in (before, after)
        or code in _SKIN_TONES
        or (code in _LOW and ord(before) in _HIGH)
        or (code in _FLAGS and _flags_before(text, index) % 2 == 1)
    )


def _flags_before(text: str, index: int) -> int:
    count = 0
    while index - count > 0 and ord(text[index - count - 1]) in _FLAGS:
        count += 1
    return count
