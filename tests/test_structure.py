"""The structure that a reader relies on: which room imports which, and the rules of style."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "middleware" / "compacter"
MAP = re.compile(r"^(\w+(?:\.py)?/?) +imports +(.+)$", re.MULTILINE)


SECOND_NAMES = {
    "observe.py",
    "serve.py",
}
"""Files of one import: public paths that programs, configurations and saved components contain."""


def room(module: str) -> str:
    """The folder that a module of the package lies in, or the module itself where it lies at the
    top.
    """
    first = module.removeprefix("compacter.").split(".")[0]
    return f"{first}/" if (PACKAGE / first).is_dir() else f"{first}.py"


def imported(file: Path, *, lazily: bool) -> Iterator[str]:
    """Rooms that a file imports as it is loaded; with ``lazily`` also in its functions and for type
    checkers.
    """
    tree = ast.parse(file.read_text())
    later = (
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.If))
    )
    inside = {id(part) for node in later for part in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("compacter"):
            continue
        if id(node) in inside and not lazily:
            continue
        for alias in node.names:
            name = f"{node.module}.{alias.name}" if node.module == "compacter" else str(node.module)
            yield room(name)


@cache
def rooms(*, lazily: bool) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for file in PACKAGE.rglob("*.py"):
        inner = file.relative_to(PACKAGE)
        if inner.as_posix() in SECOND_NAMES:
            continue
        own = room(".".join(("compacter", *inner.with_suffix("").parts)))
        if own != "__init__.py":
            found[own] |= set(imported(file, lazily=lazily)) - {own}
    return dict(found)


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Rooms or files that import each other in a ring, and those that import one of these; empty if
    there is no ring.
    """
    left = dict(edges)
    while left:
        free = [name for name, targets in left.items() if not targets & left.keys()]
        if not free:
            return sorted(left)
        for name in free:
            del left[name]
    return []


def test_no_rooms_import_each_other_in_a_ring() -> None:
    assert circle(rooms(lazily=False)) == []


def module_of(file: Path) -> str:
    inner = file.relative_to(PACKAGE).with_suffix("")
    return ".".join(("compacter", *inner.parts)).removesuffix(".__init__")


def modules() -> dict[str, set[str]]:
    """The files of the package, by the names of their modules, each with those that it imports:
    also in its functions, and for type checkers alone.
    """
    trees = {module_of(file): ast.parse(file.read_text()) for file in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            aliases = node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ()
            source = node.module if isinstance(node, ast.ImportFrom) else None
            for alias in aliases:
                whole = f"{source}.{alias.name}" if source else alias.name
                found[name].add(whole if whole in trees else str(source))
    return {name: found[name] & trees.keys() - {name} for name in trees}


def test_no_files_import_each_other_in_a_ring() -> None:
    """Nor does a file need another one for its types, if that one needs it in turn."""
    assert circle(modules()) == []
    assert "compacter.lines.head" in modules()["compacter.compaction.summarize"]


ADDED = {"clients/", "frameworks/", "gateway/", "tools/", "testing/"}
FRONT = {"compacter.py", "__main__.py"}
"""``Compacter.wrap`` finds the adapter of a client, and ``python -m compacter`` is the command."""


def test_no_core_room_imports_what_was_added_around_it() -> None:
    core = {name: targets for name, targets in rooms(lazily=True).items() if name not in ADDED}
    leaks = {name: targets & ADDED for name, targets in core.items() if name not in FRONT}
    assert not {name: targets for name, targets in leaks.items() if targets}
    assert rooms(lazily=True)["compacter.py"] & ADDED == {"clients/"}


@pytest.mark.parametrize("second_name", sorted(SECOND_NAMES))
def test_a_second_name_is_a_short_file_that_imports_one_module(second_name: str) -> None:
    file = PACKAGE / second_name
    assert len(file.read_text().splitlines()) <= 25
    assert len(set(imported(file, lazily=True))) == 1


def test_a_ring_would_be_seen() -> None:
    assert circle({"a/": {"b/"}, "b/": {"c/"}, "c/": {"a/"}, "d/": set()}) == ["a/", "b/", "c/"]


def test_the_map_in_contributing_is_true() -> None:
    drawn = {
        name: set(targets.split(", "))
        for name, targets in MAP.findall((ROOT / "CONTRIBUTING.md").read_text())
    }
    there = {name: targets or {"nothing"} for name, targets in rooms(lazily=True).items()}
    wrong = sorted(name for name in {*drawn, *there} if drawn.get(name) != there.get(name))
    lines = [f"{name:<12} imports {', '.join(sorted(there.get(name, ())))}" for name in wrong]
    assert not lines, "lines that the map should have:\n" + "\n".join(lines)


def test_nothing_computes_an_attribute_behind_a_lock_that_a_fork_may_copy() -> None:
    """``functools.cached_property`` has such a lock before Python 3.12."""
    users = [
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if re.search(r"@(functools\.)?cached_property", file.read_text())
    ]
    assert users == []


RULES = (
    "packed_assignments",  # ``a, b = 1, 2``: several unrelated values in one statement
    "long_files",  # over 450 lines
    "unexplained_numbers",  # constants without a line of why, theirs or their group's
    "complex_functions",  # with a cyclomatic complexity above 25
)
"""Faults that no file of the package may have. No test limits its size."""
LONGEST_FILE = 450
MOST_COMPLEX = 25
BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.Assert,
    ast.comprehension,
    ast.match_case,
)


