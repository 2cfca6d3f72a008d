"""Index of compacted messages: SQLite's full-text search (FTS5) over their passages, in memory.

FTS5 finds the words, with English stemming and without accents; scripts without spaces are searched
by pairs of characters. The score is BM25's weight of rare words in a passage and its neighbours, as
an answer seldom repeats the words of its question.
"""

from __future__ import annotations

import math
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count as counter
from itertools import takewhile
from sys import getsizeof
from typing import Any, NamedTuple

from compacter.database import Database, LibraryUnusableError
from compacter.errors import CompacterError
from compacter.locks import Lock
from compacter.messages.parts import Part
from compacter.recall.passages import asks, cut, readable
from compacter.recall.terms import Term, space_out

MAX_BYTES = 64_000_000
"""Default size limit of an index in bytes, with its texts; the oldest texts are dropped."""

# Offsets of the neighbours of a passage, and the share of its weight for a word that only occurs
# there.
_AROUND = tuple(
    (side * step, share**step) for step in (1, 2, 3, 4) for side, share in ((-1, 0.8), (1, 0.7))
)
_STEPS = (0, *(step for step, _ in _AROUND))
# Number of runs, beyond the limit, whose neighbours are read too: those with the most weight.
_MORE = 50
# Most occurrences read in one search, which bounds its time: those of the rarest words first, and
# the newest.
_POSTINGS = 5_000
# Number of entries after the user's that are searched for the end of a turn.
_LONGEST_TURN = 200
_TABLE = (
    "CREATE VIRTUAL TABLE passages USING fts5(text, content='', tokenize='porter "
    "unicode61 remove_diacritics 2')"
)
_COUNT = "SELECT count(*) FROM passages WHERE text MATCH ?"
_ROWS = "SELECT rowid FROM passages WHERE text MATCH ? ORDER BY rowid DESC LIMIT ?"

Redact = Callable[[str], str]
_NAMES = counter()


class SearchUnavailableError(CompacterError):
    """Compacted messages cannot be searched: this Python's SQLite was built without FTS5, or this
    process was forked while SQLite was busy.
    """


class Hit(NamedTuple):
    """One run in the result of a search."""

    score: float
    number: int
    """Number of the run in the index, oldest first."""
    held: int
    """Terms in the run or its neighbours: a bit for each, the first term's the lowest."""


