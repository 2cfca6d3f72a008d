"""Cut text into sentences of prose, or into lines of code and output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compacter.summaries.flatten import flatten

_LONGEST = 320
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\w\"'“‘(\[*`$€£¿¡-])|(?<=[。！？])|\n+")
_NUMBERED = re.compile(r"^\s*\d+(?:\t|→|[:|] )")
_SPACES = re.compile(r"\s+")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of prose, white space folded."""
    for piece in _SENTENCE_END.split(_ANSI.sub("", text)):
        yield from _wrap(_SPACES.sub(" ", piece).strip())


def lines(text: str) -> Iterator[str]:
    """Yield the lines of code or output without colours and line numbers; JSON as runs of ``key: value``."""
    flat = flatten(text)
    for line in _ANSI.sub("", text).splitlines() if flat is None else flat:
        yield from _wrap(_SPACES.sub(" ", _NUMBERED.sub("", line)).strip())


def _wrap(piece: str) -> Iterable[str]:
    """Yield ``piece`` in runs of bounded length, cut between words where there are any."""
    start = 0
    while len(piece) - start > _LONGEST:
        at = piece.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
        at = at if at > 0 else start + _LONGEST
        if tells(piece[start:at]):
            yield piece[start:at]
        start = at + (piece[at] == " ")
    if tells(piece[start:]):
        yield piece[start:]


def tells(piece: str) -> bool:
    """Whether there is any letter or digit in ``piece``."""
    return any(map(str.isalnum, piece))
