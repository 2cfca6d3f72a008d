"""Interrupts, cancellations and generators closed half-way: they pass through, and nothing is left
behind.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Literal, get_args

import pytest
from tests.conversations import Chat, talk

from compacter import Compacter
from compacter.memory import InProcessMemory, Record
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def answered(reply: Any) -> str:
    text: str = reply["choices"][0]["message"]["content"]
    return text


Moment = Literal["first call", "summary", "hook", "before", "memory", "retry"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)


class Interruptible:
    """A program that can be interrupted at each moment of a call, and goes on working
    afterwards.
    """

    def __init__(self, moment: Moment, error: BaseException) -> None:
        self.moment: Moment | None = moment
        self.error = error
        self.model = ScriptedModel(window=900)
        self.calls = 0
        self.memory = Striking(self)

    def strike(self, moment: Moment) -> None:
        if moment == self.moment:
            self.moment = None
            raise self.error

    def options(self) -> dict[str, Any]:
        return {
            "summarizer": self.summarizer,
            "memory": self.memory,
            "on_compaction": lambda event: self.strike("hook"),
            "before_compaction": lambda plan: self.strike("before"),
        }

    def summarizer(self, messages: Sequence[Chat]) -> str:
        self.strike("summary")
        return "They talked."

    def completion(self, messages: Sequence[Chat]) -> Any:
        self.calls += 1
        self.strike("first call" if self.calls == 1 else "retry")
        return self.model.completion("m", messages)

    async def acompletion(self, messages: Sequence[Chat]) -> Any:
        self.calls += 1
        self.strike("first call" if self.calls == 1 else "retry")
        return await self.model.acompletion("m", messages)


class Striking(InProcessMemory):
    """A memory in which saving is one of the moments."""

    def __init__(self, program: Interruptible) -> None:
        super().__init__()
        self._program = program

    def save(self, record: Record) -> None:
        self._program.strike("memory")
        super().save(record)


class TestInterruptions:
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_an_interrupt_passes_through_and_leaves_nothing_behind(self, moment: Moment) -> None:
        program = Interruptible(moment, KeyboardInterrupt())
        completion = Compacter(**program.options()).wrap(program.completion)

        with pytest.raises(KeyboardInterrupt):
            completion(messages=talk())
        # Another thread would wait for ever if the interrupted call still held its claim.
        found: list[Any] = []
        thread = threading.Thread(
            target=lambda: found.append(completion(messages=talk())), daemon=True
        )
        thread.start()
        thread.join(300)

        assert [answered(reply) for reply in found] == ["ok"]

    @pytest.mark.parametrize("moment", MOMENTS)
    async def test_a_cancellation_raised_at_each_step_passes_through(self, moment: Moment) -> None:
        program = Interruptible(moment, asyncio.CancelledError())
        completion = Compacter(**program.options()).wrap(program.acompletion)

        with pytest.raises(asyncio.CancelledError):
            await completion(messages=talk())
        async with asyncio.timeout(300):
            reply = await asyncio.create_task(completion(messages=talk()))

        assert answered(reply) == "ok"

    async def test_a_task_can_be_cancelled_at_each_of_its_awaits(self) -> None:
        """Step by step: the n-th run is cancelled at its n-th await, until one run ends before
        that.
        """
        ended = False

        async def hook(event: object) -> None:
            await asyncio.sleep(0)

        for step in range(1, 60):
            model = ScriptedModel(window=900)
            summarizer = ScriptedSummarizer("They talked.")
            compacter = Compacter(summarizer=summarizer.acall, on_event=hook)
            completion = compacter.wrap(model.acompletion)
            task = asyncio.create_task(completion("m", talk()))
            for _ in range(step):
                await asyncio.sleep(0)
            if task.done():
                assert answered(task.result()) == "ok"
                ended = True
                break
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(300):
                assert answered(await completion("m", talk())) == "ok"
        assert ended

    async def test_cancelling_one_of_two_calls_does_not_cancel_the_other(self) -> None:
        begun = asyncio.Event()
        go_on = asyncio.Event()
        made = 0

        async def summarizer(messages: Sequence[Chat]) -> str:
            nonlocal made
            made += 1
            begun.set()
            await go_on.wait()
            return "They talked."

        model = ScriptedModel(window=900)
        completion = Compacter(summarizer=summarizer).wrap(model.acompletion)
        first = asyncio.create_task(completion("m", talk()))
        await begun.wait()
        second = asyncio.create_task(completion("m", talk()))
        for _ in range(10):
            await asyncio.sleep(0)
        first.cancel()
        go_on.set()

        assert answered(await asyncio.wait_for(second, 300)) == "ok"
        with pytest.raises(asyncio.CancelledError):
            await first

    async def test_an_async_generator_closed_half_way_closes_what_it_reads(self) -> None:
        model = ScriptedModel(window=900, replies="a long answer in many chunks", chunk_size=2)
        ended = False

        async def chat(messages: Sequence[Chat]) -> Any:
            nonlocal ended
            stream = await model.acompletion("m", messages, stream=True)
            try:
                async for chunk in stream:
                    yield chunk
            finally:
                ended = True

        chunks: Any = Compacter(summarizer=ScriptedSummarizer("Short.")).wrap(chat)(messages=talk())
        for _ in range(4):
            await anext(chunks)
        await chunks.aclose()

        assert ended
        assert model.streams[-1].delivered < 16

    def test_a_generator_closed_before_its_first_chunk_calls_nothing(self) -> None:
        model = ScriptedModel(window=900)

        def chat(messages: Sequence[Chat]) -> Any:
            yield from model.completion("m", messages, stream=True)

        Compacter().wrap(chat)(messages=talk()).close()

        assert not model.requests


def test_the_timeout_bounds_the_wait_for_another_calls_summary_too() -> None:
    begun = threading.Event()
    go_on = threading.Event()

    def summarize(messages: Sequence[Chat], **_: Any) -> str:
        begun.set()
        assert go_on.wait(300)
        return "They talked about questions."

    completion = Compacter(summarizer=summarize, timeout=0.2).wrap(
        ScriptedModel(window=900).completion
    )
    # Its own time-out makes the first call go on as well, but not before the second one has begun
    # to wait for it.
    first = threading.Thread(target=completion, args=("m", talk()))
    first.start()
    assert begun.wait(300)
    try:
        assert answered(completion("m", talk())) == "ok"
    finally:
        go_on.set()
        first.join(300)
    assert not first.is_alive()


def test_a_summarizer_that_hangs_keeps_neither_the_call_nor_the_end_of_its_loop_waiting() -> None:
    let_go = threading.Event()
    ended = threading.Event()

    def hang(messages: Sequence[Chat], **_: Any) -> str:
        let_go.wait(300)
        ended.set()
        return f"{len(messages)} message, much too late"

    call = Compacter(summarizer=hang, timeout=0.05).wrap(ScriptedModel(window=900).acompletion)

    async def ask() -> str:
        return answered(await call("m", talk()))

    assert asyncio.run(ask())
    assert not ended.is_set()
    let_go.set()
    assert ended.wait(300)


async def test_a_summarizer_beside_the_loop_may_raise_what_no_coroutine_can() -> None:
    def run_out(messages: Sequence[Chat], **_: Any) -> str:
        return next(iter(()))

    compacter = Compacter(summarizer=run_out)
    call = compacter.wrap(ScriptedModel(window=900).acompletion)
    assert answered(await asyncio.wait_for(call("m", talk()), 300))
    assert compacter.totals.failures


_SLOW_LITELLM = """
import time

