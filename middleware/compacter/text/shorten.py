"""Shorten one long text to its beginning and end, with a receipt of the omitted size between
them.
"""

from __future__ import annotations

import json
import re
import unicodedata

from compacter.text.pieces import parse

# Members of a JSON value that stay at each of its ends, at first.
_MOST_MEMBERS = 400
_LEFT_OUT = " […{left:,} characters left out…] "
_CUT = re.compile(r" \[…(\d[\d,]{0,14}) characters left out…\] ")
# Characters that are planned for the note of what is left out.
_LEFT_OUT_SIZE = 44
# Marks on the letter before, skin tones, second halves of surrogates; and the joiner of emoji.
_JOINING = ("Mn", "Me", "Mc", "Sk", "Cs", "Cf")
_JOINER = "\u200d"
# Characters of a text that are kept at least.
_SHORTEST = 40
# Share of what is kept that is the beginning of the text; the rest is its end.
_HEAD_SHARE = 0.6


EDITED = ("text", "result")
"""Kinds of parts whose texts may be shortened."""
LEAST_SHORTENED = 400
"""Smallest size of a shortened message, in characters: a beginning and an end that can be read."""


def shorten(text: str, size: int) -> str:
    """Return ``text`` in at most ``size`` characters, or slightly more if a JSON structure alone is
    larger: its beginning and its end, with a receipt between them.

    It is not cut between a letter and its marks. A text that is JSON stays valid: its long strings
    are shortened, and its long lists lose their middle.
    """
    short = text
    value = parse(text) if len(text) > size else None
    if value is None:
        return _keep_ends(text, size)
    longest = size
    members = _MOST_MEMBERS
    while len(short) > size and members > 1:
        longest = max(longest // 2, _SHORTEST)
        members //= 2
        short = json.dumps(_prune(value, longest, members), ensure_ascii=False)
    return min(text, short, key=len)


def _keep_ends(text: str, size: int) -> str:
    """Return the beginning and the end of a text, with how much of the original is missing."""
    if len(text) <= size:
        return text
    room = max(size - _LEFT_OUT_SIZE, _SHORTEST)
    head = _boundary(text, int(room * _HEAD_SHARE), -1)
    tail = _boundary(text, len(text) - (room - head), 1)
    before = text[:head].rstrip()
    after = text[tail:].lstrip()
    missing = original_size(text) - original_size(before) - original_size(after)
    return min(text, before + _LEFT_OUT.format(left=missing) + after, key=len)


def _prune(value: object, longest: int, members: int) -> object:
    """Return a value with strings of ``longest`` characters, and so many members at each end."""
    if isinstance(value, str):
        return _keep_ends(value, longest)
    if isinstance(value, dict):
        items = list(value.items())
        more = {"…": "more entries left out"} if len(items) > 2 * members else {}
        return {key: _prune(inner, longest, members) for key, inner in items[: 2 * members]} | more
    if not isinstance(value, list):
        return value
    pruned = [_prune(inner, longest, members) for inner in value]
    if len(value) > 2 * members:
        pruned[members:-members] = ["[…more items left out…]"]
    return pruned


def original_size(text: str) -> int:
    """Return the size of a text, in characters, with what earlier cuts have left out of it."""
    return len(text) + sum(
        int(cut[1].replace(",", "")) - len(cut[0]) for cut in _CUT.finditer(text)
    )


def _boundary(text: str, index: int, step: int) -> int:
    """Return the nearest index in the direction of ``step`` where a cut parts no letter from its
    marks.
    """
    while 0 < index < len(text) and (
        text[index - 1] == _JOINER or unicodedata.category(text[index]) in _JOINING
    ):
        index += step
    return index
