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
# Members of a value that stay at each of its ends, at first.
_MOST_MEMBERS = 400
_MORE = re.compile(r"(?:\[…)?(\d{1,12}) more (?:items|entries) left out(?:…\])?")
_LEFT_OUT = " […{left:,} characters left out…] "
_CUT = re.compile(r" \[…(\d[\d,]{0,14}) characters left out…\] ")
# Characters that are planned for the note of what is left out.
_LEFT_OUT_SIZE = 44
# Marks on the letter before, skin tones, second halves of surrogates, joiners.
_JOINING = ("Mn", "Me", "Mc", "Sk", "Cs", "Cf")
_JOINER = "\u200d"
# Halves of flags at the end of a text.
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]*\\Z")
# Code points of flags in a row that are counted, an even number.
_LONGEST_RUN = 1_000
# Characters of a text that are kept at least.
_SHORTEST = 40
# Smallest JSON value to shorten, in characters; a smaller one is kept or omitted whole.
_LEAST_VALUE = 400
# Share of what is kept that is the beginning of the text; the rest is its end.
_HEAD_SHARE = 0.6


EDITED = ("text", "result")
"""Kinds of parts whose texts may be shortened."""
LEAST_SHORTENED = 400
"""Smallest size of a shortened message, in characters: a beginning and an end that can be read."""


def shorten(text: str, size: int) -> str:
    """Return ``text`` in at most ``size`` characters, or slightly more if a JSON structure alone is
    larger: its beginning and its end, with a receipt between them.

    It is never cut inside a user-perceived character, a data URL or a JSON value. A JSON value that
    is too large stays valid: its long strings are shortened, and its long lists lose their middle.
    """
    if len(text) <= size:
        return text
    whole = text
    values = _values(text)
    held = sum(end - start for start, end in values)
    room = max(size - (len(text) - held), size // 2)
    for start, end in reversed(values):
        share = max((end - start) * room // held, min(size, _LEAST_VALUE))
        text = text[:start] + _shorten_value(text[start:end], share) + text[end:]
    if len(text) <= size or (text != whole and parse(text) is not None):
        return text
    short = _keep_ends(text, size, _values(text), original_size(whole))
    return min(text, short, key=len)


def _values(text: str) -> Sequence[tuple[int, int]]:
    """Return the positions of JSON values in a text: lines of JSON, a value below a heading, or in
    a code block.
    """
    decoder = json.JSONDecoder()
    spans: list[tuple[int, int]] = []
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


def _keep_ends(text: str, size: int, values: Sequence[tuple[int, int]], original: int) -> str:
    """Return the beginning and the end of a text of which none of the ``values`` is cut, with how
    much of the original is missing.
    """
    room = max(size - _LEFT_OUT_SIZE, _SHORTEST)
    head = _boundary(text, int(room * _HEAD_SHARE), -1)
    tail = _boundary(text, len(text) - (room - head), 1)
    for start, end in (*values, *(url.span() for url in _DATA_URL.finditer(text))):
        if start < head < end:
            head = start
        if start < tail < end:
            tail = end
    before = text[:head].rstrip()
    after = text[tail:].lstrip()
    missing = original - original_size(before) - original_size(after)
    return before + _LEFT_OUT.format(left=missing) + after


def _shorten_value(text: str, size: int) -> str:
    """Return a JSON value in about ``size`` characters; as it is where it would not be shorter."""
    value = json.loads(text)
    short = text
    longest = size
    members = _MOST_MEMBERS
    while len(short) > size and members > 1:
        longest = max(longest // 2, _SHORTEST)
        members //= 2
        short = json.dumps(_prune(value, longest, members), ensure_ascii=False)
    return min(text, short, key=len)


def _prune(value: object, longest: int, members: int) -> object:
    """Return a value with strings of ``longest`` characters, and so many members at each end."""
    if isinstance(value, str):
        is_long = len(value) > longest + _LEFT_OUT_SIZE
        return _keep_ends(value, longest, (), original_size(value)) if is_long else value
    if isinstance(value, dict):
        items = list(value.items())
        head = {key: _prune(inner, longest, members) for key, inner in items[: 2 * members]}
        left = len(items) - 2 * members + _count_left_before(value.get("…"))
        return {**head, "…": f"{left} more entries left out"} if left > 0 else head
    if not isinstance(value, list):
        return value
    middle = value[members:-members]
    left = len(middle) + sum(map(_count_left_before, middle))
    receipt = [f"[…{left} more items left out…]"] if middle else []
    pruned = [_prune(inner, longest, members) for inner in value]
    return [*pruned[:members], *receipt, *pruned[max(members, len(value) - members) :]]


def _count_left_before(member: object) -> int:
    """Return the number of members for which one of a value stands, beside itself; 0 for any
    other.
    """
    receipt = _MORE.fullmatch(member) if isinstance(member, str) else None
    return int(receipt[1]) - 1 if receipt else 0


def original_size(text: str) -> int:
    """Return the size of a text, in characters, with what earlier cuts have left out of it."""
    return len(text) + sum(
        int(cut[1].replace(",", "")) - len(cut[0]) for cut in _CUT.finditer(text)
    )


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
