"""One address means one memory, wherever it is given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from compacter import (
    Compacter,
    History,
    InProcessMemory,
    RedisMemory,
    SQLiteMemory,
    compacted,
)
from compacter.errors import ConfigurationError
from compacter.memory.address import memory_at
from compacter.testing import ScriptedModel


@pytest.fixture
def talk() -> list[dict[str, str]]:
    """A plain conversation that is worth compacting."""
    roles = ("user", "assistant")
    return [
        {"role": roles[number % 2], "content": f"Buoy {number} shines far. " * 20}
        for number in range(12)
    ]


@pytest.mark.parametrize("form", ["{}", "sqlite:{}", "sqlite://{}"])
def test_a_file_is_named_with_and_without_its_scheme(form: str, tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    memory = memory_at(form.format(file))
    assert isinstance(memory, SQLiteMemory)
    assert memory.path == str(file)


@pytest.mark.parametrize(
    "address", ["sqlite:m", "sqlite:///{}/m", "./m", "m.db", "m.sqlite3", "sqlite::memory:", "~/m"]
)
def test_what_can_only_be_a_file_is_one(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert isinstance(memory_at(address.format(str(tmp_path).lstrip(os.sep))), SQLiteMemory)


@pytest.mark.parametrize(
    "address", ["redis://127.0.0.1:1/0", "rediss://127.0.0.1:1/0", "unix:///run/redis.sock"]
)
def test_a_redis_url_is_a_server(address: str) -> None:
    assert isinstance(memory_at(address), RedisMemory)


@pytest.mark.parametrize(
    "address", ["", "memory", "sqlite:", "postgres://host/x.db", "reddis://:secret@host/0"]
)
def test_anything_else_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ConfigurationError, match="sqlite:PATH") as refused:
        memory_at(address)
    assert "secret" not in str(refused.value)


def test_the_environment_takes_the_same(tmp_path: Path) -> None:
    memory = Compacter.from_env({"COMPACTER_MEMORY": str(tmp_path / "memory.db")}).options.memory
    assert isinstance(memory, SQLiteMemory)


@pytest.mark.parametrize("take", ["made", "replaced", "for agents", "from_env"])
def test_every_place_that_takes_a_memory_takes_its_address(take: str, tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'memory.db'}"
    compacter = {
        "made": lambda: Compacter(memory=address),
        "replaced": lambda: Compacter().replace(memory=address),
        "for agents": lambda: Compacter.for_agents(memory=address),
        "from_env": lambda: Compacter.from_env({}, memory=address),
    }[take]()
    memory = compacter.options.memory
    assert isinstance(memory, SQLiteMemory)
    assert memory.path == address.removeprefix("sqlite:")


async def test_a_compacter_with_an_address_compacts_wraps_decorates_and_has_a_history(
    tmp_path: Path, talk: list[dict[str, Any]]
) -> None:
    address = f"sqlite:{tmp_path / 'memory.db'}"
    compacter = Compacter(memory=address, summarizer="extractive")
    assert compacter.compact(talk, budget=1_500).changed
    assert (await compacter.acompact(talk, budget=1_200)).changed
    assert History(talk, compacter=compacter).compact().changed
    model = ScriptedModel(window=800)
    ask = compacted(memory=address, summarizer="extractive")(model.completion)
    ask(model="m", messages=[*talk, {"role": "user", "content": "And now?"}])
    assert model.rejected == 1
    assert (tmp_path / "memory.db").exists()


def test_an_address_of_redis_is_taken_and_so_are_the_words() -> None:
    assert isinstance(Compacter(memory="redis://127.0.0.1:1/0").options.memory, RedisMemory)
    assert isinstance(Compacter(memory="in-process").options.memory, InProcessMemory)
    assert Compacter(memory="none").options.memory is None


def test_what_is_no_address_is_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigurationError, match="memory: takes sqlite:PATH") as refused:
        Compacter(memory="reddis://:secret@host/0")
    assert "secret" not in str(refused.value)


def test_a_compaction_that_another_process_made_counts_once_as_reused(tmp_path: Path) -> None:
    """As another process would: with a memory of its own, of the same file."""
    address = f"sqlite:{tmp_path / 'memory.db'}"
    model = ScriptedModel(window=1_000, replies="It is noted. " * 20)
    history: list[dict[str, Any]] = []
    first = Compacter(memory=address, summarizer="extractive")
    ask = first.wrap(model.completion)
    while not first.totals.rounds:
        history.append({"role": "user", "content": f"Note {len(history)}: " + "the tide. " * 20})
        answer = ask(model="m", messages=history)
        history.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
    asked = [*history, {"role": "user", "content": "And now?"}]
    ask(model="m", messages=asked)
    assert first.totals.reused == 0
    second = Compacter(memory=address, summarizer="extractive")
    for _ in range(3):
        second.wrap(model.completion)(model="m", messages=asked)
    assert (second.totals.reused, second.totals.rounds) == (1, 0)
