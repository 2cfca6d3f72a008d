"""P13: calls that need the same compaction make one summary, and nobody waits for who has left."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from tests.memory import program

from compacter import Compacter, CompactionError, InProcessMemory
from compacter.memory import BaseMemory, Memory
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

Talk = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def history(talk: Talk) -> list[dict[str, Any]]:
    return [*talk(60), {"role": "user", "content": "And now?"}]


class Together:
    """A model whose refusals come when so many callers are about to be refused."""

    def __init__(self, callers: int, window: int = 2_000) -> None:
        self.model = ScriptedModel(window=window)
        self._all = threading.Barrier(callers)
        self._arrived = 0
        self._gate = asyncio.Event()
        self._callers = callers

    def completion(self, model: str, messages: list[Any]) -> Any:
        try:
            return self.model.completion(model, messages)
        except TokenLimitError:
            self._all.wait(300)
            raise

    async def acompletion(self, model: str, messages: list[Any]) -> Any:
        try:
            return await self.model.acompletion(model, messages)
        except TokenLimitError:
            self._arrived += 1
            if self._arrived == self._callers:
                self._gate.set()
            await self._gate.wait()
            raise


def test_threads_make_one_summary(memory: Memory, history: list[Any]) -> None:
    together = Together(4)
    compacter = Compacter(memory=memory, summarizer=ScriptedSummarizer())
    completion = compacter.wrap(together.completion)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(completion, "model", list(history)) for _ in range(4)]
        replies = [call.result(300) for call in calls]
    assert len(replies) == 4
    assert compacter.totals.rounds == 1
    sent = [request.messages for request in together.model.requests if not request.refused]
    assert sent == sent[:1] * 4


async def test_tasks_make_one_summary(memory: Memory, history: list[Any]) -> None:
    together = Together(4)
    compacter = Compacter(memory=memory, summarizer=ScriptedSummarizer().acall)
    completion = compacter.wrap(together.acompletion)
    await asyncio.gather(*(completion("model", list(history)) for _ in range(4)))
    assert compacter.totals.rounds == 1


def test_processes_make_one_summary(
    shared: tuple[str, str, str], environment: dict[str, str]
) -> None:
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, program.__file__, "resend", *shared],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=environment,
                )
            )
            for _ in range(2)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "refused\n"
        told = [json.loads(worker.communicate("go\n", timeout=600)[0]) for worker in workers]
    assert sum(one["compactions"] for one in told) == 1
    assert sum(one["reused"] for one in told) == 1
    assert told[0]["sent"] == told[1]["sent"]


def test_a_call_that_is_refused_after_another_made_the_summary_uses_it(
    memory: Memory, history: list[Any]
) -> None:
    scripted = ScriptedModel(window=2_000)
    compacter = Compacter(memory=memory, summarizer=ScriptedSummarizer())
    other = compacter.wrap(scripted.completion)
    asked = iter([True])

    def slow(model: str, messages: list[Any]) -> Any:
        try:
            return scripted.completion(model, messages)
        except TokenLimitError:
            if next(asked, False):
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(other, "model", list(history)).result(300)
            raise

    compacter.wrap(slow)("model", history)
    assert compacter.totals.rounds == 1
    assert scripted.rejected == 2


@pytest.mark.parametrize("shared", ["one process", "two processes"])
def test_who_waits_for_a_summary_has_it_when_it_is_stored_and_not_when_the_model_has_answered(
    shared: str, stored: BaseMemory, reopen: Callable[[], BaseMemory], history: list[Any]
) -> None:
    scripted = ScriptedModel(window=2_000)
    asked = threading.Event()
    refused = threading.Event()
    answered = threading.Event()

    def summarize(messages: list[Any]) -> str:
        asked.set()
        assert refused.wait(60)
        return "They spoke of trains."

    def slow(model: str, messages: list[Any]) -> Any:
        reply = scripted.completion(model, messages)
        assert answered.wait(20), "the other call waits for the end of this one"
        return reply

    def quick(model: str, messages: list[Any]) -> Any:
        try:
            return scripted.completion(model, messages)
        except TokenLimitError:
            refused.set()
            raise

    first, other = (
        Compacter(memory=memory, summarizer=summarize, recall=None)
        for memory in (stored, stored if shared == "one process" else reopen())
    )
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(first.wrap(slow), "model", list(history))
        assert asked.wait(60)
        other.wrap(quick)("model", list(history))
        answered.set()
        call.result(60)
    assert (first.totals.rounds, other.totals.rounds) == (1, 0)


async def test_who_waits_for_a_cancelled_call_makes_the_summary(
    memory: Memory, history: list[Any]
) -> None:
    together = Together(2)
    summarizer = ScriptedSummarizer()
    asked = asyncio.Event()
    first = True

    async def summarize(messages: list[Any], **options: Any) -> Any:
        nonlocal first
        if first:
            first = False
            asked.set()
            await asyncio.Event().wait()
        return await summarizer.acall(messages, **options)

    compacter = Compacter(memory=memory, summarizer=summarize)
    completion = compacter.wrap(together.acompletion)
    calls = {asyncio.create_task(completion("model", list(history))) for _ in range(2)}
    await asked.wait()
    waiting = set(calls)
    for call in calls:
        # Whichever leads: it is the one that holds the summarizer, and its name tells.
        if any("summarize" in str(frame) for frame in _awaiting(call)):
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            waiting.discard(call)
    assert len(waiting) == 1
    await waiting.pop()
    assert compacter.totals.rounds == 1
    assert not compacter._state.flights._table


def _awaiting(task: asyncio.Task[Any]) -> list[str]:
    names: list[str] = []
    coroutine: Any = task.get_coro()
    while coroutine is not None:
        names.append(getattr(coroutine, "__qualname__", ""))
        coroutine = getattr(coroutine, "cr_await", None)
    return names


def test_who_waits_for_a_call_that_fails_makes_the_summary(
    memory: Memory, history: list[Any]
) -> None:
    together = Together(2)
    summarizer = ScriptedSummarizer(fail=[RuntimeError("no"), None])
    compacter = Compacter(memory=memory, summarizer=summarizer, fallback=None)
    completion = compacter.wrap(together.completion)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(completion, "model", list(history)) for _ in range(2)]
        errors = [call.exception(300) for call in calls]
    assert [type(error) for error in errors if error is not None] == [CompactionError]
    assert compacter.totals.rounds == 1
    assert not compacter._state.flights._table


class _SlowToClaim(InProcessMemory):
    """A memory whose claim is granted when nobody waits for it any more."""

    blocking = True

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on, self.released = (
            threading.Event(),
            threading.Event(),
            threading.Event(),
        )

    def claim(self, key: str, seconds: float) -> Any:
        self.asked.set()
        self.go_on.wait(300)
        return SimpleNamespace(release=self.released.set)


async def test_a_claim_that_is_granted_after_the_cancellation_is_given_back(
    history: list[Any],
) -> None:
    memory = _SlowToClaim()
    model = ScriptedModel(window=2_000)
    compacter = Compacter(memory=memory, summarizer=ScriptedSummarizer().acall)
    call = asyncio.create_task(compacter.wrap(model.acompletion)("model", history))
    await asyncio.to_thread(memory.asked.wait, 300)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not compacter._state.flights._table
    assert not memory.released.is_set()
    memory.go_on.set()
    assert await asyncio.to_thread(memory.released.wait, 300)
