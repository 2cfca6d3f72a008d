"""Our memories pass the suite that a user's own must pass."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compacter.memory import Claim, InProcessMemory, Record, RedisMemory, SQLiteMemory
from compacter.memory.base import base_memory
from compacter.memory.record import footprint

if TYPE_CHECKING:
    from tests.memory.conformance import MemoryConformance, Opener
else:
    _spec = importlib.util.spec_from_file_location("conformance", Path(__file__).with_name("conformance.py"))
    _module = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_module)
    MemoryConformance, Opener = _module.MemoryConformance, _module.Opener


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
        return lambda: RedisMemory(redis_url, namespace=namespace)


class TestRedisMemoryWithAClientOfOnesOwn(MemoryConformance):
    @pytest.fixture
    def open(self, redis_url: str, namespace: str) -> Iterator[Opener]:
        redis = pytest.importorskip("redis")
        with redis.Redis.from_url(redis_url, decode_responses=True) as client:
            yield lambda: RedisMemory(client, namespace=namespace)


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
