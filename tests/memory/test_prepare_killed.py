"""A process that is killed while it makes a compaction ahead: nothing is lost but that summary."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import warnings
from typing import Any

import pytest
from tests.memory import program

from compacter import Compacter
from compacter.events import CompactionEvent
from compacter.testing import ScriptedModel

SAID = "They asked seven questions and had seven answers."


@pytest.fixture
def killed(shared: tuple[str, str, str], environment: dict[str, str]) -> None:
    """A process was killed in the middle of a preparation."""
    words = [sys.executable, program.__file__, "prepare", *shared]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
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
        memory=program.memory_of(*shared),
        summarizer=lambda messages: SAID,
        on_event=events.append,
    )
    return compacter, compacter.wrap(model.completion), model, events


def is_compacted(messages: Any) -> bool:
    return any(SAID in str(message["content"]) for message in messages)


@pytest.mark.usefixtures("killed")
def test_a_call_that_is_due_then_makes_its_own(shared: tuple[str, str, str]) -> None:
    compacter, completion, model, events = another(shared)
    completion("m", program.history(11))
    last = model.requests[-1]
    assert not last.refused
    assert is_compacted(last.messages)
    assert last.messages[-1]["content"] == "And now?"
    (made,) = (event for event in events if isinstance(event, CompactionEvent))
    assert (made.trigger, made.summary) == ("token_limit", SAID)
    assert compacter.drain(60)


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

    memory = program.memory_of(*shared)
    ended = Compacter(prepare_tokens=700, recall=None, memory=memory, summarizer=summarize)

    async def prepare() -> None:
        completion = ended.wrap(ScriptedModel(window=1_000).acompletion)
        for turns in (7, 8):
            await completion("m", program.history(turns))
        await began.wait()

    if ending == "run":
        asyncio.run(prepare())
    else:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(prepare())
        loop.close()
    assert ended.drain(60)
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []
    compacter, completion, model, _ = another(shared)
    completion("m", program.history(11))
    assert is_compacted(model.requests[-1].messages)
    assert compacter.drain(60)
