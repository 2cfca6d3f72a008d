"""Our memories pass the suite that a user's own must pass."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from compacter import RedisMemory, SQLiteMemory
from compacter.memory import Claim, InProcessMemory, Record
from compacter.memory.protocol import base_memory
from compacter.testing.memory_conformance import MemoryConformance, Opener


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


KEYS = [Fernet.generate_key() for _ in range(2)]


class TestRedisMemoryEncrypted(MemoryConformance):
    @pytest.fixture
    def open(self, redis_url: str, namespace: str) -> Opener:
        return lambda: RedisMemory(redis_url, namespace=namespace, encryption=KEYS, deadline=30)


class Shelf:
    """The manual's example of a user's own memory."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}

    def find(self, keys: Sequence[str]) -> list[Record]:
        return [record for record in list(self.records.values()) if record.key in keys]

    def save(self, record: Record) -> None:
        self.records[record.id] = record

    def claim(self, key: str, seconds: float) -> Claim:
        return self

    def release(self) -> None:
        """The claim does nothing."""


class TestTheManualsMemory(MemoryConformance):
    shared = False
    exclusive = False

    @pytest.fixture
    def open(self) -> Opener:
        return Shelf


def test_a_memory_of_ones_own_has_the_members_that_it_does_not_declare() -> None:
    own = Shelf()
    memory = base_memory(own)
    assert (memory.blocking, memory.empty(), memory.is_away) == (True, False, False)
    assert (memory.find(["k"]), memory.claim("k", 1.0)) == ([], own)
    assert base_memory(memory) is memory
