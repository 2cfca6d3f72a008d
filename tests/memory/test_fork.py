"""A forked child shares no lock, no flight and no connection with its parent."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.effort import times

import compacter.call
from compacter import SQLiteMemory
from compacter.memory import InProcessMemory, MemoryUnavailable, Record
from compacter.runtime import locks
from compacter.runtime.locks import Lock, import_before_fork, was_forked_busy

PROGRAM = Path(__file__).with_name("forking.py")
RECORD = Record("k", 3, (), "d", "l")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


@pytest.mark.parametrize(
    ("kind", "children"),
    [("in process", times(4, long=12)), ("sqlite", times(3, long=8)), ("redis", times(3, long=8))],
)
def test_every_child_of_a_busy_parent_comes_through(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    namespace: str,
    environment: dict[str, str],
    kind: str,
    children: int,
) -> None:
    place = request.getfixturevalue("redis_url") if kind == "redis" else str(tmp_path / "memory.db")
    arguments = [sys.executable, PROGRAM, kind, place, namespace, str(children)]
    ended = subprocess.run(
        arguments, env=environment, timeout=600, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-4_000:]


def child(work: object) -> int:
    """The exit code of a child that evaluates ``work()``: 0 if it is true."""
    process = os.fork()
    if process == 0:
        signal.alarm(120)  # Rather a test that fails than one that never ends.
        try:
            os._exit(0 if work() else 1)  # type: ignore[operator]
        except BaseException:  # noqa: BLE001 - told by the exit code
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_fork_waits_for_what_a_call_imports_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_slowly.py").write_text(
        "import builtins\nbuiltins.import_began.set()\nbuiltins.import_may_end.wait(300)\n"
    )
    began = threading.Event()
    may_end = threading.Event()
    monkeypatch.setattr("compacter.call.__path__", [*compacter.call.__path__, str(tmp_path)])
    monkeypatch.setattr("builtins.import_began", began, raising=False)
    monkeypatch.setattr("builtins.import_may_end", may_end, raising=False)
    name = "compacter.call.imported_slowly"
    importing = threading.Thread(target=importlib.import_module, args=(name,))
    importing.start()
    assert began.wait(300)
    threading.Timer(0.1, may_end.set).start()
    import_before_fork("compacter.call")

    try:
        assert child(lambda: importlib.import_module(name).__name__ == name) == 0
    finally:
        may_end.set()
        importing.join()
        sys.modules.pop(name, None)


def test_a_child_keeps_the_records_of_its_parent_and_has_its_own_from_then_on() -> None:
    memory = InProcessMemory()
    memory.save(RECORD)

    def forgets() -> bool:
        found = list(memory.find(["k"])) == [RECORD]
        memory.clear()
        return found and len(memory) == 0

    assert child(forgets) == 0
    assert list(memory.find(["k"])) == [RECORD]


@contextlib.contextmanager
def held_lock() -> Generator[threading.Event]:
    """A lock that another thread holds until the event is set, or the block ends."""
    lock = Lock()
    inside = threading.Event()
    may_leave = threading.Event()

    def work() -> None:
        with lock:
            inside.set()
            assert may_leave.wait(300)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(300)
    try:
        yield may_leave
    finally:
        may_leave.set()
        thread.join()


def test_a_fork_waits_until_no_other_thread_holds_a_lock() -> None:
    with held_lock() as may_leave:
        threading.Timer(0.1, may_leave.set).start()
        assert child(lambda: not was_forked_busy()) == 0


def test_a_child_forked_while_sqlite_is_busy_uses_none_and_its_calls_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compacter.runtime.locks.PATIENCE", 0.01)
    memory = SQLiteMemory(tmp_path / "memory.db")
    memory.save(RECORD)

    def goes_on() -> bool:
        with pytest.raises(MemoryUnavailable, match="forked while SQLite was busy"):
            memory.find(["k"])
        return True

    with held_lock():
        assert child(goes_on) == 0
    assert list(memory.find(["k"])) == [RECORD]


def test_every_use_of_sqlite_by_a_memory_is_one_that_a_fork_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside: list[str] = []

    def note(what: str) -> None:
        if not any(lock._is_owned() for lock in locks._all_locks()):  # type: ignore[attr-defined]
            outside.append(what)

    class Guarded(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            note(sql)
            return super().execute(sql, *parameters)

        def close(self) -> None:
            note("close")
            super().close()

    connect = sqlite3.connect

    def connected(*given: Any, **options: Any) -> sqlite3.Connection:
        note("connect")
        return connect(*given, **options, factory=Guarded)

    monkeypatch.setattr("sqlite3.connect", connected)
    memory = SQLiteMemory(tmp_path / "memory.db")
    memory.save(RECORD)
    assert list(memory.find(["k"])) == [RECORD]
    claim = memory.claim("k", 1)
    assert claim is not None
    claim.release()
    memory.clear()
    memory.close()
    gc.collect()
    assert outside == []
