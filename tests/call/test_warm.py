"""With ``prepare_tokens`` the first refusal does not wait for patterns and modules to load."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from compacter import Compacter
from compacter.testing import ScriptedModel

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
names = ("compacter.lines.quotes", "compacter.summary.write")
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


async def test_an_event_loop_does_not_wait_for_the_detector() -> None:
    """Errors are judged outside of the event loop: the patterns for a new text take long."""
    threads: list[threading.Thread] = []

    def detect(error: BaseException) -> None:
        threads.append(threading.current_thread())

    compacter = Compacter(detect=detect, summarizer="extractive", memory=None)
    completion = compacter.wrap(ScriptedModel(window=300).acompletion)
    history = [{"role": "user", "content": "A line of text. " * 20} for _ in range(9)]
    await completion("m", history)
    assert [chunk async for chunk in await completion("m", history, stream=True)]
    assert len(threads) == 2
    assert threading.current_thread() not in threads
