"""Index of compacted messages: the passages that have each word.

Words are stems without accents; scripts without spaces are searched by pairs of characters. The
score is BM25's weight of rare words in a passage and its neighbours, as an answer seldom repeats
the words of its question.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from heapq import nlargest
from itertools import count as counter
from itertools import takewhile
from string import ascii_lowercase
from sys import getsizeof
from typing import NamedTuple

from compacter.messages.parts import Part
from compacter.recall.passages import cut, readable
from compacter.recall.terms import Term, stem, words
from compacter.text.words import FUNCTION_WORDS

MAX_BYTES = 64_000_000
"""Default size limit of an index in bytes, with its texts; the oldest texts are dropped."""

# Offsets of a passage and its neighbours, and the share of its weight for a word that only occurs
# there.
_AROUND = (
    (0, 1.0),
    *((side * n, share**n) for n in range(1, 5) for side, share in ((-1, 0.8), (1, 0.7))),
)
_STEPS = range(-4, 5)
# Most hits of a search.
_MOST_HITS = 40
# Number of runs, beyond the limit, whose neighbours are read too: those with the most weight.
_MORE = 20
# Power of the number of runs from which on a word is common.
_COMMON = 0.55
# Lengths of words that are looked for with one mistake: shorter ones have too many neighbours.
_MISSPELT = range(6, 25)
# Number of entries after the user's that are searched for the end of a turn.
_LONGEST_TURN = 200
# Size of a word and of one of its places, in bytes.
_BYTES_A_WORD = 200
_BYTES_A_PLACE = 9

# End of a question, whose answer is the next text.
_QUESTION = re.compile(r"[?？؟՞][\"'”’)\]]{0,3}\s{0,3}$")

Redact = Callable[[str], str]
_NUMBERS = counter()


class Hit(NamedTuple):
    """One run in the result of a search."""

    score: float
    number: int
    """Number of the run in the index, oldest first."""
    held: int
    """Terms in the run or its neighbours: a bit for each, the first term's the lowest."""


class Found(NamedTuple):
    """Result of one search."""

    weights: Sequence[float]
    """Weight of each term: BM25's weight of a rare word."""
    masks: Mapping[int, int]
    """Terms in each run itself: bits as in ``Hit.held``."""
    hits: Sequence[Hit]
    """The runs that match best, the best first."""