def is_packed(node: ast.AST) -> bool:
    """Return whether a statement assigns several values that have nothing to do with its names."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    names = {ast.dump(name).replace("Store", "Load") for name in target.elts}
    return not names & {ast.dump(value) for value in node.value.elts}


def unexplained_numbers(source: str) -> Iterator[str]:
    """Names of a module's private numbers that have no comment beside or above them, and no text
    below; one explanation is enough for a group on successive lines.
    """
    lines = ["", *source.splitlines(), ""]
    explained_until = -1
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        target = node.targets[0]
        if not isinstance(target, ast.Name) or not target.id.startswith("_"):
            continue
        if type(node.value.value) not in (int, float):
            continue
        above, beside, below = lines[node.lineno - 1 : node.lineno + 2]
        is_explained = above.startswith("#") or "#" in beside or below.startswith('"""')
        if is_explained or explained_until == node.lineno - 1:
            explained_until = node.lineno
        else:
            yield target.id


def complexity(function: ast.AST) -> int:
    """Return the ways through a function: one, and another for each branch, loop, handler, further
    operand of ``and`` and ``or``, and condition of a comprehension.
    """
    ways = 1
    for node in ast.walk(function):
        ways += isinstance(node, BRANCHES)
        ways += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        ways += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return ways


def breaches() -> dict[str, list[str]]:
    """Places in the package that break each of the rules."""
    found: dict[str, list[str]] = {rule: [] for rule in RULES}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        source = file.read_text()
        tree = ast.parse(source)
        found["packed_assignments"] += [
            f"{name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and is_packed(node)
        ]
        found["unexplained_numbers"] += [f"{name} {one}" for one in unexplained_numbers(source)]
        found["long_files"] += [name] if len(source.splitlines()) > LONGEST_FILE else []
        found["complex_functions"] += [
            f"{name} {node.name}"
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and complexity(node) > MOST_COMPLEX
        ]
    return found


def test_the_code_keeps_the_rules_of_style() -> None:
    assert breaches() == {rule: [] for rule in RULES}


@pytest.mark.parametrize(
    ("statement", "packed"),
    [("a, b = 1, 2", True), ("a, b = b, a", False), ("a, b = pair", False), ("a = 1, 2", False)],
)
def test_a_packed_assignment_would_be_seen(statement: str, packed: bool) -> None:
    assert is_packed(ast.parse(statement).body[0]) is packed


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("_MOST = 3\n", ["_MOST"]),
        ("_MOST = 3  # a hand has no more\n", []),
        ("# a hand has no more\n_LEAST = 1\n_MOST = 3\n", []),
        ("# a hand has no more\n_LEAST = 1\n\n_MOST = 3\n", ["_MOST"]),
        ('_MOST = 3\n"""A hand has no more."""\n', []),
        ("_NAME = 'text'\n_IS_SET = True\n", []),
    ],
)
def test_a_number_without_a_reason_would_be_seen(source: str, names: list[str]) -> None:
    assert list(unexplained_numbers(source)) == names


def test_a_complex_function_would_be_seen() -> None:
    source = "def f(a):\n    if a and a > 1 or a < 0:\n        return [b for b in a if b]\n"
    assert complexity(ast.parse(source)) == 6
