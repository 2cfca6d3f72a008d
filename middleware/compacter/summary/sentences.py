"""What was said, sentence by sentence: every sentence stands word for word in one message, under its speaker."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compacter.history.entry import Entry

ELLIPSIS = "…"
"""Marks what was left out between two pieces of a line."""

_LONGEST, _SHORTEST_CUT = 320, 120
_RECORD = 160
"""Characters of a record's values that are taken as one piece."""
_SPACES = re.compile(r"\s+")
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\x00-\x08\x0e-\x1f\x7f]")
_END = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]*]))(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)\s+"
    r"(?=[\w\"'“‘(\[*`$€£¿¡-])|(?<=[。！？])\s*|\n\s*"
)
_CLAUSE = re.compile(r"[,;:)}\]]\s+|[，；：、]")
_LETTERS = re.compile(r"[^\W\d_]")
_CODE = re.compile(r"[{}()\[\];=<>|\\$/_`]")
_CODE_SHARE = 14
_FENCE = "```"
_NAME = re.compile(r"[^\w. /-]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of prose, one line of code or output, or some values of a record."""

    text: str
    """White space folded; otherwise as it was said."""
    speaker: str
    """``User``, ``Assistant``, ``Tool NAME``, or ``Summary`` for prose of an earlier summary."""
    part: int
    """Which part of a message it belongs to; all sentences of one part stand on one line."""
    follows: bool = False
    """Whether it stands right behind the sentence before it, on the same line."""
    prose: bool = True
    """Whether it was written for a reader: a text, and neither code nor output."""
    typed: int = 0
    """Characters of the whole text it belongs to."""


def read(parts: Sequence[Entry], first: int = 0) -> Iterator[Sentence]:
    """Yield the sentences of ``parts`` in order; numbers of parts begin with ``first``. Linear in the text."""
    called: deque[str] = deque()
    for number, part in enumerate(parts, first):
        if part.kind == "summary" or part.role == "system":
            continue
        if part.kind == "text" and part.role in ("user", "assistant"):
            yield from _text(part, number)
            continue
        name = part.name
        if part.kind == "call":
            called.append(name)
        elif part.kind == "result" and called:
            # Not every format names the tool in its result. Results come in the order of their calls.
            name = name or called.popleft()
        speaker = f"Tool {_NAME.sub(' ', name).strip()[:60] or part.kind}"
        for piece in _values(part.text):
            yield Sentence(piece, speaker, number, prose=False, typed=len(part.text))


def _text(part: Entry, number: int) -> Iterator[Sentence]:
    speaker = "User" if part.role == "user" else "Assistant"
    code = False
    for line in _ANSI.sub("\n", part.text).splitlines():
        if line.lstrip().startswith(_FENCE):
            code = not code
            continue
        follows = False
        for piece in split(line):
            yield Sentence(piece, speaker, number, follows, not code and reads(piece), len(part.text))
            follows = True


def split(text: str) -> Iterator[str]:
    """Yield the sentences of ``text``, white space folded; a very long one in pieces that begin with a clause."""
    for sentence in _END.split(text):
        flat = _SPACES.sub(" ", sentence).strip()
        if len(flat) > _LONGEST:
            yield from _clauses(flat)
        elif any(map(str.isalnum, flat)):
            yield flat


def reads(text: str) -> bool:
    """Whether ``text`` looks like prose and not like code or output."""
    return len(_LETTERS.findall(text)) * 2 > len(text) and len(_CODE.findall(text)) * _CODE_SHARE < len(text)


def _clauses(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = min(len(text), start + _LONGEST)
        if end < len(text):
            ends = [match.end() for match in _CLAUSE.finditer(text, start + _SHORTEST_CUT, end)]
            space = text.rfind(" ", start + _SHORTEST_CUT, end)
            end = ends[-1] if ends else space if space > 0 else end
            whole = bool(ends)
        else:
            whole = True
        piece = text[start:end].strip()
        if any(map(str.isalnum, piece)):
            yield piece
        if not whole:
            # What comes next begins inside a clause: take up again where the next one begins.
            match = _CLAUSE.search(text, end)
            end = match.end() if match else len(text)
        start = end


def _values(text: str) -> Iterator[str]:
    """Yield the lines of a tool's text; of JSON the values, those of one record together."""
    record = _json(text)
    if record is None:
        for line in _ANSI.sub("\n", text).splitlines():
            flat = _SPACES.sub(" ", line).strip()
            if len(flat) > _LONGEST:
                yield from _clauses(flat)
            elif any(map(str.isalnum, flat)):
                yield flat
        return
    for values in _records(record):
        run = ""
        for value in values:
            if run and len(run) + len(value) > _RECORD:
                yield run
                run = ""
            run = f"{run} {ELLIPSIS} {value}" if run else value
        if run:
            yield run


def _json(text: str) -> object:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _records(value: object) -> Iterator[list[str]]:
    """Yield the plain values of each object or list within ``value``."""
    pending = [value]
    while pending:
        item = pending.pop()
        inner = list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else [item]
        plain: list[str] = []
        nested: list[object] = []
        for one in inner:
            if isinstance(one, (dict, list)):
                nested.append(one)
            elif isinstance(one, str):
                decoded = _json(one)
                if isinstance(decoded, (dict, list)):
                    nested.append(decoded)
                else:
                    plain.extend(_values(one))
            elif one is not None and not isinstance(one, bool):
                plain.append(str(one))
        if plain:
            yield plain
        pending.extend(reversed(nested))


def quote(sentences: Sequence[Sentence], chosen: Iterable[int]) -> Iterator[str]:
    """Yield one line for each part with chosen sentences: its speaker and these, an ellipsis where one was left out."""
    line, before = "", -1
    for place in chosen:
        sentence = sentences[place]
        if before >= 0 and sentences[before].part == sentence.part:
            joined = sentence.follows and place == before + 1
            line += f" {sentence.text}" if joined else f" {ELLIPSIS} {sentence.text}"
        else:
            if line:
                yield line
            line = f"{sentence.speaker}: {sentence.text}"
        before = place
    if line:
        yield line
