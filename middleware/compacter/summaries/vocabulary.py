"""What the units of a conversation say: their words and identifiers as numbered features with weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from compacter.summaries.identifiers import WORTH, Found, identifiers
from compacter.summaries.units import Source, Unit
from compacter.summaries.words import EMPTY, raw_words, stem

# Chosen by measuring what agents needed later; the outcome changes little between half and twice these
# values.
_IDENTIFIER_WEIGHT = 12.0
_USED, _RECENT = 1.0, 2.0
_LABEL = 0.1


@dataclass(slots=True)
class Seen:
    """Where an identifier was met."""

    feature: int
    kind: str
    entries: int = 0
    last: int = -1
    used: int = 0
    """Entries that are not the output of a tool."""
    unit: int = 0
    """The last unit that holds it."""
    is_value: bool = False
    """Whether it ever stood for itself instead of labelling something else."""


@dataclass(slots=True)
class Vocabulary:
    """Features of units. A feature's number is its place in ``weights``."""

    weights: list[float] = field(default_factory=list)
    words: list[list[int]] = field(default_factory=list)
    """For each unit."""
    names: list[list[int]] = field(default_factory=list)
    """For each unit, its identifiers."""
    seen: dict[str, Seen] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Features of words as they stand in a text, -1 for empty ones."""

    def names_in(self, text: str) -> list[int]:
        """Return the known identifiers that ``text`` holds."""
        return [self.seen[name].feature for name, _, _ in identifiers(text) if name in self.seen]

    def covered_by(self, text: str) -> set[int]:
        """Return the known features that ``text`` holds."""
        found = {self.numbers[word] for word in raw_words(text) if word in self.numbers}
        found.discard(-1)
        found.update(self.names_in(text))
        return found


def learn(sources: Sequence[Source], units: Sequence[Unit]) -> Vocabulary:
    """Return the features of ``units``, weighted by what they are worth.

    A word is worth more the fewer units hold it. An identifier is worth more the more entries mention it,
    above all in what the assistant or the user said or called, and the later it was seen.
    """
    known = Vocabulary()
    counts: list[int] = []
    stems: dict[str, int] = {}
    runs: dict[str, Found] = {}
    for place, unit in enumerate(units):
        found = {_number(word, known.numbers, stems, counts) for word in raw_words(unit.text)}
        found.discard(-1)
        for number in found:
            counts[number] += 1
        known.words.append(list(found))
        held: set[int] = set()
        for name, kind, is_label in identifiers(unit.text, runs):
            item = known.seen.get(name)
            if item is None:
                item = known.seen[name] = Seen(len(counts), kind)
                counts.append(0)
            if item.last != unit.entry:
                item.entries += 1
                item.last = unit.entry
                item.used += sources[unit.entry].kind != "result"
                item.unit = place
            item.is_value |= not is_label
            held.add(item.feature)
        known.names.append(list(held))
    total = len(units)
    known.weights = [math.log1p(total / count) if count else 0.0 for count in counts]
    for item in known.seen.values():
        use = math.log1p(item.entries) + _USED * math.log1p(item.used) + _RECENT * item.last / len(sources)
        known.weights[item.feature] = (
            _IDENTIFIER_WEIGHT * WORTH[item.kind] * (1 if item.is_value else _LABEL) * (1 + use)
        )
    return known


def _number(word: str, numbers: dict[str, int], stems: dict[str, int], counts: list[int]) -> int:
    """Return the feature of a word as it stands, -1 for an empty one."""
    number = numbers.get(word)
    if number is None:
        if word in EMPTY:
            number = -1
        else:
            number = stems.setdefault(stem(word), len(counts))
            if number == len(counts):
                counts.append(0)
        numbers[word] = number
    return number
