"""The figures that need no model and no files are measured again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
AGAIN = "run `make bench`"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"benchmarks_{name}", ROOT / f"benchmarks/{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


KEPT: dict[str, Any] = json.loads((ROOT / "benchmarks/figures.json").read_text(encoding="utf-8"))


def test_the_detector_is_as_good_as_is_said() -> None:
    assert program("detector").measure() == KEPT["detector"], AGAIN


def test_a_models_summary_stands_as_is_said() -> None:
    assert program("kept").measure() == KEPT["kept"], AGAIN


def test_each_error_is_short_and_has_a_source() -> None:
    cases = program("detector").cases()
    assert len({case["text"] for case in cases}) == len(cases)
    for case in cases:
        assert case["source"].startswith("https://"), case
        assert len(case["text"]) <= 200, case
