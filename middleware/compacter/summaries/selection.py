"""Choose pieces that together cover as much weight as possible within a budget: lazy greedy, near linear.

Weighted coverage is submodular, so greedy by gain per character is close to the best choice, and a gain computed
earlier is an upper bound: only the top of the heap has to be looked at again (Minoux 1978; Lin and Bilmes 2011).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def choose(
    features: Sequence[Sequence[int]],
    weights: Sequence[float],
    costs: Sequence[int],
    groups: Sequence[int],
    group_costs: Sequence[int],
    budget: int,
    covered: set[int],
    boosts: Sequence[float],
) -> set[int]:
    """Return the chosen pieces.

    Piece i has ``features[i]``, costs ``costs[i]`` characters, and ``group_costs[groups[i]]`` more if it is the first
    one chosen from its group. A feature counts once; those in ``covered`` (which is updated) count no more.
    """
    chosen: set[int] = set()
    opened: set[int] = set()

    def gain(piece: int) -> float:
        return boosts[piece] * sum(weights[feature] for feature in features[piece] if feature not in covered)

    def cost(piece: int) -> int:
        group = groups[piece]
        return costs[piece] + (0 if group in opened else group_costs[group])

    heap = [(-gain(piece) / cost(piece), piece) for piece in range(len(features))]
    heapq.heapify(heap)
    left = budget
    while heap and left > 0:
        _, piece = heapq.heappop(heap)
        price = cost(piece)
        if price > left:
            continue
        value = gain(piece)
        if value <= 0:
            continue
        ratio = value / price
        if heap and -ratio > heap[0][0] + 1e-12:
            heapq.heappush(heap, (-ratio, piece))
            continue
        chosen.add(piece)
        opened.add(groups[piece])
        covered.update(features[piece])
        left -= price
    return chosen
