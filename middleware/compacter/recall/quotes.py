"""Quotes: the compacted passages that fit a question, and the lines that a step needs.

A question is answered by passages if it has rare words, if a compacted passage fits it, and if
nothing in the request fits as well. A step asks nothing in words: what it names brings the lines
that name it. Both depend on the messages alone, so that the same request gets the same bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from compacter.errors import result_of
from compacter.messages.parts import Part
from compacter.recall.frame import NOTE, Quotation, frame, line_of
from compacter.recall.index import Found, Index, rarity
from compacter.recall.passages import Passage, Rank, cut, header
from compacter.recall.question import Question, Sentence
from compacter.recall.terms import stem, terms, words
from compacter.recall.vectors import fuse
from compacter.recall.weight import OF_PROSE, tokens
from compacter.text.words import FUNCTION_WORDS, TALK_WORDS

# Least evidence of a sentence that asks, see `_evidence`.
_LEAST_ASKED = 0.43
# Least evidence of any other sentence.
_LEAST_SAID = 0.95
# Kinds of sentences, whether they ask and lean on the last message; those of one kind are used.
_KINDS = {(True, False): _LEAST_ASKED, (True, True): _LEAST_ASKED, (False, False): _LEAST_SAID}
# Least evidence of a further sentence, as a share of the best one's.
_BESIDE = 0.7
# The best passage must have a rare word of the question: one in at most `n ** 0.55` of `n`
# passages.
_TELLING = 0.45
# Smallest score of a passage, as a share of the best one's.
_WORTH = 0.4
# Between pieces of one message: a line of its own, so that no two items of a list become one.
_GAP = "\n…\n"

# Most different passages that have a name, a rare word or a pair of words.
_RARE = 14
# What a word is worth in a further line of those that have it, as a share of the line before.
_AGAIN = 0.4
# Most lines for a step, and characters of them.
_MOST_LINES = 8
_MOST_CHARACTERS = 1_600
# Shortest number that tells anything by itself; a shorter one only with the word beside it.
_LEAST_DIGITS = 4
_LEAST_LETTERS = 3


class Quoter:
    """Chooses what is quoted into one request.

    Args:
        index: Index of the compacted messages.
        room: Largest size of the whole text, in characters.
        tokens_of_one: Estimated tokens of one of these characters, see ``tokens_each``. A passage
            whose own characters cost more takes more room.
        request: Text of the request; a line that stands in it is not quoted for its names.
    """

    def __init__(
        self, index: Index, room: float, tokens_of_one: float = OF_PROSE, request: str = ""
    ) -> None:
        self._index = index
        self._room = room - len(frame(""))
        self._tokens_of_one = tokens_of_one
        self._request = request
        self._chosen: dict[int, float] = {}

    def answer(
        self,
        asked: Question,
        view: Sequence[Part],
        *,
        rank: Rank | None = None,
        near: Mapping[str, Mapping[int, float]] | None = None,
    ) -> None:
        """Choose the passages that answer a question.

        Args:
            asked: The question of the turn, see ``question``.
            view: The messages before the turn's user message, without summary and quotes.
            rank: Ranking function, used instead of the passages' own scores.
            near: How close the passages are in meaning to sentences of the question, see
                ``vectors.closeness``.

        Raises ``FunctionError`` if ``rank`` raises, or does not return one finite number for each
        passage.
        """
        index = self._index
        # The best passage has a rare word of the question, or the question is not about it.
        least = _TELLING * math.log(max(1, index.count))
        found = [index.find(sentence.terms, least=least) for sentence in asked.sentences]
        strong = [_evidence(each, least, rarity(1, index.count)) for each in found]
        # Sentences whose words do not stand in view. The message that one leans on always does.
        unseen = [
            place
            for place, sentence in enumerate(asked.sentences)
            if strong[place] < _LEAST_ASKED or sentence.leans or not _is_in_view(found[place], view)
        ]
        told = _telling(asked.sentences, unseen, strong)
        scores = _shares(found[place] for place in told)
        if near:
            texts = [asked.sentences[place].text for place in unseen]
            strongest = max((strong[place] for place in told), default=0.0)
            scores = fuse(scores, [near[text] for text in texts if text in near], strongest)
        order = sorted(((score, run) for run, score in scores.items()), reverse=True)
        if rank is not None and order:
            order = self._rank(rank, asked.text, order)
        for score, number in order:
            for runs in (index.with_answer(number), (number,)):
                if self._add([run for run in runs if run not in self._chosen], score):
                    break

    def _rank(
        self, rank: Rank, asked: str, order: Sequence[tuple[float, int]]
    ) -> list[tuple[float, int]]:
        def numbers(result: Iterable[float]) -> list[tuple[float, int]]:
            ranks = list(map(float, result))
            if not all(map(math.isfinite, ranks)):
                raise ValueError
            return sorted(zip(ranks, (run for _, run in order), strict=True), reverse=True)

        candidates = [passage_of(self._index, [run], score) for score, run in order]
        returns = "one finite number for each passage"
        return result_of("rank", rank, asked, candidates, read=numbers, returns=returns)

    def remind(self, texts: Sequence[str]) -> None:
        """Choose lines that have the names, numbers, rare words and rare pairs of words of texts.

        Each line is chosen for what the lines before it do not have, so that one that asks the same
        of another thing does not hide the line about this one. Of two alike the newer one is taken.
        A line that stands in the request is not quoted, but behind an older one of the same names:
        the last one that a reader meets is the newest for him.
        """
        index = self._index
        held: dict[int, dict[str, float]] = {}
        newest: dict[str, int] = {}
        for phrase in dict.fromkeys(phrase for text in texts for phrase in _names_in(text)):
            # Words of a pair in any order: the newer statement seldom has the older one's.
            runs = [] if all(map(index.is_common, phrase)) else index.runs_with(phrase)
            newest.update((index.text(run), run) for run in runs)
            different = {newest[index.text(run)] for run in runs}
            for run in different if len(different) <= _RARE else ():
                held.setdefault(run, {})[" ".join(phrase)] = rarity(len(different), index.count)
        seen = _without_space(self._request)
        used: Counter[str] = Counter()
        visible: dict[str, int] = {}
        lines = 0
        self._room = min(self._room, _MOST_CHARACTERS)
        # A further line has something of its own, or is the second one of a word that is just
        # rare: an error stands below the command that it came of.
        least = _AGAIN * rarity(_RARE, index.count)

        def worth(run: int) -> tuple[float, int]:
            return sum(weight * _AGAIN ** used[name] for name, weight in held[run].items()), run

        while held and lines < _MOST_LINES:
            score, best = max(map(worth, held))
            if score < least:
                break
            names = held.pop(best)
            if _without_space(index.text(best)) in seen:
                visible = {**dict.fromkeys(names, best), **visible}
            elif best in self._chosen or not self._add([best], score):
                continue
            else:
                newer = {visible[name] for name in names if visible.get(name, 0) > best}
                self._add([*newer - {*self._chosen}], score)
                lines += 1
            used.update([*names])

    def _add(self, runs: Sequence[int], score: float) -> bool:
        """Add these runs if there is room for them; return whether there was."""
        needed = 0.0
        for run in runs:
            passage = passage_of(self._index, [run], 0)
            dearer = max(0.0, tokens(passage.text) / self._tokens_of_one - len(passage.text))
            needed += len(line_of(passage, self._index.command(run))) + len(_GAP) + dearer
        if needed > self._room:
            return False
        self._room -= needed
        self._chosen.update(dict.fromkeys(runs, score))
        return True

    def quotation(self, note: str = NOTE) -> Quotation | None:
        """Return the text with what was chosen, in the order in which it was said; or ``None``."""
        index = self._index
        messages: dict[int, list[int]] = {}
        for run in sorted(self._chosen, key=lambda run: (index.entry(run).index, run)):
            messages.setdefault(id(index.entry(run)), []).append(run)
        passages = []
        lines = ""
        for runs in messages.values():
            passages.append(passage_of(index, runs, max(map(self._chosen.__getitem__, runs))))
            lines += line_of(passages[-1], index.command(runs[0]))
        return Quotation(frame(lines, note), tuple(passages)) if passages else None


def passage_of(index: Index, runs: Sequence[int], score: float) -> Passage:
    """Return runs of one or two messages as a passage of the first one, with an ellipsis for
    omitted text between runs.

    Lines of a table are returned with its first line.
    """
    entry = index.entry(runs[0])
    text = index.text(runs[0])
    for before, run in pairwise(runs):
        between = entry.text[index.span(before)[1] : index.span(run)[0]]
        follows = index.entry(run) is index.entry(before) is entry and not between.strip()
        text += (between if follows else _GAP) + index.text(run)
    head = header(entry.text, index.span(runs[0])[0]) if entry.role == "tool" else ""
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


def _shares(found: Iterable[Found]) -> dict[int, float]:
    """Return the scores of the runs, as shares of the best one's of each search."""
    scores: dict[int, float] = {}
    for result in found:
        for hit in result.hits:
            share = hit.score / result.hits[0].score
            if share >= _WORTH:
                scores[hit.number] = max(share, scores.get(hit.number, 0.0))
    return scores


