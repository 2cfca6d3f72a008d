"""Quotes: the compacted lines that fit a question, and those that a task needs.

A question is answered by lines if they have enough of its rare words. A task gets the lines with
its names. A line comes with what it needs, a question with its answer, an answer with its question,
and a statement with what changed it since; if that does not fit, it is not quoted. All depends on
the messages alone, so that equal requests get equal quotes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from compacter.lines.asks import CAPITAL, is_asking, is_question, terms
from compacter.lines.frame import NOTE, Quotation, frame, line_of
from compacter.lines.passages import Passage
from compacter.lines.talk import Pick, Talk
from compacter.lines.weight import OF_PROSE, tokens
from compacter.lines.words import keys, rarity

# Least evidence of a sentence that asks, and of another one; see `Quoter._search`.
_LEAST_ASKED = 1.0
_LEAST_SAID = 0.95
# Fewest words that a line shares with a sentence that does not ask.
_FEWEST_SAID = 2
# Number of lines that have a word that is still rare.
_FEW = 3
# Smallest score of a line, as a share of the best one's.
_WORTH = 0.4
# Share of the best score from which a line fits as well.
_EQUAL = 0.8
# Part of all lines that may fit equally well, where that is more than ten.
_MANY = 30
# Least score of what a search finds, as a share of the weight of all its words.
_LEAST_FOUND = 0.05
# Weight of the user's search function beside the question's own words.
_OTHER_WORDS = 0.9
# Between pieces of one message: a line of its own, so that no two items of a list become one.
_GAP = "\n…\n"

# Most texts that hold a name, and most results: text in more results is boilerplate.
_RARE = 10
_MOST_RESULTS = 3
# Weight of a name in each further line that has it, as a share of its weight in the line before.
_AGAIN = 0.4
# Longest message, in characters, that is the user's own words: a longer one is mostly pasted.
_LONGEST_TOLD = 2_000
# Fewest characters of a name: digits of a number that counts by itself, and letters.
_LEAST_DIGITS = 4
_LEAST_LETTERS = 3
# Share of the weight of a sentence that a line needs to be about it.
_ABOUT = 0.18
# Share of the words of a line from which it says the same as a sentence.
_SAME = 0.85
# Most lines with a name that is enough by itself.
_VERY_RARE = 2

# The kinds of sentences, of which the first that is clear is answered.
_KINDS: tuple[tuple[Callable[[str], bool], float], ...] = (
    (is_question, _LEAST_ASKED),
    (is_asking, _LEAST_ASKED),
    (bool, _LEAST_SAID),
)

MOST_FOR_STEP = 670
"""Largest size of quotes in an agent's history, in characters."""


