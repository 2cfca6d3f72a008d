"""With ``prepare_tokens`` the first refusal does not wait for patterns and modules to load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import threading
from compacter import Compacter

Compacter({options})
threads = [one for one in threading.enumerate() if one.name == "compacter"]
for thread in threads:
    thread.join()
Compacter({options})
from compacter.overflow import detect
tables = detect.default_table.cache_info().currsize
names = ("compacter.recall.quotes", "compacter.summary.write")
print(len(threads), all(name in sys.modules for name in names), tables)
"""


def loaded(root: Path, options: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root / "middleware")}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(options=options)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_it_is_loaded_in_a_thread_and_once(root: Path) -> None:
    assert loaded(root, "prepare_tokens=700") == "1 True 1"


def test_nothing_is_loaded_for_a_program_that_prepares_nothing(root: Path) -> None:
    assert loaded(root, "").startswith("0 False 0")
