"""Kept lines: what stays word for word in a summary, with a model or without one.

One budget and one choice serve all sources: heavier lines first, and of equal ones the newer. Then
the lines stand in order of time, each under its speaker, with an ellipsis where something is left
out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from compacter.summary.head import ELLIPSIS, Head, Said
from compacter.summary.sources import SOURCES, Line, Source

# Characters of a line that are never looked for in messages that stay: "Yes." is everywhere.
_SHORTEST = 16
# Each further line of one weight is worth so much of the one before.
_FADES = 0.95


def keep(
    head: Head,
    budget: int,
    in_rules: Sequence[str] = (),
    *,
    sources: Sequence[Source] = SOURCES,
) -> str:
    """Return kept lines in at most ``budget`` characters, in order of time.

    What stands in the lines ``in_rules`` or in messages that stay is not kept again.
    """
    head.budget = budget
    lines: list[tuple[float, Line]] = []
    before = Counter[float]()
    for line in chain(*(source(head) for source in sources)):
        lines.append((line.weight * _FADES ** before[line.weight], line))
        before[line.weight] += 1
    lines.sort(key=lambda each: (-each[0], -each[1].said.place))
    told = {line.partition(": ")[2] for line in in_rules}
    chosen: dict[Said, dict[int, str]] = {}
    left = budget
    for _, line in lines:
        beside = chosen.get(line.said, {})
        price = len(line.text) + 3 + (0 if beside else len(line.said.speaker) + 2)
        if line.text in told or price > left:
            continue
        others = (head.view_text, *beside.values())
        if len(line.text) > _SHORTEST and any(line.text in text for text in others):
            continue
        left -= price
        told.add(line.text)
        chosen.setdefault(line.said, {})[line.at] = line.text
    return "\n".join(
        f"{said.speaker}: {_join(chosen[said])}"
        for said in sorted(chosen, key=lambda said: said.place)
    )


def _join(pieces: dict[int, str]) -> str:
    """Return pieces of one text by their numbers, with marks of what is left out between them."""
    text = ""
    for at, piece in sorted(pieces.items()):
        text += f" {piece}" if at - 1 in pieces else f" {ELLIPSIS} {piece}"
    return text.removeprefix(f" {ELLIPSIS} ")
