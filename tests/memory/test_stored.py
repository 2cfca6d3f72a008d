"""Keys of a memory that outlives the process, and where they come from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.gateway.litellm_proxy.settings import Settings
from compacter.memory import Record
from compacter.memory.address import keys_from
from compacter.serve import main

OLD = Fernet.generate_key().decode()
NEW = Fernet.generate_key().decode()


def record(content: Any, digest: str = "d") -> Record:
    return Record("k", 3, ({"role": "user", "content": content},), digest, "l")


# -- keys from a file or a variable ----------------------------------------------------------------


def test_keys_come_from_a_file_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{NEW}\n{OLD}\n")
    monkeypatch.setenv("KEYS", f"{NEW},{OLD}")
    for source in (f"file:{file}", "env:KEYS", "os.environ/KEYS"):
        assert keys_from(source, "encryption") == [NEW, OLD]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (OLD, "and not a key itself"),
        ("file:/no/such/file", "cannot read '/no/such/file': No such file"),
        ("env:NOT_SET_AT_ALL", "no key in env:NOT_SET_AT_ALL; make one by"),
        (7, "takes file:PATH"),
    ],
    ids=["a key itself", "no file", "no variable", "no text"],
)
def test_a_source_without_a_key_is_refused_and_no_key_repeated(source: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        keys_from(source, "encryption")
    assert OLD not in str(caught.value)


def test_the_environment_names_keys(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    environment = {
        "COMPACTER_MEMORY": f"sqlite:{path}",
        "COMPACTER_MEMORY_ENCRYPTION": f"{NEW} {OLD}",
    }
    memory: Any = Compacter.from_env(environment).options.memory
    memory.save(record("They chose a colour."))
    memory.close()
    assert b"colour" not in path.read_bytes()
    (stored,) = SQLiteMemory(path, encryption=NEW).find(["k"])
    assert "colour" in stored.to_json()


@pytest.mark.parametrize("value", ["sesame", "file:/no"])
def test_a_wrong_variable_is_named(tmp_path: Path, value: str) -> None:
    variable = "COMPACTER_MEMORY_ENCRYPTION"
    environment = {"COMPACTER_MEMORY": f"sqlite:{tmp_path / 'm.db'}", variable: value}
    with pytest.raises(ConfigurationError, match=r"COMPACTER_MEMORY") as caught:
        Compacter.from_env(environment)
    assert "sesame" not in str(caught.value)


def test_the_plug_in_names_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(NEW)
    path = tmp_path / "memory.db"
    given = {"address": f"sqlite:{path}", "encryption": f"file:{file}"}
    memory: Any = Settings({"memory": given}).memory
    memory.save(record("They chose a colour."))
    (stored,) = SQLiteMemory(path, encryption=[NEW]).find(["k"])
    assert "colour" in stored.to_json()
    assert b"colour" not in path.read_bytes()
    with pytest.raises(ConfigurationError, match=r"memory\.encryption needs an address"):
        Settings({"memory": {"encryption": f"file:{file}"}})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([f"--memory-encryption={OLD}"], "memory_encryption takes file:PATH"),
        (["--memory-encryption", "file:/no"], "cannot read '/no'"),
        (["--memory-encryption", "env:WRONG"], "takes a key of cryptography's"),
    ],
)
def test_serve_refuses_a_wrong_key_in_one_line(
    tmp_path: Path,
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WRONG", "sesame")
    place = f"sqlite:{tmp_path / 'm.db'}"
    assert main(["--upstream", "http://127.0.0.1:9", "--memory", place, *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert OLD not in told
    assert "sesame" not in told


@pytest.mark.parametrize(
    ("module", "package", "make"),
    [
        ("redis", "redis", lambda: RedisMemory("redis://127.0.0.1/0")),
        ("cryptography.fernet", "cryptography", lambda: SQLiteMemory(":memory:", encryption=NEW)),
    ],
)
def test_without_a_package_the_error_says_what_to_install(
    module: str, package: str, make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"needs: pip install {package}$"):
        make()
