"""Shorten one long text to its beginning and end, with a receipt of the omitted size between
them.
"""

from __future__ import annotations

import re
import unicodedata

_LEFT_OUT = " […{left:,} characters left out…] "
_CUT = re.compile(r" \[…(\d[\d,]{0,14}) characters left out…\] ")
# Characters reserved for the receipt.
_LEFT_OUT_SIZE = 44
# Marks on the letter before, skin tones, second halves of surrogates; and the joiner of emoji.
_JOINING = ("Mn", "Me", "Mc", "Sk", "Cs", "Cf")
_JOINER = "\u200d"
# Fewest characters of a text to keep.
_SHORTEST = 40
# Share of the beginning in the text that is kept; the rest is its end.
_HEAD_SHARE = 0.6


EDITED = ("text", "result")
"""Kinds of parts whose texts may be shortened."""
LEAST_SHORTENED = 400
"""Smallest size of a shortened message, in characters: a beginning and an end that can be read."""


def shorten(text: str, size: int) -> str:
    """Return ``text`` in at most ``size`` characters, or 84 if that is more: its beginning and its
    end, with a receipt between them that states how much of the original is missing. A cut does not
    separate a letter from its marks.
    """
    room = max(size - _LEFT_OUT_SIZE, _SHORTEST)
    head = _boundary(text, int(room * _HEAD_SHARE), -1)
    tail = _boundary(text, len(text) - (room - head), 1)
    before = text[:head].rstrip()
    after = text[tail:].lstrip()
    missing = original_size(text) - original_size(before) - original_size(after)
    short = before + _LEFT_OUT.format(left=missing) + after
    return short if len(short) < len(text) > size else text


def original_size(text: str) -> int:
    """Return the size of a text, in characters, before earlier cuts."""
    return len(text) + sum(
        int(cut[1].replace(",", "")) - len(cut[0]) for cut in _CUT.finditer(text)
    )


def _boundary(text: str, index: int, step: int) -> int:
    """Return the nearest index in the direction of ``step`` where a cut does not separate a letter
    from its marks.
    """
    while 0 < index < len(text) and (
        text[index - 1] == _JOINER or unicodedata.category(text[index]) in _JOINING
    ):
        index += step
    return index
