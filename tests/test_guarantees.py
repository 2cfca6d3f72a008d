"""Each guarantee of the manual, and each row on what fails, names a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = {
    name: (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("guarantees.md", "running.md")
}
ROW = re.compile(r"^\| (?!test|\| test)(.+?) \| \[`(\S+?)`\]\(\.\./(\S+?)\) \|$", re.MULTILINE)
NAMED = [(test, link) for page in PAGES.values() for _, test, link in ROW.findall(page)]
HEADS = ("| | test |", "| what fails | what happens | test |")


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


@pytest.mark.parametrize(("name", "least"), [("guarantees.md", 30), ("running.md", 15)])
def test_every_row_names_a_test(name: str, least: int) -> None:
    page = PAGES[name].partition("## When a part fails")[2] or PAGES[name]
    rows = [line for line in page.splitlines() if line.startswith("| ") and line not in HEADS]
    assert len(rows) == len(ROW.findall(page)) > least
