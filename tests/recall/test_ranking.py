"""The ranking of a search is what its plain description says, however it is made quick."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compacter.recall.index import ranked

_BEFORE = [(-step, 0.8**step) for step in range(1, 5)]
_AFTER = [(step, 0.7**step) for step in range(1, 5)]
_AROUND = [(0, 1.0), *sorted([*_BEFORE, *_AFTER], key=lambda near: (abs(near[0]), near[0]))]


def rank_plainly(
    held: dict[int, dict[str, float]], count: int, limit: int
) -> list[tuple[float, int, dict[str, float]]]:
    """The score of every neighbour of the best runs, term by term."""
    best = sorted(((sum(terms.values()), row) for row, terms in held.items()), reverse=True)
    best = best[: limit + 50]
    hits = []
    for number in {row + step for _, row in best for step, _ in _AROUND} & set(range(count)):
        terms: dict[str, float] = {}
        score = 0.0
        for step, share in _AROUND:
            near = held.get(number + step, {})
            score += share * sum(near[term] for term in near if term not in terms)
            terms |= near
        hits.append((score, number, terms))
    return sorted(hits, key=lambda hit: hit[:2], reverse=True)[:limit]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 8), min_size=6),
    st.dictionaries(st.integers(0, 199), st.sets(st.sampled_from("abcdef"), min_size=1)),
    st.sampled_from([1, 3, 20, 100]),
)
def test_the_ranked_runs_are_those_of_the_plain_sum(
    weights: dict[str, float], said: dict[int, set[str]], limit: int
) -> None:
    held = {row: {term: weights[term] for term in sorted(terms)} for row, terms in said.items()}

    assert ranked(held, 200, limit) == rank_plainly(held, 200, limit)
