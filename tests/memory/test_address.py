"""One address means one memory, wherever it is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.memory.address import memory_of


@pytest.mark.parametrize("form", ["{}", "sqlite:{}", "sqlite://{}"])
def test_a_file_is_named_with_and_without_its_scheme(form: str, tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    memory = memory_of(form.format(file))
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
    assert isinstance(memory_of(address.format(str(tmp_path).lstrip(os.sep))), SQLiteMemory)


@pytest.mark.parametrize(
    "address", ["redis://127.0.0.1:1/0", "rediss://127.0.0.1:1/0", "unix:///run/redis.sock"]
)
def test_a_redis_url_is_a_server(address: str) -> None:
    assert isinstance(memory_of(address), RedisMemory)


@pytest.mark.parametrize(
    "address", ["", "memory", "sqlite:", "postgres://host/x.db", "reddis://:secret@host/0"]
)
def test_anything_else_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ConfigurationError, match="sqlite:PATH") as refused:
        memory_of(address)
    assert "secret" not in str(refused.value)


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
