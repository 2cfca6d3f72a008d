"""Redis in async programs: awaited, without a thread, on any event loop, and given up in time."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from compacter import Compacter
from compacter.memory import MemoryUnavailable, Record, RedisMemory
from compacter.memory.circuit import FAILURES
from compacter.memory.record import StoredMessage
from compacter.testing import ScriptedModel

redis = pytest.importorskip("redis")


def record(key: str = "k") -> Record:
    return Record(key, 3, (), (StoredMessage(0, {"role": "user", "content": "So far."}),), "d", "l")


def history(length: int = 30) -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"Thing {n} about trains. " * 20}
        for n in range(length)
    ]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that were started."""
    names: list[str] = []
    start = threading.Thread.start

    def note(self: threading.Thread) -> None:
        names.append(self.name)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", note)
    return names


@pytest.mark.parametrize("given", ["url", "client"])
async def test_async_calls_start_one_thread_for_a_url_and_none_for_a_client(
    redis_url: str, namespace: str, given: str, started: list[str]
) -> None:
    client = redis.asyncio.Redis.from_url(redis_url) if given == "client" else None
    memory = RedisMemory(client or redis_url, namespace=namespace)
    model = ScriptedModel(window=1_500, replies="They talked about trains.")
    compacter = Compacter(memory=memory, recall=None)
    wrapped = compacter.wrap(model.acompletion)
    for _ in range(2):
        await wrapped("m", history())
    assert (compacter.totals.rounds, model.rejected) == (1, 1)
    assert memory.asynchronous
    assert started == ([] if client else ["compacter-redis"])
    if client:
        await client.aclose()


async def test_calls_of_two_programs_make_one_summary(redis_url: str, namespace: str) -> None:
    model = ScriptedModel(window=1_500, replies="They talked about trains.")
    compacters = [
        Compacter(memory=RedisMemory(redis_url, namespace=namespace), recall=None) for _ in range(4)
    ]
    calls = [compacter.wrap(model.acompletion) for compacter in compacters]
    await asyncio.gather(*(call("m", history()) for call in calls))
    assert sum(compacter.totals.rounds for compacter in compacters) == 1


def threads_of_memories() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "compacter-redis"}


def test_event_loops_and_sync_calls_share_one_thread_that_ends_with_the_memory(
    redis_url: str, namespace: str
) -> None:
    before = threads_of_memories()
    memory = RedisMemory(redis_url, namespace=namespace)
    for number in range(3):
        asyncio.run(memory.asave(record(str(number))))
        assert list(asyncio.run(memory.afind([str(number)]))) == [record(str(number))]
    others = threads_of_memories() - before
    assert len(others) == 1
    assert list(memory.find(["0", "1", "2"])) == [record(str(number)) for number in range(3)]
    memory.close()
    assert not threads_of_memories() - before
    assert memory.find(["1"])
    del memory
    gc.collect()
    for thread in threads_of_memories() - before:
        thread.join(60)
        assert not thread.is_alive()


async def test_an_asyncio_client_serves_no_sync_call(redis_url: str, namespace: str) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        memory = RedisMemory(client, namespace=namespace)
        for use in (
            lambda: memory.find(["k"]),
            lambda: memory.save(record()),
            lambda: memory.claim("k", 1),
        ):
            with pytest.raises(MemoryUnavailable, match="URL"):
                use()
        model = ScriptedModel(window=1_500, replies="They talked about trains.")
        Compacter(memory=memory, recall=None).wrap(model.completion)("m", history())
        assert model.rejected == 1


async def test_a_server_that_says_nothing_is_given_up_and_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        memory = RedisMemory(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", deadline=0.3)
        async with asyncio.timeout(60):
            for _ in range(FAILURES):
                with pytest.raises(MemoryUnavailable, match="did not answer"):
                    await memory.afind(["k"])
        with pytest.raises(MemoryUnavailable, match="is not used for some seconds"):
            await memory.afind(["k"])


async def test_a_claim_is_renewed_while_it_is_held_and_not_after(
    redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compacter.memory.lease._RENEWALS", 150)
    memory = RedisMemory(redis_url, namespace=namespace)
    renewed = asyncio.Event()
    loop = asyncio.get_running_loop()
    renew: Callable[..., Any] = memory._renew

    async def watched(*given: Any) -> Any:
        outcome = await renew(*given)
        if outcome is True:
            loop.call_soon_threadsafe(renewed.set)
        return outcome

    monkeypatch.setattr(memory, "_renew", watched)
    claim = await memory.aclaim("k", 60)
    assert claim is not None
    async with asyncio.timeout(300):
        await renewed.wait()
    assert await memory.aclaim("k", 60) is None
    await claim.release()
    await claim.release()
    again = await memory.aclaim("k", 60)
    assert again is not None
    await again.release()


async def test_the_claim_of_a_cancelled_call_ends_soon(redis_url: str, namespace: str) -> None:
    memory = RedisMemory(redis_url, namespace=namespace)
    asked = asyncio.Event()

    async def slow(messages: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel(window=1_500, replies="ok")
    first = Compacter(memory=memory, recall=None, summarizer=slow).wrap(model.acompletion)
    task = asyncio.ensure_future(first("m", history()))
    await asked.wait()
    async with redis.asyncio.Redis.from_url(redis_url) as client, asyncio.timeout(300):

        async def held() -> list[bytes]:
            return [name async for name in client.scan_iter(f"{namespace}:claims:*")]

        assert await held() != []
        task.cancel()
        await asyncio.wait([task])
        while await held():
            pass


def test_a_namespace_is_never_served_to_another_one(redis_url: str, namespace: str) -> None:
    names = [
        namespace,
        f"{namespace}:records",
        f"{namespace[:-1]}",
        f"{namespace}*",
        f"{namespace}:",
    ]
    memories = [RedisMemory(redis_url, namespace=name) for name in names]
    for number, memory in enumerate(memories):
        memory.save(record(f"k{number}"))
        memory.save(record("shared"))
    for number, memory in enumerate(memories):
        keys = ["shared", *(f"k{other}" for other in range(len(names)))]
        assert [found.key for found in memory.find(keys)] == ["shared", f"k{number}"]
    memories[0].clear()
    assert [len(memory.find(["shared"])) for memory in memories] == [0, 1, 1, 1, 1]
    for memory in memories:
        memory.close()
