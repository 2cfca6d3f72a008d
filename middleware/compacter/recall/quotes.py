"""Quotes: the compacted passages that fit a question, and the lines that a step needs.

A question is answered by passages if it has rare words, if a compacted passage fits it, and if
nothing in the request fits as well. A step asks nothing in words: what it names brings the lines
that name it. Both depend on the messages alone, so that the same request gets the same bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import groupby, pairwise

from compacter.errors import UserFunction
from compacter.recall.frame import NOTE, STEP_NOTE, Quotation, frame, line_of
from compacter.recall.index import Index, rarity
from compacter.recall.passages import Passage, Rank, header
from compacter.recall.question import Sentence, SentenceKind
from compacter.recall.terms import stem, terms
from compacter.recall.vectors import fuse
from compacter.recall.weight import OF_PROSE, tokens
from compacter.text.words import FUNCTION_WORDS, TALK_WORDS, words

# Least evidence of each kind of sentence, see `Quoter._search`. Those of the first kind that has it
# are used.
_LEAST: Mapping[SentenceKind, float] = {"asks": 0.6, "leans": 0.43, "orders": 0.95}
# Least evidence of a further sentence, as a share of the best one's.
_BESIDE = 0.3
# The best passage must have a rare word of the question: one in at most `n ** 0.55` of `n`
# passages.
_TELLING = 0.45
# So many rare words make a sentence long: the rest may be a story around what is asked.
_LONG = 4
# Smallest score of a passage, as a share of the best one's.
_WORTH = 0.4
# Between pieces of one message: a line of its own, so that no two items of a list become one.
_GAP = "\n…\n"

# Most different passages that have a name, a rare word or a pair of words.
_RARE = 14
# What a word is worth in a further line of those that have it, as a share of the line before.
_AGAIN = 0.4
# What a line of the user's is worth, as a multiple of one that a tool printed: who tells something
# in passing names the thing once, where lists and logs name it again and again.
_TOLD = 1.5
# Most lines for a step, and characters of them.
_MOST_LINES = 8
_MOST_CHARACTERS = 1_600
_NAMES = "Names used before:"
# Most names that are tried, and characters of their line.
_MOST_NAMES = 200
_LONGEST_NAMES = 400
# Shortest number that tells anything by itself; a shorter one only with the word beside it.
_LEAST_DIGITS = 4
_LEAST_LETTERS = 3


class Quoter:
    """Chooses what is quoted into one request.

    Args:
        index: Index of the compacted messages, and of those in view behind them.
        room: Largest size of the whole text, in characters.
        tokens_of_one: Estimated tokens of one of these characters, see ``tokens_each``. A passage
            whose own characters cost more takes more room.
        texts: What asks: sentences of the user's, or texts of a step.
        request: Text of the request; a line that stands in it is not quoted for its names.
        compacted: Number of runs in the index that are compacted; by default all.
    """

    def __init__(
        self,
        index: Index,
        room: float,
        tokens_of_one: float = OF_PROSE,
        *,
        texts: Iterable[str] = (),
        request: str = "",
        compacted: int | None = None,
    ) -> None:
        self._index = index
        self._compacted = index.count if compacted is None else compacted
        self._room = room - len(frame(""))
        self._tokens_of_one = tokens_of_one
        self._request = _without_space(request)
        self._chosen: dict[int, float] = {}
        # What each run that has a name of the texts has, and the newest one in view of each name.
        self._names: dict[int, dict[str, float]] = {}
        self._newest: dict[str, int] = {}
        for phrase in dict.fromkeys(phrase for text in texts for phrase in _names_in(text)):
            self._look_up(phrase)

    def _look_up(self, phrase: Sequence[str]) -> None:
        """Note the runs that have a name, if it tells some apart: of like ones the newest."""
        index = self._index
        # Words of a pair in any order: the newer statement seldom has the older one's.
        runs = [] if all(map(index.is_common, phrase)) else index.runs_with(map(stem, phrase))
        different = {index.runs[run].text: run for run in sorted(runs, key=self._age)}.values()
        rows = sum(run < self._compacted for run in different)
        for run in different if rows <= _RARE else ():
            name = " ".join(phrase)
            self._names.setdefault(run, {})[name] = rarity(rows, self._compacted)
            if self._is_in_view(run):
                self._newest[name] = run

    def _age(self, run: int) -> tuple[int, int]:
        """Return a key that sorts runs as they were said, oldest first."""
        return self._index.runs[run].entry.index, run

    def _is_in_view(self, run: int) -> bool:
        return run >= self._compacted or _without_space(self._index.runs[run].text) in self._request

    def answer(
        self,
        asked: Sequence[Sentence],
        *,
        rank: Rank | None = None,
        near: Mapping[str, Mapping[int, float]] | None = None,
    ) -> bool:
        """Choose the passages that answer a question. Return whether it stays open: it asks, and
        has no answer among these passages nor in view.

        Args:
            asked: The sentences of the turn's question, see ``question``.
            rank: Ranking function, used instead of the passages' own scores.
            near: How close the passages are in meaning to sentences of the question, see
                ``vectors.closeness``.

        Raises ``FunctionError`` if ``rank`` raises, or does not return one finite number for each
        passage.
        """
        searches = {sentence: self._search(sentence) for sentence in asked}
        told: list[Sentence] = []
        for kind, least in _LEAST.items():
            told = told or [
                each for each in searches if each.kind == kind and searches[each][0] >= least
            ]
        strongest = max((searches[each][0] for each in told), default=0.0)
        scores: dict[int, float] = {}
        for evidence, shares in map(searches.__getitem__, told):
            for run, share in shares.items() if evidence >= _BESIDE * strongest else ():
                scores[run] = max(share, scores.get(run, 0.0))
        if near:
            scores = fuse(scores, list(near.values()), strongest)
        order = sorted(((score, run) for run, score in scores.items()), reverse=True)
        if rank is not None and order:
            order = self._rank(rank, "\n".join(dict.fromkeys(each.text for each in asked)), order)
        for score, number in order:
            # With its answer, if there is room for both.
            if not self._add(self._index.with_answer(number), score):
                self._add((number,), score)
        is_clear = any(evidence <= -_LEAST["asks"] for evidence, _ in searches.values())
        return any(each.kind == "asks" for each in asked) and not (order or is_clear)

    def _search(self, sentence: Sentence) -> tuple[float, dict[int, float]]:
        """Return how clearly the best compacted passage is meant by a sentence, and the scores of
        those that are worth it, as shares of the best one's.

        The evidence is the weight of the words in it, in rare words, times the root of its share of
        the whole weight. 0 without a rare word, and negative if a passage in view fits as well,
        except for a sentence that leans on what was just said: that always does.
        """
        # What stands in view is no neighbour of the last compacted passage: it is read anyway, and
        # seldom what was said next.
        # An order in new words is about new things, not misspelt.
        found = self._index.find(sentence.terms, self._compacted, misspelt=sentence.kind == "asks")
        score, _, held = found.hits[0] if found.hits else (0.0, 0, {})
        in_view = [
            (sum(terms.values()), run)
            for run, terms in found.held.items()
            if run >= self._compacted
        ]
        seen, newest = max(in_view, default=(0.0, 0))
        is_seen = sentence.kind != "leans" and seen >= score
        if is_seen:
            score = seen
            held = found.held.get(newest, {})
        least = _TELLING * math.log(max(1, self._index.count))
        if max(held.values(), default=0.0) <= least:
            return 0.0, {}
        rare = rarity(1, self._index.count)
        whole = max(score, min(found.weight, _LONG * rare))
        evidence = score / rare * math.sqrt(score / whole)
        worth = {hit.number: share for hit in found.hits if (share := hit.score / score) >= _WORTH}
        return -evidence if is_seen else evidence, worth

    def _rank(
        self, rank: Rank, asked: str, order: Sequence[tuple[float, int]]
    ) -> list[tuple[float, int]]:
        def numbers(result: Iterable[float]) -> list[tuple[float, int]]:
            ranked = list(zip(map(float, result), (run for _, run in order), strict=True))
            if not all(math.isfinite(number) for number, _ in ranked):
                raise ValueError
            return sorted(ranked, reverse=True)

        candidates = [passage_of(self._index, [run], score) for score, run in order]
        ranking = UserFunction("rank", rank, "one finite number for each passage", numbers)
        ranked: list[tuple[float, int]] = ranking(asked, candidates)
        return ranked

    def remind(self) -> None:
        """Choose lines that have the names, numbers, rare words and rare pairs of words of the
        texts.

        Each line is chosen for what the lines before it do not have, so that one that asks the same
        of another thing does not hide the line about this one. Of two alike the newer one is taken.
        """
        held = {run: names for run, names in self._names.items() if run < self._compacted}
        used: Counter[str] = Counter()
        lines = 0
        self._room = min(self._room, _MOST_CHARACTERS)
        # A further line has something of its own, or is the second one of a word that is just
        # rare: an error stands below the command that it came of.
        least = _AGAIN * rarity(_RARE, self._compacted)

        def worth(run: int) -> tuple[float, tuple[int, int]]:
            weighed = (weight * _AGAIN ** used[name] for name, weight in held[run].items())
            is_told = self._index.runs[run].entry.role == "user"
            return sum(weighed) * (_TOLD if is_told else 1), self._age(run)

        while held and lines < _MOST_LINES:
            score, (_, best) = max(map(worth, held))
            if score < least:
                break
            names = held.pop(best)
            if not self._is_in_view(best):
                if not self._add((best,), score):
                    continue
                lines += 1
            used.update([*names])

    def _add(self, runs: Iterable[int], score: float) -> bool:
        """Add these runs if there is room for them; return whether there was.

        Newer ones in view that have a name of theirs stand behind them once more: the last
        statement that a reader meets is the newest for him.
        """
        newest = (
            (run, self._newest[name])
            for run in runs
            for name in self._names.get(run, ())
            if name in self._newest
        )
        newer = [last for run, last in newest if self._age(last) > self._age(run)]
        new = {*runs, *newer}.difference(self._chosen)
        needed = 0.0
        for run in new:
            line = line_of(passage_of(self._index, [run], 0), self._index.command(run))
            needed += self._size(line) + len(_GAP)
        if needed > self._room:
            return False
        self._room -= needed
        self._chosen.update(dict.fromkeys(new, score))
        return True

    def quotation(self, note: str = NOTE) -> Quotation | None:
        """Return the text with what was chosen, in the order in which it was said; or ``None``."""
        index = self._index
        passages = []
        lines = ""
        ordered = sorted(self._chosen, key=self._age)
        for _, group in groupby(ordered, lambda run: index.runs[run].place):
            runs = list(group)
            passages.append(passage_of(index, runs, max(map(self._chosen.__getitem__, runs))))
            lines += line_of(passages[-1], index.command(runs[0]))
        if passages and note == STEP_NOTE:
            lines += self._names_before(self._request + lines)
        return Quotation(frame(lines, note), tuple(passages)) if passages else None

    def _names_before(self, request: str) -> str:
        """Return a line with the identifiers that calls used most and the request lacks: an agent's
        next step seldom names what no step before it did.
        """
        used = self._index.names
        line = _NAMES
        for name in nlargest(_MOST_NAMES, reversed(used), key=used.__getitem__):
            longer = f"{line} {name},"
            if self._size(longer) > min(self._room, _LONGEST_NAMES):
                break
            if name not in request:
                line = longer
        return "" if line == _NAMES else f"{line.rstrip(',')}\n"

    def _size(self, line: str) -> float:
        """Return the size of a line in characters, larger where they cost more tokens."""
        return max(len(line), tokens(line) / self._tokens_of_one)


def passage_of(index: Index, runs: Sequence[int], score: float) -> Passage:
    """Return runs of one or two messages as a passage of the first one, with an ellipsis for
    omitted text between runs.

    Lines of a table are returned with its first line.
    """
    first = before = index.runs[runs[0]]
    text = first.text
    for run in map(index.runs.__getitem__, runs[1:]):
        between = run.entry.text[before.end : run.start]
        follows = run.entry is before.entry is first.entry and not between.strip()
        text += (between if follows else _GAP) + run.text
        before = run
    entry = first.entry
    head = header(entry.text, first.start) if entry.role == "tool" else ""
    return Passage(f"{head}\n{text}" if head else text, entry.role, entry.name, entry.index, score)


def _names_in(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words, and the pairs of words beside each other, that may be names."""
    said = [word for word in words(text) if word not in FUNCTION_WORDS]
    for word in said:
        least = _LEAST_DIGITS if word.isdigit() else _LEAST_LETTERS
        if word not in TALK_WORDS and (len(word) >= least or not word.isascii()):
            yield (word,)
    yield from pairwise(said)


def _without_space(text: str) -> str:
    """Return a text without white space: JSON is not written in one way."""
    return "".join(text.split())


def search(index: Index, query: str, limit: int = 5) -> list[Passage]:
    """Return the passages that best match ``query``: best first, at most ``limit``."""
    passages: list[Passage] = []
    taken: set[int] = set()
    for score, number, _ in index.find(terms(query)).hits:
        if number not in taken and len(passages) < limit:
            runs = [run for run in index.with_answer(number) if run not in taken]
            taken.update(runs)
            passages.append(passage_of(index, runs, score))
    return passages
