from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter
from compacter.errors import ConfigurationError
from compacter.memory import InProcessMemory, Record
from compacter.memory.record import footprint


def record(key: str, number: int = 0, size: int = 0) -> Record:
    message = {"role": "user", "content": "s" * size}
    return Record(key, 3, (message,), digest=f"digest {number}", last="last")


def test_the_least_recently_used_records_go_first() -> None:
    memory = InProcessMemory(max_entries=2)
    memory.save(record("a"))
    memory.save(record("b"))
    memory.find(["a"])
    memory.save(record("c"))
    assert [bool(memory.find([key])) for key in "abc"] == [True, False, True]


def test_the_bytes_are_bounded() -> None:
    memory = InProcessMemory(max_bytes=10 * footprint(record("24", size=1_000)))
    for number in range(25):
        memory.save(record(str(number), size=1_000))
    assert len(memory) == 10
    assert memory.find(["24"])
    assert not memory.find(["14"])


def test_a_record_larger_than_all_bounds_drives_nothing_out() -> None:
    memory = InProcessMemory(max_bytes=5_000)
    memory.save(record("a"))
    memory.save(record("b", size=10_000))
    assert [bool(memory.find([key])) for key in "ab"] == [True, False]


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "10", None])
@pytest.mark.parametrize("name", ["max_entries", "max_bytes"])
def test_a_bound_that_bounds_nothing_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        InProcessMemory(**{name: value})


def test_compacters_that_share_a_memory_share_what_is_under_way() -> None:
    memory = InProcessMemory()
    one = Compacter(memory=memory)
    other = Compacter(memory=memory)
    assert one._state.flights is other._state.flights is not Compacter()._state.flights
