"""The ranking of a search is what its plain description says, however it is made quick."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from compacter.messages.parts import Part
from compacter.recall import quotes
from compacter.recall.index import Found, Index, ranked, rarity
from compacter.recall.question import question

_BEFORE = [(-step, 0.8**step) for step in range(1, 5)]
_AFTER = [(step, 0.7**step) for step in range(1, 5)]
_AROUND = [(0, 1.0), *sorted([*_BEFORE, *_AFTER], key=lambda near: (abs(near[0]), near[0]))]
_TERMS = 6
_WORDS = ("heron", "kettle", "lantern", "ferry", "walnut", "thanks", "again", "what", "the", "7")


def rank_plainly(
    weights: list[float], masks: dict[int, int], count: int, limit: int
) -> list[tuple[float, int, int]]:
    """The score of every neighbour of the best runs, term by term."""

    def weigh(mask: int) -> float:
        return sum(weight for bit, weight in enumerate(weights) if mask >> bit & 1)

    best = sorted(((weigh(mask), row) for row, mask in masks.items()), reverse=True)[: limit + 50]
    hits = []
    for number in {row + step for _, row in best for step, _ in _AROUND} & set(range(count)):
        score = 0.0
        held = 0
        for step, share in _AROUND:
            more = masks.get(number + step, 0) & ~held
            score += share * weigh(more)
            held |= more
        hits.append((score, number, held))
    return sorted(hits, reverse=True)[:limit]


@given(
    st.lists(st.floats(0, 8), min_size=_TERMS, max_size=_TERMS),
    st.dictionaries(st.integers(0, 199), st.integers(1, 2**_TERMS - 1), max_size=120),
    st.sampled_from([1, 3, 20, 100]),
)
def test_the_ranked_runs_are_those_of_the_plain_sum(
    weights: list[float], masks: dict[int, int], limit: int
) -> None:
    assert ranked(weights, masks, 200, limit) == rank_plainly(weights, masks, 200, limit)


def weigh_evidence_plainly(found: Found) -> float:
    """The evidence of a sentence, without a look at what it could be at most."""
    if not found.hits:
        return 0.0
    best = found.hits[0]
    held = [
        (weight, term.known)
        for at, (term, weight) in enumerate(zip(found.terms, found.weights, strict=True))
        if best.held >> at & 1
    ]
    telling = max((weight for weight, known in held if not known), default=0)
    meant = max((weight for weight, known in held if known), default=0)
    if telling < 0.45 * math.log(found.count) or telling <= meant:
        return 0.0
    score = best.score / rarity(1, found.count)
    return score * math.sqrt(best.score / sum(found.weights))


_SENTENCES = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=6).map(" ".join)


@given(st.lists(_SENTENCES, min_size=1, max_size=30), st.lists(_SENTENCES, min_size=1, max_size=4))
def test_no_sentence_that_tells_something_is_left_unsearched(
    said: list[str], asked: list[str]
) -> None:
    parts = [Part("user", "text", text, "", at) for at, text in enumerate(said)]
    text = "? ".join([*asked, ""])
    sentences = question([Part("user", "text", text, "", len(said))], parts[-2:]).sentences

    for found in Index(parts).find_each([sentence.terms for sentence in sentences]):
        plain = weigh_evidence_plainly(found)
        evidence = quotes._evidence(found)
        assert evidence == plain or max(evidence, plain) < 0.43
