"""Shorten a sentence by leaving out words that carry no fact, as telegrams do."""

from __future__ import annotations

import re

# Articles, fillers, greetings and copulas. Negations, modals and pronouns for other people always stay.
_FILLERS = (
    "a|an|the|really|very|just|quite|actually|basically|simply|totally|definitely|literally|honestly|truly|absolutely|super|kinda|"
    "so|such|well|oh|wow|hey|hi|hello|yeah|yep|haha|lol|hmm|aw|aww|ah|okay so|of course|you know|i mean|i think|i guess|i believe|"
    "that|there|is|are|was|were|be|been|being|am|it|it's|it’s|i'm|i’m|that's|that’s|there's|there’s|you're|you’re|they're|they’re|we're|we’re|"
    "i|i've|i’ve|to|of|do|does|did|some|also|thanks|thank you|please|let's|let’s"
)
_DROPPED = re.compile(rf"(?<![\w'’/.@#$-])(?:{_FILLERS})(?![\w'’/@#-]|\.\w)[,!]*\s*", re.IGNORECASE)
_SPACES = re.compile(r"\s{2,}")
_PUNCTUATION = re.compile(r"\s+([,.!?;:])")


def shorten(sentence: str) -> str:
    """Return an English ``sentence`` in telegram style."""
    return _PUNCTUATION.sub(r"\1", _SPACES.sub(" ", _DROPPED.sub("", sentence))).strip(" ,")
