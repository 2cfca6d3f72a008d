"""Each row of the table earns its place: its sample is judged rightly with it, and wrongly without it."""

from __future__ import annotations

import re

import pytest

from compacter.overflow.detect import ROWS, Verdict, default_table, judge
from compacter.overflow.signals import Signals, signals_of
from compacter.overflow.table import Row, Table, compiled

VETOES = {"output", "idiom", "other call", "other error", "other thing", "other unit"}

rows = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def verdict(row: Row, table: Table) -> Verdict:
    return judge(Signals(types=(row.sample,)) if row.meaning == "type" else signals_of(row.sample), table)


def is_right(row: Row, found: Verdict) -> bool:
    if row.meaning in VETOES:
        return found.limit is None
    if found.limit is None:
        return False
    if not row.meaning.endswith((" before", " after")):
        return True
    # Numbers of a sample have their role by their value.
    limit = 8192 if "8192" in row.sample else None
    requested = 9000 if "9000" in row.sample or "8000" in row.sample else None
    return (found.limit.limit, found.limit.requested) == (limit, requested)


@rows
def test_the_sample_of_a_row_is_judged_rightly(row: Row) -> None:
    found = verdict(row, default_table())

    assert is_right(row, found), f"{row.sample!r} is judged as {found}"


@rows
def test_without_a_row_its_sample_is_misjudged(row: Row) -> None:
    others = compiled(other for other in ROWS if other.meaning == row.meaning and other is not row)
    table = {**default_table(), row.meaning: re.compile(r"(?!)"), **others}

    found = verdict(row, table)

    assert not is_right(row, found), f"{row.sample!r} needs no row {row.name!r}: without it, it is judged as {found}"


def test_the_names_of_rows_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_no_pattern_has_a_repeat_without_a_bound() -> None:
    patterns = {row.name: re.sub(r"\\.|\[[^\]]*\]", "x", row.pattern) for row in ROWS}

    assert [name for name, pattern in patterns.items() if re.search(r"[*+]|\{\d+,\}", pattern)] == []
