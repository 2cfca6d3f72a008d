"""Split a text of any language into lines and sentences, and tell prose from code and output. All
of it is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 320
"""Longest sentence in characters: two to three lines of print. A longer one is mostly a list or a
line without punctuation, and is cut at its clauses."""
SHORTEST_VALUE = 3
"""Most letters and digits of a line or value that tells nothing by itself: "ok", "42"."""
LONG_NUMBER = 6
"""Most digits of a line without letters that tell nothing by themselves: a line number, a year."""

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
# Characters after which a sentence that is too long may be cut at a comma or a bracket.
_CLAUSE_LEAST = 120
_CLAUSE = r"(?:[,;:)}\]]\s|[，；：、]|$)"
_CLAUSES = re.compile(
    rf"(.{{{_CLAUSE_LEAST},{LONGEST}}}{_CLAUSE}|.{{1,{LONGEST}}}$)|"
    rf"(.{{{_CLAUSE_LEAST},{LONGEST}}}\s|.{{{LONGEST}}}).*?{_CLAUSE}"
)
# Rows of a listing that name nothing: the folder itself, the one above it, the sum of all.
_NAMELESS_ROW = re.compile(r"d[r-][w-].{20,80} \.{1,2}/?|total \d+[KMG]?")
_ALNUM = re.compile(r"[^\W_]")
LETTERS = re.compile(r"[^\W\d_]+")
"""A run of letters."""
_CODE = re.compile(r"[{}()\[\];=<>|\\$/_`]")
# A text is code or output if a tenth of it are symbols that prose has not.
_CODE_SHARE = 10


def split_lines(text: str) -> list[list[str]]:
    """Return the sentences of each line of ``text``; a very long one in pieces that start with a
    clause. Lines that a program has broken at a column are joined.
    """
    lines: list[list[str]] = []
    for line in _BROKEN.sub(r"\1 ", text).splitlines() if "\n" in text else [text]:
        lines.append([])
        for sentence in split(line):
            if len(sentence) > LONGEST:
                lines[-1] += clauses(sentence)
            elif _ALNUM.search(sentence):
                lines[-1].append(sentence)
    return lines


def split(text: str) -> list[str]:
    """Return the sentences of ``text``, without the white space around them."""
    pieces: list[str] = []
    start = 0
    for match in SENTENCE_END.finditer(text):
        pieces.append(text[start : match.end()].strip())
        start = match.end()
    pieces.append(text[start:].strip())
    return list(filter(None, pieces))


def clauses(text: str) -> Iterator[str]:
    """Yield pieces that start with a clause; the rest of a clause that is too long is omitted."""
    for whole, begun in _CLAUSES.findall(text):
        piece = (whole or begun).strip()
        if _ALNUM.search(piece):
            yield piece


def output_lines(text: str) -> Iterator[str]:
    """Yield the lines of a tool's output that tell something, without terminal colours; a very long
    one in pieces.
    """
    for line in map(str.strip, _ANSI.sub("\n", text).splitlines()):
        least = SHORTEST_VALUE if LETTERS.search(line) else LONG_NUMBER
        if len(line) > LONGEST:
            yield from clauses(line)
        elif sum(map(str.isalnum, line)) > least and not _NAMELESS_ROW.fullmatch(line):
            yield line


def has_code(text: str) -> bool:
    """Return whether a tenth of ``text`` are symbols that prose has not."""
    return len(_CODE.findall(text)) * _CODE_SHARE >= len(text)
