"""Cut entries into the pieces a summary is chosen from: sentences of prose, lines of code and output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compacter.history.entry import Entry
from compacter.summaries.flatten import flatten
from compacter.summaries.salience import salience
from compacter.summaries.shorten import shorten

_LONGEST = 320

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\w\"'“‘(\[*`$€£¿¡-])|(?<=[。！？])|\n+")
_NUMBERED = re.compile(r"^\s*\d+(?:\t|→|[:|] )")
_SPACES = re.compile(r"\s+")
_SPEAKER = re.compile(r"^(\([^)\n]{1,60}\)\s*)?([A-Z][\w'’.-]{0,24}(?: [A-Z][\w'’.-]{0,24})?): (?=\S)")
_MARKS = {"user": "U: ", "assistant": "A: ", "system": "S: ", "tool": "T: "}
_RESULT_MARK = "→ "
_TOLD = re.compile(rf"^(?:{_RESULT_MARK}|[\w.’'-]{{1,40}}(?: [\w.’'-]{{1,24}})?: )")
_CODE = re.compile(r"[{}()\[\];=<>|\\$#*/_]")
_CODE_SHARE = 12


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of an entry that can be kept or dropped on its own."""

    text: str
    """As it would be kept: shortened, white space folded."""
    entry: int
    """Position of its source."""
    said: str
    """The piece before it was shortened."""
    salience: float = 1.0
    """How likely it states a fact, judged by its form."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a unit inherits from its entry."""

    role: str
    kind: str
    mark: str
    """What is put before the entry's first kept unit, so that the reader knows who speaks."""


def cut(entries: Sequence[Entry]) -> tuple[list[Source], list[Unit]]:
    """Return the sources (one for each entry) and the units of all entries, in order."""
    texts = [entry for entry in entries if entry.kind == "text"]
    named = sum(1 for entry in texts if _SPEAKER.match(entry.text)) * 2 > len(texts)
    sources: list[Source] = []
    units: list[Unit] = []
    for place, entry in enumerate(entries):
        mark, rest = _mark(entry, named=named)
        role = "user" if entry.kind == "summary" and mark == _MARKS["user"] else entry.role
        sources.append(Source(role, entry.kind, mark))
        if entry.kind == "text":
            for sentence in sentences(rest):
                short = sentence if _looks_like_code(sentence) else shorten(sentence)
                if _tells(short):
                    units.append(Unit(short, place, sentence, salience(sentence)))
        elif entry.kind == "summary":
            units.extend(Unit(sentence, place, sentence, salience(sentence)) for sentence in sentences(rest))
        else:
            units.extend(Unit(line, place, line) for line in lines(rest))
    return sources, units


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of prose, white space folded."""
    for piece in _SENTENCE_END.split(_ANSI.sub("", text)):
        yield from _wrap(_SPACES.sub(" ", piece).strip())


def lines(text: str) -> Iterator[str]:
    """Yield the lines of code or output without colours and line numbers; JSON as runs of ``key: value``."""
    flat = flatten(text)
    for line in _ANSI.sub("", text).splitlines() if flat is None else flat:
        yield from _wrap(_SPACES.sub(" ", _NUMBERED.sub("", line)).strip())


def _mark(entry: Entry, *, named: bool) -> tuple[str, str]:
    """Return what tells who speaks, and the text without it."""
    if entry.kind == "summary":
        told = _TOLD.match(entry.text)
        return (told[0], entry.text[told.end() :]) if told else ("", entry.text)
    if entry.kind == "call":
        return f"{entry.name or 'call'}: ", entry.text
    if entry.kind == "result":
        return _RESULT_MARK, entry.text
    if named and (match := _SPEAKER.match(entry.text)):
        return f"{match[2]}: ", (match[1] or "") + entry.text[match.end() :]
    return _MARKS[entry.role], entry.text


def _wrap(piece: str) -> Iterable[str]:
    """Yield ``piece`` in runs of bounded length, cut between words where there are any."""
    start = 0
    while len(piece) - start > _LONGEST:
        at = piece.rfind(" ", start + _LONGEST // 2, start + _LONGEST)
        at = at if at > 0 else start + _LONGEST
        if _tells(piece[start:at]):
            yield piece[start:at]
        start = at + (piece[at] == " ")
    if _tells(piece[start:]):
        yield piece[start:]


def _looks_like_code(piece: str) -> bool:
    """Whether leaving words out could change what a line means to a machine."""
    return len(_CODE.findall(piece)) * _CODE_SHARE > len(piece)


def _tells(piece: str) -> bool:
    return any(map(str.isalnum, piece))
