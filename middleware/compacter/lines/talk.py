"""The texts of a conversation, each with its speaker, read into lines when somebody
first asks for them.

A word is looked for in the texts as they are; only texts that hold one are read into lines.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from heapq import nlargest
from itertools import count
from operator import itemgetter
from sys import getsizeof
from typing import NamedTuple

from compacter.lines.own import Marks
from compacter.lines.read import Line
from compacter.lines.said import QUESTION, Redact, Said, cleaned, read_parts
from compacter.lines.words import keys, rarity, sought, stems
from compacter.messages.parts import Part

Pick = tuple[int, int]
"""A line: the number of its text in the talk, and its number in that."""

MAX_BYTES = 64_000_000
"""Default size limit of a talk in bytes; the oldest texts are dropped."""
ELLIPSIS = " … "
"""Mark of omitted text between two pieces of an entry."""

# Texts that are read into lines for one search, and those whose neighbours are read too, as an
# answer may have no word of its question.
_MOST_READ = 60
_MOST_NEIGHBOURS = 20
_BEHIND = 4
# Characters of a line, on average, to estimate the number of lines.
_OF_LINE = 100
_FEWEST_LINES = 10
# Longest answer that says nothing without what it answers, and most characters of that.
_LONGEST_ANSWER = 60
_LONGEST_OFFER = 420
# Largest message, in characters, that is quoted whole if it has several lines; and its line breaks.
_WHOLE_MESSAGE = 600
_FEWEST_BREAKS = 2
# A line break that no program has made at a column: the next line begins anew.
_BREAK = re.compile(r"\n(?!\s*[a-zà-ÿа-я])")
# Longest statement that changes an earlier one; and a word that is said no more often is rare.
_LONGEST_CHANGE = 200
_FEW = 3
# Bytes of a text with its lines and words, for each of its own: 2 to 9 in real talks.
_BYTES_OF_ONE = 6
_NUMBERS = count()


class Hit(NamedTuple):
    """A line that a search has found: it has words of the question, or stands beside a line that
    has some.
    """

    score: float
    pick: Pick
    held: Mapping[str, float]
    """Weights of the words in the line itself."""


class Talk:
    """The texts of a conversation in order; never changed. A longer one shares what was read.

    Args:
        parts: Readable parts of messages, oldest first.
        marks: Marks before and after retrieved text in a user's message.
        redact: Applied to each text, so that nothing it removes is kept or quoted.
        max_bytes: Size limit of the texts and what is read of them; the oldest are dropped.
    """

    def __init__(
        self,
        parts: Iterable[Part] = (),
        marks: Marks | None = None,
        *,
        redact: Redact | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.max_bytes = max_bytes
        self.parts: list[Part] = []
        """Parts whose texts these are."""
        self.said: list[Said] = []
        """The texts, in order."""
        self.bytes = 0
        """Approximate size, in bytes."""
        self._add(cleaned(parts, redact), marks)

    def extend(self, parts: Iterable[Part], redact: Redact | None = None) -> Talk:
        """Return a new talk, of these texts and of ``parts`` after them; this one is not
        changed.
        """
        longer = copy(self)
        longer._add(cleaned(parts, redact))  # noqa: SLF001 - a copy of this one
        return longer

    def with_said(self, said: Iterable[Said]) -> Talk:
        """Return a talk with these texts behind its own."""
        longer = copy(self)
        longer.said = [*self.said, *said]
        longer._stated = None  # noqa: SLF001 - a copy of this one
        longer._counts = {}  # noqa: SLF001
        longer._plain = {}  # noqa: SLF001
        return longer

    def _add(self, parts: Sequence[Part], marks: Marks | None = None) -> None:
        self.number = next(_NUMBERS)
        """A number that no other talk of this process has."""
        self._stated: list[tuple[int, frozenset[str]]] | None = None
        self._counts: dict[tuple[str, int | None, str], int] = {}
        self._plain: dict[tuple[int | None, str], str] = {}
        self.bytes += _BYTES_OF_ONE * sum(getsizeof(part.text) for part in parts)
        self.parts = [*self.parts, *parts]
        self.said = [*self.said, *read_parts(parts, marks, is_first=not self.said)]
        if self.bytes > self.max_bytes and self.parts:
            # Begin again with the newer half, so that the total time is linear.
            newer = self.parts[len(self.parts) // 2 + 1 :]
            self.parts = []
            self.said = []
            self.bytes = 0
            self._add(newer, marks)

    # -- what a line brings along ------------------------------------------------------------------

    def line(self, pick: Pick) -> Line:
        """Return the line with the numbers ``pick``: of its text, and of the line in that text."""
        return self.said[pick[0]].lines[pick[1]]

    def needs(self, pick: Pick) -> list[Pick]:
        """Return the other lines of the same text that a reader needs to understand this line, such
        as its heading.
        """
        return [(pick[0], need) for need in self.line(pick).needs]

    def answered(self, pick: Pick) -> list[Pick]:
        """Return the end of the assistant's text that the user has answered, if the line is in a
        short answer of the user. Return an empty list for any other line.
        """
        said = self.said[pick[0]]
        is_answer = said.speaker == "User" and len(said.text.strip()) <= _LONGEST_ANSWER
        return self._offer(pick[0]) if is_answer and not said.is_question else []

    def _offer(self, number: int) -> list[Pick]:
        """Return the end of what the assistant said before the user's answer."""
        for before in range(number - 1, max(-1, number - 4), -1):
            said = self.said[before]
            if said.speaker == "User":
                break
            if said.speaker == "Assistant":
                return self.end_of(before, _LONGEST_OFFER)
        return []

    def changes(self, pick: Pick) -> tuple[dict[Pick, set[str]], list[Pick]]:
        """Return two groups of lines in which the user may have changed this statement later. The
        first group has lines of later statements that share rare words with it, each with these
        words. The second group is the user's next statement, if that repeats no rare word of the
        text before it.
        """
        number = pick[0]
        own = self.said[number]
        if own.part.kind != "text" or own.is_question or own.is_kept:
            return {}, []
        # Two statements with one number are not about one thing.
        words = (word for word in keys(own.lines[pick[1]].text) if not word.isdigit())
        rare = {word for word in words if self.count(word) <= _FEW}
        related: dict[Pick, set[str]] = {}
        floating: list[Pick] = []
        is_next = own.speaker == "User"
        statements = self._statements()
        for later, said in statements[bisect(statements, number, key=itemgetter(0)) :]:
            picks = [(later, at) for at in range(len(self.said[later].lines))]
            if shared := rare & said:
                related |= dict.fromkeys(picks, shared)
            elif is_next:
                before = set(keys(self.said[later - 1].text))
                is_new = not any(self.count(word) <= _FEW for word in said & before)
                floating += picks if is_new else []
            is_next = False
        return dict(list(related.items())[-_FEW:]), floating

    def _statements(self) -> list[tuple[int, frozenset[str]]]:
        """Return the user's short statements with their words."""
        if self._stated is None:
            self._stated = [
                (number, frozenset(stems(said.text)))
                for number, said in enumerate(self.said)
                if said.speaker == "User"
                and len(said.text) <= _LONGEST_CHANGE
                and not said.is_question
            ]
        return self._stated

    def whole(self, number: int) -> list[Pick]:
        """Return all lines of a short text of several lines, which is quoted whole, because one
        line may depend on another in a way that a program cannot see. Return an empty list for any
        other text.
        """
        said = self.said[number]
        is_short = said.part.kind == "text" and len(said.text) <= _WHOLE_MESSAGE
        if is_short and len(_BREAK.findall(said.text.strip())) >= _FEWEST_BREAKS:
            return [(number, at) for at in range(len(said.lines))]
        return []

    def end_of(self, number: int, most: int) -> list[Pick]:
        """Return the last lines of a text, with the lines that they need, in about ``most``
        characters at most.
        """
        lines = self.said[number].lines
        taken: set[int] = set()
        for at in reversed(range(len(lines))):
            more = {at, *lines[at].needs} - taken
            most -= sum(len(lines[each].text) for each in more)
            if most < 0 and taken:
                break
            taken |= more
        return [(number, at) for at in sorted(taken)]

    def answer(self, pick: Pick) -> list[Pick]:
        """Return the first line of the answer to this line, if the line is a question, or if the
        user has given a short answer to it. Return an empty list if there is no answer.
        """
        number = pick[0]
        said = self.said[number]
        for after in range(number + 1, min(len(self.said), number + 3)):
            reply = self.said[after]
            if reply.speaker == said.speaker or reply.part.kind == "call":
                continue
            is_answer = QUESTION.search(self.line(pick).text[-8:]) or (
                said.speaker == "Assistant"
                and reply.speaker == "User"
                and len(reply.text) <= _LONGEST_ANSWER
                and not reply.is_question
            )
            return [(after, 0)] if is_answer and reply.lines else []
        return []

    # -- search ------------------------------------------------------------------------------------

    def count(self, word: str, until: int | None = None, *, but: str = "") -> int:
        """Return how often a word was said in the first ``until`` texts, except those of the
        speaker ``but``.
        """
        key = word, until, but
        if key not in self._counts:
            among = until, but
            if among not in self._plain:
                said = (said for said in self.said[:until] if said.speaker != but)
                self._plain[among] = "\n".join(each.plain for each in said)
            self._counts[key] = self._plain[among].count(sought(word))
        return self._counts[key]

    def size(self, until: int | None = None) -> int:
        """Return the estimated number of lines in the first ``until`` texts; by default in all
        texts.
        """
        return _FEWEST_LINES + sum(len(said.text) for said in self.said[:until]) // _OF_LINE

    def lines_with(self, words: Sequence[str], most: int) -> list[Pick]:
        """Return the lines that have all of these words. Of lines with equal texts, only the newest
        is returned. Return an empty list if there are more than ``most`` lines, or far more texts
        that have the words.
        """
        texts = [
            number
            for number, said in enumerate(self.said)
            if all(sought(word) in said.plain for word in words)
        ]
        different: dict[str, Pick] = {}
        for number in texts if len(texts) <= most * most else ():
            said = self.said[number]
            for at, line in enumerate(said.lines):
                if said.stems(at).issuperset(words):
                    different[line.text] = (number, at)
        return sorted(different.values()) if len(different) <= most else []

    def weights(self, wanted: Mapping[str, float], until: int | None = None) -> dict[str, float]:
        """Return the weight of each word for a search: its factor in ``wanted``, multiplied by the
        rarity of the word among the texts.

        Args:
            wanted: Words in the form of ``keys``, each with a factor, as ``terms`` returns them.
            until: Number of the texts among which a word is counted, from the first one; by default
                all.
        """
        size = self.size(until)
        return {
            word: share * rarity(self.count(word, until), size) for word, share in wanted.items()
        }

    def find(self, wanted: Mapping[str, float], until: int | None = None) -> list[Hit]:
        """Return the lines that best match the ``wanted`` words, each with its share of weight; the
        best first.

        Args:
            wanted: Words in their normal form.
            until: Number of the texts that are searched, from the first one; by default all.
        """
        texts = self.said[:until]
        holding: dict[str, list[int]] = {
            word: [number for number, said in enumerate(texts) if sought(word) in said.plain]
            for word in wanted
        }
        worth: defaultdict[int, float] = defaultdict(float)
        for word, numbers in holding.items():
            weight = wanted[word] * rarity(len(numbers), len(texts))
            for number in numbers:
                worth[number] += weight
        best = nlargest(_MOST_READ, worth, key=lambda number: (worth[number], number))
        near = {at for n in best[:_MOST_NEIGHBOURS] for at in range(n - 1, n + _BEHIND)}
        chosen = sorted({*best, *near}.intersection(range(len(texts))))
        have: dict[Pick, frozenset[str]] = {}
        for number in chosen:
            said = texts[number]
            for places in said.runs:
                words = frozenset[str]().union(*map(said.stems, places))
                have[number, places[0]] = words.intersection(wanted)
        weights = self.weights(wanted, until)
        held = {
            pick: {word: weights[word] for word in sorted(words)} for pick, words in have.items()
        }
        return _ranked(held)

    # -- text --------------------------------------------------------------------------------------

    def entry(self, number: int, places: Iterable[int], gap: str) -> str:
        """Return lines of one text, with ``gap`` where something between two is left out.

        Args:
            number: Number of the text.
            places: Numbers of its lines.
            gap: The mark of what is left out.
        """
        text = ""
        lead = ""
        before = -2
        for at in sorted(set(places)):
            line = self.said[number].lines[at]
            if text:
                text += self.said[number].lines[before].gap if at == before + 1 else gap
            own_lead = f"{line.lead}: " if line.lead and line.lead != lead else ""
            text += own_lead + line.text
            lead = line.lead
            before = at
        return text


