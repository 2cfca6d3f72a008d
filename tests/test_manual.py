"""The manual tells of everything that there is, and its links lead somewhere."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import compacter
from compacter import Compacter, events, testing
from compacter.compacter import CompacterOptions
from compacter.config import Options
from compacter.history.wire import WIRE_FORMATS
from compacter.totals import Totals

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks" / "README.md",
    *ROOT.glob("docs/*.md"),
]
EVENTS = [kind for _, kind in inspect.getmembers(events, inspect.isclass) if issubclass(kind, events.Event)]


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def links() -> list[tuple[Path, str]]:
    found = ((page, target) for page in PAGES for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()))
    return [(page, target) for page, target in found if not target.startswith(("http://", "https://"))]


@pytest.mark.parametrize(("page", "target"), links(), ids=lambda value: getattr(value, "name", value))
def test_a_link_leads_somewhere(page: Path, target: str) -> None:
    file, _, anchor = target.partition("#")
    place = (page.parent / file).resolve() if file else page
    assert place.exists()
    assert not anchor or anchor in anchors(place)


@pytest.mark.parametrize("page", [page.name for page in ROOT.glob("docs/*.md") if page.name != "index.md"])
def test_the_index_names_the_page(page: str) -> None:
    assert f"]({page})" in read("index.md")


@pytest.mark.parametrize("name", Options.model_fields)
def test_an_option_stands_in_the_manual_with_its_default(name: str) -> None:
    (default,) = re.findall(rf"^\| `{name}` \| ([^|]+) \|", read("options.md"), re.MULTILINE)
    value = Options.model_fields[name].default
    simple = isinstance(value, int | float | str | bool | None)
    if simple and name != "logger":
        written = str(value) if not isinstance(value, str) else f'"{value}"'
        assert default == f"`{written}`"


def test_the_options_of_the_signature_are_those_that_are_checked() -> None:
    assert set(CompacterOptions.__annotations__) == set(Options.model_fields)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_stands_in_the_manual_with_its_members(kind: type[events.Event]) -> None:
    page = read("events.md")
    assert f"`{kind.__name__}`" in page or kind is events.Event
    assert [name for name in kind.model_fields if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", Totals.__dataclass_fields__)
def test_a_total_stands_in_the_manual(name: str) -> None:
    assert f"`{name}`" in read("events.md")


@pytest.mark.parametrize("name", compacter.__all__)
def test_a_public_name_stands_in_the_manual(name: str) -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert re.search(rf"\b{name}\b", text)


@pytest.mark.parametrize("name", [name for name in vars(Compacter) if not name.startswith("_")])
def test_a_method_stands_in_the_manual(name: str) -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert re.search(rf"\.{name}\b|`{name}`", text)


@pytest.mark.parametrize("name", WIRE_FORMATS)
def test_a_wire_format_stands_in_the_manual(name: str) -> None:
    assert f'"{name}"' in read("options.md")


@pytest.mark.parametrize("name", ["ScriptedModel", "ScriptedSummarizer"])
def test_the_names_for_tests_stand_in_the_manual(name: str) -> None:
    assert hasattr(testing, name)
    assert name in read("testing.md")
