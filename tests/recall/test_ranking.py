"""The ranking of a search is what its plain description says, however it is made quick."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compacter.recall.index import ranked

_BEFORE = [(-step, 0.8**step) for step in range(1, 5)]
_AFTER = [(step, 0.7**step) for step in range(1, 5)]
_AROUND = [(0, 1.0), *sorted([*_BEFORE, *_AFTER], key=lambda near: (abs(near[0]), near[0]))]
_TERMS = 6


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
