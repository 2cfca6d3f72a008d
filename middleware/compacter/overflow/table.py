"""The detector's table: the rows of ``rows/*.toml``, read and compiled at the first error.

A row is a pattern with what it means, a sample message and a source. ``limits`` has the words by
which a token limit is recognised and explains what a row is, ``vetoes`` those that speak against
one, both in English; other languages have a file each, ``codes`` has codes and classes of other
errors, and ``numbers`` what gives a number its role. ``tests/overflow/test_table.py`` takes out
each row in turn and checks that its sample is misjudged; it takes out each alternative of each
pattern and checks that a sample is read differently, so that nothing stands there without a message
that it is for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from compacter.overflow.text import without_accents

_ROWS: Final = Path(__file__).parent / "rows"


class Row(NamedTuple):
    """One pattern; line breaks in it do not count."""

    meaning: str
    name: str
    pattern: str
    sample: str
    source: str

    @property
    def label(self) -> str:
        """Unique name: the meaning and the name."""
        return f"{self.meaning}: {self.name}"

    @property
    def compilable(self) -> str:
        """The pattern as it is matched against normalised text."""
        return without_accents(self.pattern.replace("\n", ""))


@cache
def rows() -> tuple[Row, ...]:
    """Return the whole table."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(_ROWS.glob("*.toml"))]
    return tuple(Row(**row) for text in texts for row in tomllib.loads(text)["row"])


class Patterns(dict[str, re.Pattern[str]]):
    """One pattern for each meaning, compiled when it is first asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        super().__init__()
        self.rows = tuple(rows)

    def __missing__(self, meaning: str) -> re.Pattern[str]:
        """Compile what the rows of a meaning match together."""
        patterns = [f"(?:{row.compilable})" for row in self.rows if row.meaning == meaning]
        if not patterns:
            raise KeyError(meaning)
        self[meaning] = re.compile("|".join(patterns))
        return self[meaning]

    def has(self, text: str, *meanings: str) -> bool:
        """Return whether a pattern of one of these meanings matches ``text``."""
        return any(self[meaning].search(text) for meaning in meanings)

    def blank(self, text: str, *meanings: str) -> str:
        """Return ``text``. If a pattern of one of these meanings matches it, return the same number
        of spaces instead.
        """
        return " " * len(text) if self.has(text, *meanings) else text


@cache
def default_table() -> Patterns:
    """Return the table that errors are judged by."""
    return Patterns(rows())
