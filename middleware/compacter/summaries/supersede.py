"""The latest value wins: of two statements about the same thing, only the newer one holds."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compacter.summaries.attributes import Governed, governed, replaces
from compacter.summaries.identifiers import Found, identifiers
from compacter.summaries.words import words

_REMEMBERED = 50
_VALUE = re.compile(
    r"[$€£¥]\s?\d[\d.,]*|\b\d[\d.,:/-]*\b|\b(?:january|february|march|april|may|june|july|august|september|"
    r"october|november|december|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|today|tomorrow|one|two|three|four|five|six|"
    r"seven|eight|nine|ten|eleven|twelve|"
    r"twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million)\b",
    re.IGNORECASE,
)


def subject(sentence: str, known: dict[str, Found] | None = None, fewest: int = 2) -> str:
    """Return what ``sentence`` is about: its words without values, empty if it holds none.

    ``known`` is what ``identifiers`` remembers; a subject has at least ``fewest`` words.
    """
    plain = [" 0" if any(identifiers(run, known)) else run for run in sentence.split()]
    bare, values = _VALUE.subn(" ", " ".join(plain))
    about = list(words(bare))
    return " ".join(about) if values and len(about) >= fewest else ""


def stale(statements: Iterable[str], fewest: int = 2) -> set[str]:
    """Return those of the ``statements``, oldest first, whose value a later one has changed.

    Only statements of at least ``fewest`` words besides the value are compared.
    """
    holding: dict[str, str] = {}
    settings: dict[str, list[tuple[Governed, str]]] = {}
    gone: set[str] = set()
    known: dict[str, Found] = {}
    for statement in statements:
        gone.discard(statement)
        for setting in governed(statement):
            others = settings.setdefault(setting.attribute, [])
            gone.update(text for other, text in others if text != statement and replaces(setting, other))
            others[:] = [(other, text) for other, text in others[-_REMEMBERED:] if text not in gone]
            others.append((setting, statement))
        about = subject(statement, known, fewest)
        if about:
            before = holding.get(about)
            if before is not None and before != statement:
                gone.add(before)
            holding[about] = statement
    return gone
