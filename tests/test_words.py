"""Plain sentences, and one word for the act: compact. Names of others' programs do not change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "middleware" / "compacter"
PAGES = sorted((*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"))
FILES = sorted(PACKAGE.rglob("*.py"))
SHOWN = tuple(sorted((*(PACKAGE / "tools").rglob("*.py"), *(PACKAGE / "gateway").rglob("*.py"))))
"""Their texts are printed, beside the names of columns of JSON and of metrics."""
OTHER_WORD = re.compile(r"(?<![\w.-])fold(?:s|ed|ing)?(?![\w-])", re.IGNORECASE)
CODE = re.compile(r"```.*?```|``[^`]*``|`[^`\n]*`|<code>.*?</code>", re.DOTALL)
HEADLESS = re.compile(r"(?:What|Who|Whose|Of which)\b")
"""Beginning of a docstring without a noun: "What a call sends." is "The messages of a call."."""
EMPTY_NOUN = re.compile(r"\b(?:is|are|was|were) none\b")
"""Negation by a noun, in place of "is not one", "without one" or "not any"."""
OWN_TEXTS = sorted(file for room in (PACKAGE, ROOT / "tests") for file in room.rglob("*.py"))
NAMES = {"folds", "folded", "fold"}
"""Fields of JSON and of metrics that others' programs read, and a setting of rich."""


def words_beside_code(text: str) -> list[str]:
    """Return where a text says it in a sentence: names stand in code, headings of the reference
    too.
    """
    prose = CODE.sub("", text)
    return [line for line in prose.splitlines() if OTHER_WORD.search(line)]


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Return every text that stands as a statement: docstrings, of attributes as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def texts(tree: ast.AST) -> Iterator[str]:
    """Return every other text, and the fixed parts of those with fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_manual_says_compact(page: Path) -> None:
    assert not words_beside_code(page.read_text(encoding="utf-8"))


def test_docstrings_say_compact() -> None:
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
    assert not [
        (str(file.relative_to(PACKAGE)), line)
        for file, tree in trees.items()
        for text in docstrings(tree)
        for line in words_beside_code(text)
    ]


@pytest.mark.parametrize("file", SHOWN, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_what_is_printed_says_compact(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    said = (text for text in texts(tree) if text not in NAMES)
    assert not [line for text in said for line in words_beside_code(text)]


def unplain(text: str) -> bool:
    """Return whether a docstring begins without a noun, or negates by one."""
    return bool(HEADLESS.match(text) or EMPTY_NOUN.search(text))


def test_docstrings_are_plain() -> None:
    assert not [
        f"{file.relative_to(ROOT)}: {text}"
        for file in OWN_TEXTS
        for text in docstrings(ast.parse(file.read_text(encoding="utf-8")))
        if unplain(text.strip())
    ]


def test_it_would_be_seen() -> None:
    assert unplain("What a call sends.")
    assert unplain("A veto is none of these.")
    assert not unplain("The user, who waits.")
    assert words_beside_code("Nothing can be folded: it stays.\n`folds` and\n```\nfold()\n```")
    assert not words_beside_code("`task.replace_head(text)` compacts.")
