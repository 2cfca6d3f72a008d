"""The end of an event loop, or of the threads that there can be, in the middle of a preparation.

Each program runs in an interpreter of its own, where every warning is an error and asyncio checks
itself: what it prints is "ended", and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from tests.effort import every

from compacter import Compacter
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import asyncio
import gc
import sys
import threading
import compacter
from compacter.call.ahead import MOST_AT_ONCE
from compacter.testing import ScriptedModel

ending, kind, count, place = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
began = threading.Semaphore(0)
go = threading.Event()
asked = []


async def awaited(messages):
    asked.append(1)
    began.release()
    await asyncio.Event().wait()


def threaded(messages):
    asked.append(1)
    began.release()
    go.wait(60)
    return "They asked about harbours."


events = []
kept = set()
maker = compacter.Compacter(
    prepare_tokens=500,
    summarizer=awaited if kind == "awaited" else threaded,
    memory=compacter.SQLiteMemory(place) if place else compacter.InProcessMemory(),
    on_event=events.append,
)
completion = maker.wrap(ScriptedModel().acompletion)


async def call(number):
    words = [{"role": role, "content": f"{number} word " * 100} for role in ("user", "assistant")]
    await completion("m", words * 2)
    await completion("m", [*words * 2, {"role": "user", "content": "And now?"}])


def be_patient():
    # A slow machine is no fault.
    asyncio.get_running_loop().slow_callback_duration = 1e9


class Stop(Exception):
    pass


async def program():
    be_patient()
    for number in range(count):
        await call(number)
    for _ in range(min(count, MOST_AT_ONCE)):
        while not began.acquire(blocking=False):
            await asyncio.sleep(0)
    if ending == "raised":
        raise Stop
    if ending == "let go":
        go.set()
    if ending == "kept":
        # They are destroyed only when the interpreter ends.
        kept.update(asyncio.all_tasks())


loop = asyncio.new_event_loop()
if ending == "run":
    asyncio.run(program())
elif ending == "raised":
    try:
        asyncio.run(program())
    except Stop:
        pass
else:
    loop.run_until_complete(program())
loop.close()
go.set()
gc.collect()
assert maker.drain(30)
gc.collect()
assert len(asked) <= MOST_AT_ONCE, len(asked)
failed = [event for event in events if type(event).__name__ == "PreparationFailed"]
assert failed == [], failed
# The next loop begins anew.
async def again():
    be_patient()
    before = len(asked)
    go.set()
    await call(count)
    while len(asked) == before:
        await asyncio.sleep(0)

asyncio.run(again())
gc.collect()
print("ended")
"""


@pytest.mark.parametrize(
    ("ending", "kind", "count", "place"),
    every(
        2,
        [
            ("run", "awaited", 12, ""),
            ("run", "threaded", 12, "memory.db"),
            ("closed", "awaited", 12, "memory.db"),
            ("closed", "threaded", 1, ""),
            ("raised", "threaded", 12, ""),
            ("let go", "threaded", 12, "memory.db"),
            ("kept", "awaited", 2, "memory.db"),
        ],
    ),
)
def test_the_end_of_a_loop_leaves_no_warning(
    ending: str, kind: str, count: int, place: str, root: Path, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(root / "middleware"),
        "PYTHONASYNCIODEBUG": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    ended = subprocess.run(
        [
            sys.executable,
            *("-X", "dev", "-W", "error", "-c", PROGRAM),
            *(ending, kind, str(count), str(tmp_path / place) if place else ""),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert (ended.stdout, ended.stderr) == ("ended\n", "")


def test_without_a_thread_the_call_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    compacter = Compacter(prepare_tokens=100, summarizer="extractive")
    completion = compacter.wrap(ScriptedModel().completion)
    messages = [{"role": "user", "content": "word " * 200}] * 3

    def start(_: object) -> None:
        raise RuntimeError("can't start new thread")

    completion("m", messages)
    monkeypatch.setattr(threading.Thread, "start", start)
    assert completion("m", [*messages, messages[0]])
    assert compacter.drain(1)
    assert compacter.totals.prepared == 0
