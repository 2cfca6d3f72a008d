"""Vectors of texts: how close passages are to a sentence in meaning.

A cosine says little by itself: with one model unrelated texts have 0.1, with another 0.7. So it is
measured against the cosines that the passages have with questions about something else.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import mul
from statistics import fmean

Embed = Callable[[list[str]], Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]]
"""``(texts) -> one vector of numbers for each text``, sync or async."""

ELSEWHERE = (
    "How far is the moon from the earth?",
    "What should I cook tonight?",
    "How do I sort a list of numbers?",
    "How many grams are in an ounce?",
    "What does this word mean?",
    "How does a bicycle stay upright?",
)
"""Questions that hardly any conversation answers; an embedder is asked for their vectors too.

Pairs of passages are no measure: in a conversation of like messages they are closer to each other
than any question is to its answer. In real ones a quarter of the questions in other words fell
below it.
"""
_BEFORE = 0.5
"""Weight of the passage before it in a passage's closeness: it says what "that one" is. Half of 360
questions about chats then have their answer in the five closest passages, without it .42."""
_LEAST_CLOSE = 0.2
"""Least closeness of the best passage. Of the questions in other words all but a few have it, of
those about something else one in ten. How far the best stands above the question's other cosines
does not tell the two apart."""
_EVEN = 1.0
"""Evidence of a question's words from which they count more than its meaning."""
_WORTH = 0.3
"""Smallest share of a passage that is quoted for its meaning."""
_MOST_USUAL = 0.99
"""Largest usual cosine that is believed: an embedder for which all texts are the same tells
nothing."""


def read_vectors(result: Iterable[Iterable[float]], count: int) -> list[array[float]]:
    """Return what an embedder returned as vectors of length 1.

    Raises ``ValueError`` or ``TypeError`` unless it is ``count`` vectors of one number of finite
    numbers, which are not all zero.
    """
    vectors = [array("f", map(float, vector)) for vector in result]
    lengths = [math.sqrt(sum(map(mul, vector, vector))) for vector in vectors]
    sizes = set(map(len, vectors))
    if len(vectors) != count or len(sizes) > 1 or not all(0 < long < math.inf for long in lengths):
        raise ValueError("not one vector for each text")
    return [
        array("f", (number / length for number in vector))
        for vector, length in zip(vectors, lengths, strict=True)
    ]


def closeness(
    passages: Sequence[array[float] | None],
    elsewhere: Sequence[array[float]],
    asked: array[float],
) -> dict[int, float]:
    """Return how close each passage is to a question, by its number: 0 is as close as to questions
    about something else, 1 the same text. Empty if the embedder tells nothing.

    Args:
        passages: Vectors of the passages of an index; ``None`` for one that has none yet.
        elsewhere: Those of the questions ``ELSEWHERE``.
        asked: That of the question.
    """
    known = {
        place: vector
        for place, vector in enumerate(passages)
        if vector is not None and len(vector) == len(asked)
    }
    # The mean of the cosines of all pairs is the product of the means.
    usual = sum(map(mul, _mean(known.values()), _mean(elsewhere)))
    if usual > _MOST_USUAL:
        return {}
    cosines = {place: sum(map(mul, vector, asked)) - usual for place, vector in known.items()}
    return {
        place: (cosine + _BEFORE * cosines.get(place - 1, 0.0)) / (1 + _BEFORE) / (1 - usual)
        for place, cosine in cosines.items()
    }


def _mean(vectors: Iterable[array[float]]) -> list[float]:
    return list(map(fmean, zip(*vectors, strict=True)))


def fuse(
    scores: Mapping[int, float], near: Sequence[Mapping[int, float]], evidence: float
) -> dict[int, float]:
    """Return the scores of passages by words and meaning together; unchanged if nothing is close.

    Args:
        scores: Scores by words, as shares of the best one's.
        near: For each sentence that asks, how close the passages are to it.
        evidence: How clearly the words tell which passage is meant; 0 if they do not: then meaning
            decides alone. The clearer, the less the meaning counts, so that a question in a
            passage's own words finds it.
    """
    meant: dict[int, float] = {}
    for distances in near:
        best = max(distances.values(), default=0.0)
        if best >= _LEAST_CLOSE:
            for run, distance in distances.items():
                # The square, as most passages are somewhat close to any question.
                if distance > 0 and (share := (distance / best) ** 2) >= _WORTH:
                    meant[run] = max(meant.get(run, 0.0), share)
    if not (meant and evidence):
        return meant or dict(scores)
    by_meaning = (_EVEN / evidence) ** 2
    return {
        run: scores.get(run, 0.0) + by_meaning * meant.get(run, 0.0) for run in {*scores, *meant}
    }
