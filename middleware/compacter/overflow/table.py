"""A row of the detector's table: a pattern with the message that it is there for.

``limits`` has the words by which a token limit is recognised, ``vetoes`` those that speak against
one, both in English; ``european``, ``romance`` and ``east_asian`` have the same of other
languages, ``codes`` has codes and classes of other errors, and ``number_words`` what gives a number
its role. A row has a name, a pattern, and a sample: a message that is misjudged without the row.
``tests/overflow/test_table.py`` takes out each row in turn and checks that its sample is misjudged;
it takes out each alternative of each pattern and checks that a sample is read differently, so that
nothing stands here without a message that it is for.

Patterns are matched against normalised text (``text.normalise``): lower case, no accents, single
spaces. They must match hostile text in linear time: only bounded repeats, not nested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from compacter.overflow.text import without_accents

Table = Mapping[str, re.Pattern[str]]
"""Compiled pattern of each meaning."""


class Row(NamedTuple):
    """One pattern; its name is unique and starts with its meaning."""

    name: str
    pattern: str
    sample: str

    @property
    def meaning(self) -> str:
        """Meaning of a match: the part of the name before the colon."""
        return self.name.partition(":")[0]


def compiled(table: Iterable[Row]) -> dict[str, re.Pattern[str]]:
    """Return one compiled pattern for each meaning."""
    patterns: dict[str, list[str]] = {}
    for row in table:
        patterns.setdefault(row.meaning, []).append(f"(?:{without_accents(row.pattern)})")
    return {meaning: re.compile("|".join(each)) for meaning, each in patterns.items()}
