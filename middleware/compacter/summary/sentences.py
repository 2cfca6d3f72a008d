"""What was said, sentence by sentence: every sentence stands word for word in one message, under its speaker."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compacter.messages.parts import Part

ELLIPSIS = "…"
"""Marks what was left out between two pieces of a line."""

TYPED = 600
"""Characters up to which a message was typed; a longer one may be a document or a log."""
_LONGEST, _SHORTEST_CUT = 320, 120
_RECORD, _SHORTEST_VALUE, _LONG_NUMBER = 60, 3, 6
"""Characters of a record's values that are taken as one piece."""
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\x00-\x08\x0e-\x1f\x7f]")
_END = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]*]))(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)"
    r"(?<!^\d\.)(?<!^\d\d\.)\s+(?=[\w\"'“‘(\[*`$€£¿¡-])(?!(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)"
    r"|(?<=[。！？])\s*"
)
"""Where a sentence ends; not behind an abbreviation, a list's number, or the day of a German date."""
_CLAUSE = re.compile(r"[,;:)}\]]\s+|[，；：、]")
_LETTERS = re.compile(r"[^\W\d_]")
_CODE = re.compile(r"[{}()\[\];=<>|\\$/_`]")
_CODE_SHARE = 10
_WORDS = 5
_ENDS = (".", "!", "?", ":", "。", "！", "？", "：")
_FULL_STOPS = ("。", "！", "？")
"""Ends of sentences that no space follows."""
_FENCE = "```"
_ITEM = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s")
_NAME, _LONGEST_NAME = re.compile(r"[^\w. /-]+"), 60


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of prose, one line of code or output, or some values of a record."""

    text: str
    """Word for word, on one line."""
    speaker: str
    """``User``, ``Assistant``, ``Tool NAME``, or ``Summary`` for prose of an earlier summary."""
    part: int
    """Which part of a message it belongs to; all sentences of one part stand on one line."""
    follows: bool = False
    """Whether it stands right behind the sentence before it, on the same line."""
    prose: bool = True
    """Whether it was written for a reader: a text, and neither code nor output."""
    output: bool = False
    """Whether a tool gave it."""
    size: int = 0
    """Characters of the whole text it belongs to."""
    lead: int = 0
    """For an item of a list, how many sentences before it the line stands that leads to the list."""


def read(parts: Sequence[Part], first: int = 0) -> Iterator[Sentence]:
    """Yield the sentences of ``parts`` in order; numbers of parts begin with ``first``. Linear in the text."""
    called: deque[str] = deque()
    for number, part in enumerate(parts, first):
        if part.kind in ("summary", "media") or part.role == "system":
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
        speaker = f"Tool {_NAME.sub(' ', name).strip()[:_LONGEST_NAME] or part.kind}"
        for piece in _values(part.text):
            yield Sentence(piece, speaker, number, prose=False, output=part.kind == "result", size=len(part.text))


def _text(part: Part, number: int) -> Iterator[Sentence]:
    speaker = "User" if part.role == "user" else "Assistant"
    size = len(part.text)
    code = False
    count = lead = 0
    for line in _ANSI.sub("\n", part.text).splitlines():
        if line.lstrip().startswith(_FENCE):
            code = not code
            continue
        item = _ITEM.match(line) is not None
        follows = False
        for text in split(line):
            count += 1
            prose = not code and (_plain(text, _CODE_SHARE // 2) if size <= TYPED else reads(text))
            behind = count - lead if item and lead else 0
            yield Sentence(text, speaker, number, follows, prose, size=size, lead=behind)
            if not item:
                lead = count if text.endswith((":", "：")) else 0
            follows = True


def split(text: str) -> Iterator[str]:
    """Yield the sentences of ``text``; a very long one in pieces that begin with a clause."""
    for sentence in _END.split(text):
        flat = sentence.strip()
        if len(flat) > _LONGEST:
            yield from _clauses(flat)
        elif any(map(str.isalnum, flat)):
            yield flat


def reads(text: str) -> bool:
    """Whether ``text`` looks like prose: several words or a whole sentence, and neither code nor output."""
    return _plain(text, _CODE_SHARE) and (text.endswith(_ENDS) or text.count(" ") >= _WORDS or not text.isascii())


def _plain(text: str, share: int) -> bool:
    """Whether ``text`` is mostly letters, with less than one mark of code in ``share`` characters."""
    return len(_LETTERS.findall(text)) * 2 > len(text) and len(_CODE.findall(text)) * share < len(text)


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
            flat = line.strip()
            if len(flat) > _LONGEST:
                yield from _clauses(flat)
            elif sum(map(str.isalnum, flat)) > (_SHORTEST_VALUE if _LETTERS.search(flat) else _LONG_NUMBER):
                yield flat
        return
    for values in _records(record):
        run = ""
        for value in filter(_tells, values):
            if run and len(run) + len(value) > _RECORD:
                yield run
                run = ""
            run = f"{run} {ELLIPSIS} {value}" if run else value
        if run:
            yield run


def _tells(value: str) -> bool:
    """Whether a value can be understood without its key."""
    return len(value) > _SHORTEST_VALUE and not (value.isalpha() and value.islower())


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
            if not (sentence.follows and place == before + 1):
                line += f" {ELLIPSIS} "
            elif not line.endswith(_FULL_STOPS):
                line += " "
            line += sentence.text
        else:
            if line:
                yield line
            line = f"{sentence.speaker}: {sentence.text}"
        before = place
    if line:
        yield line