@dataclass(slots=True)
class Found:
    """Result of one search, and the state of the index at that time."""

    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    """Weight of each term: BM25's weight of a rare word."""
    limit: int
    """Most hits."""
    count: int
    """Number of runs in the index."""
    entries: Sequence[Part]
    runs: Sequence[int]
    _rows: Sequence[Sequence[int]]
    """Runs that have each term."""
    _hits: tuple[Hit, ...] | None = None

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The runs that match best, the best first. They are ranked when they are first asked for:
        that takes the most time of a search, and few sentences of a message need it.
        """
        if self._hits is None:
            masks: dict[int, int] = {}
            for at, rows in enumerate(self._rows):
                for row in rows:
                    masks[row] = masks.get(row, 0) | 1 << at
            self._hits = tuple(ranked(self.weights, masks, self.count, self.limit))
        return self._hits

    def entry(self, number: int) -> Part:
        """Return the entry of a run; its text is redacted, and JSON is in lines, as searched."""
        return self.entries[self.runs[3 * number]]

    def span(self, number: int) -> tuple[int, int]:
        """Return start and end of a run in the text of its entry."""
        return self.runs[3 * number + 1], self.runs[3 * number + 2]

    def with_answer(self, number: int) -> tuple[int, ...]:
        """Return a run; with the next one if it is a question, or with the end of its turn if tools
        were called.
        """
        answer = self._answer_run(self.runs[3 * number])
        if answer is None and asks(self.entry(number).text[slice(*self.span(number))]):
            answer = number + 1
        return (number,) if answer is None or answer >= self.count else (number, answer)

    def _answer_run(self, place: int) -> int | None:
        """Return the first run of the last text of a turn, if the entry is the user's and tools
        were called for it.
        """
        turn = list(
            takewhile(
                lambda entry: entry.role != "user", self.entries[place + 1 : place + _LONGEST_TURN]
            )
        )
        if self.entries[place].role != "user" or all(entry.kind == "text" for entry in turn):
            return None
        last = next((at for at in range(len(turn), 0, -1) if turn[at - 1].kind == "text"), 0)
        return (
            bisect_left(range(self.count), place + last, key=lambda run: self.runs[3 * run])
            if last
            else None
        )


class Index:
    """Searchable index of the compacted messages of one history. Thread-safe; can be copied and
    pickled.

    ``redact`` (text -> text) is applied to each text when it is added, so that nothing it removes
    is kept or quoted. ``max_bytes`` is the size limit of texts and index. Raises
    ``SearchUnavailableError`` if SQLite lacks FTS5.
    """

    def __init__(
        self,
        entries: Iterable[Part] = (),
        *,
        redact: Redact | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.redact = redact
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._name = next(_NAMES)
        self.entries: list[Part] = []
        """Entries, oldest first, as they are searched: redacted, JSON as lines."""
        self.bytes = 0
        """Approximate size of the texts and the index, in bytes."""
        self._held = 0
        # Three numbers for each run: its entry, and its start and end in the entry's text.
        self._runs = array("I")
        try:
            self._table = Database(":memory:")
            self._table.execute(_TABLE)
        except LibraryUnusableError as error:
            raise SearchUnavailableError(str(error)) from error
        except sqlite3.OperationalError as error:
            raise SearchUnavailableError(
                "recall needs SQLite with FTS5, which this Python lacks"
            ) from error
        self.add(entries)

    @property
    def version(self) -> tuple[int, int]:
        """Value that changes when something is added, and differs between indexes."""
        return self._name, len(self._runs)

    @classmethod
    def restored(
        cls, entries: Iterable[Part], redact: Redact | None = None, max_bytes: int = MAX_BYTES
    ) -> Index:
        """Return an index of the ``entries`` of another index."""
        index = cls(entries, max_bytes=max_bytes)
        index.redact = redact
        return index

    def extend(self, entries: Iterable[Part]) -> Index:
        """Return a new index, of these and of ``entries`` after them; this one is not changed."""
        other = Index(redact=self.redact, max_bytes=self._max_bytes)
        with self._lock:
            self._table.copy_to(other._table)
            other.entries = self.entries[:]
            other._runs = self._runs[:]
            other._held = self._held
        other.add(entries)
        return other

    def add(self, entries: Iterable[Part]) -> None:
        """Add ``entries`` of a later compaction, after the present ones."""
        with self._lock:
            self._insert(entries, self.redact)
            if self.bytes <= self._max_bytes:
                return
            # Start again with the newest quarter of the limit, so that the total time is linear.
            # Pairs of characters can take six times their text: then with a quarter of that.
            room = self._max_bytes // 4
            while self.bytes > self._max_bytes and self.entries:
                self._keep_newest(room)
                room //= 4

    def _keep_newest(self, room: int) -> None:
        """Index the newest entries again, whose texts take at most ``room`` bytes, and drop all
        others.
        """
        first = len(self.entries)
        while first > 0 and (room := room - getsizeof(self.entries[first - 1].text)) >= 0:
            first -= 1
        newest = self.entries[first:]
        self.entries = []
        self._runs = array("I")
        self._held = 0
        self._table.execute("INSERT INTO passages(passages) VALUES ('delete-all')")
        self._table.execute("VACUUM")
        self._insert(newest, None)

    def _insert(self, entries: Iterable[Part], redact: Redact | None) -> None:
        kept: list[Part] = []
        rows: list[tuple[int, str]] = []
        runs = array("I")
        for entry in entries:
            # Skip system prompts, placeholders of media, and earlier summaries.
            if (
                entry.role == "system"
                or entry.kind not in ("text", "call", "result")
                or not entry.text
            ):
                continue
            clean = redact(entry.text) if redact else entry.text
            text = readable(replace(entry, text=clean))
            if redact and text != clean:
                text = redact(text)  # Names of JSON's fields have become labels.
            for start, end in cut(text, lines=entry.kind != "text"):
                runs.extend((len(self.entries) + len(kept), start, end))
                rows.append(((len(self._runs) + len(runs)) // 3, space_out(text[start:end])))
            name = "" if entry.kind == "text" else entry.name
            kept.append(replace(entry, text=text, name=redact(name) if redact and name else name))
        self._table.execute("BEGIN")
        self._table.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", rows)
        self._table.execute("COMMIT")
        self._runs.extend(runs)
        self.entries.extend(kept)
        ((size,),) = self._table.execute(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        )
        self._held += sum(getsizeof(entry.text) for entry in kept)
        self.bytes = self._held + int(size) + self._runs.itemsize * len(self._runs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild a copy from the texts of this index, which are already redacted."""
        return Index.restored, (self.entries, self.redact, self._max_bytes)

    def find(self, wanted: Iterable[Term], limit: int = 100) -> Found:
        """Return the runs that best match the ``wanted`` terms, at most ``limit``."""
        (found,) = self.find_each([tuple(wanted)], limit)
        return found

    def find_each(
        self,
        groups: Sequence[Sequence[Term]],
        limit: int = 100,
        weights: Sequence[Sequence[float]] | None = None,
    ) -> list[Found]:
        """Return the runs that best match each group of terms, at most ``limit`` for each.

        ``weights`` are the weights of these terms in another search, instead of those in this
        index.
        """
        rows: dict[str, list[int]] = {}
        with self._lock:
            count = len(self._runs) // 3
            entries = self.entries
            runs = self._runs
            texts = dict.fromkeys(term.text for group in groups for term in group)
            counts = {text: self._count(text) for text in texts}
            left = _POSTINGS
            for text in sorted(texts, key=counts.__getitem__):
                if counts[text] > left and left < _POSTINGS:
                    break
                left -= counts[text]
                rows[text] = self._rows(text)
        results: list[Found] = []
        for place, group in enumerate(groups):
            own = weights[place] if weights is not None else None
            told = [
                0.0
                if term.text not in rows
                else own[at]
                if own is not None
                else term.weight * rarity(counts[term.text], count)
                for at, term in enumerate(group)
            ]
            of_each = [rows.get(term.text, ()) for term in group]
            results.append(Found(tuple(group), tuple(told), limit, count, entries, runs, of_each))
        return results

    def passages(self) -> list[str]:
        """Return the texts of all runs, oldest first."""
        with self._lock:
            runs = self._runs
            return [
                self.entries[runs[at]].text[runs[at + 1] : runs[at + 2]]
                for at in range(0, len(runs), 3)
            ]

    def _count(self, text: str) -> int:
        rows: int = self._table.execute(_COUNT, (f'"{text}"',))[0][0]
        return rows

    def _rows(self, text: str) -> list[int]:
        return [row - 1 for (row,) in self._table.execute(_ROWS, (f'"{text}"', _POSTINGS))]


