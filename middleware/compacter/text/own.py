"""Separate a user's own words from what the message only carries: retrieved text, fenced code,
elements in tags, quoted lines, output that a host labels.

Only marks that somebody has set count. All of it is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from compacter.text.values import parse

Marks = tuple[str, str]
"""What stands before and after each retrieved text."""


class Piece(NamedTuple):
    """A run of a user's message."""

    text: str
    is_own: bool
    """Whether the user wrote it."""


# Most messages have none of these characters, and are the user's own.
_SIGN = re.compile(r"[`~<>\[\"]")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,300})?>")
# Tags for emphasis, and elements in which programs put what the user wants.
_OWN_TAGS = re.compile(
    r"(?i)(?:b|i|u|em|strong|small|br|p|a|span|kbd|li|ul|ol|h[1-6])$|"
    r".*(?:instruct|rule|task|guideline|prompt|request|question|query|goal|requirement|constraint|"
    r"preference|user|issue|important)"
)
# Fenced and threefold quoted texts, where one without an end goes to the end; quoted lines; a block
# below a label such as "[terminal output]", up to an empty line.
_CARRIED = re.compile(
    r"(?ms)^[ \t]{0,12}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]{0,12}\1[`~]*[ \t]*$|\Z)|"
    r"\"\"\".*?(?:\"\"\"|\Z)|^[ \t]{0,12}>[^\n]*|"
    r"^[ \t]{0,4}\[(?i:[^\]\n]{0,80} )?(?i:output|std(?:out|err)|terminal|console|shell)\]:?[ \t]*"
    r"(?:\n[^\n]+)*"
)
# Beginning of a message by which hosts without a role for tools hand over their output.
_OUTPUT_HEAD = re.compile(
    r"(?i)\W{0,4}(?:observations?|(?:tool|function|command|execution|shell|terminal)"
    r"[ _-]?(?:call[ _-])?(?:output|result|response)s?|std(?:out|err))\b[^\n:]{0,80}[:\]>]"
)


def separate(text: str, marks: Marks | None = None) -> list[Piece]:
    """Return ``text`` in pieces, each the user's own or not, in order; blank pieces are left out.

    ``marks`` are those of retrieved text, if the program declares them.
    """
    if _OUTPUT_HEAD.match(text) or parse(text) is not None:
        return [Piece(text, is_own=False)]
    if not (marks or _SIGN.search(text)):
        return [Piece(text, is_own=True)]
    patterns = [_CARRIED]
    if marks:  # One without a second mark goes to the end.
        before, after = map(re.escape, marks)
        patterns.append(re.compile(rf"(?s){before}.*?(?:{after}|\Z)"))
    carried = [match.span() for each in patterns for match in each.finditer(text)]
    pieces: list[Piece] = []
    at = 0
    for start, end in sorted([*carried, *_elements(text), (len(text), len(text))]):
        pieces.append(Piece(text[at:start], is_own=True))
        pieces.append(Piece(text[max(at, start) : end], is_own=False))
        at = max(at, end)
    return [piece for piece in pieces if piece.text.strip()]


def _elements(text: str) -> Iterator[tuple[int, int]]:
    """Yield each element with tags around it, unless its name says that it is the user's."""
    ends: dict[str, int] = {}
    starts: dict[int, int] = {}
    for tag in reversed(list(_TAG.finditer(text))):
        if tag[1]:
            ends[tag[2]] = tag.end()
        elif tag[2] in ends and not _OWN_TAGS.match(tag[2]):
            starts[ends[tag[2]]] = tag.start()
    return ((start, end) for end, start in starts.items())