# Offsets of a line and its neighbours, and the share of its weight for a word that only occurs
# there.
_AROUND = (
    (0, 1.0),
    *((side * n, share**n) for n in range(1, 5) for side, share in ((-1, 0.8), (1, 0.7))),
)


def _ranked(held: Mapping[Pick, Mapping[str, float]]) -> list[Hit]:
    """Return lines with the words that they and their neighbours have, the best first; of two that
    are equal, the newer one.
    """
    places: dict[int, Pick] = {}
    place = 0
    before = 0
    for pick in sorted(held):
        # Texts that were not read lie between.
        place += 1 if pick[0] <= before + 1 else len(_AROUND)
        before = pick[0]
        places[place] = pick
    hits: list[Hit] = []
    for place, pick in places.items():
        # What stands up to three lines behind words of the question may answer it.
        if not any(held[places[at]] for at in range(place - 3, place + 1) if at in places):
            continue
        whole = set[str]()
        score = 0.0
        for step, share in _AROUND:
            # What stands before the words of a question is seldom its answer.
            if place + step in places and (step <= 0 or held[pick]):
                near = held[places[place + step]]
                score += share * sum(near[word] for word in near if word not in whole)
                whole |= near.keys()
        if score:
            hits.append(Hit(score, pick, held[pick]))
    return sorted(hits, key=lambda hit: (hit.score, hit.pick), reverse=True)
