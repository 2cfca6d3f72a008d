"""What SQLite and Redis have in common: other objects, threads and processes see the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compacter.memory import Memory, Record, RedisMemory, SQLiteMemory
from compacter.memory.record import StoredMessage

Opener = Callable[[], Memory]


def record(key: str = "k", boundary: int = 3, text: str = "So far.", digest: str = "d") -> Record:
    return Record(key, boundary, (), (StoredMessage(0, {"role": "user", "content": text}),), digest, "l")


@pytest.fixture(params=["sqlite", "redis"])
def another(request: pytest.FixtureRequest) -> Opener:
    """Makes memories as two processes would have them."""
    if request.param == "sqlite":
        path: Path = request.getfixturevalue("tmp_path") / "memory.db"
        return lambda: SQLiteMemory(path)
    url, namespace = request.getfixturevalue("redis_url"), request.getfixturevalue("namespace")
    return lambda: RedisMemory(url, namespace=namespace)


def test_it_is_a_memory_that_is_waited_for(stored: Memory) -> None:
    assert isinstance(stored, Memory)
    assert stored.blocking is True  # type: ignore[attr-defined]


def test_what_one_saves_another_finds(another: Opener) -> None:
    one, other = another(), another()
    for key in "abc":
        one.save(record(key))
    assert sorted(found.key for found in other.find(["a", "x", "b"])) == ["a", "b"]
    assert list(other.find(["a"])) == [record("a")]


def test_nothing_is_found_before_anything_is_saved(another: Opener) -> None:
    assert list(another().find(["a", "b"])) == []


def test_a_record_with_the_same_id_takes_the_place_of_the_old_one(another: Opener) -> None:
    one, other = another(), another()
    one.save(record(text="Old."))
    other.save(record(text="New."))
    assert list(one.find(["k"])) == [record(text="New.")]


def test_one_key_holds_a_bounded_number_of_records_and_the_newest_is_among_them(another: Opener) -> None:
    memory = another()
    for boundary in (*range(10, 60), 1):
        memory.save(record(boundary=boundary))
    boundaries = sorted(found.boundary for found in memory.find(["k"]))
    assert len(boundaries) == 32
    assert boundaries[0] == 1
    assert boundaries[-1] == 59


def test_clearing_forgets_everything(another: Opener) -> None:
    memory = another()
    memory.save(record())
    memory.clear()  # type: ignore[attr-defined]
    assert list(another().find(["k"])) == []


def test_a_claim_is_granted_to_one_at_a_time(another: Opener) -> None:
    one, other = another(), another()
    assert one.claim("k", 60) is True
    assert other.claim("k", 60) is False
    assert one.claim("k", 60) is False
    assert other.claim("another", 60) is True
    one.release("k")
    assert other.claim("k", 60) is True


def test_only_the_owner_can_release_a_claim(another: Opener) -> None:
    one, other, third = another(), another(), another()
    one.claim("k", 60)
    other.release("k")
    assert third.claim("k", 60) is False


def test_a_claim_that_ran_out_is_the_next_ones_and_stays_so(another: Opener) -> None:
    one, other, third = another(), another(), another()
    one.claim("k", 1e-3)
    while not other.claim("k", 60):
        pass
    one.release("k")
    assert third.claim("k", 60) is False


def test_within_one_process_too_a_claim_that_ran_out_is_not_released_for_its_next_owner(
    another: Opener,
) -> None:
    memory, other = another(), another()
    memory.claim("k", 1e-3)
    while not memory.claim("k", 60):
        pass
    memory.release("k")
    assert other.claim("k", 60) is False
    memory.release("k")
    assert other.claim("k", 60) is True


def test_releasing_what_nobody_holds_is_no_error(another: Opener) -> None:
    another().release("k")


def test_of_many_threads_one_gets_the_claim(another: Opener) -> None:
    memories = [another() for _ in range(3)] * 4
    with ThreadPoolExecutor(12) as pool:
        granted = list(pool.map(lambda memory: memory.claim("k", 60), memories))
    assert granted.count(True) == 1


def test_many_threads_save_and_find_at_once(another: Opener) -> None:
    memories = [another() for _ in range(2)]

    def work(number: int) -> bool:
        memory = memories[number % 2]
        memory.save(record(str(number)))
        return list(memory.find([str(number)])) == [record(str(number))]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))


def test_it_goes_on_after_it_was_closed(another: Opener) -> None:
    memory = another()
    memory.save(record())
    memory.close()  # type: ignore[attr-defined]
    assert list(memory.find(["k"])) == [record()]
