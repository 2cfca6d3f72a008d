"""Read parts of messages as sentences with their speakers, and quote some of them again."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from compacter.messages.parts import Part
from compacter.text.sentences import (
    LETTERS,
    LONG_NUMBER,
    LONGEST,
    SHORTEST_VALUE,
    is_prose,
    is_typed_prose,
    lines,
    output_lines,
    split,
)
from compacter.text.values import parse, values
from compacter.text.wrapped import unwrap

ELLIPSIS = "…"
"""Mark of omitted text between two pieces of a line."""
TYPED = 600
"""Longest typed message in characters; a longer one may be a document or a log."""
_RECORD = 60
"""Most characters of values of one record that are joined to one piece: about a line of a table."""
BARE = re.compile(r"[\W\d_]+(?:[TZ][\W\d_]*)*|[^\W\d]+(?:-[^\W\d]+)*")
"""Value that needs its key to be understood: a number, a date or time, a word; not a sentence, an
id or a path."""
_KEY = re.compile(r"[^\W\d][\w. -]{0,30}")
"""A key that a reader understands: not a hash or a path."""
_LONGEST_LABEL = 76
"""Most characters of a speaker with the keys after it; the line of a summary allows 80."""
_NAME = re.compile(r"[^\w. /-]+")
_LONGEST_NAME = 60
"""Most characters of a tool's name: some gateways put a whole path into it."""
_FENCE = "```"
_FULL_STOPS = ("。", "！", "？")
"""Ends of sentences without a space after them."""


class Sentence(NamedTuple):
    """One sentence of prose, one line of code or output, or some values of a record."""

    text: str
    """Verbatim text, on one line."""
    speaker: str
    """``User``, ``Assistant``, ``Tool NAME``, or ``Summary`` for prose of an earlier summary."""
    part: int
    """Number of its part of a message; all sentences of one part are quoted on one line."""
    follows: bool = False
    """Whether it follows the sentence before it on the same line."""
    prose: bool = True
    """Whether it is text for a reader, not code or output."""
    output: bool = False
    """Whether it is the result of a tool."""
    size: int = 0
    """Length of the whole text of its part, in characters."""
    keys: tuple[str, ...] = ()
    """Keys of the values of a record that need them to be understood."""
    call: int = -1
    """Number of the part with the call that it answers; -1 if there is none."""


def calls(parts: Sequence[Part]) -> list[int]:
    """Return, for each result among ``parts``, the place of its call; -1 for every other part, and
    for a result without a call.

    Pairs have the same id; where a format has no ids, results are in the order of the calls. A
    result of several parts has one call.
    """
    waiting: dict[str | None, deque[int]] = defaultdict(deque)
    answered: dict[str | None, int] = {}
    found: list[int] = []
    for place, part in enumerate(parts):
        call = -1
        if part.kind == "call":
            waiting[part.call_id].append(place)
        elif part.kind == "result" and waiting[part.call_id]:
            call = answered[part.call_id] = waiting[part.call_id].popleft()
        elif part.kind == "result" and part.call_id is not None:
            call = answered.get(part.call_id, -1)
        found.append(call)
    return found


def named(parts: Sequence[Part]) -> list[tuple[str, Part]]:
    """Return each part with its tool's name, which some formats omit in results."""
    pairs: list[tuple[str, Part]] = []
    for part, call in zip(parts, calls(parts), strict=True):
        name = part.name or (parts[call].name if call >= 0 else "")
        pairs.append((_NAME.sub(" ", name).strip()[:_LONGEST_NAME], part))
    return pairs


def read(parts: Sequence[Part]) -> list[Sentence]:
    """Return the sentences of ``parts`` in order. Linear in the text."""
    sentences: list[Sentence] = []
    answers = calls(parts)
    for number, (name, part) in enumerate(named(parts)):
        if part.kind in ("summary", "media") or part.role == "system":
            continue
        if part.kind == "text" and part.role in ("user", "assistant"):
            sentences += _read_talk(part, number)
        else:
            sentences += _read_output(part, name, number, answers[number])
    return sentences


