"""Shorten one long text to its beginning and end, with a receipt of the omitted size between
them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

from compacter.text.values import parse

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
# Marks on the letter before, skin tones, second halves of surrogates, joiners.
_JOINING = ("Mn", "Me", "Mc", "Sk", "Cs", "Cf")
_JOINER = "\u200d"
# Halves of flags at the end of a text.
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]*\\Z")
# Code points of flags in a row that are counted, an even number.
_LONGEST_RUN = 1_000
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
    whole = parse(text)
    if whole is not None:
        short = _json(whole, size)
        if len(short) < len(text):
            return short
    shorter = _values_shortened(text, _values(text), size)
    if len(shorter) <= size:
        return shorter
    return min(shorter, _words(shorter, size, _values(shorter), original_size(text)), key=len)


def original_size(text: str) -> int:
    """Return the size of a text, in characters, with what earlier cuts have left out of it."""
    return len(text) + sum(
        int(cut[1].replace(",", "")) - len(cut[0]) for cut in _CUT.finditer(text)
    )


def pieces(short: str) -> list[str]:
    """Return the pieces of a shortened text that stand before, between and after its receipts."""
    return _CUT.split(short)[::2]


def _values(text: str) -> list[Span]:
    """Return the positions of JSON values in a text: lines of JSON, a value below a heading, or in
    a code block.
    """
    decoder = json.JSONDecoder()
    spans: list[Span] = []
    start = 0
    attempts = 0
    while attempts < _MOST_ATTEMPTS and (opening := _OPENING.search(text, start)):
        start = opening.start()
        try:
            _, end = decoder.raw_decode(text, start)
            spans.append((start, end))
            start = end
        except (ValueError, RecursionError):
            attempts += 1
            start += 1
    return spans


def _values_shortened(text: str, spans: Sequence[Span], size: int) -> str:
    """Return the text with its large JSON values shortened in proportion to ``size``."""
    large = [span for span in spans if span[1] - span[0] > _LEAST_VALUE]
    held = sum(end - begin for begin, end in large)
    room = max(size - (len(text) - held), size // 2)
    for begin, end in reversed(large):
        share = max((end - begin) * room // held, _LEAST_VALUE)
        value = text[begin:end]
        short = value if len(value) <= share else _json(json.loads(value), share)
        text = text[:begin] + min(short, value, key=len) + text[end:]
    return text


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
    after = text[index]
    flags = _FLAGS.search(text, max(0, index - _LONGEST_RUN), index)
    return after >= "\u0300" and (
        unicodedata.category(after) in _JOINING
        or text[index - 1] == _JOINER
        or bool(flags and len(flags[0]) % 2 and _FLAGS.match(after))
    )