def _telling(
    sentences: Sequence[Sentence], unseen: Sequence[int], strong: Sequence[float]
) -> list[int]:
    """Return the places of the sentences that tell which passages are wanted; of those that ask if
    there are such ones.
    """
    for kind, least in _KINDS.items():
        told = {
            place: strong[place]
            for place in unseen
            if sentences[place][1:3] == kind and strong[place] >= least
        }
        if told:
            best = max(told.values())
            return [place for place, each in told.items() if each >= _BESIDE * best]
    return []


def _is_in_view(found: Found, view: Sequence[Part]) -> bool:
    """Return whether a passage in view has the words of a sentence as well as any compacted one."""
    wanted = [
        (weight, frozenset(map(stem, words(term.text))))
        for term, weight in zip(found.terms, found.weights, strict=True)
    ]
    best = found.hits[0].score
    for part in view:
        for start, end in cut(part.text, lines=part.kind != "text"):
            held = set(map(stem, words(part.text[start:end])))
            if sum(weight for weight, term in wanted if term <= held) >= best:
                return True
    return False


def _evidence(found: Found, least: float, rare: float) -> float:
    """Return how clearly the best passage is meant: the weight of the words in it, in rare words,
    times the root of its share of the whole weight. 0 without a word of the ``least`` weight.
    """
    if not found.hits:
        return 0.0
    score, _, held = found.hits[0]
    heaviest = {True: 0.0, False: 0.0}
    for at, (term, weight) in enumerate(zip(found.terms, found.weights, strict=True)):
        if held >> at & 1:
            heaviest[term.known] = max(weight, heaviest[term.known])
    if heaviest[False] < least or heaviest[False] <= heaviest[True]:
        return 0.0
    return score / rare * math.sqrt(score / sum(found.weights))
