"""The structure that a reader relies on: which room imports which, and how long the way of one
overflow is.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "middleware" / "compacter"
WAY = Path(__file__).parent / "way.py"
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
    assert "compacter.summary.head" in modules()["compacter.compaction.summarize"]


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


WAY_OF_AN_OVERFLOW = {
    "doors": 66,  # functions that are entered from another room
    "passes": 13,  # calls that take the whole list of messages
    "state": 24,  # classes of which it makes instances, but reports, questions, pieces of text
    "depth": 19,  # functions of compacter on the stack at once
    "room_changes": 440,  # from one room to another, returns included
    "readings_per_message": 1.2,  # once, and again where a copy of it is read
}
"""Limits for one overflow with summary, memory, recall and detector. Lower them when the way gets
shorter; `python tests/way.py` says what it is."""
DENSITY = {
    "packed_assignments": 0,  # ``a, b = 1, 2``: several unrelated values in one statement
    "wide_lines": 19,  # over 100 columns
    "long_files": 0,  # over 450 lines
    "unexplained_numbers": 0,  # tuned constants without a line of why, theirs or their group's
    "participles": 3.1,  # functions named by a past participle, in per cent of all
    "complex_functions": 0,  # with a cyclomatic complexity above 25
    "numbers_of_the_core": 161,  # numeric constants
}
"""Limits for how the package is written."""
CEILINGS = {
    "call/": 21_941,
    "clients/": 10_089,
    "compaction/": 10_764,
    "frameworks/": 4_980,
    "gateway/": 22_722,
    "history/": 2_513,
    "memory/": 8_126,
    "messages/": 13_881,
    "options/": 3_955,
    "overflow/": 9_769,
    "recall/": 9_260,
    "runtime/": 3_420,
    "summary/": 6_949,
    "testing/": 9_236,
    "text/": 1_891,
    "tools/": 12_335,
    "top": 6_795,
    "core": 99_139,
    "whole": 158_505,
}
"""Most tokens of code in each room, in the files at the top, in all that was not added around the
core, and in the package, with one per cent to spare. They only go down: what comes in names what
it replaces."""
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
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
NO_VALUES = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
IRREGULAR = "made told known said given kept left held sent shown found built put begun taken meant"
PARTICIPLES = frozenset((*IRREGULAR.split(" "), "rebuilt"))
"""Those that do not end in ``ed``."""
NO_PARTICIPLES = frozenset(("embed", "need", "seed", "feed", "exceed"))


def test_the_way_of_an_overflow_gets_no_longer() -> None:
    followed = subprocess.run(
        [sys.executable, WAY], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    way: dict[str, Any] = json.loads(followed)
    sizes = {
        figure: len(way[figure]) if isinstance(way[figure], list) else way[figure]
        for figure in WAY_OF_AN_OVERFLOW
    }
    longer = {figure for figure, most in WAY_OF_AN_OVERFLOW.items() if sizes[figure] > most}
    assert not longer, [way[figure] for figure in longer]


def tokens_of_code(source: str) -> int:
    """Tokens of Python, without comments and white space; a docstring is one."""
    read = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(token.type not in NO_CODE for token in read)


def test_no_room_has_more_code_than_its_ceiling() -> None:
    sizes: Counter[str] = Counter()
    for file in PACKAGE.rglob("*.py"):
        first, *rest = file.relative_to(PACKAGE).parts
        place = f"{first}/" if rest else "top"
        tokens = tokens_of_code(file.read_text())
        sizes.update({place: tokens, "whole": tokens})
        if place not in ADDED:
            sizes["core"] += tokens
    over = {place: size - CEILINGS.get(place, 0) for place, size in sizes.items()}
    larger = {place: excess for place, excess in over.items() if excess > 0}
    assert not larger, (
        f"tokens of code above CEILINGS of this file: {larger}. Take out as many in that room, "
        "or say in CEILINGS what this replaces"
    )


def test_neither_comments_nor_layout_count_as_code() -> None:
    assert tokens_of_code('def a():\n    """Text."""\n\n    # why\n    return 1\n') == 8


PUBLIC_MODULES = {
    "compacter",
    *(
        f"compacter.{name}"
        for name in ("errors", "events", "memory", "observe", "overflow", "redaction", "serve")
    ),
    "compacter.testing",
    "compacter.testing.memory_conformance",
}
INTERNAL_NAMES = 224
"""Most names that tests import from elsewhere, and neither the manual nor an example does: each is
one that a change of the code has to keep, or tests have to follow. It only goes down."""


def names_imported(source: str) -> set[tuple[str, str]]:
    """Names that a program imports from the package, each with its module."""
    return {
        (node.module, alias.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("compacter")
        for alias in node.names
        if node.module
    }


def test_the_tests_import_no_more_internal_names() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    blocks = [
        block
        for page in pages
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    examples = [file.read_text() for file in (ROOT / "examples").rglob("*.py")]
    shown = set().union(*map(names_imported, [*blocks, *examples]))
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        told = re.findall(r"(?m)^## `(\w+)`\n\nFrom `([\w.]+)`", page.read_text())
        shown |= {(module, name) for name, module in told}
    tests = [file.read_text() for file in Path(__file__).parent.rglob("*.py")]
    imported_names = set().union(*map(names_imported, tests))
    internal = {name for name in imported_names - shown if name[0] not in PUBLIC_MODULES}
    assert len(internal) <= INTERNAL_NAMES, sorted(map(".".join, internal))


def is_packed(node: ast.AST) -> bool:
    """Return whether a statement assigns several values that have nothing to do with its names."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    names = {ast.dump(name).replace("Store", "Load") for name in target.elts}
    return not names & {ast.dump(value) for value in node.value.elts}


