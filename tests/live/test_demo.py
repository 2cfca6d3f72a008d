"""`make demo-model` does what it says: the real model answers each turn, and the context is
compacted on the way.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from embedded_model import why_unavailable

if TYPE_CHECKING:
    from pathlib import Path


def test_the_demo_folds_and_answers_each_turn(root: Path) -> None:
    if reason := why_unavailable():
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-m", "demo_model", "--turns", "3", "--window", "512"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": f"{root / 'examples'}{os.pathsep}{root / 'middleware'}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused by the server" in done.stdout
    assert "compacted by" in done.stdout
    assert "3 of 3" in done.stdout
