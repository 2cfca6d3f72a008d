"""The table of agent programs is that of their last run: ``make agents``."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

AGENTS = Path(__file__).parents[1] / "benchmarks" / "agents"
AGAIN = "run `make agents`, or benchmarks/agents/run.py --report"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(AGENTS))
    spec = importlib.util.spec_from_file_location("agents_run", AGENTS / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_manual_has_the_table_of_the_results(run: ModuleType) -> None:
    results = json.loads(run.SAVED.read_text("utf-8"))
    page = run.PAGE.read_text("utf-8")
    assert run.BEGIN + run.table(results) + run.END in page, AGAIN


def test_the_results_are_those_of_the_pinned_versions(run: ModuleType) -> None:
    results = json.loads(run.SAVED.read_text("utf-8"))
    pins = set(json.loads((AGENTS / "package.json").read_text("utf-8"))["dependencies"].values())
    root = AGENTS.parents[1]
    pins |= set(re.findall(r"==(\S+)", (root / "requirements" / "agents.in").read_text("utf-8")))
    assert {result["version"] for result in results.values()} == pins, AGAIN


def test_a_program_that_could_not_be_installed_says_so_in_the_table(run: ModuleType) -> None:
    told = run.table({"pi": {"missing": "it wants Node 99"}})
    assert "| pi | chat | | it wants Node 99 | |" in told
    assert "| Codex | responses | | not tried | |" in told
