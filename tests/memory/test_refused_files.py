"""What a ``SQLiteMemory`` says of a file that it cannot use: the file once, and the remedy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from compacter import Compacter, SQLiteMemory
from compacter.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def make_database(path: Path, *statements: str) -> str:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return str(path)


def numbers_of_a_file() -> tuple[int, int]:
    """The application's id and the version that a memory writes into its file."""
    with TemporaryDirectory() as folder:
        path = f"{folder}/memory.db"
        SQLiteMemory(path).close()
        with closing(sqlite3.connect(path)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


APPLICATION, VERSION = numbers_of_a_file()
FILES = {
    "another program's": (("CREATE TABLE notes (text)",), "name a file of its own"),
    "a newer version's": (
        (
            "CREATE TABLE records (key)",
            f"PRAGMA application_id = {APPLICATION}",
            f"PRAGMA user_version = {VERSION + 1}",
        ),
        "upgrade llm-compacter, or name another file",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_refused_file_is_named_once_with_the_remedy(tmp_path: Path, kind: str) -> None:
    statements, remedy = FILES[kind]
    path = make_database(tmp_path / "file.db", *statements)
    with pytest.raises(ConfigurationError) as refused:
        SQLiteMemory(path)
    assert str(refused.value).count("SQLiteMemory cannot use") == 1
    assert str(refused.value).endswith(remedy)
    with pytest.raises(ConfigurationError, match="SQLiteMemory cannot use") as refused:
        Compacter(memory=f"sqlite:{path}")
    assert str(refused.value).count("cannot use") == 1
