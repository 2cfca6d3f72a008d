"""Each program in examples/ runs to its end, offline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded_model import why_unavailable

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("program", [path.name for path in sorted((ROOT / "examples").glob("*.py"))])
def test_an_example_runs(program: str, tmp_path: Path) -> None:
    path = ROOT / "examples" / program
    if "embedded_model" in path.read_text() and (reason := why_unavailable()):
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "middleware")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
