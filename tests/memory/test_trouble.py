"""A memory in trouble costs a call nothing but the memory: at most its deadline, and then nothing
for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.memory import program

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.memory import BaseMemory, MemoryUnavailable, Record
from compacter.memory.protocol import HeldClaim
from compacter.memory.record import prefix_digest
from compacter.memory.stored import StoringMemory
from compacter.messages.format import get_format
from compacter.testing import ScriptedModel, ScriptedSummarizer

RECORD = Record("k", 3, (), "d", "l")
DEADLINE = 0.2
FAR_MORE = 60.0
"""Seconds that no operation may take, however busy the machine is."""


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A file in which another connection is writing, and goes on."""
    path = tmp_path / "memory.db"
    SQLiteMemory(path).save(RECORD)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    yield path
    writer.execute("ROLLBACK")
    writer.close()


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Generator[str]:
    """The URL of a server that treats each connection so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = listener.accept()
                    threading.Thread(target=treat, args=(connection,), daemon=True).start()

        def treat(connection: socket.socket) -> None:
            with contextlib.suppress(OSError), connection:
                while not ended.is_set():
                    answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def trickle(connection: socket.socket) -> None:
    """An answer that never ends, a byte at a time: no single wait is long."""
    connection.sendall(b"+")
    for _ in range(20):
        time.sleep(DEADLINE / 8)
        connection.sendall(b"x")


def silent(connection: socket.socket) -> None:
    """No answer at all."""
    connection.recv(1)


def took(action: Callable[[], object]) -> float:
    """Seconds that something took which raises ``MemoryUnavailable``."""
    started = time.monotonic()
    with pytest.raises(MemoryUnavailable):
        action()
    return time.monotonic() - started


@pytest.mark.parametrize("answer", [trickle, silent])
def test_a_server_that_does_not_finish_its_answer_is_given_up(
    answer: Callable[[socket.socket], None],
) -> None:
    with serving(answer) as url:
        memory = RedisMemory(url, deadline=DEADLINE)
        for operation in (
            lambda: memory.find(["a", "b"]),
            lambda: memory.save(RECORD),
            lambda: memory.claim("k", 60),
        ):
            assert DEADLINE <= took(operation) < FAR_MORE
        assert memory.is_away


def test_a_file_that_stays_locked_costs_a_write_its_deadline_and_a_reader_nothing(
    locked: Path,
) -> None:
    memory = SQLiteMemory(locked, deadline=DEADLINE)
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            memory.save(RECORD)
        assert list(memory.find(["k"])) == [RECORD]
    assert memory.is_away


def test_threads_do_not_wait_for_each_others_waiting(locked: Path) -> None:
    memory = SQLiteMemory(locked, deadline=DEADLINE)
    start = threading.Barrier(40)

    def save(_: int) -> float:
        start.wait()
        began = time.monotonic()
        with pytest.raises((sqlite3.OperationalError, MemoryUnavailable)):
            memory.save(RECORD)
        return time.monotonic() - began

    with ThreadPoolExecutor(40) as pool:
        assert max(pool.map(save, range(40))) < 40 * DEADLINE / 2


def test_a_locked_file_can_be_opened_and_is_used_later(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    memory = SQLiteMemory(path, deadline=DEADLINE)
    writer.execute("ROLLBACK")
    writer.close()
    memory.close()
    memory.save(RECORD)
    assert list(memory.find(["k"])) == [RECORD]


class Store(StoringMemory):
    kind = "the store"
    failures = (OSError,)


def test_what_begins_to_fail_and_works_again_is_told_once_each_time() -> None:
    """Reading may work while writing does not."""
    memory = Store("", 1.0, None)  # type: ignore[abstract]
    told: list[str] = []
    memory.write_log = lambda level, name, *_: told.append(f"{level} {name}")

    def work(kind: str, error: Exception | None = None) -> None:
        with (
            pytest.raises(OSError, match="gone") if error else contextlib.nullcontext(),
            memory.watched(kind),
        ):
            if error is not None:
                raise error

    for _ in range(2):
        for _ in range(3):
            work("writing", OSError("gone"))
            work("reading")
        assert memory.is_away
        work("writing")
        work("writing")
        assert not memory.is_away
    assert told == ["warning compacter.memory_away", "info compacter.memory_back"] * 2


# -- claims of the dead ----------------------------------------------------------------------------


def test_the_claim_of_a_process_that_was_killed_runs_out(
    shared: tuple[str, str, str], environment: dict[str, str]
) -> None:
    memory = program.memory_of(*shared)
    with subprocess.Popen(
        [sys.executable, program.__file__, "claim", *shared],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held True\n"
        assert memory.claim("k", 60) is None
        os.kill(process.pid, signal.SIGKILL)
        died = time.monotonic()
        while (claim := memory.claim("k", 60)) is None:
            assert time.monotonic() - died < FAR_MORE
            time.sleep(0.05)
        claim.release()


@pytest.mark.parametrize("further", [-1, 1])
def test_a_forked_child_gives_no_claim_back_also_if_its_process_number_is_smaller(
    further: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[str] = []
    claim = HeldClaim(lambda: given_back.append("k"))
    child = os.getpid() + further
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: child)
        claim.release()
    assert given_back == []
    claim.release()
    claim.release()
    assert given_back == ["k"]


def test_claims_of_two_heads_that_begin_alike_do_not_wait_for_each_other(
    stored: BaseMemory, reopen: Callable[[], BaseMemory]
) -> None:
    greeting = [{"role": "user", "content": f"Step {number}."} for number in range(3)]
    heads = [[*greeting, {"role": "user", "content": text}] for text in ("Go left.", "Go right.")]
    keys = [prefix_digest(get_format("openai"), head, "scope") for head in heads]
    assert stored.claim(keys[0], 60) is not None
    assert reopen().claim(keys[1], 60) is not None
    assert reopen().claim(keys[0], 60) is None


# -- what the operator reads -----------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_one_line_is_logged_when_a_server_goes_away_and_one_when_it_is_back(
    redis_url: str,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    asynchronous: bool,
) -> None:
    caplog.set_level("INFO", logger="compacter")
    client = RedisMemory("redis://user:sesame@127.0.0.1:1/3", namespace=namespace)
    model = ScriptedModel(window=900)
    compacter = Compacter(memory=client, summarizer=ScriptedSummarizer("Short."), recall=None)
    history = [{"role": "user", "content": f"Question {number}. " * 10} for number in range(40)]

    def call() -> None:
        if asynchronous:
            asyncio.run(compacter.wrap(model.acompletion)("model", history))
        else:
            compacter.wrap(model.completion)("model", history)

    def lines() -> list[str]:
        told = [record.getMessage() for record in caplog.records]
        return [line for line in told if "Redis" in line or "memory" in line]

    for _ in range(3):
        call()
    (away,) = lines()
    assert "redis://127.0.0.1:1/3 failed (ConnectionError: " in away
    assert "sesame" not in caplog.text
    monkeypatch.setattr(client, "_client", RedisMemory(redis_url, deadline=60)._client)
    for _ in range(2):
        call()
    assert len(lines()) == 2
    assert lines()[1].endswith("redis://127.0.0.1:1/3 answers again")
