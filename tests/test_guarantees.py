"""Each guarantee of the manual names a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?!test|\| test)(.+?) \| \[`(\S+?)`\]\(\.\./(\S+?)\) \|$", re.MULTILINE)
NAMED = [(test, link) for _, test, link in ROW.findall(PAGE)]


def names_in(file: Path) -> set[str]:
    """Tests that a file holds, as pytest names them behind the file."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        front = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {
            f"{front}{one.name}"
            for one in inner
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
    return found


@pytest.mark.parametrize(("test", "link"), NAMED, ids=[test for test, _ in NAMED])
def test_the_test_that_a_guarantee_names_exists(test: str, link: str) -> None:
    file, _, name = test.partition("::")
    assert link == file
    assert name in names_in(ROOT / file)


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line != "| | test |"]
    assert len(rows) == len(NAMED) > 30
