"""Each row of the table earns its place: its sample is judged rightly with it, and wrongly without it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from unicodedata import east_asian_width

import pytest

from compacter.overflow.rules import TABLE, Verdict, judge
from compacter.overflow.signals import Signals, signals_of_body
from compacter.overflow.table import Meaning, Row, Table

VETOES = {Meaning.OTHER_ERROR, Meaning.OTHER_THING, Meaning.OTHER_UNIT, Meaning.OUTPUT, Meaning.IDIOM}
NUMBERS = set(list(Meaning)[list(Meaning).index(Meaning.LIMIT_BEFORE) :])

rows = pytest.mark.parametrize("row", TABLE.rows, ids=[row.name for row in TABLE.rows])


def verdict(row: Row, table: Table) -> Verdict:
    if row.meaning is Meaning.TYPE:
        return judge(Signals(types=(row.sample,)), table)
    return judge(signals_of_body(row.sample), table)


def is_right(row: Row, found: Verdict) -> bool:
    if row.meaning in VETOES:
        return found.limit is None
    if found.limit is None:
        return False
    if row.meaning not in NUMBERS:
        return True
    limit = 8192 if "8192" in row.sample else None
    requested = 9000 if "9000" in row.sample or "8000" in row.sample else None
    return (found.limit.limit, found.limit.requested) == (limit, requested)


@rows
def test_the_sample_of_a_row_is_judged_rightly(row: Row) -> None:
    assert is_right(row, verdict(row, TABLE))


@rows
def test_without_a_row_its_sample_is_misjudged(row: Row) -> None:
    table = Table(other for other in TABLE.rows if other is not row)

    assert not is_right(row, verdict(row, table))


def test_the_names_of_rows_are_unique() -> None:
    assert len({row.name for row in TABLE.rows}) == len(TABLE.rows)


def test_every_meaning_has_a_row() -> None:
    assert {row.meaning for row in TABLE.rows} == set(Meaning)


@rows
def test_a_pattern_has_no_repeat_without_a_bound(row: Row) -> None:
    pattern = re.sub(r"\\.|\[[^\]]*\]", "x", row.pattern)

    assert not re.search(r"[*+]|\{\d+,\}", pattern)


@pytest.mark.parametrize("name", ["patterns", "vetoes", "number_words"])
def test_a_row_is_at_most_110_columns_wide(name: str) -> None:
    source = importlib.import_module(f"compacter.overflow.{name}").__file__ or ""
    lines = Path(source).read_text(encoding="utf-8").splitlines()

    assert max(sum(2 if east_asian_width(char) in "WF" else 1 for char in line) for line in lines) <= 120
    assert max(len(line) for line in lines if line.startswith("    ")) <= 110
