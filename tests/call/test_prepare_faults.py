"""Former faults of compactions made ahead, by which a program waited, paid or reported wrongly."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, CompactionEvent, SQLiteMemory
from compacter.events import CompactionReused, PreparationFailed
from compacter.runtime.io import AsyncIO, SyncIO
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conversations import Chat

    from compacter.memory import BaseMemory

SAID = "They talked about barrels and the price of each of them."


class Writer:
    """A summarizer that keeps what it was asked."""

    def __init__(self, answer: Callable[[str], str] = lambda _: SAID) -> None:
        self.asked: list[str] = []
        self.answer = answer

    def __call__(self, messages: list[Chat], **_: Any) -> str:
        self.asked.append(str(messages))
        return self.answer(self.asked[-1])


def user(text: str) -> Chat:
    return {"role": "user", "content": text.ljust(196, "?")}


def assistant(text: str) -> Chat:
    return {"role": "assistant", "content": text.ljust(196, ".")}


def turns(count: int, name: str = "one") -> list[Chat]:
    return [
        message
        for number in range(count)
        for message in (user(f"{name} asks {number}"), assistant(f"{name} answers {number}"))
    ]


def talk(
    compacter: Compacter,
    model: ScriptedModel,
    change: Callable[[list[Chat]], list[Chat]] = list,
    *,
    calls: int = 60,
    name: str = "one",
) -> None:
    """Ask again and again; the program sends what ``change`` makes of its history."""
    completion = compacter.wrap(model.completion)
    history: list[Chat] = [{"role": "system", "content": "You are a clerk."}]
    for number in range(calls):
        history.append(user(f"{name} asks {number}"))
        completion(model="m", messages=change(history))
        compacter.drain(30)
        history.append(assistant(f"{name} answers {number}"))


class TestNoCallWaitsForItself:
    """A claim is not re-entrant: whoever has it would wait for its own end."""

    @pytest.fixture
    def stored(self, tmp_path: Path) -> Iterator[BaseMemory]:
        """A memory that grants claims; a busy machine is not a failing memory."""
        memory = SQLiteMemory(tmp_path / "memory.db", deadline=60)
        yield memory
        memory.close()

    @pytest.fixture(autouse=True)
    def sleepless(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def sleep(*_: object) -> None:
            raise AssertionError("a call waits for a claim")

        monkeypatch.setattr(SyncIO, "sleep", sleep)
        monkeypatch.setattr(AsyncIO, "sleep", sleep)

    @pytest.mark.parametrize("prepare", [300, 0.3])
    def test_in_a_second_round_with_a_new_window(self, prepare: Any, stored: BaseMemory) -> None:
        model = ScriptedModel(window=700)
        compacter = Compacter(
            prepare_tokens=prepare,
            compact_ratio=0.3,
            memory=stored,
            summarizer=Writer(),
            recall=None,
        )
        completion = compacter.wrap(model.completion)
        for start in range(3):
            completion(model="m", messages=[*turns(12, f"n{start}"), user("And now?")])
            completion(model="m", messages=[*turns(16, f"n{start}"), user("And then?")])
        assert compacter.drain(30)

    def test_and_none_for_another_conversation_that_begins_alike(self, stored: BaseMemory) -> None:
        """Agents from one template have their first messages in common."""
        began = threading.Event()
        go = threading.Event()

        def answer(asked: str) -> str:
            if "slow asks" in asked:
                began.set()
                assert go.wait(30)
            return SAID

        compacter = Compacter(
            prepare_tokens=500, memory=stored, summarizer=Writer(answer), recall=None
        )
        completion = compacter.wrap(ScriptedModel(window=1_000).completion)
        template = turns(2, "template")
        completion(model="m", messages=[*template, *turns(4, "slow")])
        completion(model="m", messages=[*template, *turns(5, "slow"), user("And?")])
        assert began.wait(30)
        try:
            completion(model="m", messages=[*template, *turns(9, "quick"), user("And?")])
        finally:
            go.set()
        assert compacter.drain(30)


class TestWithdrawnTextStaysAway:
    """The call records the messages to compact before it returns, and checks them at use."""

    def test_from_what_is_compacted(self) -> None:
        writer = Writer()
        model = ScriptedModel(window=1_000)
        events: list[Any] = []
        compacter = Compacter(
            prepare_tokens=500, summarizer=writer, recall=None, on_event=events.append
        )

        async def program() -> None:
            completion = compacter.wrap(model.acompletion)
            history = turns(5)
            await completion(model="m", messages=history)
            history.extend(turns(1, "more"))
            await completion(model="m", messages=history)
            history[0]["content"] = "My key is hunter2."  # Before the task has begun.
            assert await compacter.adrain(30)
            history[0]["content"] = "[withdrawn]"
            history.extend(turns(6, "even more"))
            await completion(model="m", messages=history)

        asyncio.run(program())
        assert len(writer.asked) >= 2
        assert compacter.totals.prepared == 1
        assert "hunter2" not in str(writer.asked)
        assert not any(isinstance(event, CompactionReused) for event in events)
        assert "hunter2" not in str(model.requests[-1].messages)

    def test_from_what_is_sent_in_a_sync_program_too(self) -> None:
        go = threading.Event()
        asked: list[str] = []

        def write(messages: list[Chat]) -> str:
            assert go.wait(30)
            asked.append(str(messages))
            return SAID if len(asked) > 1 else "They said that the code is 4711."

        model = ScriptedModel(window=1_000)
        compacter = Compacter(prepare_tokens=500, summarizer=write, recall=None)
        completion = compacter.wrap(model.completion)
        history = [user("The code is 4711."), *turns(5)]
        completion(model="m", messages=history)
        history.append(user("And now?"))
        completion(model="m", messages=history)
        history[0]["content"] = "[withdrawn]"
        go.set()
        assert compacter.drain(30)
        completion(model="m", messages=[*history, *turns(5, "more")])
        assert "4711" in asked[0]
        assert "4711" not in str(model.requests[-1].messages)
        assert "4711" not in asked[-1]


def last_sixteen(history: list[Chat]) -> list[Chat]:
    return [history[0], *history[1:][-16:]]


TICKS = itertools.count()


def with_a_clock(history: list[Chat]) -> list[Chat]:
    return [user(f"It is {next(TICKS)} o'clock."), *history[1:][-16:]]


def with_old_results_cleared(history: list[Chat]) -> list[Chat]:
    cut = max(len(history) - 12, 1)
    return [*({**message, "content": "[old]"} for message in history[:cut]), *history[cut:]]


def trimmed_now_and_then(history: list[Chat]) -> list[Chat]:
    dropped = max(0, len(history) - 17) // 8 * 8
    return [history[0], *history[1 + dropped :]]


class TestWhatNobodyUses:
    @pytest.mark.parametrize(
        "change", [last_sixteen, with_a_clock, with_old_results_cleared, trimmed_now_and_then]
    )
    def test_trimmed_histories_pay_for_one(
        self, change: Callable[[list[Chat]], list[Chat]]
    ) -> None:
        writer = Writer()
        compacter = Compacter(prepare_tokens=500, summarizer=writer, recall=None)
        talk(compacter, ScriptedModel(window=100_000), change)
        assert len(writer.asked) <= 1, len(writer.asked)

    def test_after_an_unused_one_the_next_is_made_when_it_is_due(self) -> None:
        writer = Writer()
        model = ScriptedModel(window=1_000)
        compacter = Compacter(prepare_tokens=600, summarizer=writer, recall=None)
        edited = False

        def edit(history: list[Chat]) -> list[Chat]:
            nonlocal edited
            if len(writer.asked) == 1 and not edited:
                history[1]["content"] = "Something else.".ljust(196)
                edited = True
            return list(history)

        talk(compacter, model, edit, calls=12)
        assert compacter.totals.prepared == 1
        assert compacter.totals.prepared_used == 0
        assert len(writer.asked) in (2, 3)  # What is due may take two requests.
        talk(compacter, model, calls=40, name="two")
        assert compacter.totals.prepared_used >= 1

    @pytest.mark.parametrize("answer", ["", "They talked of piers. " * 20, "raises"])
    def test_a_refused_summarizer_is_not_asked_at_each_reply(self, answer: str) -> None:
        def refuse(_: str) -> str:
            if answer == "raises":
                raise ConnectionError("away")
            return answer

        writer = Writer(refuse)
        events: list[Any] = []
        compacter = Compacter(
            prepare_tokens=500, summarizer=writer, recall=None, on_event=events.append
        )
        talk(compacter, ScriptedModel(window=100_000))
        assert len(writer.asked) <= 2
        assert sum(isinstance(event, PreparationFailed) for event in events) == 1

    def test_nor_one_whose_request_is_cancelled(self) -> None:
        asked: list[int] = []

        async def write(messages: list[Chat]) -> str:
            asked.append(1)
            raise asyncio.CancelledError

        compacter = Compacter(prepare_tokens=500, summarizer=write, recall=None)

        async def program() -> None:
            completion = compacter.wrap(ScriptedModel().acompletion)
            for count in range(8, 30):
                await completion(model="m", messages=turns(count))
                assert await compacter.adrain(30)

        asyncio.run(program())
        assert len(asked) == 1


STOPPED = """
import asyncio
import threading
from compacter import Compacter
from compacter.testing import ScriptedModel

