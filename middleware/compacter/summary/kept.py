"""Kept lines: what stays word for word in a summary, with a model or without one.

One budget and one choice serve all kinds of lines: a kind comes before the next one, and within a
kind the heavier line and then the newer. The chosen lines stand in order of time, each under its
speaker, with an ellipsis where something is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from compacter.summary.head import ELLIPSIS, SINCE, Head, Said
from compacter.summary.message import NAMES, WORK
from compacter.summary.sources import KINDS, story

# Shorter lines are kept even if they also stand in messages that stay: "Yes." is everywhere.
_SHORTEST = 16


def keep(head: Head, budget: int, *, with_story: bool = False) -> str:
    """Return kept lines in at most ``budget`` characters, in order of time.

    What stands in messages that stay is not kept again.

    Args:
        head: What is compacted.
        budget: Characters of all lines.
        with_story: Whether sentences of all speakers take the room that the other kinds leave.
    """
    head.budget = budget
    left = budget
    told = set[str]()
    chosen: dict[Said, dict[int, str]] = {}
    for source, share in KINDS:
        if source is story and not with_story:
            continue
        most = int(share * budget)
        lines = sorted(source(head), key=lambda line: (-line.weight, _age(line.said)))
        for line in lines:
            others = chosen.get(line.said, {})
            price = len(line.text) + 3 + (0 if others else len(line.said.speaker) + 2)
            if line.text in told or price > min(left, most):
                continue
            texts = (head.view_text, *others.values())
            if len(line.text) > _SHORTEST and any(line.text in text for text in texts):
                continue
            left -= price
            most -= price
            told.add(line.text)
            chosen.setdefault(line.said, {})[line.at] = line.text
    asked = [said.place for said in head.view if said.speaker == "User"]
    return "\n".join(_in_order(chosen, max(asked, default=None)))


def _in_order(chosen: dict[Said, dict[int, str]], asked: tuple[int, int] | None) -> Iterator[str]:
    """Yield the chosen lines in order of time, those that came after the user's newest message,
    which is ``asked``, below a head of their own.
    """
    for said in sorted(chosen, key=_age, reverse=True):
        if asked and said.place > asked and said.speaker not in (NAMES, WORK):
            yield SINCE
            asked = None
        yield f"{said.speaker}: {_join(chosen[said], said.speaker)}"


def _age(said: Said) -> tuple[int, int]:
    index, number = said.place
    return (-index, -number)


def _join(pieces: dict[int, str], speaker: str) -> str:
    """Return pieces of one text by their numbers, with marks of what is left out between them."""
    if speaker == NAMES:
        return ", ".join(pieces.values())
    text = ""
    for at, piece in sorted(pieces.items()):
        text += f" {piece}" if at - 1 in pieces else f" {ELLIPSIS} {piece}"
    # No other kind of line break may begin a line that looks like a speaker's.
    return " ".join(text.removeprefix(f" {ELLIPSIS} ").splitlines())
