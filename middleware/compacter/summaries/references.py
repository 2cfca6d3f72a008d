"""Identifiers with the few words that make them usable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from compacter.messages.parts import Entry
from compacter.summaries.selection import Piece, choose
from compacter.summaries.units import Unit
from compacter.summaries.vocabulary import Vocabulary

POOL = 1
_BEFORE, _AFTER = 28, 16
_LINE = 3
"""Characters of a reference's dash, space and line break."""
_SHORTEST = 6
_SURPLUS = 4
_SPACES = re.compile(r"\s+")


def candidates(
    known: Vocabulary, units: Sequence[Unit], room: int, *, lone_numbers: bool = True
) -> Iterator[tuple[str, Piece]]:
    """Yield the most useful identifiers among their neighbours, up to some times ``room`` characters.

    ``lone_numbers`` are bare numbers that one message alone mentions.
    """
    left = room * _SURPLUS
    for name, item in sorted(known.seen.items(), key=lambda pair: -known.weights[pair[1].feature]):
        if left <= 0:
            return
        if item.kind == "number" and item.entries == 1 and not lone_numbers:
            continue
        text = units[item.unit].text
        start = text.find(name)
        snippet = _around(text, start, start + len(name))
        if len(snippet) >= _SHORTEST:
            left -= len(snippet) + _LINE
            yield snippet, Piece((), known.names_in(snippet), len(snippet) + _LINE, pool=POOL)


def best(known: Vocabulary, units: Sequence[Unit], room: int, covered: set[int]) -> list[str]:
    """Return the references worth most in ``room`` characters, given that ``covered`` is said already.

    No number that was said once: beside prose it costs more, call after call, than it is asked for.
    """
    found = list(candidates(known, units, room, lone_numbers=False))
    chosen = choose([piece for _, piece in found], known.weights, (), (room, room), covered)
    return [found[place][0] for place in sorted(chosen)]


def supplied(entries: Sequence[Entry], extractors: Sequence[Callable[[str], Iterable[str]]]) -> list[str]:
    """Return what the caller's own extractors want kept, newest last, each once."""
    found: dict[str, None] = {}
    for extractor in extractors:
        for entry in entries:
            for text in extractor(entry.text):
                flat = _SPACES.sub(" ", text).strip()
                if flat:
                    found.pop(flat, None)
                    found[flat] = None
    return list(found)


def _around(text: str, start: int, end: int) -> str:
    """Return ``text[start:end]`` with the whole words beside it."""
    left, right = max(0, start - _BEFORE), min(len(text), end + _AFTER)
    if left > 0 and not text[left - 1].isspace():
        space = text.find(" ", left, start)
        left = space + 1 if space >= 0 else start
    if right < len(text) and not text[right].isspace():
        space = text.rfind(" ", end, right)
        right = space if space >= 0 else end
    return text[left:right].strip()
