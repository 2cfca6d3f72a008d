"""The public reference says what every argument, attribute, option and event field is."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compacter.events import Event, Totals
from compacter.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent.parent / "docs"
WINDOWS = runpy.run_path(str(DOCS / "make_windows.py"))
PAGE = runpy.run_path(str(DOCS / "make_reference.py"))
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def functions() -> Iterator[tuple[str, Any, str]]:
    """Each public function, method and written-out constructor, with the text that has to describe
    its arguments.
    """
    for things in PAGE["public"]().values():
        for name, thing in things.items():
            if inspect.isfunction(thing):
                yield name, thing, inspect.getdoc(thing) or ""
            elif inspect.isclass(thing):
                made = PAGE["constructor"](thing)
                if made is not None:
                    yield name, made, f"{inspect.getdoc(thing)}\n{inspect.getdoc(made)}"
                for key, member in PAGE["methods"](thing):
                    if inspect.isfunction(member):
                        yield f"{name}.{key}", member, inspect.getdoc(member) or ""


def public_classes() -> Iterator[type]:
    for things in PAGE["public"]().values():
        yield from (thing for thing in things.values() if inspect.isclass(thing))


@pytest.mark.parametrize(
    ("name", "function", "text"), [pytest.param(*each, id=each[0]) for each in functions()]
)
def test_every_argument_is_described(name: str, function: Any, text: str) -> None:
    if text.startswith("Like ``"):
        return  # As another method that is described.
    wanted = [key for key in inspect.signature(function).parameters if key not in ("self", "cls")]
    if name == "Compacter":  # Options are described where they are declared.
        wanted = [key for key in wanted if key not in Options.model_fields]
    described = [
        key for key in wanted if re.search(rf"(?m)^    \*{{0,2}}{key}: \S|``{key}``", text)
    ]
    assert described == wanted


def docstrings() -> Iterator[tuple[str, str]]:
    """Each docstring of the package, with its place."""
    package = DOCS.parent / "middleware" / "compacter"
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                yield f"{file.relative_to(package)}: {getattr(node, 'name', '')}", text


def entries(text: str, section: str) -> list[str]:
    """Lines of a docstring's section that stand at the margin of its names."""
    _, _, rest = text.partition(f"\n{section}\n")
    block = re.split(r"\n(?=\S)", rest, maxsplit=1)[0]
    return [line for line in block.splitlines() if re.match(r" {4}\S", line)]


def test_an_argument_is_a_line_of_a_name_and_a_colon() -> None:
    """A further line of an argument is indented by more, so that nobody takes it for a name."""
    lines = [
        (place, line)
        for place, text in docstrings()
        for section in ("Args:", "Raises:")
        for line in entries(text, section)
    ]
    assert len(lines) > 100
    assert [each for each in lines if not re.match(r" {4}\*{0,2}[\w.]+: \S", each[1])] == []


def test_the_pages_list_only_arguments_of_the_signature() -> None:
    """Each argument on a page is in the signature above it."""
    wrong = []
    for page in PAGE["reference"]().values():
        for part in re.split(r"(?m)^##+ ", page)[1:]:
            _, _, arguments = part.partition("**Args**\n\n")
            listed = re.findall(r"(?m)^- `(.*?)`:", arguments.partition("\n\n")[0])
            shown = re.search(r"```py\n\w+(\(.*?\))\n```", part, re.DOTALL)
            names = re.findall(r"[(,\s](\*{0,2}\w+)(?=[=,)])", shown[1]) if shown else []
            wrong += [(part.split("\n")[0], name) for name in listed if name not in names]
    assert wrong == []


def test_a_long_signature_has_a_line_for_each_argument() -> None:
    """A reader finds an option at the beginning of a line."""
    page = PAGE["reference"]()["compacter.md"]
    assert "\nCompacter(\n    *,\n    compact_ratio=0.7,\n" in page
    assert max(map(len, re.findall(r"```py\n(.*?)```", page, re.DOTALL)[0].splitlines())) < 88


@pytest.mark.parametrize("kind", [*public_classes(), Options], ids=lambda kind: kind.__name__)
def test_every_attribute_is_described(kind: type) -> None:
    assert [name for name, text in PAGE["attributes"](kind).items() if not text] == []


def test_events_totals_and_options_are_looked_at() -> None:
    assert {Event, Totals} <= set(public_classes())
    assert "compact_ratio" in PAGE["attributes"](Options)


def test_the_pages_are_up_to_date() -> None:
    assert PAGE["wrong_pages"]() == [], "run: .venv/bin/python docs/make_reference.py"


def test_a_method_stands_on_the_page_of_its_class() -> None:
    pages = PAGE["reference"]()
    assert "\n### `History.compact_if_needed`\n" in pages["history.md"]
    assert "\n### `Compacter.compact`\n" in pages["compacter.md"]
    assert "[`SQLiteMemory`](memory.md#sqlitememory)" in pages["index.md"]


def test_the_page_of_known_windows_is_up_to_date() -> None:
    assert WINDOWS["PAGE"].read_text() == WINDOWS["page"](), "run: python docs/make_windows.py"
