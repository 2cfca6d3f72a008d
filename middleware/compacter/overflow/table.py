"""What the table of the detector is made of: rows, each a pattern with a meaning, a name and a sample message.

What meanings amount to together is told in ``rules`` ("a *context* and *exceeds* in one sentence") and in ``numbers``
(which number is the limit). A test takes each row out in turn and sees its sample misjudged, so a row that does nothing
cannot stay. Patterns are matched against the plain form that ``text.normalise`` makes: lower case, no accents, single
spaces. They must read hostile text in linear time: bounded repeats only, none inside another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from compacter.overflow.text import fold


class Meaning(StrEnum):
    """What a row says when it matches."""

    # That a request is too long for a model (patterns.py).
    CODE = "a code that names the fault"
    TYPE = "a class that claims it"
    CONTEXT = "the window of a model"
    SUBJECT = "what fills the window"
    REQUEST = "what was sent, if nothing better is said"
    TOKEN = "tokens"  # noqa: S105 - no password
    MODEL = "the model"
    EXCEED = "one thing goes over another"
    TOO_LONG = "something is too long"
    TOO_MANY = "there are too many tokens"
    FULL = "no room is left"
    LIMIT = "a limit"
    LENGTH = "a length"
    BOUND = "something must be at most so long"
    REDUCE = "shorten it"
    # That it is something else (vetoes.py).
    OUTPUT = "the room asked for the answer"
    SUM = "parts are counted together"
    IDIOM = "a manner of speaking, not read at all"
    OTHER_ERROR = "another kind of error, with a cure of its own"
    OTHER_THING = "the sentence is about something else"
    OTHER_UNIT = "not tokens are counted, unless tokens or a context are named too"
    # What a number counts (number_words.py).
    LIMIT_BEFORE = "the number that follows is the limit"
    LIMIT_AFTER = "the number that precedes is the limit"
    SENT_BEFORE = "the number that follows was sent"
    SENT_AFTER = "the number that precedes was sent"
    INPUT_BEFORE = "the number that follows is the input"
    INPUT_AFTER = "the number that precedes is the input"
    OUTPUT_BEFORE = "the number that follows is asked for the answer"
    OUTPUT_AFTER = "the number that precedes is asked for the answer"
    NO_COUNT_BEFORE = "the number that follows counts no tokens"
    NO_COUNT_AFTER = "the number that precedes counts no tokens"


@dataclass(frozen=True, slots=True)
class Row:
    """One pattern: its meaning, a name that is unique, and a message that is misjudged without it."""

    meaning: Meaning
    name: str
    pattern: str
    sample: str


def rows(meaning: Meaning, *entries: tuple[str, str, str]) -> tuple[Row, ...]:
    """Rows of one meaning, from (name, pattern, sample)."""
    return tuple(Row(meaning, f"{meaning.name.lower()}: {name}", pattern, sample) for name, pattern, sample in entries)


class Table:
    """Rows made ready: one compiled pattern for each meaning."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._patterns = {meaning: self._joined(meaning) for meaning in Meaning}

    def __getitem__(self, meaning: Meaning) -> re.Pattern[str]:
        return self._patterns[meaning]

    def names(self, text: str, meanings: Iterable[Meaning]) -> tuple[str, ...]:
        """The names of the rows of these meanings that match a text in its plain form."""
        wanted = frozenset(meanings)
        return tuple(row.name for row in self.rows if row.meaning in wanted and re.search(fold(row.pattern), text))

    def _joined(self, meaning: Meaning) -> re.Pattern[str]:
        patterns = [f"(?:{fold(row.pattern)})" for row in self.rows if row.meaning is meaning]
        return re.compile("|".join(patterns) or r"(?!)")
