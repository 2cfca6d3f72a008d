"""Redis in async programs: from threads, on any event loop, and given up in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from compacter import Compacter, RedisMemory
from compacter.errors import ConfigurationError
from compacter.testing import ScriptedModel

redis = pytest.importorskip("redis")


def history(length: int = 30) -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"Thing {n} about trains. " * 20}
        for n in range(length)
    ]


async def test_calls_of_two_programs_make_one_summary(redis_url: str, namespace: str) -> None:
    model = ScriptedModel(window=1_500, replies="They talked about trains.")
    compacters = [
        Compacter(memory=RedisMemory(redis_url, namespace=namespace), recall=None) for _ in range(4)
    ]
    calls = [compacter.wrap(model.acompletion) for compacter in compacters]
    await asyncio.gather(*(call("m", history()) for call in calls))
    assert sum(compacter.totals.rounds for compacter in compacters) == 1


def test_event_loops_and_sync_calls_share_one_memory(redis_url: str, namespace: str) -> None:
    memory = RedisMemory(redis_url, namespace=namespace)
    model = ScriptedModel(window=1_500, replies="They talked about trains.")
    compacter = Compacter(memory=memory, recall=None)
    for _ in range(3):
        asyncio.run(compacter.wrap(model.acompletion)("m", history()))
    compacter.wrap(model.completion)("m", history())
    memory.close()
    compacter.wrap(model.completion)("m", history())
    assert (compacter.totals.rounds, model.rejected) == (1, 1)


def test_a_client_of_asyncio_is_refused_with_the_remedy(redis_url: str) -> None:
    client = redis.asyncio.Redis.from_url(redis_url)
    with pytest.raises(ConfigurationError, match="pass its URL"):
        RedisMemory(client)


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
