"""Kept lines: what stays word for word in a summary, with a model or without one.

One budget and one choice serve all sources: heavier lines first, and of equal ones the newer. Then
the lines stand in order of time, each under its speaker, with an ellipsis where something is left
out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compacter.summary.head import ELLIPSIS, SHORT, Head, Said
from compacter.summary.sources import SOURCES, Line, Source
from compacter.text.words import is_about, stems

# Characters of a line that are never looked for in messages that stay: "Yes." is everywhere.
_SHORTEST = 16
# Characters added to each line's length: what its speaker and the marks around it take.
_HANDLING = 12
# Sentences of an answer that may say that something is done, and their longest.
_FIRST_OF_REPLY = 3
_LONGEST_REPLY = 300
# Each further line of one weight is worth so much of the one before.
_FADES = 0.95


def _answer(head: Head, said: Said) -> list[Line]:
    """Return the assistant's answer about the same as a short message of the user: work that is
    done must not be read as asked for.
    """
    after = said.place - head.said[0].place + 1
    if said.speaker != "User" or len(said.text) > SHORT or after == len(head.said):
        return []
    reply = head.said[after]
    about = stems(said.text)
    return [
        Line(0, reply, text, at)
        for at, text in (reply.pieces if reply.speaker == "Assistant" else [])[:_FIRST_OF_REPLY]
        if len(text) <= _LONGEST_REPLY and is_about(stems(text), about)
    ]


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
    for source in sources:
        for line in source(head):
            lines.append((line.weight * _FADES ** before[line.weight], line))
            before[line.weight] += 1
    lines.sort(key=lambda each: (-each[0], -each[1].said.place))
    told = {line.partition(": ")[2] for line in in_rules}
    chosen: dict[Said, dict[int, str]] = {}
    left = budget
    for _, line in lines:
        if line.text in told or len(line.text) + _HANDLING > left:
            continue
        beside = chosen.get(line.said, {})
        if len(line.text) > _SHORTEST and (
            line.text in head.view_text or any(line.text in text for text in beside.values())
        ):
            continue
        group = [line]
        if not beside:
            group += [each for each in _answer(head, line.said) if each.text not in told]
        price = sum(len(each.text) + 3 for each in group)
        price += sum(len(each.said.speaker) + 2 for each in group if each.said not in chosen)
        if price <= left:
            left -= price
            for each in group:
                told.add(each.text)
                chosen.setdefault(each.said, {})[each.at] = each.text
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