began = threading.Semaphore(0)

async def write(messages):
    began.release()
    await asyncio.Event().wait()

compacter = Compacter(prepare_tokens=500, summarizer=write)
model = ScriptedModel()
completion = compacter.wrap(model.acompletion)

def messages(number):
    words = [{"role": role, "content": f"{number} word " * 100} for role in ("user", "assistant")]
    return words * 4

async def call(number):
    await completion("m", messages(number)[:-1])
    await completion("m", messages(number))
    while not began.acquire(blocking=False):
        await asyncio.sleep(0)

loops = []
for number in range(8):
    loops.append(asyncio.new_event_loop())
    loops[-1].run_until_complete(call(number))  # Stopped from here on, and not closed.
assert compacter.drain()
asyncio.run(call(9))  # There is a place for another one.
print("ended")
"""


class TestTheEnd:
    def test_of_a_process_with_loops_that_stand_still(self, root: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(root / "middleware"),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        ended = subprocess.run(
            [sys.executable, "-c", STOPPED],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
        assert (ended.stdout, ended.returncode) == ("ended\n", 0), ended.stderr

    def test_drain_in_a_coroutine_does_not_wait_for_its_own_loop(self) -> None:
        async def write(messages: list[Chat]) -> str:
            await asyncio.sleep(0)
            return SAID

        compacter = Compacter(prepare_tokens=500, summarizer=write, recall=None)

        async def program() -> None:
            completion = compacter.wrap(ScriptedModel().acompletion)
            await completion(model="m", messages=turns(7))
            await completion(model="m", messages=turns(8))
            assert not compacter.drain()  # As docs/waiting.md says.
            assert await compacter.adrain()

        asyncio.run(program())


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("model", [["a", "b"], Unhashable(), {"name": "a"}, 3])
def test_any_value_may_stand_for_the_model(model: Any) -> None:
    compacter = Compacter(prepare_tokens=500, summarizer=Writer(), recall=None)

    @compacter
    def completion(*, model: Any, messages: list[Chat]) -> str:
        return "the reply that was paid for"

    for count in range(6, 9):
        assert completion(model=model, messages=turns(count)) == "the reply that was paid for"
    assert compacter.drain(30)
    assert compacter.totals.prepared == 1


def test_a_client_that_was_closed_meanwhile_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    def completion(*, model: str, messages: list[Chat]) -> str:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("Cannot send a request, as the client has been closed.")
        return "ok"

    events: list[Any] = []
    compacter = Compacter(prepare_tokens=500, recall=None, on_event=events.append)
    call = compacter.wrap(completion)
    with caplog.at_level(logging.WARNING):
        for count in range(6, 9):
            call(model="m", messages=turns(count))
        assert compacter.drain(30)
    assert caplog.records == []
    assert sum(isinstance(event, PreparationFailed) for event in events) == 1
    assert not any(isinstance(event, CompactionEvent) for event in events)
