from __future__ import annotations

import gc
import os
import sqlite3
import stat
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.memory.matching import record

from compacter import Compacter, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.memory import MemoryUnavailable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def sql(path: Path, *statements: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        rows = [row for statement in statements for row in connection.execute(statement).fetchall()]
        connection.commit()
        return rows
    finally:
        connection.close()


def test_the_file_is_its_owners_alone(path: Path) -> None:
    memory = SQLiteMemory(path)
    memory.save(record())
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


REFUSED: dict[str, tuple[Any, str]] = {
    "a text": (b"this is a diary, and no database at all\n" * 40, "name another file"),
    "zeros": (b"\x00" * 4096, "name another file"),
    "another program's": (("CREATE TABLE notes (text)",), "name a file of its own"),
    "a newer version's": (
        ("PRAGMA application_id = 0x636d7074", "PRAGMA user_version = 99"),
        "upgrade llm-compacter, or name another file",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_is_not_its_own_is_named_once_with_the_remedy_and_left_alone(
    path: Path, kind: str
) -> None:
    content, remedy = REFUSED[kind]
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        sql(path, *content)
    before = path.read_bytes()
    for use in SQLiteMemory, lambda path: Compacter(memory=f"sqlite:{path}"):
        with pytest.raises(ConfigurationError) as refused:
            use(path)
        assert str(refused.value).count("SQLiteMemory cannot use") == 1
        assert remedy in str(refused.value)
    assert path.read_bytes() == before


def test_an_older_versions_file_is_emptied(path: Path) -> None:
    SQLiteMemory(path).save(record())
    sql(path, "PRAGMA user_version = 0")
    memory = SQLiteMemory(path)
    assert list(memory.find(["k"])) == []
    memory.save(record())
    assert list(memory.find(["k"])) == [record()]


@pytest.mark.parametrize("damage", ["pages of zeros", "a name that is not UTF-8"])
def test_a_damaged_file_of_its_own_is_replaced_by_a_fresh_one(path: Path, damage: str) -> None:
    """A damaged file of this class is replaced by a new one, which works."""
    memory = SQLiteMemory(path)
    for number in range(200):
        memory.save(record(str(number)))
    memory.close()
    content = bytearray(path.read_bytes())
    if damage == "pages of zeros":
        content[8_192:-4_096] = bytes(len(content) - 12_288)
    else:
        content = content.replace(b"records", b"rec\xa6rds").replace(b"CREATE", b"CRATE ")
    path.write_bytes(content)
    memory = SQLiteMemory(path)
    assert list(memory.find([str(number) for number in range(200)])) == []
    memory.save(record())
    assert list(memory.find(["k"])) == [record()]


def test_damage_is_a_fresh_file_or_a_clear_error_and_never_an_altered_record(path: Path) -> None:
    memory = SQLiteMemory(path)
    saved = [record(f"{number % 7:032x}", digest=str(number)) for number in range(60)]
    for one in saved:
        memory.save(one)
    memory.close()
    content = path.read_bytes()
    random = Random(7)
    for _ in range(150):
        damaged = bytearray(
            content[: random.choice([len(content), random.randrange(len(content))])]
        )
        for _ in range(random.randint(1, 20)):
            if damaged:
                damaged[random.randrange(random.choice([100, len(damaged)])) % len(damaged)] ^= (
                    1 << random.randrange(8)
                )
        for suffix in ("-wal", "-shm", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(damaged)
        try:
            memory = SQLiteMemory(path)
        except ConfigurationError:
            continue
        try:
            found = memory.find([f"{number:032x}" for number in range(7)])
        except (sqlite3.Error, MemoryUnavailable):
            found = []
        assert all(one in saved for one in found)
        memory.close()


@pytest.mark.parametrize("place", ["missing/memory.db", "."])
def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigurationError, match="SQLiteMemory cannot use"):
        SQLiteMemory(tmp_path / place)


UNUSABLE: dict[str, list[Any]] = {
    "path": ["", 7, b"memory.db"],
    "max_entries": [0, True, "9"],
    "ttl": [0, -1, "1", float("nan"), float("inf")],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_bad_argument_is_refused_by_name(path: Path, name: str) -> None:
    for value in UNUSABLE[name]:
        arguments: dict[str, Any] = {"path": path, name: value}
        with pytest.raises(ConfigurationError, match=name):
            SQLiteMemory(**arguments)
    assert not path.exists()


def test_corrupt_rows_are_left_out(path: Path) -> None:
    memory = SQLiteMemory(path)
    for digest in "abc":
        memory.save(record(digest=digest))
    sql(path, "UPDATE records SET body = 'nonsense' WHERE id LIKE '%a'")
    sql(path, "UPDATE records SET body = CAST(x'fffe' AS TEXT) WHERE id LIKE '%b'")
    assert list(memory.find(["k"])) == [record(digest="c")]


@pytest.mark.parametrize("how", ["dropped", "deleted"])
def test_tables_that_go_while_it_is_used_are_made_again(path: Path, how: str) -> None:
    memory = SQLiteMemory(path)
    memory.save(record())
    if how == "dropped":
        sql(path, "DROP TABLE records")
    else:
        path.unlink()
    assert list(memory.find(["k"])) == []
    memory.save(record())
    assert list(memory.find(["k"])) == [record()]


def test_a_record_that_nobody_used_is_forgotten(path: Path) -> None:
    memory = SQLiteMemory(path, ttl=3600)
    memory.save(record("old"))
    sql(path, "UPDATE records SET used = used - 3601")
    assert list(memory.find(["old"])) == []
    memory.save(record("new"))
    assert sql(path, "SELECT key FROM records") == [("new",)]


def test_use_keeps_a_record(path: Path) -> None:
    memory = SQLiteMemory(path, ttl=3600)
    memory.save(record())
    for _ in range(3):
        sql(path, "UPDATE records SET used = used - 3000")
        assert list(memory.find(["k"])) == [record()]


def test_without_a_ttl_nothing_is_forgotten(path: Path) -> None:
    memory = SQLiteMemory(path, ttl=None)
    memory.save(record())
    sql(path, "UPDATE records SET used = 1")
    assert list(memory.find(["k"])) == [record()]


def test_the_least_recently_used_records_go_first(path: Path) -> None:
    memory = SQLiteMemory(path, max_entries=2)
    memory.save(record("a"))
    memory.save(record("b"))
    sql(path, "UPDATE records SET used = used - 600")
    memory.find(["a"])
    memory.save(record("c"))
    assert [bool(memory.find([key])) for key in "abc"] == [True, False, True]


def test_a_reader_neither_waits_nor_fails_while_another_process_writes(path: Path) -> None:
    memory = SQLiteMemory(path)
    memory.save(record())
    sql(path, "UPDATE records SET used = used - 600")
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert list(memory.find(["k"])) == [record()]
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def test_a_write_is_not_forced_to_the_disk_and_no_reader_waits_for_it(path: Path) -> None:
    """A hundred times as fast as a write that is."""
    memory = SQLiteMemory(path)
    memory.save(record())
    for file in (memory._reading, memory._writing):
        assert file.run(lambda database: database.execute("PRAGMA synchronous").fetchone()) == (0,)
        mode = file.run(lambda database: database.execute("PRAGMA journal_mode").fetchone())
        assert mode == ("wal",)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        assert list(memory.find(["k"])) == [record()]
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def test_another_file_in_its_place_is_noticed_at_once(path: Path) -> None:
    memory = SQLiteMemory(path)
    memory.save(record())
    other = SQLiteMemory(path.with_name("other.db"))
    other.save(record("other"))
    other.close()
    path.with_name("other.db").replace(path)
    for file in path.parent.glob("memory.db-*"):
        file.unlink()
    assert list(memory.find(["k"])) == []
    assert list(memory.find(["other"])) == [record("other")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_neither_uses_nor_closes_its_parents_connection(path: Path) -> None:
    memory = SQLiteMemory(path)
    memory.save(record())
    before = memory._writing._open
    assert before is not None
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        memory.save(record("child"))
        is_kept = memory._writing._open is not before
        before.execute("SELECT 1")  # It is still open.
        os._exit(0 if is_kept else 1)
    assert os.waitpid(child, 0)[1] == 0
    memory.save(record("parent"))
    assert memory._writing._open is before
    assert {one.key for one in memory.find(["k", "child", "parent"])} == {"k", "child", "parent"}


def test_many_objects_may_open_a_new_file_at_once(path: Path) -> None:
    faults: list[BaseException] = []
    start = threading.Barrier(6)

    def work(number: int) -> None:
        start.wait()
        try:
            SQLiteMemory(path).save(record(str(number)))
        except BaseException as error:  # noqa: BLE001 - told below
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len(SQLiteMemory(path).find([str(number) for number in range(6)])) == 6


def test_a_database_in_memory_is_its_objects_alone() -> None:
    memory = SQLiteMemory(":memory:")
    memory.save(record())
    assert list(memory.find(["k"])) == [record()]
    assert list(SQLiteMemory(":memory:").find(["k"])) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors cannot be counted")
def test_a_memory_that_is_closed_or_dropped_keeps_no_descriptor(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    memories = [SQLiteMemory(tmp_path / f"{number}.db") for number in range(30)]
    for number in range(30):
        memories[number].save(record())
        assert memories[number].find(["k"])
        if number % 2:
            memories[number].close()
    memories.clear()
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