class Client:
    def __del__(self):
        try:
            import litellm.late
        except ImportError:
            pass

client = Client()
time.sleep(0.6)
model_cost = {}

def completion(**request):
    import litellm.late
    message = {"role": "assistant", "content": "They counted to nine."}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}

async def acompletion(**request):
    return completion(**request)
"""
_PROGRAM = """
import asyncio, sys
from compacter import Compacter

def completion(messages, model="m"):
    if len(messages) > 4:
        raise ValueError(
            "This model's maximum context length is 700 tokens. However, your messages resulted "
            "in 900 tokens."
        )
    return {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}

async def acompletion(messages, model="m"):
    return completion(messages)

history = [{"role": "user", "content": f"Number {n}: {'text ' * 50}"} for n in range(9)]
compacter = Compacter(summarizer="openai/gpt-4o", timeout=0.4)
if sys.argv[1] == "sync":
    compacter.wrap(completion)(history)
elif sys.argv[1] == "async":
    asyncio.run(compacter.wrap(acompletion)(history))
print(compacter.totals.failures)
"""


@pytest.mark.parametrize("way", ["unused", "sync", "async"])
def test_a_process_ends_while_litellm_is_imported(way: str, tmp_path: Path) -> None:
    """A process ends whatever a thread of ours imports, and `timeout` does not count imports."""
    package = tmp_path / "litellm"
    package.mkdir()
    (package / "__init__.py").write_text(_SLOW_LITELLM)
    (package / "late.py").write_text("import time\ntime.sleep(0.3)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, "-c", _PROGRAM, way],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "0\n", "")
