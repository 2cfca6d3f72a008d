"""Vectors of texts: how close passages are to a sentence in meaning.

A cosine says little by itself: with one model unrelated texts have 0.1, with another 0.7. So it is
measured against the cosines that the passages have with questions about something else.
"""

from __future__ import annotations

import importlib
import math
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import mul
from typing import Any

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
_MOST_PAIRS = 1_000
"""Most cosines that are taken to learn what is usual: their mean is known to a hundredth then."""
_BEFORE = 0.5
"""Share of the passage before it in a passage's vector: it says what "that one" is. Half of 360
questions about chats then have their answer in the five closest passages, without it .42."""
_LEAST_CLOSE = 0.3
"""Least closeness of the best passage. Of the questions in other words all but a few have it, of
those about something else one in ten. How far the best stands above the question's other cosines
does not tell the two apart."""
_EVEN = 1.0
"""Evidence of a question's words from which they count more than its meaning."""
_BESIDE = 0.5
"""Weight of words that alone would be no reason to quote."""
_WORTH = 0.3
"""Smallest score of a passage, as a share of the best one's."""
_MOST_USUAL = 0.99
"""Largest usual cosine that is believed: an embedder for which all texts are the same tells
nothing."""


def read_vectors(result: Iterable[Iterable[float]], count: int) -> list[array[float]]:
    """Return what an embedder returned as vectors of length 1.

    Raises ``ValueError`` or ``TypeError`` unless it is ``count`` vectors of one number of finite
    numbers, which are not all zero.
    """
    vectors = [array("f", map(float, vector)) for vector in result]
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} vectors for {count} texts")
    if len(set(map(len, vectors))) > 1:
        raise ValueError("vectors of different lengths")
    for vector in vectors:
        length = math.sqrt(sum(map(mul, vector, vector)))
        if not 0 < length < math.inf:
            raise ValueError("a vector without a direction")
        vector[:] = array("f", (number / length for number in vector))
    return vectors


class Closeness:
    """Vectors of the passages of an index, and how close each is to a question.

    Args:
        vectors: One for each passage; ``None`` for one that has none yet.
        elsewhere: Those of the questions ``ELSEWHERE``.
    """

    def __init__(
        self, vectors: Sequence[array[float] | None], elsewhere: Sequence[array[float]]
    ) -> None:
        self._places = [place for place, vector in enumerate(vectors) if vector is not None]
        self._vectors = [
            _with(vector, vectors[place - 1] if place else None)
            for place, vector in enumerate(vectors)
            if vector is not None
        ]
        self._matrix = _matrix(self._vectors)
        self._usual = self._measure(elsewhere)

    def _measure(self, elsewhere: Sequence[array[float]]) -> float:
        """Return the mean cosine of passages and questions about something else."""
        step = max(1, len(self._vectors) * len(elsewhere) // _MOST_PAIRS)
        cosines = [
            sum(map(mul, vector, other))
            for vector in self._vectors[::step]
            for other in elsewhere
            if len(vector) == len(other)
        ]
        return sum(cosines) / len(cosines) if cosines else 1.0

    def to(self, vector: array[float]) -> dict[int, float] | None:
        """Return how close each passage is by its number: 0 is as close as to questions about
        something else, 1 the same text.

        ``None`` if the vector is of another length than the passages', or no passage has one.
        """
        if self._usual > _MOST_USUAL or len(vector) != len(self._vectors[0]):
            return None
        if self._matrix is not None:
            cosines = (self._matrix @ vector).tolist()
        else:
            cosines = [sum(map(mul, other, vector)) for other in self._vectors]
        return {
            place: (cosine - self._usual) / (1 - self._usual)
            for place, cosine in zip(self._places, cosines, strict=True)
        }


def fuse(
    scores: Mapping[int, float], near: Sequence[Mapping[int, float]], evidence: float
) -> dict[int, float]:
    """Return the scores of passages by words and meaning together; unchanged if nothing is close.

    Args:
        scores: Scores by words, as shares of the best one's.
        near: For each sentence that asks, how close the passages are to it.
        evidence: How clearly the words tell which passage is meant; 0 if they do not. The clearer,
            the less the meaning counts, so that a question in a passage's own words finds it.
    """
    meant: dict[int, float] = {}
    for distances in near:
        best = max(distances.values(), default=0.0)
        if best >= _LEAST_CLOSE:
            for run, distance in distances.items():
                # The square, as most passages are somewhat close to any question.
                meant[run] = max(meant.get(run, 0.0), (max(0.0, distance) / best) ** 2)
    if not meant:
        return dict(scores) if evidence else {}
    by_words, by_meaning = (1.0, (_EVEN / evidence) ** 2) if evidence else (_BESIDE, 1.0)
    fused = {
        run: by_words * scores.get(run, 0.0) + by_meaning * meant.get(run, 0.0)
        for run in {*scores, *meant}
    }
    least = _WORTH * max(fused.values())
    return {run: score for run, score in fused.items() if score >= least}


def _with(vector: array[float], before: array[float] | None) -> array[float]:
    """Return a vector with a share of the one before it, of length 1."""
    if before is None or len(before) != len(vector):
        return vector
    both = [own + _BEFORE * other for own, other in zip(vector, before, strict=True)]
    length = math.sqrt(sum(map(mul, both, both))) or 1.0
    return array("f", (number / length for number in both))


def _matrix(vectors: Sequence[array[float]]) -> Any:  # noqa: ANN401
    """Return the vectors as a matrix, if numpy is installed: that is faster."""
    with suppress(ImportError):
        numpy: Any = importlib.import_module("numpy")
        return numpy.array(vectors, dtype="float32") if vectors else None
    return None
