"""Split a text of any language: into the user's own words and pasted text, lines, sentences, and
the values of JSON. All functions take linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

# -- own words and carried ones --------------------------------------------------------------------

Marks = tuple[str, str]
"""Marks before and after each retrieved text."""


class Piece(NamedTuple):
    """A run of a user's message."""

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


def separate(text: str, marks: Marks | None = None) -> list[Piece]:
    """Return ``text`` in pieces, each the user's own or not, in order; blank pieces are left out.

    Only explicit marks count: fences, tags, quotation marks, labels of output, and ``marks``, those
    of retrieved text, if the program declares them.
    """
    if _OUTPUT_HEAD.match(text) or parse(text) is not None:
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


# -- lines and sentences ---------------------------------------------------------------------------

LONGEST = 320
"""Longest sentence in characters: two to three lines of print. A longer one is mostly a list or a
line without punctuation."""
# Most letters and digits of a line of output that means nothing by itself: "ok", "42".
_SHORTEST_LINE = 3

# Terminal colours and other control characters.
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\x00-\x08\x0e-\x1f\x7f]")
_ABBREVIATIONS = ("e.g.", "i.e.", "E.g.", "I.e.", "etc.", "vs.", "Dr.", "Mr.", "Mrs.", "Ms.", "St.")
# "J. R. Hartley", but "so do I."
_INITIAL = r"(?<!\b[A-HJ-Z]\.)"
_NOT_AFTER = _INITIAL + "".join(rf"(?<!\b{re.escape(word)})" for word in _ABBREVIATIONS)
# German dates have a full stop after the day: "16. bis 18. Mai".
_MONTHS = "Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez"
SENTENCE_END = re.compile(
    r"[.!?…؟।。！？\n](?:(?<=[.!?…؟।])"
    rf"{_NOT_AFTER}(?<!^\d\.)(?<!^\d\d\.)[\"'”’)\]*]?\s+(?=[\w\"'“‘(\[*`$€£¿¡-])"
    rf"(?!(?<=\d\.\s)[a-zà-ÿ])(?!(?:{_MONTHS})[a-z]*\b)|(?<=[。！？])\s*|(?<=\n))",
    re.MULTILINE,
)
"""End of a sentence or a line; not after an abbreviation, a list's number, or an ordinal. It begins
with one set of characters, so that ``re`` skips all others at once."""
# A line that a program has broken at a column, as mail and many hosts do: it is long, has eight
# words or more, and the next one goes on with a small letter.
_BROKEN = re.compile(
    r"(?m)^((?=[^\n]{55,120}$)(?:[^\s]{1,60} ){7,40}[^\s]{0,60}[^\s.!?:;{}()|…。])[ \t]*\n[ \t]*"
    r"(?=[a-zà-ÿа-я]{2})"
)
_ALNUM = re.compile(r"[^\W_]")
_LETTER = re.compile(r"[^\W\d_]")


def split_lines(text: str) -> list[list[str]]:
    """Return the sentences of each line of ``text``; of a very long line, those of its beginning.
    Lines that a program has broken at a column are joined.
    """
    lines = _BROKEN.sub(r"\1 ", text).splitlines() if "\n" in text else [text]
    return [[clip(each, LONGEST) for each in split(line) if _ALNUM.search(each)] for line in lines]


def split(text: str) -> list[str]:
    """Return the sentences of ``text``, without the white space around them."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    pieces = [text[start:end].strip() for start, end in pairwise([0, *ends, len(text)])]
    return list(filter(None, pieces))


def output_lines(text: str) -> Iterator[str]:
    """Yield the meaningful lines of a tool's output, without terminal colours; of a very long line,
    its beginning. The values of JSON are lines.
    """
    for value in leaves(text):
        for line in map(str.strip, _ANSI.sub("\n", value).splitlines()):
            # Skip a year or a line number, but not a date or a telephone number.
            least = _SHORTEST_LINE if _LETTER.search(line) else 2 * _SHORTEST_LINE
            if sum(map(str.isalnum, line)) > least:
                yield clip(line, LONGEST)


def clip(text: str, size: int) -> str:
    """Return ``text`` in at most ``size`` characters: whole lines and sentences from its beginning,
    else whole words, and an ellipsis.
    """
    if len(text) <= size:
        return text
    half = size // 2
    most = max(half, size - 2)
    ends = [match.end() for match in SENTENCE_END.finditer(text, half, most)]
    end = ends[-1] if ends else text.rfind(" ", half, most)
    short = text[: end if end > 0 else most].rstrip()
    return f"{short} …"[: max(0, size)]


# -- JSON, also inside the texts of JSON: tools answer in it, of any depth -------------------------

Json = dict[str, Any] | list[Any]


def parse(text: str) -> Json | None:
    """Return the object or list that ``text`` is, or ``None`` if it is not JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def values(text: str) -> Iterator[Any]:
    """Yield each object and list inside a text that is JSON, the outer ones first, and each value
    in it; or the text itself.
    """
    waiting: list[Any] = [text]
    while waiting:
        item = waiting.pop()
        record = parse(item) if isinstance(item, str) else item
        yield item if record is None else record
        if isinstance(record, (dict, list)):
            waiting += reversed(list(record.values()) if isinstance(record, dict) else record)


def leaves(text: str) -> list[str]:
    """Return the texts and numbers inside JSON, or the text itself."""
    return [str(value) for value in values(text) if isinstance(value, (str, int, float))]
