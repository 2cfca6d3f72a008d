"""A program whose event loop is busy, with a server and a file in good health: nothing is counted
as a failure, and nothing is made twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.memory.stored import StoringMemory
from compacter.testing import ScriptedModel

redis = pytest.importorskip("redis")

DEADLINE = 1.0
"""Seconds that a memory has by default."""
BLOCK = 1.2 * DEADLINE
"""Seconds for which the loop does nothing else, again and again: longer than an
operation may take."""
BLOCKS = 8
"""How often: until the summary is written and shared, at about the sixth turn of the loop."""


@contextlib.asynccontextmanager
async def blocked() -> AsyncGenerator[None]:
    """Block the loop for ``BLOCK`` seconds at a time, as a program does that computes in it."""

    async def block() -> None:
        for _ in range(BLOCKS):
            time.sleep(BLOCK)  # noqa: ASYNC251 - this is what is tested
            await asyncio.sleep(0)

    task = asyncio.create_task(block())
    try:
        yield
    finally:
        task.cancel()


def history(number: int) -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"{number}, {n}: about trains. " * 20}
        for n in range(30)
    ]


async def test_a_blocked_loop_is_no_failure_and_makes_no_summary_twice(
    tmp_path: Path, redis_url: str, namespace: str
) -> None:
    model = ScriptedModel(window=1_500, replies="They talked about trains.")
    in_files = [SQLiteMemory(tmp_path / "memory.db", deadline=DEADLINE) for _ in range(2)]
    in_redis = [RedisMemory(redis_url, namespace=namespace, deadline=DEADLINE) for _ in range(2)]
    memories: list[StoringMemory] = [*in_files, *in_redis]
    compacters = [Compacter(memory=memory, recall=None) for memory in memories]
    calls = [compacter.wrap(model.acompletion) for compacter in compacters]
    async with blocked():
        await asyncio.gather(*(call("m", history(0)) for call in calls))
    rounds = [compacter.totals.rounds for compacter in compacters]
    assert [sum(rounds[:2]), sum(rounds[2:])] == [1, 1]
    assert not any(memory.is_away for memory in memories)
