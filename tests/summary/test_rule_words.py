"""Each row of the table of instructions earns its place: its sample is judged rightly with it, and
wrongly without it; and so does each alternative of each pattern, and each exception to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.overflow.alternatives import without_each
from tests.overflow.phrases import spelled_out

from compacter.summary.rule_words import Row
from compacter.summary.rules import ROWS, compiled, is_for_good, takes_back, tone

MARKS = {"+ ": "rule", "- ": "none", "! ": "for good", "~ ": "takes back"}


@cache
def phrases() -> dict[str, str]:
    """Each sentence of ``phrases.txt``, and what it is."""
    lines = (Path(__file__).parent / "phrases.txt").read_text(encoding="utf-8").splitlines()
    return {
        sentence: MARKS[line[:2]]
        for line in lines
        if line[:2] in MARKS
        for sentence in spelled_out(line[2:])
    }


class Either:
    """The pattern of one meaning: some rows, and another pattern beside them."""

    def __init__(self, *patterns: re.Pattern[str] | None) -> None:
        self.patterns = [pattern for pattern in patterns if pattern]

    def _longest(self, matches: Iterator[re.Match[str] | None]) -> re.Match[str] | None:
        return max(filter(None, matches), key=re.Match.end, default=None)

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        return self._longest(pattern.match(text, at) for pattern in self.patterns)

    def search(self, text: str) -> re.Match[str] | None:
        return self._longest(pattern.search(text) for pattern in self.patterns)

    def sub(self, by: str, text: str, count: int = 0) -> str:
        for pattern in self.patterns:
            text = pattern.sub(by, text, count)
        return text


TABLE = compiled(ROWS)


def verdict(sentence: str, table: Any, meaning: str) -> object:
    if meaning == "takes back":
        return takes_back(sentence, table)
    if meaning == "for good":
        return is_for_good(sentence, table)
    return tone(sentence, table)


def others(row: Row) -> re.Pattern[str] | None:
    rest = compiled(each for each in ROWS if each.meaning == row.meaning and each is not row)
    return rest.get(row.meaning)


rows = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


JUDGED: dict[str, Callable[[str], bool]] = {
    "rule": lambda sentence: tone(sentence) is not None,
    "none": lambda sentence: tone(sentence) is None,
    "for good": is_for_good,
    "takes back": takes_back,
}


@pytest.mark.parametrize("kind", JUDGED)
def test_a_phrase_is_what_its_line_says(kind: str) -> None:
    of_kind = [sentence for sentence, said in phrases().items() if said == kind]

    assert [sentence for sentence in of_kind if not JUDGED[kind](sentence)] == []


@rows
def test_without_a_row_its_sample_is_misjudged(row: Row) -> None:
    table = {**TABLE, row.meaning: Either(others(row))}

    assert verdict(row.sample, table, row.meaning) != verdict(row.sample, TABLE, row.meaning)


@rows
def test_each_alternative_and_each_exception_has_a_sentence_that_is_misjudged_without_it(
    row: Row,
) -> None:
    rest = others(row)
    whole = re.compile(row.pattern)
    sentences = [*phrases(), *(each.sample for each in ROWS)]
    # First those that the row matches: most alternatives have theirs among them.
    sentences.sort(key=lambda text: whole.search(text.lower()) is None)
    known = {text: verdict(text, TABLE, row.meaning) for text in sentences}

    needless = [
        name
        for name, changed in without_each(row.pattern, exceptions=True)
        if all(
            verdict(text, {**TABLE, row.meaning: Either(rest, changed)}, row.meaning) == judged
            for text, judged in known.items()
        )
    ]

    assert needless == [], (
        f"alternatives of {row.name!r} that no sentence of tests/summary/phrases.txt needs: write "
        f"one, or take them out"
    )


def test_the_names_of_rows_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_no_pattern_has_a_repeat_without_a_bound() -> None:
    patterns = {row.name: re.sub(r"\\.|\[[^\]]*\]", "x", row.pattern) for row in ROWS}

    assert [
        name for name, pattern in patterns.items() if re.search(r"[*+]|\{\d+,\}", pattern)
    ] == []
