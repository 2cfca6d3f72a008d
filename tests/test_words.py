"""Plain sentences, and one word for the act: compact. Names of others' programs do not change."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
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


TABLE = re.compile(r"^\| ([\w, ]+) \| .+ \|((?: \w+(?:, \w+)*)?) \|$", re.MULTILINE)
"""Rows of CONTRIBUTING's table: a word, and single words that names do not have in its place."""
ADDED = ("clients", "frameworks", "gateway", "testing", "tools")
PUBLIC = {"wire_format", "max_entries"}
"""Names of options."""
EXCEPTIONS = {
    "call/arguments.py": {"wire"},
    "lines/archive.py": {"entry", "entries"},
    "lines/asks.py": {"entry"},
    "lines/frame.py": {"entries", "folded", "wire"},
    "lines/talk.py": {"entry"},
    "lines/turns.py": {"entry"},
    "overflow/signals.py": {"entries"},
}
"""Names that are still to change; the list only becomes shorter."""


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


def other_words(page: str) -> re.Pattern[str]:
    """Return a pattern of the words that no name has, in any number and tense."""
    rows = TABLE.findall(page.partition("\n| word | for | not |\n")[2].partition("\n## ")[0])
    others = {word for _, cell in rows for word in re.findall(r"\w+", cell)}
    words = others.difference(word for own, _ in rows for word in own.split(", "))
    stems = "|".join(sorted(word.removesuffix("y") for word in words))
    return re.compile(rf"(?:{stems})(?:y|ies|s|ed|ing)?\Z")


def names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a file gives to functions, classes, arguments and variables."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_names_of_the_core_are_those_of_contributings_table() -> None:
    other = other_words((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    found: dict[str, set[str]] = defaultdict(set)
    for file in FILES:
        inner = file.relative_to(PACKAGE)
        if inner.parts[0] not in ADDED:
            given = {name.strip("_") for name in names(ast.parse(file.read_text("utf-8")))}
            parts = {part for name in given - PUBLIC for part in name.lower().split("_")}
            known = EXCEPTIONS.get(inner.as_posix(), set())
            found[inner.as_posix()] = set(filter(other.match, parts)) - known
    assert {file: words for file, words in found.items() if words} == {}


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
    other = other_words(
        "\n| word | for | not |\n| compact | to replace | fold |\n| part | a text | entry |\n"
    )
    seen = "fold", "folds", "folded", "folding", "entry", "entries"
    assert all(map(other.match, seen))
    assert not any(map(other.match, ("folder", "unfold", "enter", "context", "part")))
    assert unplain("What a call sends.")
    assert unplain("A veto is none of these.")
    assert not unplain("The user, who waits.")
    assert words_beside_code("Nothing can be folded: it stays.\n`folds` and\n```\nfold()\n```")
    assert not words_beside_code("`task.replace_head(text)` compacts.")