def rarity(rows: int, count: int) -> float:
    """Return BM25's weight of a word in ``rows`` of ``count`` runs; in none counts as in one."""
    rows = max(1, rows)
    return math.log(1 + (count - rows + 0.5) / (rows + 0.5)) if count else 0.0


class _Sums(dict[int, float]):
    """Sums of weights by the terms that they belong to: a bit for each term."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, mask: int) -> float:
        total = 0.0
        left = mask
        while left:  # Few bits are set, of up to a hundred.
            bit = left & -left
            total += self._weights[bit.bit_length() - 1]
            left ^= bit
        self[mask] = total
        return total


def ranked(weights: Sequence[float], masks: dict[int, int], count: int, limit: int) -> list[Hit]:
    """Return the best of ``count`` runs, whose terms are the bits of ``masks``; of two alike, the
    newer one first.

    Some thousand runs are looked at for each sentence of a user's message, so the loop does the
    least that it can.
    """
    sums = _Sums(weights)
    best: Iterable[int] = masks
    if len(masks) > limit + _MORE:
        weighed = zip(map(sums.__getitem__, masks.values()), masks, strict=True)
        best = [number for _, number in sorted(weighed, reverse=True)[: limit + _MORE]]
    held_by = masks.get
    scored: list[tuple[float, int, int]] = []
    for number in {near + step for near in best for step in _STEPS}:
        if not 0 <= number < count:
            continue
        held = held_by(number, 0)
        score = sums[held]
        for step, share in _AROUND:
            mask = held_by(number + step)
            if mask:
                more = mask & ~held
                if more:
                    score += share * sums[more]
                    held |= more
        scored.append((score, number, held))
    scored.sort(reverse=True)
    return [Hit(*values) for values in scored[:limit]]
