"""Our memories pass the suite that a user's own must pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from compacter.memory import Claim, InProcessMemory, Record, RedisMemory, SQLiteMemory
from compacter.memory.protocol import base_memory
from compacter.memory.record import footprint
from compacter.testing.memory_conformance import Awaited, MemoryConformance, Opener


class TestInProcessMemory(MemoryConformance):
    shared = False
    exclusive = False

    @pytest.fixture
    def open(self) -> Opener:
        return InProcessMemory


class TestSQLiteMemory(MemoryConformance):
    @pytest.fixture
    def open(self, tmp_path: Path) -> Opener:
        return lambda: SQLiteMemory(tmp_path / "memory.db")


class TestSQLiteMemoryWithoutAFile(MemoryConformance):
    shared = False

    @pytest.fixture
    def open(self) -> Opener:
        return lambda: SQLiteMemory(":memory:")


class TestRedisMemory(MemoryConformance):
    @pytest.fixture
    def open(self, redis_url: str, namespace: str) -> Opener:
        return lambda: RedisMemory(redis_url, namespace=namespace, deadline=30)


class TestRedisMemoryWithAClientOfOnesOwn(MemoryConformance):
    @pytest.fixture
    def open(self, redis_url: str, namespace: str) -> Iterator[Opener]:
        redis = pytest.importorskip("redis")
        with redis.Redis.from_url(redis_url, decode_responses=True) as client:
            yield lambda: RedisMemory(client, namespace=namespace, deadline=30)


class TestRedisMemoryOnACluster(MemoryConformance):
    @pytest.fixture
    def open(self, cluster_port: int, namespace: str) -> Iterator[Opener]:
        redis = pytest.importorskip("redis")
        with contextlib.closing(redis.RedisCluster("127.0.0.1", cluster_port)) as client:
            yield lambda: RedisMemory(client, namespace=namespace, deadline=30)


class TestRedisMemoryBehindASentinel(MemoryConformance):
    @pytest.fixture
    def open(self, sentinel_port: int, namespace: str) -> Iterator[Opener]:
        sentinel = pytest.importorskip("redis.sentinel").Sentinel([("127.0.0.1", sentinel_port)])
        with sentinel.master_for("records") as client:
            yield lambda: RedisMemory(client, namespace=namespace, deadline=30)
        for one in sentinel.sentinels:
            one.close()


def closed(awaited: Awaited, client: Any) -> None:
    awaited._run(client.aclose())


class OfRedisAwaited(MemoryConformance):
    """Redis as calls under asyncio use it. A client belongs to one event loop, so each opening
    makes its own.
    """

    @pytest.fixture
    def make(self) -> Callable[[], Any]:
        """What makes a client, or the URL."""
        raise NotImplementedError

    @pytest.fixture
    def open(self, make: Callable[[], Any], namespace: str) -> Iterator[Opener]:
        with contextlib.ExitStack() as stack:

            def opened() -> Awaited:
                clients: list[Any] = []

                def memory() -> RedisMemory:
                    clients.append(make())
                    return RedisMemory(clients[0], namespace=namespace, deadline=30)

                awaited = Awaited(memory)
                stack.callback(awaited.close)
                manager = getattr(
                    getattr(clients[0], "connection_pool", None), "sentinel_manager", None
                )
                for client in (*clients, *getattr(manager, "sentinels", ())):
                    if not isinstance(client, str):
                        stack.callback(closed, awaited, client)
                return awaited

            yield opened


class TestRedisMemoryAwaited(OfRedisAwaited):
    @pytest.fixture
    def make(self, redis_url: str) -> Callable[[], Any]:
        return lambda: redis_url


class TestRedisMemoryAwaitedWithAClientOfOnesOwn(OfRedisAwaited):
    @pytest.fixture
    def make(self, redis_url: str) -> Callable[[], Any]:
        redis = pytest.importorskip("redis.asyncio")
        return lambda: redis.Redis.from_url(redis_url, decode_responses=True)


class TestRedisMemoryAwaitedOnACluster(OfRedisAwaited):
    @pytest.fixture
    def make(self, cluster_port: int) -> Callable[[], Any]:
        redis = pytest.importorskip("redis.asyncio")
        return lambda: redis.RedisCluster("127.0.0.1", cluster_port)


class TestRedisMemoryAwaitedBehindASentinel(OfRedisAwaited):
    @pytest.fixture
    def make(self, sentinel_port: int) -> Callable[[], Any]:
        kind = pytest.importorskip("redis.asyncio.sentinel").Sentinel
        return lambda: kind([("127.0.0.1", sentinel_port)]).master_for("records")


KEYS = [Fernet.generate_key() for _ in range(2)]


class TestSQLiteMemoryEncrypted(MemoryConformance):
    @pytest.fixture
    def open(self, tmp_path: Path) -> Opener:
        return lambda: SQLiteMemory(tmp_path / "memory.db", encryption=KEYS[0])


class TestRedisMemoryEncrypted(MemoryConformance):
    @pytest.fixture
    def open(self, redis_url: str, namespace: str) -> Opener:
        return lambda: RedisMemory(redis_url, namespace=namespace, encryption=KEYS, deadline=30)


class TestTheManualsMemory(MemoryConformance):
    """What the manual shows as a memory of one's own."""

    shared = False
    exclusive = False

    @pytest.fixture
    def open(self) -> Opener:
        class Shelf:
            def __init__(self) -> None:
                self.records: dict[str, Record] = {}

            def find(self, keys: Sequence[str]) -> list[Record]:
                return [record for record in list(self.records.values()) if record.key in keys]

            def save(self, record: Record) -> None:
                self.records[record.id] = record

            def claim(self, key: str, seconds: float) -> Claim:
                return self

            def release(self) -> None:
                """Nothing is held."""

        return Shelf


