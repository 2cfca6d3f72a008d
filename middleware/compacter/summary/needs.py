"""Which sentences of a conversation need another one to be understood, and which statements of the
user were followed by a later one about the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import chain

from compacter.summary.rules import takes_back
from compacter.summary.worth import Pool
from compacter.text.speech import TYPED

_RELATED = 0.4
_CHANGED = 0.1
_WORDS = 2
_RARE = 5
"""Two statements are about the same if the words in both have this share of the smaller one's
weight (the second if the user mentions a change), and are at least this many; words in more
sentences than the last number are ignored."""
_ANSWER = 60
_PATH = re.compile(r"[^\s'\"]{0,120}[/\\][^\s'\"]{1,60}")
"""Longest answer, in characters, that needs its question; and the path of a file, which its lines
need."""
_ASKS = ("?", "？", "؟")
# Most topics of a sentence that means nothing without the one before it. With 2, fewer of the names
# that agents needed later are left: .94 for .95.
_LEANING = 1
_POINTERS = frozenset(
    (
        *("it", "its", "that", "this", "these", "those", "them", "they", "one", "ones", "there"),
        *("such", "same", "other", "another", "both", "either", "neither"),
        *("es", "dies", "ça", "cela", "ceci", "eso", "esto", "ello"),
    )
)
"""Words that point at the sentence before, in a sentence of few topics: "Redo it." """
_WORD = re.compile(r"[^\W_]+")
_CHEERS = ("!", "！")


def find_needs(pool: Pool) -> Iterator[tuple[int, int]]:
    """Yield each sentence that needs another one to be understood, with that one.

    These are a short answer of the user and its question, a sentence that points at the one before
    it or leads to the one after it, and a line of a tool's result and the path in its call.
    """
    paths: dict[int, int] = {}
    end = len(pool.sentences)
    for place, one in enumerate(pool.sentences):
        last = pool.sentences[place - 1]
        if one.speaker == "User" and one.size <= _ANSWER:
            if (
                last.speaker == "Assistant"
                and pool.told[place - 1]
                and last.text.endswith(_ASKS)
                and place
            ):
                yield place, place - 1
        elif pool.told[place] and place not in pool.idle:
            if place and pool.told[place - 1] and _leans(pool, place):
                yield place, place - 1
            elif place + 1 < end and pool.leads(place):
                yield place, place + 1
        elif one.call in paths:
            yield place, paths[one.call]
        elif one.part >= 0 and one.part != last.part and _PATH.fullmatch(one.text):
            paths[one.part] = place


def _leans(pool: Pool, place: int) -> bool:
    """Return whether a statement means nothing without the one before it."""
    return (
        pool.topics[place] <= _LEANING
        and not pool.names[place]
        and not _POINTERS.isdisjoint(_WORD.findall(pool.sentences[place].text.lower()))
    )


def find_later(pool: Pool) -> dict[int, int]:
    """Return the last later statement about the same for each of the user's: a change, a
    withdrawal, a report.
    """
    stories = [place for place, told in enumerate(pool.told) if told]
    counts = Counter(chain.from_iterable(pool.words[place] for place in stories))
    few = {word for word, times in counts.items() if times <= _RARE and pool.weights[word]}
    few -= pool.figures
    rare: dict[int, list[int]] = defaultdict(list)
    for place in stories:
        for word in pool.words[place] & few:
            rare[word].append(place)
    said = [
        place
        for place, one in enumerate(pool.sentences)
        if one.speaker == "User"
        and pool.told[place]
        and one.size <= TYPED
        and not one.text.endswith((*_ASKS, *_CHEERS))
    ]
    found: dict[int, int] = {}
    for place in said:
        part = pool.sentences[place].part
        shared: dict[int, list[int]] = defaultdict(list)
        for word in pool.words[place]:
            for other in rare.get(word, ()):
                if pool.sentences[other].part > part and not pool.sentences[other].text.endswith(
                    _ASKS
                ):
                    shared[other].append(word)
        close = {other: _alike(pool, place, other, words, rare) for other, words in shared.items()}
        most = max(close.values(), default=0.0)
        # Of those nearly as close as the closest one: the user's own first, then the newest.
        latest = [
            (pool.sentences[other].speaker == "User", other)
            for other in close
            if close[other] >= most / 2 > 0
        ]
        if latest:
            found[place] = max(latest)[1]
    return found


def _alike(
    pool: Pool, place: int, other: int, shared: Sequence[int], rare: Container[int]
) -> float:
    """Return the share of these rare words in two statements; 0 if these are not about the same
    thing.

    One word is enough if both have a name or a value, or if the user mentions a change.
    """
    later = pool.sentences[other]
    change = later.speaker == "User" and takes_back(later.text)
    if len(shared) < _WORDS and not change and not (pool.names[place] and pool.names[other]):
        return 0.0
    least = min(
        sum(pool.weights[word] for word in pool.words[one] if word in rare)
        for one in (place, other)
    )
    alike = sum(pool.weights[word] for word in shared) / least
    return alike if alike >= (_CHANGED if change else _RELATED) else 0.0
