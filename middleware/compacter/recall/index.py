"""Index of compacted messages: the passages that have each word.

Words are stems without accents; scripts without spaces are searched by pairs of characters. The
score is BM25's weight of rare words in a passage and its neighbours, as an answer seldom repeats
the words of its question.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from heapq import nlargest
from itertools import count as counter
from itertools import starmap
from operator import itemgetter
from sys import getsizeof
from typing import NamedTuple

from compacter.messages.parts import Part
from compacter.recall.passages import cut, readable
from compacter.text.words import read_words, stem

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
# Bytes of a text with its runs and words, for each of its own: 2 to 9 in real talks.
_BYTES_OF_ONE = 6

# End of a question, whose answer is the next text.
_QUESTION = re.compile(r"[?？؟՞][\"'”’)\]]{0,3}\s{0,3}$")

Redact = Callable[[str], str]
_NUMBERS = counter()


class Hit(NamedTuple):
    """One run in the result of a search."""

    score: float
    number: int
    """Number of the run in the index, oldest first."""
    held: Mapping[str, float]
    """Weights of the terms in the run or its neighbours: BM25's weight of a rare word."""


class Found(NamedTuple):
    """Result of one search."""

    weight: float
    """Weight of all terms."""
    held: Mapping[int, Mapping[str, float]]
    """Weights of the terms in each run itself."""
    hits: Sequence[Hit]
    """The runs that match best, the best first."""


class Run(NamedTuple):
    """Some sentences or lines of an entry: the unit of search and quotation."""

    entry: Part
    """The entry; its text is redacted, and JSON is in lines, as searched."""
    place: int
    """Number of the entry in the index."""
    start: int
    end: int
    """Beginning and end of the run in the text of its entry."""

    @property
    def text(self) -> str:
        """The text of the run."""
        return self.entry.text[self.start : self.end]


class _Words(NamedTuple):
    """Postings and texts of the entries that were read."""

    entries: int = 0
    """Number of them."""
    runs: Sequence[Run] = ()
    pieces: Sequence[dict[str, list[int]]] = ()
    """Numbers of the runs that have each word: of ever smaller pieces of the history. Longer
    indexes share them."""


class Index:
    """Searchable index of the compacted messages of one history, which is never changed: its texts
    are read for their words at the first search.

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
        self._begin(list(_searched(entries, redact)))

    def _begin(self, entries: Sequence[Part]) -> None:
        self.entries: list[Part] = []
        """Entries, oldest first."""
        self._words = _Words()
        self.bytes = 0
        """Approximate size of the texts and the index, in bytes."""
        self._append(entries)

    def extend(self, entries: Iterable[Part], redact: Redact | None = None) -> Index:
        """Return a new index, of these and of ``entries`` after them; this one is not changed."""
        longer = copy(self)
        longer._append(list(_searched(entries, redact)))  # noqa: SLF001 - a copy of this one
        return longer

    def _append(self, entries: Sequence[Part]) -> None:
        self.number = next(_NUMBERS)
        """A number that no other index of this process has."""
        self.bytes += _BYTES_OF_ONE * sum(getsizeof(entry.text) for entry in entries)
        self.entries = [*self.entries, *entries]
        if self.bytes > self._max_bytes and self.entries:
            # Begin again with the newer half, so that the total time is linear.
            self._begin(self.entries[len(self.entries) // 2 + 1 :])

    def _read(self) -> _Words:
        """Return what is known of all entries, after reading those that were not read before."""
        known = self._words
        entries = self.entries[known.entries :]
        if not entries:
            return known
        runs: list[Run] = []
        for place, entry in enumerate(entries, known.entries):
            spans = cut(entry.text, lines=entry.kind != "text")
            runs += starmap(partial(Run, entry, place), spans)
        read = read_words([run.text for run in runs])
        piece: dict[str, list[int]] = defaultdict(list)
        for number, (_, topic) in enumerate(read, len(known.runs)):
            for word in topic:
                piece[word].append(number)
        larger = [*known.pieces]
        while larger and len(larger[-1]) <= 2 * len(piece):
            older = larger.pop()
            piece = older | {word: [*older.get(word, ()), *more] for word, more in piece.items()}
        # Two threads may both do so: either result will do.
        self._words = _Words(len(self.entries), [*known.runs, *runs], [*larger, piece])
        return self._words

    @property
    def runs(self) -> Sequence[Run]:
        """Runs of all entries, oldest first; their numbers are their places here."""
        return self._read().runs

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self._read().runs)

    def find(self, wanted: Mapping[str, float], until: int | None = None) -> Found:
        """Return the runs that best match the ``wanted`` terms, see ``terms``; hits are those
        before run ``until``, and so are the neighbours that count for them.
        """
        held: defaultdict[int, dict[str, float]] = defaultdict(dict)
        whole = 0.0
        for term, share in wanted.items():
            runs = self.runs_with(term.split())
            weight = share * rarity(len(runs), self.count)
            whole += weight
            for run in runs:
                held[run][term] = weight
        count = self.count if until is None else until
        before = {run: terms for run, terms in held.items() if run < count}
        return Found(whole, held, ranked(before, count, _MOST_HITS))

    def runs_with(self, words: Iterable[str]) -> list[int]:
        """Return the runs that have all of some words, in any order, oldest first."""
        of_each = [
            {run for piece in self._read().pieces for run in piece.get(stem(word), ())}
            for word in words
        ]
        return sorted(set.intersection(*of_each)) if of_each else []

    def with_answer(self, number: int) -> tuple[int, ...]:
        """Return a run; with the next one if it is a question, whose answer that is."""
        is_question = bool(_QUESTION.search(self.runs[number].text[-8:]))
        return tuple({number, min(number + is_question, self.count - 1)})


def _searched(entries: Iterable[Part], redact: Redact | None) -> Iterator[Part]:
    """Yield entries as they are searched, without system prompts, placeholders of media, and
    reasoning.
    """
    clean = redact or str
    for entry in entries:
        if entry.role == "system" or entry.kind not in ("text", "call", "result") or not entry.text:
            continue
        name = "" if entry.kind == "text" else clean(entry.name)
        # Redact again after reading: names of JSON's fields have become labels.
        text = clean(readable(clean(entry.text), is_data=entry.kind != "text"))
        yield Part(entry.role, entry.kind, text, name, entry.index)


def rarity(rows: int, count: int) -> float:
    """Return BM25's weight of a word in ``rows`` of ``count`` runs; 0 rows count as one."""
    rows = max(1, rows)
    return math.log(1 + (count - rows + 0.5) / (rows + 0.5)) if count else 0.0


def ranked(held: Mapping[int, Mapping[str, float]], count: int, limit: int) -> list[Hit]:
    """Return the best of ``count`` runs, by the terms that each has. If two are equal, the newer
    one comes first.
    """
    best = nlargest(limit, held, key=lambda run: (sum(held[run].values()), run))
    hits: list[Hit] = []
    for number in {near + step for near in best for step in _STEPS}.intersection(range(count)):
        whole: dict[str, float] = {}
        score = 0.0
        for step, share in _AROUND:
            near = held.get(number + step, {})
            more = {term: weight for term, weight in near.items() if term not in whole}
            score += share * sum(more.values())
            whole |= more
        hits.append(Hit(score, number, whole))
    return sorted(hits, key=itemgetter(0, 1), reverse=True)[:limit]