def is_named_by_participle(name: str) -> bool:
    first = name.strip("_").split("_")[0]
    return (first.endswith("ed") and first not in NO_PARTICIPLES) or first in PARTICIPLES


def functions(tree: ast.AST) -> Iterator[str]:
    """Names of the functions that act: not of properties, overloads and special methods."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        decorators = {ast.unparse(one).split("(")[0] for one in node.decorator_list}
        if not node.name.startswith("__") and not decorators & {"property", "overload"}:
            yield node.name


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


def numbers(tree: ast.Module) -> Iterator[str]:
    """Names of the constants of a module that are numbers, written as one or computed from some."""
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        parts = [part for part in ast.walk(node.value) if not isinstance(part, NO_VALUES)]
        is_number = all(
            isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in parts
        )
        if is_number and isinstance(target, ast.Name) and target.id.isupper():
            yield target.id


def density() -> dict[str, list[str]]:
    """Places in the package that are packed, wide, long, unexplained, or named by a participle."""
    found: dict[str, list[str]] = {name: [] for name in (*DENSITY, "functions")}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        source = file.read_text()
        lines = source.splitlines()
        tree = ast.parse(source)
        found["packed_assignments"] += [
            f"{name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and is_packed(node)
        ]
        found["wide_lines"] += [
            f"{name}:{number}" for number, line in enumerate(lines, 1) if len(line) > 100
        ]
        found["unexplained_numbers"] += [f"{name} {one}" for one in unexplained_numbers(source)]
        found["long_files"] += [name] if len(lines) > LONGEST_FILE else []
        found["complex_functions"] += [
            f"{name} {node.name}"
            for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and complexity(node) > MOST_COMPLEX
        ]
        if f"{name.split('/')[0]}/" not in ADDED:
            found["numbers_of_the_core"] += [f"{name} {one}" for one in numbers(tree)]
        own = list(functions(tree))
        found["functions"] += own
        found["participles"] += [f"{name} {one}" for one in own if is_named_by_participle(one)]
    return found


def test_the_code_gets_no_denser() -> None:
    found = density()
    sizes = {figure: float(len(found[figure])) for figure in DENSITY}
    sizes["participles"] *= 100 / len(found["functions"])
    assert not {figure: found[figure] for figure, most in DENSITY.items() if sizes[figure] > most}


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


def test_a_numeric_constant_would_be_seen() -> None:
    source = "A = 1\n_B: float = 7 / 8\nC = -2\nD = len('text')\nE = True\nf = 1\nG = 'text'\n"
    assert list(numbers(ast.parse(source))) == ["A", "_B", "C"]
