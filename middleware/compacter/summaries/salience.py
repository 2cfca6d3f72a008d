"""How likely a sentence states a fact, judged by its form alone."""

from __future__ import annotations

import re

# Reports about oneself, numbers and proper names are asked for later; questions and talk about the listener are not.
_FORMS: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile(r"[?？]$"), 0.6),
    (re.compile(r"\b(?:I|my|we|our|me|us|mine|ich|mein|wir|je|mon|nous|yo|mi|nosotros|eu|meu|io|noi|я|мой|мы)\b", re.IGNORECASE), 1.5),
    (re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE), 0.8),
    (re.compile(r"\d"), 1.5),
    (re.compile(r"(?<=[a-z,] )[A-Z][a-z]+"), 1.7),
)


def salience(sentence: str) -> float:
    """Return a factor around 1 on what the words of ``sentence`` are worth."""
    value = 1.0
    for form, factor in _FORMS:
        if form.search(sentence):
            value *= factor
    return value
