"""The user's own words in a message, apart from what is pasted, retrieved, or another program's
summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from compacter.lines.read import parse

Marks = tuple[str, str]
"""Marks before and after each retrieved text."""


class Piece(NamedTuple):
    """Consecutive characters of a user's message that have one author: either all are the user's
    own words, or all are pasted, retrieved or otherwise not the user's.
    """

    text: str
    is_own: bool
    """Whether the user wrote it."""


# Most messages have none of these characters, and are the user's own.
_SIGN = re.compile(r"[`~<>\[\"]")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,300})?>")
# Tags for emphasis, and elements in which programs put the user's request.
_OWN_TAGS = re.compile(
    r"(?i)(?:b|i|u|em|strong|small|br|p|a|span|kbd|li|ul|ol|h[1-6])$|"
    r".*(?:instruct|rule|task|guideline|prompt|request|question|query|goal|requirement|constraint|"
    r"preference|user|issue|important)"
)
# Fenced and threefold quoted texts, where one without an end goes to the end; quoted lines; a block
# below a label such as "[terminal output]", up to an empty line.
_CARRIED = (
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


# How coding agents open the summary of a compaction of their own, which they send as the user's.
_SUMMARY_HEAD = re.compile(
    r"(?i)\W{0,4}(?:this session is being continued from a previous|another language model started|"
    r"the conversation history before this point|<(?:summary|state_snapshot|handover)>)"
)
# A last line that is a shell waiting for the next command.
_SHELL_END = re.compile(
    r"\n(?:(?:ba|z|c)?sh[\w.-]{0,10}[$#]|[\w.-]{1,40}@[\w.-]{1,60}[:~ ]\S{0,80}[$#%]|"
    r"[A-Z]:\\\S{0,80}>|>>>|[$#])\s*\Z"
)


def is_summary(text: str) -> bool:
    """Return whether a message with the role of the user is a summary that another program, such as
    a coding agent, has made.
    """
    return bool(_SUMMARY_HEAD.match(text))


def is_shell(text: str) -> bool:
    """Return whether a user's message ends with a shell's prompt, and so is output."""
    return bool(_SHELL_END.search(text))


def separate(text: str, marks: Marks | None = None) -> list[Piece]:
    """Return ``text`` in pieces, each the user's own or not, in order; blank pieces are left out.

    Only explicit marks count: fences, tags, quotation marks, labels of output, and ``marks``, those
    of retrieved text, if the program declares them.

    Args:
        text: A text of a user's message.
        marks: Marks before and after retrieved text.
    """
    if _OUTPUT_HEAD.match(text) or is_summary(text) or parse(text) is not None:
        return [Piece(text, is_own=False)]
    if not (marks or _SIGN.search(text)):
        return [Piece(text, is_own=True)]
    carried = [match.span() for match in re.finditer(_CARRIED, text)]
    if marks:  # Without a second mark, the text reaches to the end.
        before, after = map(re.escape, marks)
        retrieved = re.finditer(rf"(?s){before}.*?(?:{after}|\Z)", text)
        carried += [match.span() for match in retrieved]
    pieces: list[Piece] = []
    at = 0
    for start, end in sorted([*carried, *_elements(text), (len(text), len(text))]):
        pieces.append(Piece(text[at:start], is_own=True))
        pieces.append(Piece(text[max(at, start) : end], is_own=False))
        at = max(at, end)
    return [piece for piece in pieces if piece.text.strip()]


def _elements(text: str) -> Iterator[tuple[int, int]]:
    """Yield each element with tags around it, unless its name marks it as the user's."""
    ends: dict[str, int] = {}
    starts: dict[int, int] = {}
    for tag in reversed(list(_TAG.finditer(text))):
        if tag[1]:
            ends[tag[2]] = tag.end()
        elif tag[2] in ends and not _OWN_TAGS.match(tag[2]):
            starts[ends[tag[2]]] = tag.start()
    return ((start, end) for end, start in starts.items())
