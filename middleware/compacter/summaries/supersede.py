"""The latest value wins: of two sentences that say the same about the same thing, only the newer one holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compacter.summaries.identifiers import IDENTIFIER
from compacter.summaries.words import words

_VALUE = re.compile(
    r"\b\d[\d.,:/-]*\b|[$€£¥]\s?\d[\d.,]*|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|hundred|thousand|million)\b",
    re.IGNORECASE,
)


def masked(sentence: str) -> str:
    """Return ``sentence`` with its values and identifiers taken out: what it is about."""
    return " ".join(words(_VALUE.sub(" ", IDENTIFIER.sub(" ", sentence))))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence and where it was said; later ones win."""

    text: str
    score: float
    order: int


def latest(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements that still hold, in order."""
    holding: dict[str, Statement] = {}
    for statement in statements:
        key = masked(statement.text) or statement.text.casefold()
        holding.pop(key, None)
        holding[key] = statement
    return list(holding.values())
