"""A process that is killed while it makes a compaction ahead: nothing is lost but that summary."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.memory import preparer

from compacter import Compacter
from compacter.events import CompactionEvent, CompactionReused
from compacter.testing import ScriptedModel

SAID = "They asked seven questions and had seven answers."


@pytest.fixture(params=["sqlite", "redis"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, namespace: str) -> tuple[str, str, str]:
    """Kind, address and namespace of a memory that two processes share."""
    if request.param == "redis":
        return "redis", request.getfixturevalue("redis_url"), namespace
    return "sqlite", str(tmp_path / "memory.db"), namespace


@pytest.fixture
def killed(shared: tuple[str, str, str], environment: dict[str, str], root: Path) -> None:
    """A process was killed in the middle of a preparation."""
    where = {**environment, "PYTHONPATH": f"{environment['PYTHONPATH']}{os.pathsep}{root}"}
    program = [sys.executable, "-m", "tests.memory.preparer", *shared]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=where) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "began\n"
        finally:
            os.kill(process.pid, signal.SIGKILL)


def another(shared: tuple[str, str, str]) -> tuple[Compacter, Any, ScriptedModel, list[Any]]:
    """The process that goes on: its compacter, function, model and events."""
    model = ScriptedModel(window=1_000)
    events: list[Any] = []
    compacter = Compacter(
        prepare_tokens=700,
        recall=None,
        memory=preparer.memory_of(*shared),
        summarizer=lambda messages: SAID,
        on_event=events.append,
    )
    return compacter, compacter.wrap(model.completion), model, events


def is_compacted(messages: Any) -> bool:
    return any(SAID in str(message["content"]) for message in messages)


@pytest.mark.usefixtures("killed")
def test_a_call_that_is_due_then_makes_its_own(shared: tuple[str, str, str]) -> None:
    compacter, completion, model, events = another(shared)
    completion("m", preparer.history(11))
    last = model.requests[-1]
    assert not last.refused
    assert is_compacted(last.messages)
    assert last.messages[-1]["content"] == "And now?"
    (made,) = (event for event in events if isinstance(event, CompactionEvent))
    assert (made.trigger, made.summary) == ("token_limit", SAID)
    assert compacter.drain(60)


@pytest.mark.usefixtures("killed")
def test_the_next_process_makes_it_ahead_instead_and_uses_it(shared: tuple[str, str, str]) -> None:
    compacter, completion, model, events = another(shared)
    for turns in (7, 8):
        completion("m", preparer.history(turns))
    assert compacter.drain(60)
    assert compacter.totals.prepared == 1
    completion("m", preparer.history(11))
    assert is_compacted(model.requests[-1].messages)
    assert [event.prepared for event in events if isinstance(event, CompactionReused)] == [True]
    assert compacter.totals.summarizer_calls == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ending", ["run", "closed"])
def test_a_loop_that_ends_leaves_nothing_that_another_process_waits_for(
    ending: str, shared: tuple[str, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # What other tests have left is not looked at here.
    began = asyncio.Event()

    async def summarize(messages: list[Any]) -> str:
        began.set()
        await asyncio.Event().wait()
        return SAID

    memory = preparer.memory_of(*shared)
    ended = Compacter(prepare_tokens=700, recall=None, memory=memory, summarizer=summarize)

    async def program() -> None:
        completion = ended.wrap(ScriptedModel(window=1_000).acompletion)
        for turns in (7, 8):
            await completion("m", preparer.history(turns))
        await began.wait()

    if ending == "run":
        asyncio.run(program())
    else:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(program())
        loop.close()
    assert ended.drain(60)
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []
    compacter, completion, model, _ = another(shared)
    completion("m", preparer.history(11))
    assert is_compacted(model.requests[-1].messages)
    assert compacter.drain(60)
