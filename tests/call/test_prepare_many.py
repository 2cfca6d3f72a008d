"""Hundreds of conversations that are prepared through one process keep threads, tasks and memory
bounded.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tests.effort import times

from compacter import Compacter, InProcessMemory
from compacter.call.ahead import MOST_AT_ONCE
from compacter.call.handlers import Handlers
from compacter.call.warm import load
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from tests.conversations import Chat

CONVERSATIONS = times(60, long=2_000)
SAID = "They asked how deep a harbour is."


class Writer:
    """A summarizer that waits until it is let go, and counts how many wait at once."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.may_go = asyncio.Event()
        self.lock = threading.Lock()
        self.now = 0
        self.most = 0
        self.asked = 0

    def begin(self) -> None:
        with self.lock:
            self.now += 1
            self.asked += 1
            self.most = max(self.most, self.now)

    def end(self) -> str:
        with self.lock:
            self.now -= 1
        return SAID

    def write(self, messages: list[Chat]) -> str:
        self.begin()
        assert self.go.wait(60)
        return self.end()

    async def awrite(self, messages: list[Chat]) -> str:
        self.begin()
        await self.may_go.wait()
        return self.end()


def make(writer: Any) -> Compacter:
    memory = InProcessMemory(max_entries=100)
    return Compacter(summarizer=writer, prepare_tokens=700, recall=None, memory=memory)


def history(number: int) -> list[Chat]:
    """About 800 tokens: long enough to prepare for, and not too long to send."""
    turns: list[Chat] = []
    for turn in range(8):
        question = f"How deep is quay {turn} of {number}?"
        turns.append({"role": "user", "content": question.ljust(196)})
        turns.append({"role": "assistant", "content": f"Quay {turn} is deep.".ljust(196)})
    return [*turns, {"role": "user", "content": "And now?"}]


class Alive:
    """Calls that something keeps alive, apart from those of earlier tests."""

    def __init__(self) -> None:
        self._earlier = WeakSet(self._all())

    @staticmethod
    def _all() -> list[Any]:
        gc.collect()
        return [item for item in gc.get_objects() if isinstance(item, Handlers)]

    def count(self) -> int:
        return sum(item not in self._earlier for item in self._all())


def join(threads: set[threading.Thread]) -> None:
    for thread in threads:
        thread.join(60)


def test_in_threads() -> None:
    alive = Alive()
    writer = Writer()
    compacter = make(writer.write)
    completion = compacter.wrap(ScriptedModel(window=1_000).completion)
    load()
    before = set(threading.enumerate())
    for number in range(CONVERSATIONS):
        completion("m", history(number)[:-2])
        completion("m", history(number))
    names = Counter(thread.name for thread in set(threading.enumerate()) - before)
    # The summarizer, which has a time limit, runs in a thread beside that of its preparation.
    assert names["compacter-prepare"] == MOST_AT_ONCE
    assert names["compacter"] <= MOST_AT_ONCE
    assert names.keys() <= {"compacter-prepare", "compacter"}
    # Only what runs keeps its conversation alive.
    assert alive.count() == MOST_AT_ONCE
    writer.go.set()
    assert compacter.drain(120)
    join(set(threading.enumerate()) - before)
    assert writer.most == MOST_AT_ONCE
    assert writer.asked == MOST_AT_ONCE
    assert compacter.totals.prepared == writer.asked
    assert alive.count() == 0


def test_in_tasks() -> None:
    alive = Alive()
    writer = Writer()
    compacter = make(writer.awrite)
    completion = compacter.wrap(ScriptedModel(window=1_000).acompletion)

    async def program() -> None:
        load()
        before = set(threading.enumerate())
        for number in range(CONVERSATIONS):
            await completion("m", history(number)[:-2])
            await completion("m", history(number))
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert names.count("compacter-prepare") == MOST_AT_ONCE
        more = {thread.name for thread in set(threading.enumerate()) - before}
        assert not more
        assert alive.count() == MOST_AT_ONCE
        writer.may_go.set()
        assert await compacter.adrain(120)

    asyncio.run(program())
    assert writer.most == MOST_AT_ONCE
    assert compacter.totals.prepared == MOST_AT_ONCE
    assert alive.count() == 0
