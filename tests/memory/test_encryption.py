"""Records that only who has the key can read, or write."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet

from compacter import Compacter, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.memory import Record
from compacter.testing import ScriptedModel, ScriptedSummarizer

OLD = Fernet.generate_key()
NEW = Fernet.generate_key()


def record(text: str = "A secret summary.") -> Record:
    return Record("k", 3, ({"role": "user", "content": text},), "d", "l")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def saved(file: Path, **options: Any) -> None:
    memory = SQLiteMemory(file, **options)
    memory.save(record())
    memory.close()


def found(file: Path, **options: Any) -> list[Record]:
    memory = SQLiteMemory(file, **options)
    try:
        return list(memory.find(["k"]))
    finally:
        memory.close()


def test_the_file_holds_no_word_of_a_summary(file: Path) -> None:
    saved(file, encryption=OLD)
    assert b"secret" not in file.read_bytes()
    assert found(file, encryption=OLD) == [record()]


def test_keys_can_be_changed_one_after_the_other(file: Path) -> None:
    saved(file, encryption=OLD)
    assert found(file, encryption=[NEW, OLD]) == [record()]
    saved(file, encryption=[NEW, OLD])
    assert found(file, encryption=NEW) == [record()]
    assert found(file, encryption=OLD) == []


def test_what_was_altered_is_left_out(file: Path) -> None:
    saved(file, encryption=OLD)
    with sqlite3.connect(file) as connection:
        connection.execute(
            "UPDATE records SET body = substr(body, 1, 60) || 'AAAA' || substr(body, 65)"
        )
    connection.close()
    assert found(file, encryption=OLD) == []


def test_a_wrong_key_is_one_line_of_the_log(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="compacter")
    history = [{"role": "user", "content": f"Question {number}. " * 10} for number in range(40)]
    for key in OLD, NEW:
        memory = SQLiteMemory(file, encryption=key)
        model = ScriptedModel(window=900)
        compacter = Compacter(memory=memory, summarizer=ScriptedSummarizer("Short."), recall=None)
        for number in range(2):
            compacter.wrap(model.completion)("model", [*history, *history[:number]])
        memory.close()
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 1
    assert "cannot be decrypted" in lines[0]


@pytest.mark.parametrize(
    "cipher",
    [Fernet(OLD), MultiFernet([Fernet(OLD)]), OLD.decode(), (OLD,)],
    ids=["Fernet", "MultiFernet", "text", "several"],
)
def test_a_cipher_is_given_in_several_ways(file: Path, cipher: Any) -> None:
    saved(file, encryption=cipher)
    assert b"secret" not in file.read_bytes()
    assert found(file, encryption=OLD) == [record()]


class EncryptsOnly:
    def encrypt(self, data: bytes) -> bytes:
        return data


@pytest.mark.parametrize("given", ["sesame", b"", [], [OLD, "sesame"], 7, [7], EncryptsOnly()])
def test_a_bad_key_is_refused_and_not_repeated(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="encryption takes a key") as caught:
        SQLiteMemory(":memory:", encryption=given)
    assert "sesame" not in str(caught.value)
