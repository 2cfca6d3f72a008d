"""Vectors of texts: how close passages are to a sentence in meaning.

A cosine says little by itself: with one model unrelated texts have 0.1, with another 0.7. So it is
measured against the cosines that two passages of the same conversation usually have.
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

_MOST_PAIRS = 1_000
"""Pairs of passages whose cosines are taken: their mean is known to a hundredth then."""
_FEWEST = 8
"""Fewest passages with vectors whose cosines tell what is usual."""
_BEFORE = 0.5
"""Share of the passage before it in a passage's vector: it says what "that one" is. Half of 360
questions about chats then have their answer in the five closest passages, without it .42."""
_LEAST_CLOSE = 1.0
"""Least closeness of the best passage. The cosine itself, or how far it stands above the question's
others, does not tell a question from idle talk."""
_EVEN = 1.0
"""Evidence of a question's words from which they count more than its meaning."""
_BESIDE = 0.5
"""Weight of words that alone would be no reason to quote."""
_WORTH = 0.3
"""Smallest score of a passage, as a share of the best one's."""
_LEAST_SPREAD = 0.01
"""Smallest spread that is believed: of passages that are all the same nothing stands out."""


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

    ``vectors`` has one for each passage; ``None`` for one that has none yet.
    """

    def __init__(self, vectors: Sequence[array[float] | None]) -> None:
        self._count = len(vectors)
        self._places = [place for place, vector in enumerate(vectors) if vector is not None]
        self._vectors = [
            _with(vector, vectors[place - 1] if place else None)
            for place, vector in enumerate(vectors)
            if vector is not None
        ]
        self._matrix = _matrix(self._vectors)
        self._usual, self._spread = self._measure()

    def _measure(self) -> tuple[float, float]:
        """Return mean and standard deviation of the cosines of pairs of passages."""
        count = len(self._vectors)
        if count < _FEWEST:
            return 0.0, 0.0
        # Each with one half of the list away: neighbours tell of the same thing.
        step = max(1, count // _MOST_PAIRS)
        cosines = [
            sum(map(mul, self._vectors[place], self._vectors[(place + count // 2) % count]))
            for place in range(0, count, step)
        ]
        mean = sum(cosines) / len(cosines)
        return mean, math.sqrt(sum((cosine - mean) ** 2 for cosine in cosines) / len(cosines))

    def to(self, vector: array[float]) -> dict[int, float] | None:
        """Return how close each passage is: standard deviations above the usual cosine, by its
        number.

        ``None`` if the vector is of another length, or too few passages have vectors.
        """
        if self._spread < _LEAST_SPREAD or len(vector) != len(self._vectors[0]):
            return None
        if self._matrix is not None:
            cosines = (self._matrix @ vector).tolist()
        else:
            cosines = [sum(map(mul, other, vector)) for other in self._vectors]
        return {
            place: (cosine - self._usual) / self._spread
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
                # The square, as half of all passages are somewhat close to any question.
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
