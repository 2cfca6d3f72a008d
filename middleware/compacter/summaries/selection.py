"""Choose pieces that together cover as much weight as possible within a budget: lazy greedy, near linear.

Weighted coverage is submodular, so greedy by gain per character is close to the best choice, and a gain
computed earlier is an upper bound: only the top of the heap has to be looked at again (Minoux 1978; Lin and
Bilmes 2011).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

_HANDLING = 3
"""Characters added to each cost when pieces are compared: fragments read worse than their size tells."""
_EPSILON = 1e-12


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that can be chosen as a whole."""

    words: Sequence[int]
    names: Sequence[int]
    cost: int
    """Characters."""
    group: int = -1
    """The first piece of a group costs ``group_costs[group]`` more; -1 belongs to none."""
    boost: float = 1.0
    """Factor on the weight of its words."""
    pool: int = 0
    """Which of the budgets bounds it besides the first."""


def choose(
    pieces: Sequence[Piece],
    weights: Sequence[float],
    group_costs: Sequence[int],
    budgets: Sequence[int],
    covered: set[int],
) -> list[int]:
    """Return the positions of the chosen pieces, in the order of choice.

    ``budgets[0]`` bounds the whole, ``budgets[n]`` what pieces of pool n may take of it. A feature counts
    once; those in ``covered``, which grows, count no more.
    """
    chosen: list[int] = []
    opened: set[int] = {-1}
    left = list(budgets)

    def gain(piece: Piece) -> float:
        return piece.boost * sum([weights[word] for word in piece.words if word not in covered]) + sum(
            [weights[name] for name in piece.names if name not in covered]
        )

    def cost(piece: Piece) -> int:
        return piece.cost if piece.group in opened else piece.cost + group_costs[piece.group]

    heap = [(-gain(piece) / (cost(piece) + _HANDLING), place) for place, piece in enumerate(pieces)]
    heapq.heapify(heap)
    while heap:
        place = heapq.heappop(heap)[1]
        piece = pieces[place]
        price = cost(piece)
        if price > left[0] or price > left[piece.pool]:
            continue
        value = gain(piece)
        if value <= 0:
            continue
        ratio = value / (price + _HANDLING)
        if heap and -ratio > heap[0][0] + _EPSILON:
            heapq.heappush(heap, (-ratio, place))
            continue
        chosen.append(place)
        opened.add(piece.group)
        covered.update(piece.words)
        covered.update(piece.names)
        left[0] -= price
        if piece.pool:
            left[piece.pool] -= price
    return chosen
