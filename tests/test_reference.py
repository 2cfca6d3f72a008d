"""The public reference says what every argument, attribute, option and event field is."""

from __future__ import annotations

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
    if text.startswith("As ``"):
        return  # As another method that is described.
    wanted = [key for key in inspect.signature(function).parameters if key not in ("self", "cls")]
    if name == "Compacter":  # Options are described where they are declared.
        wanted = [key for key in wanted if key not in Options.model_fields]
    described = [
        key for key in wanted if re.search(rf"(?m)^    \*{{0,2}}{key}: \S|``{key}``", text)
    ]
    assert described == wanted


@pytest.mark.parametrize("kind", [*public_classes(), Options], ids=lambda kind: kind.__name__)
def test_every_attribute_is_described(kind: type) -> None:
    assert [name for name, text in PAGE["attributes"](kind).items() if not text] == []


def test_events_totals_and_options_are_looked_at() -> None:
    assert {Event, Totals} <= set(public_classes())
    assert "compact_ratio" in PAGE["attributes"](Options)


def test_the_pages_are_up_to_date() -> None:
    assert PAGE["wrong_pages"]() == [], "run: python docs/make_reference.py"


def test_a_method_stands_on_the_page_of_its_class() -> None:
    pages = PAGE["reference"]()
    assert "\n### `History.compact_if_needed`\n" in pages["history.md"]
    assert "\n### `Compacter.compact`\n" in pages["compacter.md"]
    assert "[`SQLiteMemory`](memory.md#sqlitememory)" in pages["index.md"]


def test_the_page_of_known_windows_is_up_to_date() -> None:
    assert WINDOWS["PAGE"].read_text() == WINDOWS["page"](), "run: python docs/make_windows.py"
