"""The figures that pages state are those of ``benchmarks/figures.json``, which the benchmarks
write.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
AGAIN = "run `make bench`, or benchmarks/_figures.py after a change of one of its sentences"
PAGES = [
    ROOT / "README.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"benchmarks_{Path(name).stem}", ROOT / f"benchmarks/{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FIGURES = program("_figures")
KEPT: dict[str, Any] = json.loads((ROOT / "benchmarks/figures.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("page", "sentence"), FIGURES.SENTENCES)
def test_a_page_states_the_figures_that_were_measured(page: str, sentence: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count(sentence.format(**FIGURES.stated(KEPT))) == 1, AGAIN


def test_the_chart_of_the_readme_has_the_figures_that_were_measured() -> None:
    shown = (ROOT / "docs/images/proof.svg").read_text(encoding="utf-8")
    assert shown == FIGURES.chart(FIGURES.stated(KEPT)), AGAIN


def test_the_tables_beside_the_peers_are_those_of_their_last_run() -> None:
    """Running `make peers --report` again changes nothing."""
    whole = json.loads((ROOT / "benchmarks/peers/results.json").read_text(encoding="utf-8"))
    report = program("peers/report")
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    tables = report.tables(whole["results"])
    assert len(tables) == 5
    for title, table in tables.items():
        assert (
            page.partition(f"## {title}\n")[2].partition("\n## ")[0].strip().endswith(table.strip())
        )
    assert report.machines(whole) in page


def test_the_figures_of_the_peers_are_those_of_their_last_run() -> None:
    results = json.loads((ROOT / "benchmarks/peers/results.json").read_text(encoding="utf-8"))
    assert KEPT["peers"] == FIGURES.of_peers(results["results"]), AGAIN


def test_an_event_hook_costs_at_most_ten_microseconds_at_a_hundred_messages() -> None:
    (row,) = (row for row in KEPT["overhead"]["watched_us"] if row["messages"] == 100)
    assert row["on_event"] <= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_counts_peers_or_providers_in_another_way(page: Path) -> None:
    """A count that is in no sentence of the list would not be changed with the figures."""
    text = page.read_text(encoding="utf-8")
    name = str(page.relative_to(ROOT))
    for listed, sentence in FIGURES.SENTENCES:
        if listed == name:
            text = text.replace(sentence.format(**FIGURES.stated(KEPT)), "")
    counted = re.findall(
        r"\w+ (?:other libraries|providers and servers|other detectors|detectors in other)"
        r"|compacter and \w+ others\b|\d+ (?:MB|megabytes) in place",
        text,
    )
    assert not counted, counted
