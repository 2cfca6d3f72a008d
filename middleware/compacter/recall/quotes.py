"""Quotes: the compacted passages that fit a question, and the lines that a task needs.

A question is answered by passages if it has rare words, if a compacted passage fits it, and if
nothing in the request fits as well. A task gets the lines with its names, if these are nowhere in
view. Both depend on the messages alone, so that equal requests get equal quotes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise

from compacter.recall.frame import NOTE, Quotation, frame, line_of
from compacter.recall.index import Index, rarity
from compacter.recall.passages import Passage
from compacter.recall.question import is_asking
from compacter.recall.terms import is_about, telling, terms
from compacter.recall.weight import OF_PROSE, tokens

# Least evidence of a sentence that asks, and of another one; see `Quoter._search`. The latter are
# used only if no sentence asks so clearly. With .6 in place of .67 a tenth of idle messages get
# quotes, with .7 two more of a hundred questions miss their answer.
_LEAST_ASKED = 0.67
_LEAST_SAID = 0.95
# Smallest score of a passage, as a share of the best one's.
_WORTH = 0.4
# Between pieces of one message: a line of its own, so that no two items of a list become one.
_GAP = "\n…\n"

# Most different passages that have a name, and most results: text in more results is boilerplate.
_RARE = 10
_MOST_RESULTS = 3
# Weight of a name in each further line that has it, as a share of its weight in the line before.
_AGAIN = 0.4
# Longest message, in characters, that is the user's own words: a longer one is mostly pasted.
_LONGEST_TOLD = 2_000
# Most characters of quotes that begin with lines for a task.
_MOST_CHARACTERS = 500
# Fewest digits of a number that counts by itself; a shorter number needs the word beside it.
_LEAST_DIGITS = 4
_LEAST_LETTERS = 3


class Quoter:
    """Chooses the quotes for one request.

    Args:
        index: Index of the compacted messages, and of those in view behind them.
        room: Largest size of the whole text, in characters.
        tokens_of_one: Estimated tokens of one of these characters, see ``tokens_each``. A passage
            whose own characters cost more takes more room.
        texts: Sentences of the question or task.
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
        # Names found in each run, with their weights; the names that are in view; and for each name
        # the newest run that the request contains already.
        self._names: defaultdict[int, dict[str, float]] = defaultdict(dict)
        self._known: set[str] = set()
        self._newest: dict[str, int] = {}
        for text in texts:
            self._look_up(text)

    # -- a question --------------------------------------------------------------------------------

    def answer(self, asked: Iterable[str], scores: Mapping[int, float] | None = None) -> None:
        """Choose the passages that answer a question.

        Args:
            asked: The sentences of the turn's question, see ``question``.
            scores: Scores of compacted runs by a function of the user's, as shares of the best
                one's; they are added to the runs' own.
        """
        searches = [(is_asking(sentence), *self._search(sentence)) for sentence in asked]
        clear: list[Mapping[int, float]] = []
        for asks, least in ((True, _LEAST_ASKED), (False, _LEAST_SAID)):
            clear = clear or [
                shares for kind, evidence, shares in searches if kind is asks and evidence >= least
            ]
        worth = dict(scores or {})
        for run in {run for shares in clear for run in shares}:
            worth[run] = worth.get(run, 0.0) + max(shares.get(run, 0.0) for shares in clear)
        for score, run in sorted(((score, run) for run, score in worth.items()), reverse=True):
            # With its answer, if there is room for both.
            if not self._add(self._index.with_answer(run), score):
                self._add((run,), score)

    def _search(self, sentence: str) -> tuple[float, Mapping[int, float]]:
        """Return how clearly the best compacted passage is meant by a sentence, and the scores of
        those that are worth it, as shares of the best one's.

        The evidence is the weight of the words in it, in rare words, times the root of its share of
        the whole weight. 0 if a passage in view fits as well.
        """
        # Text in view does not count as a neighbour of the last compacted passage: the model reads
        # it anyway, and it seldom followed that passage.
        found = self._index.find(terms(sentence), self._compacted)
        score = found.hits[0].score if found.hits else 0.0
        in_view = (
            sum(weights.values()) for run, weights in found.held.items() if run >= self._compacted
        )
        if max(in_view, default=0.0) >= score:
            return 0.0, {}
        worth = {hit.number: share for hit in found.hits if (share := hit.score / score) >= _WORTH}
        evidence = score / rarity(1, self._index.count)
        return evidence * math.sqrt(score / max(score, found.weight)), worth

    # -- a task ------------------------------------------------------------------------------------

    def remind(self) -> None:
        """Choose lines that have names of the sentences that stand nowhere in view.

        Each line is chosen for names that the lines before it lack, so that a line with a similar
        question about something else does not hide the line about this one. If two are equal, the
        newer one is chosen.
        """
        held = {
            run: {name: weight for name, weight in names.items() if name not in self._known}
            for run, names in self._names.items()
            if run < self._compacted
        }
        used: Counter[str] = Counter()
        self._room = min(self._room, _MOST_CHARACTERS)
        # A further line has a name that no line before has, or is the second line of a rare word:
        # an error is below the command that caused it.
        least = _AGAIN * rarity(_RARE, self._compacted)

        def worth(run: int) -> tuple[float, tuple[int, int]]:
            weighed = (weight * _AGAIN ** used[name] for name, weight in held[run].items())
            return sum(weighed), self._age(run)

        while held:
            score, (_, best) = max(map(worth, held))
            if score < least:
                break
            names = held.pop(best)
            if self._is_in_view(best) or self._add((best,), score):
                used.update([*names])

    def _look_up(self, sentence: str) -> None:
        """Note the names in a sentence, words and pairs of words, by the runs that have them and
        are the user's or about what the sentence says.

        Ignores names in many different passages or in several results, which are too common or
        boilerplate, and all names of a repeated sentence.
        """
        index = self._index
        whole = _without_space(sentence)
        phrases = dict.fromkeys(_names_in(sentence))
        alike = index.runs_with(chain.from_iterable(phrases))
        compacted = [run for run in alike if run < self._compacted]
        if any(whole in _without_space(index.runs[run].text) for run in compacted):
            return
        names: dict[str, list[int]] = {}
        for phrase in phrases:
            # Accept the words of a pair in any order: another statement seldom has both.
            runs = index.runs_with(phrase)
            if len(runs) > _RARE * _RARE:
                continue  # Comparing them would take long.
            compacted = [run for run in runs if run < self._compacted]
            results = sum(index.runs[run].entry.role == "tool" for run in compacted)
            different = {index.runs[run].text: run for run in sorted(runs, key=self._age)}
            if len(different) <= _RARE and results <= _MOST_RESULTS:
                names[" ".join(phrase)] = list(different.values())
                self._known.update([" ".join(phrase)] if len(runs) > len(compacted) else ())
        for name, found in names.items():
            for run in found:
                is_told = self._is_told(run)
                if not (is_told or is_about(sentence, index.runs[run].text)):
                    continue
                self._names[run][name] = rarity(len(found), self._compacted)
                if self._is_in_view(run) and (run < self._compacted or is_told):
                    self._newest[name] = run

    def _is_told(self, run: int) -> bool:
        """Return whether the user has stated this, in a message that is not mostly pasted."""
        entry = self._index.runs[run].entry
        return entry.role == "user" and len(entry.text) <= _LONGEST_TOLD

    def _age(self, run: int) -> tuple[int, int]:
        """Return a key that sorts runs in the order of the conversation."""
        return self._index.runs[run].entry.index, run

    def _is_in_view(self, run: int) -> bool:
        return run >= self._compacted or _without_space(self._index.runs[run].text) in self._request

    # -- the text ----------------------------------------------------------------------------------

    def _add(self, runs: Iterable[int], score: float) -> bool:
        """Add these runs if there is room for them; return whether there was.

        Newer runs with one of their names are quoted after them, even if the request contains them:
        a reader takes the last statement for the newest.
        """
        newest = (
            (run, self._newest.get(name, run)) for run in runs for name in self._names.get(run, ())
        )
        newer = [last for run, last in newest if self._age(last) > self._age(run)]
        new = {*runs, *newer}.difference(self._chosen)
        needed = 0.0
        for added in new:
            line = line_of(passage_of(self._index, [added], 0))
            # The size is larger if the characters cost more tokens.
            needed += max(len(line), tokens(line) / self._tokens_of_one) + len(_GAP)
        if needed > self._room:
            return False
        self._room -= needed
        self._chosen.update(dict.fromkeys(new, score))
        return True

    def quotation(self, note: str = NOTE) -> Quotation | None:
        """Return the text with the chosen runs, in the order of the conversation; or ``None``."""
        index = self._index
        passages = []
        ordered = sorted(self._chosen, key=self._age)
        for _, group in groupby(ordered, lambda run: index.runs[run].place):
            runs = list(group)
            passages.append(passage_of(index, runs, max(map(self._chosen.__getitem__, runs))))
        lines = "".join(map(line_of, passages))
        return Quotation(frame(lines, note), tuple(passages)) if passages else None


def passage_of(index: Index, runs: Sequence[int], score: float) -> Passage:
    """Return runs of one or two messages as a passage of the first one, with an ellipsis for
    omitted text between runs.
    """
    first = before = index.runs[runs[0]]
    text = first.text
    for run in map(index.runs.__getitem__, runs[1:]):
        between = run.entry.text[before.end : run.start]
        follows = run.entry is before.entry is first.entry and not between.strip()
        text += (between if follows else _GAP) + run.text
        before = run
    entry = first.entry
    return Passage(text, entry.role, entry.name, entry.index, score)


def _names_in(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words, and the pairs of words beside each other, that may be names."""
    said = telling(text)
    for word in said:
        least = _LEAST_DIGITS if word.isdigit() else _LEAST_LETTERS
        if len(word) >= least or not word.isascii():
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