class Quoter:
    """Chooses the quotes for one request.

    Args:
        talk: The compacted messages, and those in view behind them.
        room: Largest size of the whole text, in characters.
        tokens_of_one: Estimated tokens of one of these characters, see ``tokens_each``. A passage
            whose own characters cost more takes more room.
        request: Text of the request; a line that stands in it is not quoted again.
        compacted: Number of texts that are compacted; by default all.
    """

    def __init__(
        self,
        talk: Talk,
        room: float,
        tokens_of_one: float = OF_PROSE,
        *,
        request: str = "",
        compacted: int | None = None,
    ) -> None:
        self._talk = talk
        self._compacted = len(talk.said) if compacted is None else compacted
        self._room = room - len(frame(""))
        self._tokens_of_one = tokens_of_one
        self._request = _without_space(request)
        self._chosen: dict[Pick, float] = {}
        self._topic: set[str] = set()
        """Words of the question or the task."""
        self._newest: dict[str, Pick] = {}
        """By each name, the user's newest line that the request contains already."""

    # -- a question --------------------------------------------------------------------------------

    def answer(self, asked: Iterable[str], scores: Mapping[int, float] | None = None) -> None:
        """Choose the lines that answer a question.

        Args:
            asked: The sentences of the turn's question, see ``question``.
            scores: Scores of compacted texts by a function of the user's, as shares of the best
                one's; they are added to the lines' own.
        """
        asked = list(asked)
        self._topic.update(*map(keys, asked))
        searches = [(sentence, *self._search(sentence)) for sentence in asked]
        clear: list[Mapping[Pick, float]] = []
        for is_kind, least in _KINDS:
            clear = clear or [
                shares
                for sentence, evidence, shares in searches
                if is_kind(sentence) and evidence >= least
            ]
        worth: dict[Pick, float] = {}
        for number, score in (scores or {}).items():
            # Of equal ones the question's own words come first.
            worth[number, 0] = _OTHER_WORDS * score
        for pick in {pick for shares in clear for pick in shares}:
            worth[pick] = worth.get(pick, 0.0) + max(shares.get(pick, 0.0) for shares in clear)
        for score, pick in sorted(((score, pick) for pick, score in worth.items()), reverse=True):
            self._add(pick, score)

    def _search(self, sentence: str) -> tuple[float, Mapping[Pick, float]]:
        """Return how clearly the best compacted line is meant by a sentence, and the scores of
        those that are worth it, as shares of the best one's.
        """
        talk = self._talk
        asks = is_asking(sentence)
        wanted = terms(sentence)
        weights = talk.weights(wanted, self._compacted)
        said = {word: weights[word] for word in wanted if talk.count(word, self._compacted)}
        if self._evidence(said, sum(said.values()), weights, asks=asks) < min(
            _LEAST_ASKED, _LEAST_SAID
        ):
            return 0.0, {}  # Not even a line with all these words would be clear.
        hits = talk.find(wanted, self._compacted)
        if hits and self._is_in_view(hits[0].pick):
            # What stands around it is not needed: it is in the request.
            hits = [hit for hit in hits if hit.held]
        if not hits:
            return 0.0, {}
        best = hits[0]
        shares = {hit.pick: hit.score / best.score for hit in hits}
        # Words that as many lines have mean none of them.
        most = max(_RARE, talk.size(self._compacted) // _MANY)
        if sum(share >= _EQUAL for share in shares.values()) > most:
            return 0.0, {}
        worth = {pick: share for pick, share in shares.items() if share >= _WORTH}
        whole = _without_space(sentence)
        if not asks and any(whole in _without_space(talk.line(pick).text) for pick in worth):
            return 0.0, {}  # It was said before.
        return self._evidence(best.held, best.score, weights, asks=asks), worth

    def _evidence(
        self, held: Mapping[str, float], score: float, weights: Mapping[str, float], *, asks: bool
    ) -> float:
        """Return how clearly a sentence means a line that holds some of its words: their weight, in
        rare words, times the root of its share of the whole weight; of a question at least its
        rarest word.
        """
        if not (asks or len(held) >= _FEWEST_SAID):
            return 0.0
        size = self._talk.size(self._compacted)
        rarest = max(held.values(), default=0.0) / rarity(_FEW, size) if asks else 0.0
        whole = max(score, sum(weights.values()))
        clear = score * math.sqrt(score / whole) / rarity(2, size) if score else 0.0
        return max(rarest, clear)

    # -- a task ------------------------------------------------------------------------------------

    def remind(self, stated: Iterable[str]) -> None:
        """Choose lines that have names of the sentences that stand nowhere in view.

        Each line is chosen for names that the lines before it lack, so that a line with a similar
        question about something else does not hide the line about this one. If two are equal, the
        newer one is chosen.
        """
        held: defaultdict[Pick, dict[str, float]] = defaultdict(dict)
        for sentence in stated:
            self._topic.update(keys(sentence))
            self._look_up(sentence, held)
        used: Counter[str] = Counter()
        # A further line has a name that no line before has, or is the second line of a rare word:
        # an error is below the command that caused it.
        least = _AGAIN * rarity(_RARE, self._talk.size(self._compacted))

        def worth(pick: Pick) -> tuple[float, Pick]:
            weighed = (weight * _AGAIN ** used[name] for name, weight in held[pick].items())
            return sum(weighed), pick

        while held:
            score, best = max(map(worth, held))
            if score < least:
                break
            names = held.pop(best)
            newer = [self._newest.get(name, best) for name in names]
            changes = [pick for pick in newer if pick > best]
            if self._is_in_view(best) or self._add(best, score, changes):
                used.update([*names])
            else:  # An older line about the same would stand for the newest.
                for older in [each for each in held if each < best and held[each].keys() & names]:
                    del held[older]
                    if not any(older in self._talk.needs(each) for each in self._chosen):
                        self._chosen.pop(older, None)

    def _look_up(self, sentence: str, held: dict[Pick, dict[str, float]]) -> None:
        """Note the names in a sentence by the compacted lines that have them and are the user's or
        about what the sentence says.

        Ignores names in many different lines or in several results, which are too common or
        boilerplate, and all names of a repeated sentence.
        """
        talk = self._talk
        whole = _without_space(sentence)
        said = keys(sentence)
        # A user's manner ("Now please ..., and then go on.") is no part of what is meant.
        counts = {word: talk.count(word, self._compacted, but="User") for word in said}
        size = talk.size(self._compacted)
        weights = {word: rarity(count, size) for word, count in counts.items() if count}
        least = _ABOUT * sum(weights.values())
        capitals = {word for name in CAPITAL.findall(sentence) for word in keys(name)}
        names = [(word,) for word in said if _is_long(word)] + [*pairwise(said)]
        lines = {name: talk.lines_with(name, _RARE) for name in dict.fromkeys(names)}
        picks = {pick for found in lines.values() for pick in found}
        if any(whole in _without_space(talk.line(pick).text) for pick in picks):
            return
        # A line that only repeats the sentence, with another name, is another task.
        asked = frozenset(said)
        others = {pick for pick in picks if not self._repeats(pick, asked)}
        # The exact sum: the order of words in a set differs from process to process.
        shared = {
            pick: math.fsum(weights.get(word, 0.0) for word in talk.said[pick[0]].stems(pick[1]))
            for pick in picks
        }
        for name, every in lines.items():
            found = [pick for pick in every if pick in others]
            is_name = len(found) <= _VERY_RARE and capitals.issuperset(name)
            for pick in self._meant(found, shared, -1.0 if is_name else least):
                # Of lines with one name the one that is about more of the sentence is meant.
                weight = rarity(len(found), size) * (1 + shared[pick] / sum(weights.values()))
                held[pick][" ".join(name)] = weight
            told = filter(self._is_told, filter(self._is_in_view, found))
            self._newest.update((" ".join(name), pick) for pick in told)

    def _meant(
        self, found: Sequence[Pick], shared: Mapping[Pick, float], least: float
    ) -> Iterator[Pick]:
        """Yield the compacted ones of the lines with a name that are the user's, or share enough
        with the sentence; those that share more than any in view.
        """
        texts = {number for number, _ in found}
        results = sum(self._talk.said[number].part.role == "tool" for number in texts)
        in_view = max((shared[pick] for pick in found if self._is_in_view(pick)), default=0)
        for pick in found if results <= _MOST_RESULTS else ():
            is_meant = self._is_told(pick) or shared[pick] > least
            if pick[0] < self._compacted and is_meant and shared[pick] > in_view:
                yield pick

    def _repeats(self, pick: Pick, asked: frozenset[str]) -> bool:
        """Return whether nearly all words of a line are those of a sentence; an item says more by
        its heading.
        """
        line = self._talk.line(pick)
        held = set(keys(line.text))
        return not line.needs and len(held & asked) > _SAME * len(held)

    def _is_told(self, pick: Pick) -> bool:
        """Return whether the user has stated this, in a message that is not mostly pasted."""
        said = self._talk.said[pick[0]]
        return said.speaker == "User" and len(said.part.text) <= _LONGEST_TOLD

    def _is_in_view(self, pick: Pick) -> bool:
        """Return whether a line stands in the request, with those that follow it in its run."""
        if pick[0] >= self._compacted:
            return True
        run = self._talk.said[pick[0]].run(pick[1])
        text = "".join(self._talk.line((pick[0], at)).text for at in run)
        return _without_space(text) in self._request

    # -- the text ----------------------------------------------------------------------------------

    def _add(self, pick: Pick, score: float, changes: Sequence[Pick] = ()) -> bool:
        """Add a line with what it needs if there is room; return whether there was.

        What changed a statement since is quoted after it, even if the request contains it: a reader
        takes the last statement for the newest.
        """
        talk = self._talk
        said = talk.said[pick[0]]
        related, floating = talk.changes(pick)
        # What has been changed by something that the request has anyway is not quoted at all.
        if self._is_in_view(pick) or any(
            words & self._topic and self._is_in_view(each) for each, words in related.items()
        ):
            return False
        alone = [(pick[0], at) for at in said.run(pick[1])] + talk.needs(pick)
        whole = talk.whole(pick[0])
        if any(map(self._is_in_view, whole)):
            whole = []
        more = [*changes, *talk.answered(pick), *related, *floating]
        answers = [each for each in talk.answer(pick) if not any(talk.changes(each))]
        return any(
            self._take([*base, *more, *behind], score)
            for base in (whole or alone, alone, [pick, *talk.needs(pick)])
            for behind in ((answers, []) if answers else ([],))
        )

    def _take(self, picks: Iterable[Pick], score: float) -> bool:
        new = set(picks).difference(self._chosen)
        needed = 0.0
        for number in {number for number, _ in new}:
            places = [at for each, at in new if each == number]
            line = line_of(self.passage(number, places, 0.0))
            # The size is larger if the characters cost more tokens.
            needed += max(len(line), tokens(line) / self._tokens_of_one) + len(_GAP)
        if needed > self._room:
            return False
        self._room -= needed
        self._chosen.update(dict.fromkeys(new, score))
        return True

    def quotation(self, note: str = NOTE) -> Quotation | None:
        """Return the text with the chosen lines, in the order of the conversation; or ``None``."""
        places: defaultdict[int, list[int]] = defaultdict(list)
        for number, at in sorted(self._chosen):
            places[number].append(at)
        passages = [
            self.passage(number, each, max(self._chosen[number, at] for at in each))
            for number, each in places.items()
        ]
        return (
            Quotation(frame("".join(map(line_of, passages)), note), tuple(passages))
            if passages
            else None
        )

    def passage(self, number: int, places: Iterable[int], score: float) -> Passage:
        """Return lines of one text as a passage."""
        return passage_of(self._talk, number, places, score)


def passage_of(talk: Talk, number: int, places: Iterable[int], score: float) -> Passage:
    """Return lines of one text as a passage, with an ellipsis for what is left out."""
    said = talk.said[number]
    part = said.part
    name = "pasted text" if said.speaker != "User" and part.role == "user" else part.name
    return Passage(talk.entry(number, places, _GAP), part.role, name, part.index, score)


def _is_long(word: str) -> bool:
    """Return whether a word may be a name by itself: no short number, and no single letter."""
    return len(word) >= (
        _LEAST_DIGITS if word.isdigit() else _LEAST_LETTERS if word.isascii() else 2
    )


def _without_space(text: str) -> str:
    """Return a text without white space: JSON is not written in one way."""
    return "".join(text.split())


def search(talk: Talk, query: str, limit: int = 5) -> list[Passage]:
    """Return the passages that best match ``query``: best first, at most ``limit``."""
    passages: list[Passage] = []
    taken: set[Pick] = set()
    wanted = terms(query)
    least = _LEAST_FOUND * sum(talk.weights(wanted).values())
    for hit in talk.find(wanted):
        if hit.score >= least and hit.pick not in taken and len(passages) < limit:
            said = talk.said[hit.pick[0]]
            picks = [(hit.pick[0], at) for at in said.run(hit.pick[1])] + talk.needs(hit.pick)
            taken.update(picks)
            passages.append(passage_of(talk, hit.pick[0], [at for _, at in picks], hit.score))
    return passages
