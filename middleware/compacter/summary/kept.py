"""Kept lines: what stays word for word in a summary, with a model or without one.

One budget and one choice serve all sources: heavier lines first, and of equal ones the newer. Then
the lines stand in order of time, each under its speaker, with an ellipsis where something is left
out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from compacter.summary.head import ELLIPSIS, SHORT, Head, Said
from compacter.summary.sources import SOURCES, Line, Source
from compacter.text.words import is_about, stems

_Key = tuple[int, str, int, str]
"""Place, speaker, place within, text."""
# Characters of a line that are never looked for in messages that stay: "Yes." is everywhere.
_SHORTEST = 16
# Characters added to each line's length: what its speaker and the marks around it take.
_HANDLING = 12
# Sentences of an answer that may say that something is done, and their longest.
_FIRST_OF_REPLY = 3
_LONGEST_REPLY = 300
# Each further line of one weight is worth so much of the one before.
_FADES = 0.95
# Times the budget of what is read of texts of one kind: no more of them can be kept.
_REACH = 10


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
    head.reach = _REACH * budget
    lines: list[tuple[float, Line]] = []
    before = Counter[float]()
    for source in sources:
        for line in source(head):
            lines.append((line.weight * _FADES ** before[line.weight], line))
            before[line.weight] += 1
    lines.sort(key=lambda each: (-each[0], -each[1].said.place))
    told = {line.partition(": ")[2] for line in in_rules}
    begun: dict[Said, str] = {}
    chosen: list[_Key] = []
    left = budget
    for _, line in lines:
        is_known = len(line.text) > _SHORTEST and (
            line.text in head.view_text or line.text in begun.get(line.said, "")
        )
        if is_known or line.text in told or len(line.text) + _HANDLING > left:
            continue
        answer = [] if line.said in begun else _answer(head, line.said)
        group = [line, *(each for each in answer if each.text not in told)]
        price = sum(len(each.text) + 3 for each in group)
        price += sum(len(each.said.speaker) + 2 for each in group if each.said not in begun)
        if price <= left:
            left -= price
            for each in group:
                told.add(each.text)
                begun[each.said] = begun.get(each.said, "") + each.text
                chosen.append((each.said.place, each.said.speaker, each.at, each.text))
    return _write(chosen)


def _write(chosen: Iterable[_Key]) -> str:
    """Return the chosen lines in order of time, those of one text together."""
    written: list[str] = []
    for (_, speaker), keys in groupby(sorted(set(chosen)), lambda key: key[:2]):
        text = ""
        before = -2
        for _, _, at, piece in keys:
            between = "" if not text else " " if at == before + 1 else f" {ELLIPSIS} "
            text += between + piece
            before = at
        written.append(f"{speaker}: {text}")
    return "\n".join(written)
