"""The structure that a reader relies on: which room imports which, and how long the way of one
overflow is.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import traceback
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.way import TooLongError, conversation

import compacter
from compacter import Compacter

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "middleware" / "compacter"
WAY = Path(__file__).parent / "way.py"
MAP = re.compile(r"^(\w+(?:\.py)?/?) +imports +(.+)$", re.MULTILINE)


SECOND_NAMES = {
    "observe.py",
    "serve.py",
    *(
        f"clients/{name}.py"
        for name in ("litellm_proxy", "langchain", "pydantic_ai", "haystack", "autogen")
    ),
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
    """Rooms that import each other in a ring; empty where there is none."""
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


MOST_FILES = 60
MOST_PASSES = 17
"""Files that one overflow enters today, summary, memory and detector included, and calls on it that
take the whole list of messages. Lower them when the way gets shorter."""
MOST_READINGS = 1.2
"""Times that the parts of a message are made: once, and again where a copy of it is read."""


def test_the_way_of_an_overflow_gets_no_longer() -> None:
    followed = subprocess.run(
        [sys.executable, WAY], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    way = json.loads(followed)
    hint = "see what `python tests/way.py` says before"
    assert len(way["files"]) <= MOST_FILES, hint
    assert len(way["passes"]) <= MOST_PASSES, way["passes"]
    assert way["readings_per_message"] <= MOST_READINGS, hint


@pytest.mark.parametrize("turns", [5, 30])
def test_a_retry_that_fails_shows_at_most_four_frames_of_compacter(turns: int) -> None:
    errors = iter(
        [
            TooLongError("maximum context length is 500 tokens, but you sent 5000 tokens"),
            OSError("no route"),
        ]
    )

    def completion(*, messages: list[Any]) -> None:
        raise next(errors)

    with pytest.raises(OSError, match="no route") as raised:
        Compacter(summarizer=lambda messages: "Harbours.").wrap(completion)(
            messages=conversation(turns)
        )

    frames = traceback.extract_tb(raised.value.__traceback__)
    assert (
        len(
            [
                frame
                for frame in frames
                if frame.filename.startswith(str(Path(compacter.__file__).parent))
            ]
        )
        <= 4
    )
