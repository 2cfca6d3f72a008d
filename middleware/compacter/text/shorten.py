"""Shorten one long text to its beginning and end, with a receipt of the omitted size between
them.
"""

from __future__ import annotations

import re
import unicodedata

_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*,[^\s\"'<>()\\]*")
_LEFT_OUT = " […{left:,} characters left out…] "
_CUT = re.compile(r" \[…(\d[\d,]{0,14}) characters left out…\] ")
# Characters that are planned for the note of what is left out.
_LEFT_OUT_SIZE = 44
# Marks on the letter before, skin tones, second halves of surrogates, joiners.
_JOINING = ("Mn", "Me", "Mc", "Sk", "Cs", "Cf")
_JOINER = "\u200d"
# Characters of a text that are kept at least.
_SHORTEST = 40
# Share of what is kept that is the beginning of the text; the rest is its end.
_HEAD_SHARE = 0.6


def shorten(text: str, size: int) -> str:
    """Return the beginning and the end of ``text``, in at most ``size`` characters with a receipt
    between them; ``text`` itself where that would not be shorter.

    It is never cut inside a user-perceived character or a data URL.
    """
    if len(text) <= size:
        return text
    room = max(size - _LEFT_OUT_SIZE, _SHORTEST)
    head = _boundary(text, int(room * _HEAD_SHARE), -1)
    tail = _boundary(text, len(text) - (room - head), 1)
    for start, end in (url.span() for url in _DATA_URL.finditer(text)):
        if start < head < end:
            head = start
        if start < tail < end:
            tail = end
    before = text[:head].rstrip()
    after = text[tail:].lstrip()
    missing = original_size(text) - original_size(before) - original_size(after)
    return min(text, before + _LEFT_OUT.format(left=missing) + after, key=len)


def original_size(text: str) -> int:
    """Return the size of a text, in characters, with what earlier cuts have left out of it."""
    return len(text) + sum(
        int(cut[1].replace(",", "")) - len(cut[0]) for cut in _CUT.finditer(text)
    )


def _boundary(text: str, index: int, step: int) -> int:
    """Return the nearest index in the direction of ``step`` where a cut splits no user-perceived
    character.
    """
    while 0 < index < len(text) and (
        unicodedata.category(text[index]) in _JOINING or text[index - 1] == _JOINER
    ):
        index += step
    return index