class Index:
    """Searchable index of the compacted messages of one history, which is never changed.

    ``redact`` (text -> text) is applied to each text when it is added, so that nothing it removes
    is kept or quoted. ``max_bytes`` is the size limit of texts and index.
    """

    def __init__(
        self,
        entries: Iterable[Part] = (),
        *,
        redact: Redact | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._max_bytes = max_bytes
        self.number = next(_NUMBERS)
        """A number that no other index of this process has."""
        self._clear()
        self._append(list(_read(entries, redact)))

    def _clear(self) -> None:
        self.entries: list[Part] = []
        """Entries, oldest first, as they are searched: redacted, JSON as lines."""
        # Three numbers for each run: its entry, and its start and end in the entry's text.
        self._runs = array("I")
        # Runs that have each word, oldest first: of ever smaller pieces of the history. Longer
        # indexes share them.
        self._pieces: list[Mapping[str, list[int]]] = []
        self.bytes = 0
        """Approximate size of the texts and the index, in bytes."""

    def extend(self, entries: Iterable[Part], redact: Redact | None = None) -> Index:
        """Return a new index, of these and of ``entries`` after them; this one is not changed."""
        other = copy(self)
        other.number = next(_NUMBERS)
        other.entries = self.entries[:]
        other._runs = self._runs[:]  # noqa: SLF001 - a copy of this one
        other._pieces = self._pieces[:]  # noqa: SLF001 - as above
        other._append(list(_read(entries, redact)))  # noqa: SLF001 - as above
        return other

    def _append(self, entries: Sequence[Part]) -> None:
        new: dict[str, list[int]] = {}
        number = self.count
        held = 0
        for place, entry in enumerate(entries, len(self.entries)):
            text = entry.text
            self.bytes += getsizeof(text)
            for start, end in cut(text, lines=entry.kind != "text"):
                self._runs.extend((place, start, end))
                for word in set(map(stem, set(words(text[start:end])) - FUNCTION_WORDS)):
                    if word in new:
                        new[word].append(number)
                    else:
                        new[word] = [number]
                    held += 1
                number += 1
        self.entries.extend(entries)
        self.bytes += _BYTES_A_WORD * len(new) + _BYTES_A_PLACE * held
        while new and self._pieces and len(self._pieces[-1]) <= 2 * len(new):
            older = self._pieces.pop()
            new = dict(older) | {word: [*older.get(word, ()), *runs] for word, runs in new.items()}
        if new:
            self._pieces.append(new)
        if self.bytes > self._max_bytes and self.entries:
            # Begin again with the newer half, so that the total time is linear.
            newer = self.entries[len(self.entries) // 2 + 1 :]
            self._clear()
            self._append(newer)

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self._runs) // 3

    def find(self, wanted: Sequence[Term], until: int | None = None) -> Found:
        """Return the runs that best match the ``wanted`` terms; hits are those before run
        ``until``, and so are the neighbours that count for them.
        """
        masks: dict[int, int] = {}
        weights: list[float] = []
        for at, term in enumerate(wanted):
            phrase = list(map(self._spelt, words(term.text)))
            runs = self.runs_with(phrase)
            weights.append(term.weight * rarity(len(runs), self.count))
            for run in runs:
                masks[run] = masks.get(run, 0) | 1 << at
        count = self.count if until is None else until
        before = {run: mask for run, mask in masks.items() if run < count}
        return Found(weights, masks, ranked(weights, before, count, _MOST_HITS))

    def runs_with(self, some: Iterable[str]) -> list[int]:
        """Return the runs that have all of some words, in any order, oldest first."""
        of_each = [
            {run for piece in self._pieces for run in piece.get(stem(word), ())} for word in some
        ]
        return sorted(set.intersection(*of_each)) if of_each else []

    def _times(self, word: str) -> int:
        """Return the number of runs that have a word."""
        return sum(len(piece.get(stem(word), ())) for piece in self._pieces)

    def is_common(self, word: str) -> bool:
        """Return whether a word stands in so many runs that it tells nothing apart."""
        return self._times(word) > math.pow(self.count, _COMMON)

    def _spelt(self, word: str) -> str:
        """Return a word; for a long one that stands nowhere the commonest one that does and differs
        by one letter.
        """
        if len(word) not in _MISSPELT or not word.isalpha() or self._times(word):
            return word
        return max(filter(self._times, _with_one_mistake(word)), key=self._times, default=word)

    def entry(self, number: int) -> Part:
        """Return the entry of a run; its text is redacted, and JSON is in lines, as searched."""
        return self.entries[self._runs[3 * number]]

    def command(self, number: int) -> str:
        """Return the arguments of the call that a run is in the result of, if it stands before."""
        entry = self.entry(number)
        before = self.entries[max(0, self._runs[3 * number] - 1)]
        is_its_call = (entry.role, before.kind, before.name) == ("tool", "call", entry.name)
        return before.text if is_its_call else ""

    def span(self, number: int) -> tuple[int, int]:
        """Return start and end of a run in the text of its entry."""
        return self._runs[3 * number + 1], self._runs[3 * number + 2]

    def text(self, number: int) -> str:
        """Return the text of a run."""
        return self.entry(number).text[slice(*self.span(number))]

    def passages(self) -> list[str]:
        """Return the texts of all runs, oldest first."""
        return list(map(self.text, range(self.count)))

    def with_answer(self, number: int) -> tuple[int, ...]:
        """Return a run; with the next one if it is a question, or with the end of its turn if tools
        were called.
        """
        place = self._runs[3 * number]
        following = self.entries[place + 1 : place + _LONGEST_TURN]
        turn = list(takewhile(lambda entry: entry.role != "user", following))
        texts = [at for at, entry in enumerate(turn, place + 1) if entry.kind == "text"]
        if self.entries[place].role == "user" and 0 < len(texts) < len(turn):
            answer = bisect_left(range(self.count), texts[-1], key=lambda run: self._runs[3 * run])
        else:
            answer = number + bool(_QUESTION.search(self.text(number)[-8:]))
        return tuple({number, min(answer, self.count - 1)})


def _read(entries: Iterable[Part], redact: Redact | None) -> Iterator[Part]:
    """Yield entries as they are searched, without system prompts, placeholders of media, and
    reasoning.
    """
    clean = redact or str
    for entry in entries:
        if entry.role == "system" or entry.kind not in ("text", "call", "result") or not entry.text:
            continue
        name = "" if entry.kind == "text" else clean(entry.name)
        # Once more after it was read: names of JSON's fields have become labels.
        text = clean(readable(clean(entry.text), is_data=entry.kind != "text"))
        same = text is entry.text and name == entry.name
        yield entry if same else replace(entry, text=text, name=name)


def _with_one_mistake(word: str) -> Iterator[str]:
    """Yield a word with a letter left out, added or changed, or with two letters swapped; the first
    letter is seldom wrong.
    """
    for at in range(1, len(word) + 1):
        before = word[:at]
        after = word[at:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in ascii_lowercase:
            yield before + letter + after
            yield before + letter + after[1:]


def weights_in(mask: int, weights: Sequence[float]) -> list[float]:
    """Return the weights of the terms whose bits a mask has."""
    return [weight for at, weight in enumerate(weights) if mask >> at & 1]


def rarity(rows: int, count: int) -> float:
    """Return BM25's weight of a word in ``rows`` of ``count`` runs; in none counts as in one."""
    rows = max(1, rows)
    return math.log(1 + (count - rows + 0.5) / (rows + 0.5)) if count else 0.0


def ranked(weights: Sequence[float], masks: Mapping[int, int], count: int, limit: int) -> list[Hit]:
    """Return the best of ``count`` runs, whose terms are the bits of ``masks``; of two alike, the
    newer one first.
    """

    @cache
    def weigh(mask: int) -> float:
        return sum(weights_in(mask, weights))

    best = nlargest(limit + _MORE, masks, key=lambda run: (weigh(masks[run]), run))
    hits: list[Hit] = []
    for number in {near + step for near in best for step in _STEPS}.intersection(range(count)):
        held = 0
        score = 0.0
        for step, share in _AROUND:
            more = masks.get(number + step, 0) & ~held
            score += share * weigh(more)
            held |= more
        hits.append(Hit(score, number, held))
    return sorted(hits, reverse=True)[:limit]