def _read_talk(part: Part, number: int) -> Iterator[Sentence]:
    """Yield the sentences and lines of code of a user or an assistant."""
    size = len(part.text)
    speaker = part.role.capitalize()
    is_code = False
    for line in lines(unwrap(part.text)):
        if line.startswith(_FENCE):
            is_code = not is_code
            continue
        follows = False
        for text in split(line):
            if size > TYPED and _is_bare(text):
                continue
            prose = not is_code and (is_typed_prose(text) if size <= TYPED else is_prose(text))
            yield Sentence(text, speaker, number, follows, prose, size=size)
            follows = True


def _is_bare(text: str) -> bool:
    """Return whether ``text`` is the number of an empty line or a bracket, which only matter in
    typed text.
    """
    return not LETTERS.search(text) and sum(map(str.isalnum, text)) <= LONG_NUMBER


def _read_output(part: Part, name: str, number: int, call: int) -> Iterator[Sentence]:
    """Yield the lines of a call or a result; for JSON the values, joined within a record."""
    speaker = f"Tool {name or part.kind}"
    is_result = part.kind == "result"
    for text, keys in _output(part.text):
        yield Sentence(
            text,
            speaker,
            number,
            prose=False,
            output=is_result,
            size=len(part.text),
            keys=keys,
            call=call,
        )


def _output(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of a tool's text; for JSON the values, joined within a record, and the keys
    they need.
    """
    data = parse(text)
    if data is None:
        yield from ((line, ()) for line in output_lines(text))
        return
    records: dict[int, list[tuple[str, str]]] = {}
    for value in values(data):
        # An element of a list has the list's name; the first element of a path may be a position.
        key = next((step for step in reversed(value.path) if not step.isdigit()), "")
        pieces = records.setdefault(value.record, [])
        # A text of several lines is output; a short one may be a value that its key explains.
        several = "\n" in value.text or len(value.text) > LONGEST
        pieces += (
            [(key, line) for line in output_lines(value.text)]
            if several
            else [(key, value.text.strip())]
        )
    for pieces in records.values():
        yield from _join(pieces)


def _join(pieces: Sequence[tuple[str, str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the values of one record, some on a line, with the keys they need."""
    run = ""
    keys = list[str]()
    for key, value in pieces:
        if len(value) <= SHORTEST_VALUE or (value.isalpha() and value.islower()):
            # Most of these mean nothing without a key, and would take the room of better ones.
            continue
        if run and len(run) + len(value) > _RECORD:
            yield run, tuple(keys)
            run = ""
            keys = []
        run = f"{run} {ELLIPSIS} {value}" if run else value
        if key not in keys and _KEY.fullmatch(key) and BARE.fullmatch(value):
            keys.append(key)
    if run:
        yield run, tuple(keys)


def quote(sentences: Sequence[Sentence], chosen: Iterable[int]) -> list[str]:
    """Return one line for each part with chosen sentences: its speaker and these, with an ellipsis
    for omitted ones.

    Keys of a record follow the speaker, each once: ``Tool search (date): AB12 … 2024-05-27 … CD34 …
    2024-05-28``.
    """
    quoted: list[str] = []
    for _, places in groupby(chosen, lambda place: sentences[place].part):
        line = speaker = label = ""
        before = -1
        for place in places:
            sentence = sentences[place]
            if line and not (sentence.follows and place == before + 1):
                line += f" {ELLIPSIS} "
            elif line and not line.endswith(_FULL_STOPS):
                line += " "
            line += sentence.text
            before = place
            speaker = sentence.speaker
            for key in sentence.keys:
                size = len(speaker) + len(label) + len(key)
                if key not in label.split(", ") and size < _LONGEST_LABEL:
                    label += f", {key}" if label else key
        quoted.append(f"{speaker}{label and f' ({label})'}: {line}")
    return quoted
