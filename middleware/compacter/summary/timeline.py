"""Summary without a model: sentences of the conversation in order, word for word, fewer of older
messages.

Two sections: the story (sentences of users and assistants), and artifacts (lines of tools and of
code, for the paths, ids and addresses in them). Sentences are chosen by weighted coverage: each
word and each identifier counts once, a rare one more than a common one (Lin and Bilmes 2011,
https://aclanthology.org/P11-1052). This works for every language; lists of words only tell what is
courtesy, and what points at the sentence before it.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import chain

from compacter.messages.parts import Part
from compacter.summary.needs import find_later, find_needs
from compacter.summary.worth import DIGITS, HANDLING, Pool
from compacter.text.sentences import is_prose, split
from compacter.text.speech import BARE, ELLIPSIS, Sentence, quote, read

ARTIFACTS = "Artifacts:"
"""Heading of the lines of tools and of code."""

BESIDE = "Beside"
"""Speaker of lines that stand in another chapter."""

_STORY = 0.4
"""Share of the room for the first choice of the story; artifacts get the rest, and the story their
remainder."""
_FIRST = 0.15
_CHANGES = 0.25
_REQUEST = 3
"""Shares of the room reserved for the first sentences of the first request, and for the user's
statements that changed later; and the number of these first sentences."""
_VALUES = 0.15
"""Share of the room for statements of people with a value that nothing else holds, beside the
output of tools, whose many names would take it. Of thirty such values in real runs, in a tenth of
the size: .64 for .54; with a share of .3 fewer of the names that agents needed later were left."""
_FEW_VALUES = 1_200
_MOST_VALUES = 0.4
"""Characters that such statements may take of a small summary, about thirty of them, and the
largest share of its room: in a small window they were lost one by one, compaction by compaction."""
_LINE = re.compile(r"(User|Assistant|Tool [^:\n]{1,80}?|Summary)(?: \(([^()\n]{1,80})\))?: ")
# Gains that differ by less are equal: rounding alone sends no sentence back to the heap.
_EQUAL = 1e-9
# Characters: with less room than this no sentence is looked for.
_LEAST = 16


def timeline(
    parts: Sequence[Part],
    budget: int,
    prior: str = "",
    in_view: Collection[str] = (),
    beside: Sequence[str] = (),
    is_outdated: Callable[[str], bool] | None = None,
) -> str:
    """Return a summary of ``parts`` and of an earlier summary, ``prior``, in at most ``budget``
    characters.

    ``in_view`` are sentences that the model reads anyway: rules, and those of messages that stay.
    ``beside`` are lines of another chapter, whose names need not be told again. Sentences that are
    outdated, as ``is_outdated`` says, are left out.
    Time and memory are linear in the text.
    """
    apart = [Sentence(line, BESIDE, -1, prose=False) for line in beside]
    said = [*_prior(prior), *read(parts)]
    if is_outdated is not None:
        said = [one for one in said if not is_outdated(one.text)]
    pool = Pool([*apart, *said])
    # Sentences in view count as chosen.
    stated = {place for place, one in enumerate(pool.sentences) if one.text in in_view}
    stated.update(range(len(apart)))
    later = find_later(pool)
    choice = _Choice(pool, chain(later.items(), find_needs(pool)), stated)
    covered: set[int] = set().union(*(pool.words[place] for place in stated))
    # Of equal sentences of one speaker only the last one is used: a later one replaces an earlier
    # one in the dict, as its key is the same.
    newest = (
        set({(one.speaker, one.text): place for place, one in enumerate(pool.sentences)}.values())
        - stated
    )
    # An answer of mere talk ("Yes, please.") comes with its question.
    newest -= pool.idle - choice.needs.keys()
    story = [place for place in newest if pool.told[place]]
    others = [place for place in newest if not pool.told[place]]
    left = budget
    asked = next((one.part for one in pool.sentences if one.speaker == "User"), None)
    request = [place for place, one in enumerate(pool.sentences) if one.part == asked][:_REQUEST]
    # Statements that the user changed later; each is chosen together with the later one.
    changed = [place for place, other in later.items() if pool.sentences[other].speaker == "User"]
    for first, share in ((request, _FIRST), (changed, _CHANGES)):
        left -= choice.fill(newest.intersection(first), int(budget * share), covered)
    valued = [place for place in story if pool.valued[place]]
    spent = 0
    if any(one.speaker.startswith("Tool ") for one in pool.sentences):
        spent = choice.fill(valued, int(budget * _VALUES), covered)
    # Where the room is small, more of those with a figure: names of code are found again.
    if _VALUES * budget < _FEW_VALUES:
        figured = [place for place in valued if DIGITS.search(pool.sentences[place].text)]
        more = int(min(_MOST_VALUES * budget, _FEW_VALUES)) - spent
        spent += choice.fill(figured, more, covered)
    left -= spent
    left -= choice.fill(story, int(left * _STORY) if others else left, covered)
    if others:
        # The heading, two line breaks before it and one after it.
        left -= len(ARTIFACTS) + 3
        left -= choice.fill(others, left, covered)
        left -= choice.fill(story, left, covered)
    # All words are covered once: fill the rest with sentences that repeat some, which often matter.
    again: set[int] = set()
    left -= choice.fill(story, left, again)
    choice.fill(others, left, again)
    told = "\n".join(
        quote(pool.sentences, sorted(place for place in choice.chosen if pool.told[place]))
    )
    artifacts = "\n".join(
        quote(pool.sentences, sorted(place for place in choice.chosen if not pool.told[place]))
    )
    return "\n\n".join(filter(None, [told, artifacts and f"{ARTIFACTS}\n{artifacts}"]))


def _prior(text: str) -> Iterator[Sentence]:
    """Yield the sentences of an earlier summary; lines without a speaker are prose of a model."""
    artifacts = False
    lines = text.splitlines()
    for number, row in enumerate(lines, -len(lines)):  # The numbers of parts begin with 0.
        line = row.strip()
        if not line or line.startswith("#") or (line.endswith(":") and _LINE.match(line) is None):
            artifacts = line == ARTIFACTS or (artifacts and bool(line))
            continue
        said = _LINE.match(line)
        speaker, rest = (said[1], line[said.end() :]) if said else ("Summary", line)
        keys = tuple(said[2].split(", ")) if said and said[2] else ()
        for piece in rest.split(f" {ELLIPSIS} "):
            follows = False
            for sentence in split(piece):
                prose = not artifacts and (
                    speaker in ("User", "Assistant")
                    or (speaker == "Summary" and is_prose(sentence))
                )
                needed = keys if BARE.fullmatch(sentence) else ()
                yield Sentence(
                    sentence, speaker, number, follows, prose, size=len(line), keys=needed
                )
                follows = True


class _Choice:
    """The sentences that are chosen so far."""

    def __init__(
        self, pool: Pool, needed: Iterable[tuple[int, int]], stated: Container[int]
    ) -> None:
        """Begin with none; ``needed`` are pairs of a sentence and one that it needs, unless that is
        ``stated`` anyway.
        """
        self.pool = pool
        self.needs: dict[int, set[int]] = defaultdict(set)
        for place, other in needed:
            if other not in stated:
                self.needs[place].add(other)
        self.chosen: set[int] = set()

    def fill(self, places: Iterable[int], room: int, covered: set[int]) -> int:
        """Choose the best of ``places`` for ``room`` characters, and return the number of
        characters used.

        Lazy greedy by gain per character: the gain of a sentence only falls while others are
        chosen, so only the top of the heap is evaluated again (Minoux 1978). A sentence is chosen
        together with those it needs, or not at all.
        """
        pool = self.pool
        sentences = pool.sentences
        needs = self.needs
        chosen = self.chosen
        most = pool.most.__getitem__
        left = room
        lines: dict[tuple[int, bool], set[str]] = defaultdict(set)
        for place in chosen:
            lines[sentences[place].part, pool.told[place]].update(sentences[place].keys)
        heap = [
            (-most(place) - sum(map(most, needs[place] - chosen if place in needs else ())), place)
            for place in places
            if place not in chosen
        ]
        heapq.heapify(heap)
        while heap and left >= _LEAST:
            _, place = heapq.heappop(heap)
            # Three characters: the ellipsis or the colon between two pieces, with its spaces.
            if place in chosen or len(sentences[place].text) + 3 > left:
                continue
            group = [place, *(needs[place] - chosen)] if place in needs else [place]
            price = 0
            for one in group:
                line = (sentences[one].part, pool.told[one])
                keys = sentences[one].keys
                price += (
                    len(sentences[one].text)
                    + 3
                    + (0 if line in lines else len(sentences[one].speaker))
                )
                price += sum(len(key) + 3 for key in keys if key not in lines.get(line, ()))
            gain = (
                sum([pool.gain(one, covered) for one in group]) / (price + HANDLING)
                if price <= left
                else 0.0
            )
            if gain <= 0:
                continue
            if heap and -gain > heap[0][0] + _EQUAL:
                heapq.heappush(heap, (-gain, place))
                continue
            left -= price
            for one in group:
                chosen.add(one)
                lines[sentences[one].part, pool.told[one]].update(sentences[one].keys)
                covered.update(pool.words[one], pool.names[one])
        return room - left