def test_a_memory_of_ones_own_has_the_members_that_it_does_not_declare() -> None:
    class Own:
        def find(self, keys: Sequence[str]) -> list[Record]:
            return []

        def save(self, record: Record) -> None:
            """Keep nothing."""

        def claim(self, key: str, seconds: float) -> Claim | None:
            return None

    own = Own()
    memory = base_memory(own)
    assert (memory.blocking, memory.empty()) == (True, False)
    assert (memory.find(["k"]), memory.claim("k", 1.0)) == ([], None)
    assert base_memory(memory) is memory


def test_attached_objects_are_bounded_by_their_bytes() -> None:
    memory = InProcessMemory(max_bytes=1_000)
    for number in range(10):
        memory.attach(str(number), object(), 300)
        memory.attached("0")
    assert [number for number in range(10) if memory.attached(str(number)) is not None] == [0, 8, 9]
    memory.attach("large", object(), 1_001)
    assert memory.attached("large") is None
    assert memory.attached("0") is not None


def test_attaching_again_replaces() -> None:
    memory = SQLiteMemory(":memory:")
    memory.attach("k", "old", 10)
    memory.attach("k", "new", 20)
    assert memory.attached("k") == "new"


def test_attached_objects_make_room_for_records() -> None:
    record = Record("k", 3, (), (), "d", "l")
    memory = InProcessMemory(max_bytes=footprint(record) + 100)
    memory.attach("k", object(), footprint(record))
    memory.save(record)
    assert list(memory.find(["k"])) == [record]
    assert memory.attached("k") is None
    memory.attach("small", object(), 100)
    memory.attach("large", object(), 101)
    assert memory.attached("small") is not None
    assert memory.attached("large") is None


def test_a_record_that_has_room_beside_attached_objects_drops_none() -> None:
    memory = InProcessMemory()
    memory.attach("k", object(), 300)
    memory.save(Record("k", 3, (), (), "d", "l"))
    assert memory.attached("k") is not None
