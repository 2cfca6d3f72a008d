"""``compacter doctor``."""

from __future__ import annotations

import socket
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compacter import SQLiteMemory
from compacter.runtime import models
from compacter.tools.cli import doctor

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def findings(run: Run, *words: str) -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in run("doctor", "--json", *words).data}


def test_versions_prices_windows_are_told(run: Run) -> None:
    found = findings(run, "--model", "gpt-4o")
    assert found["litellm"]["state"] == "ok"
    assert "128,000 tokens" in found["gpt-4o"]["text"]


def test_a_healthy_machine_is_told_in_words(run: Run) -> None:
    told = run("doctor")
    assert told.code == 0, told.out
    assert "Nothing is wrong" in told.out


def test_a_model_without_a_window_is_wrong_where_it_was_asked_for(run: Run) -> None:
    told = run("doctor", "--model", "nobody/nothing-7")
    assert told.code == 1
    assert "the first refusal may state it" in told.out


def test_a_memory_is_read_and_written_and_left_as_it_was(run: Run, folder: Path) -> None:
    memory = SQLiteMemory(folder / "m.db")
    memory.find(["0"])
    assert findings(run, "--memory", "m.db")["m.db"]["state"] == "ok"
    assert (
        findings(run, "--memory", f"sqlite://{folder}/m.db")[f"sqlite://{folder}/m.db"]["state"]
        == "ok"
    )
    assert findings(run, "--memory", "sqlite:new.db")["sqlite:new.db"]["text"].startswith(
        "will be created"
    )
    assert not (folder / "new.db").exists()


def test_a_file_that_is_no_memory_is_told(run: Run, folder: Path) -> None:
    (folder / "m.db").write_bytes(b"this is no database " * 400)
    told = run("doctor", "--memory", "m.db", "--memory", "no/such/folder/m.db")
    assert told.code == 1
    assert told.out.count("bad  ") == 2


def test_an_address_that_nobody_listens_at_is_told_without_its_password(run: Run) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        told = run("doctor", "--memory", f"redis://me:hunter2@127.0.0.1:{deaf.getsockname()[1]}/0")
    assert told.code == 1
    assert "hunter2" not in told.out
    assert "***@127.0.0.1" in told.out


def test_proxies_and_addresses_are_told_without_passwords(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hunter2@proxy.test:3128")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.test/v1")
    found = findings(run)
    assert found["HTTPS_PROXY"]["text"].endswith("http://***@proxy.test:3128")
    assert found["OPENAI_BASE_URL"]["state"] == "note"


def test_without_litellm_and_sdks_the_rest_is_checked(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setitem(sys.modules, "litellm", None)
    monkeypatch.setattr(models, "_read_shipped", dict)
    told = run("doctor", "--json")
    found = {finding["name"]: finding for finding in told.data}
    assert told.code == 0
    assert found["litellm"]["text"].startswith("not installed")
    assert set(found) == {"Python", "litellm"}
    assert run("doctor", "--model", "gpt-4o").code == 1


def test_a_model_that_costs_nothing_has_a_window_and_no_price(run: Run) -> None:
    assert findings(run, "--model", "ollama/llama3")["ollama/llama3"]["text"] == "8,192 tokens"
