"""Tests that every memory must pass, one for each promise of ``compacter.memory.Memory``.

For a memory of your own, write in a test module::

    from compacter.testing.memory_conformance import MemoryConformance


    class TestMyMemory(MemoryConformance):
        @pytest.fixture
        def open(self, tmp_path):
            return lambda: MyMemory(tmp_path)

Only this module of the package needs pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from compacter.memory import Memory, Record
from compacter.memory.match import Matcher
from compacter.messages.format import get_format
from compacter.runtime.io import run

Opener = Callable[[], Memory]
_FORMAT = get_format("openai")
# Scopes of different callers: a record of one is never found in another.
_SCOPES = ("m\0server one", "m\0server two", "m2\0server one", "m", "")


def record(key: str = "k", boundary: int = 3, text: str = "So far.", digest: str = "d") -> Record:
    """Return a record with a summary of the messages before ``boundary``."""
    return Record(key, boundary, ({"role": "user", "content": text},), digest, "l")


def _talk(about: str) -> list[dict[str, str]]:
    roles = ("user", "assistant") * 4
    return [
        {"role": role, "content": f"{role} {number} on {about}"}
        for number, role in enumerate(roles)
    ]


def _with_summary(history: Sequence[Any], about: str) -> list[Any]:
    return [{"role": "user", "content": f"Summary of {about}."}, *history[5:]]


class MemoryConformance:
    """Base class of the tests. Give your subclass a name that begins with ``Test``, and override
    ``open``.
    """

    shared = True
    """Whether all memories that ``open`` returns see each other's records; otherwise it is called
    once a test."""
    exclusive = True
    """Whether a claim keeps the other memories that ``open`` returns from making the same summary;
    a memory of one process may always grant it."""

    @pytest.fixture
    def open(self) -> Opener:
        """Return a function that opens the store of this test, as another process would."""
        raise NotImplementedError

    @pytest.fixture
    def memory(self, open: Opener) -> Memory:  # noqa: A002 - the fixture above
        return open()

    @pytest.fixture
    def other(self, open: Opener, memory: Memory) -> Memory:  # noqa: A002
        return open() if self.shared else memory

    def test_what_is_saved_is_found_under_its_key_alone(
        self, memory: Memory, other: Memory
    ) -> None:
        assert isinstance(memory, Memory)
        assert list(memory.find(["a", "b"])) == []
        for key in "abc":
            memory.save(record(key))
        assert sorted(found.key for found in other.find(["a", "x", "b"])) == ["a", "b"]
        assert list(other.find(["a"])) == [record("a")]

    def test_all_records_of_one_key_are_found(self, memory: Memory, other: Memory) -> None:
        saved = [record(boundary=boundary) for boundary in (3, 5, 9)]
        for one in saved:
            memory.save(one)
        assert sorted(other.find(["k"]), key=lambda found: found.boundary) == saved

    def test_a_record_comes_back_as_it_was(self, memory: Memory, other: Memory) -> None:
        message = {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "naïve 旅行 \ud83d\t\0"},
                {"data": b"\x89PNG\0", "n": [1, 1.0, True, None]},
            ],
        }
        head = (message, 2, None, {"role": "user", "content": ""}, 5)
        saved = Record("k", 7, head, "d", "l", compacted_user=4)
        memory.save(saved)
        for _ in range(2):  # Finding a record does not change it.
            (found,) = other.find(["k"])
            assert found == saved
            assert repr(found.view) == repr(saved.view)

    def test_a_record_with_the_same_id_takes_the_place_of_the_old_one(
        self, memory: Memory, other: Memory
    ) -> None:
        memory.save(record(text="Old."))
        other.save(record(text="New."))
        assert list(memory.find(["k"])) == [record(text="New.")]

    def test_the_record_just_saved_is_among_those_that_are_found(
        self, memory: Memory, other: Memory
    ) -> None:
        for boundary in (*range(10, 60), 1):
            memory.save(record(boundary=boundary))
            assert boundary in {found.boundary for found in other.find(["k"])}

    def test_a_large_record_does_not_disturb_the_others(
        self, memory: Memory, other: Memory
    ) -> None:
        memory.save(record("small"))
        memory.save(record("large", text="x" * 1_000_000))
        assert list(other.find(["small"])) == [record("small")]

    def test_many_threads_save_and_find_at_once(self, memory: Memory, other: Memory) -> None:
        def work(number: int) -> bool:
            using = (memory, other)[number % 2]
            using.save(record(str(number)))
            return list(using.find([str(number)])) == [record(str(number))]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(40)))

    def test_a_claim_is_granted_and_may_be_given_back_twice(
        self, memory: Memory, other: Memory
    ) -> None:
        first = memory.claim("k", 60)
        assert first is not None
        first.release()
        second = other.claim("k", 60)
        assert second is not None
        first.release()
        if self.exclusive and self.shared:
            assert memory.claim("k", 60) is None
        second.release()

    def test_a_claim_that_ran_out_is_the_next_ones_and_stays_so(
        self, memory: Memory, other: Memory
    ) -> None:
        self._skip_unless_exclusive()
        expired = memory.claim("k", 1e-3)
        assert expired is not None
        while (held := other.claim("k", 60)) is None:
            pass
        expired.release()
        assert memory.claim("k", 60) is None
        held.release()

    def test_of_many_that_share_the_records_one_gets_the_claim(
        self,
        open: Opener,  # noqa: A002
    ) -> None:
        self._skip_unless_exclusive()
        memories = [open() for _ in range(8)]
        start = Barrier(8)

        def work(memory: Memory) -> object:
            start.wait()
            return memory.claim("k", 60)

        with ThreadPoolExecutor(8) as pool:
            claims = list(pool.map(work, memories))
        assert sum(claim is not None for claim in claims) == 1, claims
        assert memories[0].claim("another", 60) is not None

    def _skip_unless_exclusive(self) -> None:
        if not (self.exclusive and self.shared):
            pytest.skip("claims of this memory are not exclusive")

    def test_conversations_and_scopes_are_never_confused(
        self, memory: Memory, other: Memory
    ) -> None:
        writing = Matcher(memory)
        reading = Matcher(other)
        for scope in _SCOPES:
            history = _talk("trains")
            run(
                writing.remember(
                    scope, _FORMAT, history, _with_summary(history, f"trains in {scope}")
                )
            )
        assert [run(reading.view(scope, _FORMAT, _talk("trains"))) for scope in _SCOPES] == [
            _with_summary(_talk("trains"), f"trains in {scope}") for scope in _SCOPES
        ]
        assert run(reading.view(_SCOPES[0], _FORMAT, _talk("ships"))) is None
        assert run(reading.view("m\0server three", _FORMAT, _talk("trains"))) is None

    def test_what_was_folded_is_not_stored(self, memory: Memory, other: Memory) -> None:
        history = _talk("a secret garden")
        run(Matcher(memory).remember("s", _FORMAT, history, _with_summary(history, "a garden")))
        view = run(Matcher(other).view("s", _FORMAT, history))
        assert view is not None
        for found in other.find([view.record.partition(":")[0]]):
            assert "secret" not in found.to_json()
