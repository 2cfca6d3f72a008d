"""Redis in async programs: awaited, without a thread, on any event loop, and given up in time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from compacter import Compacter
from compacter.memory import MemoryUnavailable, Record, RedisMemory
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
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise AssertionError(f"a thread was started: {self.name}")

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.parametrize("given", ["url", "client"])
@pytest.mark.usefixtures("no_threads")
async def test_async_calls_start_no_thread(redis_url: str, namespace: str, given: str) -> None:
    client = redis.asyncio.Redis.from_url(redis_url) if given == "client" else None
    memory = RedisMemory(client or redis_url, namespace=namespace)
    model = ScriptedModel(window=1_500, replies="They talked about trains.")
    compacter = Compacter(memory=memory, recall=None)
    wrapped = compacter.wrap(model.acompletion)
    for _ in range(2):
        await wrapped("m", history())
    assert (compacter.totals.rounds, model.rejected) == (1, 1)
    assert memory.asynchronous
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


def test_each_event_loop_has_connections_of_its_own_that_end_with_it(
    redis_url: str, namespace: str
) -> None:
    memory = RedisMemory(redis_url, namespace=namespace)
    for number in range(3):
        asyncio.run(memory.asave(record(str(number))))
        assert list(asyncio.run(memory.afind([str(number)]))) == [record(str(number))]
    assert len(memory._by_loop) == 1
    assert list(memory.find(["0", "1", "2"])) == [record(str(number)) for number in range(3)]
    memory.close()


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
            with pytest.raises((MemoryUnavailable, redis.TimeoutError)):
                await memory.afind(["k"])
        with pytest.raises(MemoryUnavailable, match="is not used for some seconds"):
            await memory.afind(["k"])


async def test_a_claim_is_renewed_while_it_is_held_and_not_after(
    redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compacter.memory.base._RENEWAL", 0.01)
    memory = RedisMemory(redis_url, namespace=namespace)
    renewed = asyncio.Event()
    run: Callable[..., Any] = memory._arun

    async def watched(steps: Any) -> Any:
        outcome = await run(steps)
        if outcome is True:
            renewed.set()
        return outcome

    claim = await memory.aclaim("k", 60)
    assert claim is not None
    monkeypatch.setattr(memory, "_arun", watched)
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
