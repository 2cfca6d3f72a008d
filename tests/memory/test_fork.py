"""A forked child shares no lock, no flight and no connection with its parent."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from compacter.call.recall import Recall
from compacter.locks import Lock
from compacter.memory import InProcessMemory, Record, RedisMemory, SQLiteMemory
from compacter.recall.index import Index
from compacter.recall.passages import Quotes

PROGRAM = Path(__file__).with_name("forking.py")
RECORD = Record("k", 3, (), (), "d", "l")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


@pytest.mark.parametrize(("kind", "children"), [("in process", 12), ("sqlite", 8), ("redis", 8)])
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
    ended = subprocess.run(arguments, env=environment, timeout=600, capture_output=True, text=True, check=False)
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


def test_a_child_finds_a_lock_free_and_the_parent_goes_on() -> None:
    lock = Lock()

    def locked() -> bool:
        with lock:
            return True

    assert child(locked) == 0
    assert locked()


def test_a_child_imports_what_the_parent_was_importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_slowly.py").write_text(
        "import builtins\n"
        "if not hasattr(builtins, 'imported_once'):\n"
        "    builtins.imported_once = True\n"
        "    builtins.import_began.set()\n"
        "    builtins.import_may_end.wait(300)\n"
    )
    began, may_end = threading.Event(), threading.Event()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.import_began", began, raising=False)
    monkeypatch.setattr("builtins.import_may_end", may_end, raising=False)
    monkeypatch.setattr("builtins.imported_once", True, raising=False)
    monkeypatch.delattr("builtins.imported_once")
    importing = threading.Thread(target=importlib.import_module, args=("imported_slowly",))
    importing.start()
    assert began.wait(300)

    def imported() -> bool:
        signal.alarm(120)
        return importlib.import_module("imported_slowly").__name__ == "imported_slowly"

    try:
        assert child(imported) == 0
    finally:
        may_end.set()
        importing.join()
        sys.modules.pop("imported_slowly", None)


def test_a_child_keeps_the_records_of_its_parent_and_has_its_own_from_then_on() -> None:
    memory = InProcessMemory()
    memory.save(RECORD)

    def forgets() -> bool:
        found = list(memory.find(["k"])) == [RECORD]
        memory.clear()
        return found and len(memory) == 0

    assert child(forgets) == 0
    assert list(memory.find(["k"])) == [RECORD]


def test_a_child_cannot_give_back_its_parents_claim(tmp_path: Path) -> None:
    memory = SQLiteMemory(tmp_path / "memory.db")
    held = memory.claim("k", 60)
    assert held is not None

    def releases() -> bool:
        held.release()
        return memory.claim("k", 60) is None

    assert child(releases) == 0
    held.release()
    assert memory.claim("k", 60) is not None


def test_a_child_uses_the_same_redis_through_a_connection_of_its_own(redis_memory: RedisMemory) -> None:
    redis_memory.save(RECORD)
    assert child(lambda: list(redis_memory.find(["k"])) == [RECORD]) == 0
    assert list(redis_memory.find(["k"])) == [RECORD]


def test_a_search_index_is_closed_only_while_no_thread_forks() -> None:
    index = Index()
    lock, closed = index._lock, index._close
    release = threading.Thread(target=closed)
    with lock:  # As a fork holds it.
        release.start()
        release.join(0.05)
        assert release.is_alive()
    release.join(300)
    assert not release.is_alive()


def test_a_child_leaves_the_search_indexes_of_its_parent_alone() -> None:
    recall = Recall(Quotes(), None)
    index = Index()
    recall._indexes["a record", None] = index
    held = weakref.ref(index)
    del index
    recall.after_fork_in_child()
    gc.collect()
    assert ("a record", None) not in recall._indexes
    assert held() is not None
