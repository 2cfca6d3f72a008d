"""Cut entries into the pieces a summary is chosen from: sentences of prose, lines of code and output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compacter.messages.parts import Entry
from compacter.summaries import instructions
from compacter.summaries.salience import labelled, salience
from compacter.summaries.sentences import lines, sentences, tells
from compacter.summaries.shorten import shorten

_SPEAKER = re.compile(r"^(\([^)\n]{1,60}\)\s*)?([A-Z][\w'’.-]{0,24}(?: [A-Z][\w'’.-]{0,24})?): (?=\S)")
_MARKS = {"user": "U: ", "assistant": "A: ", "system": "S: ", "tool": "T: "}
_RESULT_MARK = "→ "
_TOLD = re.compile(rf"^(?:{_RESULT_MARK}|[\w.’'-]{{1,40}}(?: [\w.’'-]{{1,24}})?: )")
_CODE = re.compile(r"[{}()\[\];=<>|\\$#*/_]")
_CODE_SHARE = 12
_RULE = 3.0


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
    rule: float = 0.0
    """Its score as a standing instruction of the user."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a unit inherits from its entry."""

    role: str
    kind: str
    mark: str
    """What is put before the entry's first kept unit, so that the reader knows who speaks."""


def cut(entries: Sequence[Entry], scores: dict[str, float] | None = None) -> tuple[list[Source], list[Unit]]:
    """Return the sources (one for each entry) and the units of all entries, in order.

    The user's standing instructions stay word for word and weigh more; ``scores`` is what
    ``instructions`` remembers.
    """
    texts = [entry for entry in entries if entry.kind == "text"]
    named = sum(1 for entry in texts if _SPEAKER.match(entry.text)) * 2 > len(texts)
    sources: list[Source] = []
    units: list[Unit] = []
    for place, entry in enumerate(entries):
        mark, rest = _mark(entry, named=named)
        role = "user" if entry.kind == "summary" and mark == _MARKS["user"] else entry.role
        sources.append(Source(role, entry.kind, mark))
        one_line = "\n" not in rest.strip()
        whole = labelled(rest) if one_line else 1.0
        if entry.kind == "text":
            passages = (
                instructions.passages(rest, scores)
                if role == "user"
                else ((sentence, 0.0) for sentence in sentences(rest))
            )
            for passage, rule in passages:
                short = passage if rule or _looks_like_code(passage) else shorten(passage)
                if tells(short):
                    worth = salience(passage) * (whole if one_line else labelled(passage)) * (_RULE if rule else 1)
                    units.append(Unit(short, place, passage, worth, rule))
        elif entry.kind == "summary":
            units.extend(Unit(sentence, place, sentence, salience(sentence) * whole) for sentence in sentences(rest))
        else:
            units.extend(Unit(line, place, line) for line in lines(rest))
    return sources, units


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


def _looks_like_code(piece: str) -> bool:
    """Whether leaving words out could change what a line means to a machine."""
    return len(_CODE.findall(piece)) * _CODE_SHARE > len(piece)
