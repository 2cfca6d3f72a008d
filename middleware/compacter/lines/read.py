"""Read a text once, into lines that carry what they depend on.

A line of talk is a sentence, an item of a list or a row of a table; of a tool's output it is a
line; of JSON it is a record, or as many members of one as fit, after the keys that lead to it. What
gives a line its meaning stands above it in the outline of its text: the heading, the sentence
before a list, the head of a table, the first line of a record. These are its needs, and nobody
quotes it without them. A short section, list or record is one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from compacter.text.colours import without_colours

LONGEST = 320
"""Longest line in characters: two to three lines of print."""
# Largest section, list or record that is one line, in characters.
_WHOLE = 250
# Longest line that may be a title, in characters.
_LONGEST_TITLE = 60
# Fewest rows of a table without a rule below its head that is not the whole text, and most lines of
# a record of output.
_LEAST_ROWS = 3
_MOST_FIELDS = 16
# Most members of a record that are all texts.
_MOST_TEXTS = 12
# Deepest level of JSON that is read: reading goes over each level anew.
_DEEPEST = 12
# Longest name of a column.
_LONGEST_CELL = 30

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
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
_LETTER = re.compile(r"[^\W_]")
_ITEM = re.compile(r"(?:[-*+•–>]|\(?\w{1,3}[.)]|\[[ x]\])\s")
_HEADING = re.compile(r"(#{1,6})\s")
_BOLD = re.compile(r"(?:\*\*|__)[^*]{1,80}(?:\*\*|__)[:：]?$")
_COLONS = (":", "：")
_ENDS = (".", "!", "?", "…", "。", "！", "？", "؟", ",", ";")
_FENCE = re.compile(r"`{3,}|~{3,}")
_FIELD = re.compile(r"""["']?([^\W\d][\w.-]{0,30}(?: [\w.-]{1,20}){0,2})["']?\s?[:=]\s*\S""")
_RULE = re.compile(r"[|\s:+-]{3,}$")
_DELIMITERS = ("|", "\t", ";", ",")


@dataclass(slots=True)
class Line:
    """A piece of a text that can be quoted, if what it needs is quoted too."""

    text: str
    """Verbatim text."""
    needs: tuple[int, ...] = ()
    """Places, among the lines of its text, of those that it depends on, the outermost first."""
    lead: str = ""
    """The keys that lead to a value of JSON, with the id of its record."""
    gap: str = "\n"
    """White space and marks between it and the next line."""
    is_head: bool = False
    """Whether it is a heading or a lead-in, which says nothing without what follows."""


@dataclass(slots=True)
class _Row:
    """A line of print in the outline of a text."""

    text: str
    rank: float
    """Rows below it with a higher rank, up to the next one without, depend on it."""
    gap: str = "\n"
    is_head: bool = False
    splits: bool = False
    """Whether it is prose, of which each sentence is a line."""


# -- talk ------------------------------------------------------------------------------------------


def read_talk(text: str) -> list[Line]:
    """Return the lines of what somebody said."""
    rows = list(_rows_of_talk(_BROKEN.sub(r"\1 ", text).split("\n") if "\n" in text else [text]))
    return _lines_of(rows)


def _rows_of_talk(printed: Sequence[str]) -> Iterator[_Row]:
    """Yield the rows of a text. Headings have ranks up to 6, a paragraph has 10, what depends on it
    more, by its indentation.
    """
    row = _Row("", 10)
    fence = ""
    blank = True  # Whether an empty line stands before this one,
    opened = False  # and whether this one may begin what a lead-in announces.
    for number, whole in enumerate(printed):
        said = whole.strip()
        if not said:
            row.gap += "\n"
            blank = True
            continue
        following = printed[number + 1].strip() if number + 1 < len(printed) else ""
        indent = len(whole.expandtabs(4)) - len(whole.expandtabs(4).lstrip())
        rank = 10 + 2.0 * indent
        heading = _HEADING.match(said)
        is_head = bool(heading or _BOLD.match(said))
        mark = _FENCE.match(said)
        is_item = False
        if fence or mark:
            rank = 11
            if mark and not fence:
                fence = mark[0]
            elif said.startswith(fence):
                fence = ""
        elif heading:
            rank = len(heading[1])
        elif _ITEM.match(said) or said.startswith("|"):
            rank += 1
            is_head = said.endswith(_COLONS)
            is_item = True
        else:
            is_head = is_head or said.endswith(_COLONS) or (blank and _is_title(said, following))
            # A lead-in announces what follows at once, or behind one empty line.
            rank += bool(opened and not is_head)
        if row.text:
            yield row
        opened = is_head or (opened and not blank and not is_item)
        row = _Row(said, rank, is_head=is_head, splits=rank < 11 and not is_head)
        blank = False
    if row.text:
        yield row


def _is_title(said: str, following: str) -> bool:
    """Return whether a row begins a paragraph like a title: short, and without a full stop."""
    is_short = len(said) <= _LONGEST_TITLE and not said.endswith(_ENDS)
    return is_short and bool(following)


# -- output ----------------------------------------------------------------------------------------


def read_output(text: str, lead: str = "") -> list[Line]:
    """Return the lines of a tool's output or a call's arguments, without terminal colours.

    Args:
        text: The output; a record or list of JSON is read as such.
        lead: Keys that lead to the text inside JSON.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _read_json(text, lead)
        except (ValueError, RecursionError):
            pass  # Not JSON: it only begins like it.
    text = _CONTROL.sub("", without_colours(text))
    lines = _lines_of(list(_rows_of_output(text.split("\n"))))
    for line in lines if lead else ():
        line.lead = lead
    return lines


def _rows_of_output(printed: Sequence[str]) -> Iterator[_Row]:
    """Yield the rows of output: what is indented depends on what it is indented under, a table's
    row on its head, a field on the first one of its record.
    """
    below = 0  # Number of rows that belong to the record or table that has begun.
    blank = True
    for number, whole in enumerate(printed):
        said = whole.strip()
        if not said:
            blank = True
            below = 0
            continue
        rank = 2.0 * (len(whole.expandtabs(4)) - len(whole.expandtabs(4).lstrip()))
        if below:
            below -= 1
            rank += 1
        else:
            below = _table(printed, number) or (blank and _record(printed, number)) or 0
        blank = False
        yield _Row(said, rank, is_head=said.endswith(_COLONS))


def _table(printed: Sequence[str], number: int) -> int:
    """Return the number of rows below the head of a table, if one begins here; else 0."""
    head = printed[number]
    has_rule = number + 1 < len(printed) and "|" in head and _RULE.match(printed[number + 1])
    for delimiter in _DELIMITERS:
        cells = head.count(delimiter)
        if cells > 1 or (cells and (has_rule or delimiter == "\t")):
            until = number + 1
            while until < len(printed) and printed[until].count(delimiter) == cells:
                until += 1
            is_head = not re.search(r"\d", head) and all(
                len(cell) <= _LONGEST_CELL for cell in head.split(delimiter)
            )
            is_whole = (number, until) == (0, len(printed))
            if has_rule or (is_head and (is_whole or until - number >= _LEAST_ROWS)):
                return until - number - 1
    return 0


def _record(printed: Sequence[str], number: int) -> int:
    """Return the number of fields below the first one of a record ``key: value``; else 0."""
    keys: set[str] = set()
    indent = len(printed[number]) - len(printed[number].lstrip())
    for whole in printed[number : number + _MOST_FIELDS + 1]:
        field = _FIELD.match(whole.strip())
        if not whole.strip():
            break
        if not field or field[1] in keys or len(whole) - len(whole.lstrip()) != indent:
            return 0
        keys.add(field[1])
    return len(keys) - 1 if len(keys) <= _MOST_FIELDS else 0


# -- the outline -----------------------------------------------------------------------------------


def _lines_of(rows: Sequence[_Row]) -> list[Line]:
    """Return the lines of rows, with the rows above on which each depends."""
    lines: list[Line] = []
    above: list[tuple[float, int]] = []  # Rank and place of each row that is open.
    ends = _ends(rows)
    number = 0
    while number < len(rows):
        row = rows[number]
        while above and above[-1][0] >= row.rank:
            above.pop()
        needs = tuple(place for _, place in above)
        end = ends[number]
        whole = "".join(each.text + each.gap for each in rows[number:end]).rstrip()
        if end - number > 1 and len(whole) <= _WHOLE:
            lines.append(Line(whole, needs, gap=rows[end - 1].gap))
        else:
            end = number + 1
            for sentence in split(row.text) if row.splits else [row.text]:
                if not _LETTER.search(sentence):
                    continue
                if lines and lines[-1].gap == " " and lines[-1].text.endswith(_COLONS):
                    needs = (*needs, len(lines) - 1)
                lines.append(Line(clip(sentence, LONGEST), needs, gap=" ", is_head=row.is_head))
            if lines:
                lines[-1].gap = row.gap
        if lines:
            above.append((row.rank, len(lines) - 1))
        number = end
    return lines


def _ends(rows: Sequence[_Row]) -> list[int]:
    """Return for each row the number behind the last one that depends on it."""
    ends = [len(rows)] * len(rows)
    open_rows: list[int] = []
    for number, row in enumerate(rows):
        while open_rows and rows[open_rows[-1]].rank >= row.rank:
            ends[open_rows.pop()] = number
        open_rows.append(number)
    return ends


def split(text: str) -> list[str]:
    """Return the sentences of ``text``, without the white space around them."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    pieces = [text[start:end].strip() for start, end in pairwise([0, *ends, len(text)])]
    return list(filter(None, pieces))


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


# -- JSON ------------------------------------------------------------------------------------------

_decode = json.JSONDecoder().raw_decode
_SPACE = re.compile(r"[\s,:]*")


@dataclass(slots=True)
class _Member:
    """A member of an object or a list, with its place in the text."""

    key: str
    value: Any
    start: int
    """Where its key begins, or the value without one."""
    inner: int
    """Where its value begins."""
    end: int


def parse(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or list that ``text`` is, or ``None`` if it is not JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: dict[str, Any] | list[Any] = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _read_json(text: str, lead: str) -> list[Line]:
    """Return the records of JSON. Raises ``ValueError`` if it is not JSON."""
    start = len(text) - len(text.lstrip())
    value, end = _decode(text, start)
    if text[end:].strip():
        raise ValueError
    return list(_records(text, _Member("", value, start, start, end), lead))


def _records(text: str, item: _Member, lead: str, depth: int = 0) -> Iterator[Line]:
    """Yield an item that is short enough for a line, as it stands in the text; else its members, as
    many in a line as fit, each line after the keys that lead to it and the record's id.
    """
    is_whole = item.end - item.start <= _WHOLE or depth > _DEEPEST
    if is_whole or not isinstance(item.value, (dict, list, str)):
        yield Line(clip(text[item.start : item.end], LONGEST), lead=lead)
        return
    lead = ", ".join(filter(None, (lead, item.key)))
    if isinstance(item.value, str):
        yield from read_output(item.value, lead)
        return
    members = _members(text, item)
    # A long map of texts, such as of codes to names, has no id.
    is_map = len(members) > _MOST_TEXTS and all(isinstance(each.value, str) for each in members)
    name = _name(members[0]) if members and not is_map else ""
    run: list[_Member] = []

    def joined() -> Iterator[Line]:
        if run:
            leads = filter(None, (lead, name if run[0] is not members[0] else ""))
            yield Line(text[run[0].start : run[-1].end], lead=", ".join(leads), gap=", ")
            run.clear()

    for number, member in enumerate(members):
        fits = member.end - member.start <= _WHOLE
        if run and (isinstance(member.value, dict) or member.end - run[0].start > _WHOLE):
            yield from joined()
        if fits:
            run.append(member)
            continue
        inner = ", ".join(filter(None, (lead, name if number else "")))
        yield from _records(text, member, inner, depth + 1)
    yield from joined()


def _name(member: _Member) -> str:
    """Return an object's first member as the name of its record."""
    is_short = isinstance(member.value, (str, int)) and len(str(member.value)) <= _LONGEST_CELL
    return f"{member.key}: {member.value}" if member.key and is_short else ""


def _members(text: str, item: _Member) -> list[_Member]:
    """Return the members of an object or a list with their places in the text."""
    members: list[_Member] = []
    keys = item.value if isinstance(item.value, dict) else None
    at = item.inner + 1
    for _ in item.value:
        inner = start = _after_space(text, at)
        key = ""
        if keys is not None:
            key, inner = _decode(text, start)
            inner = _after_space(text, inner)
        value, at = _decode(text, inner)
        members.append(_Member(str(key), value, start, inner, at))
    return members


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
