from __future__ import annotations

import asyncio
import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest
from tests.memory.matching import record

from compacter import Compacter, RedisMemory
from compacter.errors import ConfigurationError
from compacter.memory.stored import PER_KEY
from compacter.testing import ScriptedModel

redis = pytest.importorskip("redis")


@pytest.fixture
def client(redis_url: str) -> Any:
    with redis.Redis.from_url(redis_url) as client:
        yield client


def test_every_key_begins_with_the_namespace(
    redis_memory: RedisMemory, client: Any, namespace: str
) -> None:
    before = set(client.keys())
    redis_memory.save(record())
    redis_memory.claim("k", 60)
    new = set(client.keys()) - before
    assert len(new) == 2
    assert all(name.decode().startswith(f"{namespace}:") for name in new)


def test_of_many_records_of_a_conversation_the_shortest_go_first(redis_memory: RedisMemory) -> None:
    boundaries = [*range(2 * PER_KEY, 0, -1)]
    for boundary in boundaries:
        redis_memory.save(replace(record(), boundary=boundary))
    kept = {found.boundary for found in redis_memory.find(["k"])}
    assert kept == {*boundaries[: PER_KEY - 1], 1}  # The last is the one just saved.


NAMESPACES = (
    "",
    ":records",
    ":claims",
    ":records:records",
    ":records:k",
    ":",
    "*",
    "?",
    "[a]",
    "\\",
)
"""Suffixes of a namespace."""


@pytest.mark.parametrize("cleared", NAMESPACES)
def test_no_namespace_shares_or_clears_what_is_anothers(
    redis_url: str, namespace: str, cleared: str
) -> None:
    memories = {more: RedisMemory(redis_url, namespace=f"{namespace}{more}") for more in NAMESPACES}
    for more, memory in memories.items():
        assert memory.claim("k", 60) is not None
        memory.save(record(digest=more))
    memories[cleared].clear()
    for more, memory in memories.items():
        assert list(memory.find(["k"])) == ([] if more == cleared else [record(digest=more)])
        assert copy.copy(memory).claim("k", 60) is None
        memory.close()


def test_records_and_claims_end_by_themselves(redis_url: str, client: Any, namespace: str) -> None:
    memory = RedisMemory(redis_url, ttl=60, namespace=namespace)
    memory.save(record())
    memory.claim("k", 5)
    lifetimes = [client.pttl(f"{namespace}:{kind}:k") for kind in ("records", "claims")]
    assert 55_000 < lifetimes[0] <= 60_000
    assert 0 < lifetimes[1] <= 5_000


def test_use_renews_the_lifetime(redis_url: str, client: Any, namespace: str) -> None:
    memory = RedisMemory(redis_url, ttl=60, namespace=namespace)
    memory.save(record())
    client.pexpire(f"{namespace}:records:k", 10_000)
    memory.find(["k"])
    assert client.pttl(f"{namespace}:records:k") > 50_000


def test_corrupt_values_are_left_out(
    redis_memory: RedisMemory, client: Any, namespace: str
) -> None:
    redis_memory.save(record())
    client.hset(f"{namespace}:records:k", "x", b"\xff nonsense")
    assert list(redis_memory.find(["k"])) == [record()]


def test_answers_decoded_by_the_client_are_read_too(redis_url: str, namespace: str) -> None:
    memory = RedisMemory(f"{redis_url}?decode_responses=True", namespace=namespace)
    for number in range(40):
        memory.save(record(digest=str(number)))
    assert len(memory.find(["k"])) == 32
    memory.close()


def test_a_copy_uses_the_same_server_by_a_connection_of_its_own(
    redis_memory: RedisMemory, redis_url: str
) -> None:
    redis_memory.save(record())
    copied = pickle.loads(pickle.dumps(redis_memory))  # noqa: S301 - its own
    assert list(copied.find(["k"])) == [record()]
    copied.close()
    with redis.Redis.from_url(redis_url) as mine:
        own = RedisMemory(mine, namespace=redis_memory.namespace)
        assert list(copy.copy(own).find(["k"])) == [record()]


def test_a_user_who_may_not_read_is_an_error_and_no_empty_memory(
    redis_memory: RedisMemory, client: Any, redis_url: str, namespace: str
) -> None:
    redis_memory.save(record())
    client.execute_command("ACL", "SETUSER", "writer", "on", ">secret", "~*", "+@all", "-hvals")
    url = redis_url.replace("://", "://writer:secret@")
    memory = RedisMemory(url, namespace=namespace)
    try:
        with pytest.raises(redis.exceptions.NoPermissionError):
            memory.find(["k"])
    finally:
        memory.close()
        client.execute_command("ACL", "DELUSER", "writer")


UNUSABLE: dict[str, list[Any]] = {
    "url": ["http://127.0.0.1", "127.0.0.1:6379", None, "redis://127.0.0.1:port/0"],
    "ttl": [0, True, None],
    "namespace": ["", 7],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_bad_argument_is_refused_by_name(name: str) -> None:
    for value in UNUSABLE[name]:
        arguments: dict[str, Any] = {"url": "redis://127.0.0.1/0", name: value}
        with pytest.raises(ConfigurationError, match=name):
            RedisMemory(**arguments)


def test_no_password_shows() -> None:
    memory = RedisMemory("redis://:sesame@127.0.0.1/0")
    assert "sesame" not in repr(memory)
    with pytest.raises(ConfigurationError) as caught:
        RedisMemory("http://:sesame@127.0.0.1/0")
    assert "sesame" not in str(caught.value)


# -- in async programs ---------------------------------------------------------------------------


def history(length: int = 30) -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"Thing {n} about trains. " * 20}
        for n in range(length)
    ]


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
