"""Histories, memories of each kind, and a real Redis server that lives as long as the tests."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients.loopback import free_port

from compacter import RedisMemory, SQLiteMemory
from compacter.memory import BaseMemory, InProcessMemory, Memory
from compacter.messages.format import MessageFormat, get_format


@contextlib.contextmanager
def redis_server(*arguments: str, ready: str = "eady to accept connections") -> Generator[None]:
    """A Redis server of this test session alone."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine (make test installs it where it may)")
    pytest.importorskip("redis", reason="the redis package is not installed")
    # The shell ends the server when its own input ends, which it does if the tests are killed, too.
    watched = ["sh", "-c", '"$@" & read -r _; kill $!; wait', "sh", program, *arguments]
    server = subprocess.Popen(watched, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if ready in line:
                break
        else:
            pytest.fail("redis-server ended before it was ready")
        yield
    finally:
        server.communicate(timeout=300)


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder with a short name: the path of a socket must not be long."""
    with tempfile.TemporaryDirectory(prefix="compacter-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def redis_url(folder: Path) -> Iterator[str]:
    """A server on a socket file: no port to fight for."""
    path = folder / "redis.sock"
    with redis_server("--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)):
        yield f"unix://{path}"


@pytest.fixture(scope="session")
def cluster_port(folder: Path) -> Iterator[int]:
    """A cluster of one node, which has every slot."""
    redis = pytest.importorskip("redis")
    port = free_port()
    bus = free_port()
    with redis_server(
        *("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)),
        *(
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            str(bus),
            "--cluster-config-file",
            f"{port}.conf",
        ),
    ):
        with redis.Redis(port=port) as client:
            client.execute_command("CLUSTER ADDSLOTSRANGE 0 16383")
            while not re.search(r"cluster_state\W+ok", str(client.execute_command("CLUSTER INFO"))):
                pass
        yield port


@pytest.fixture(scope="session")
def sentinel_port(folder: Path) -> Iterator[int]:
    """A sentinel, and the server that it watches under the name ``records``."""
    main = free_port()
    port = free_port()
    settings = folder / "sentinel.conf"
    settings.write_text(
        f"port {port}\nbind 127.0.0.1\nsentinel monitor records 127.0.0.1 {main} 1\n"
    )
    with (
        redis_server(
            "--port", str(main), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)
        ),
        redis_server(str(settings), "--sentinel", ready="+monitor"),
    ):
        yield port


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A part of the server for one test."""
    return f"{os.getpid()}:{request.node.nodeid}"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not a failing memory: tests of that say their own ``deadline``."""
    for kind in SQLiteMemory, RedisMemory:
        defaults = inspect.unwrap(kind.__init__).__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "deadline", 60.0)


@pytest.fixture
def redis_memory(redis_url: str, namespace: str) -> Iterator[RedisMemory]:
    memory = RedisMemory(redis_url, namespace=namespace)
    yield memory
    memory.close()


@pytest.fixture
def sqlite_memory(tmp_path: Path) -> Iterator[SQLiteMemory]:
    memory = SQLiteMemory(tmp_path / "memory.db")
    yield memory
    memory.close()


@pytest.fixture(params=["in process", "sqlite", "redis"])
def memory(request: pytest.FixtureRequest) -> Memory:
    """Each memory there is."""
    if request.param == "in process":
        return InProcessMemory()
    found: Memory = request.getfixturevalue(f"{request.param}_memory")
    return found


@pytest.fixture(params=["sqlite", "redis"])
def stored(request: pytest.FixtureRequest) -> BaseMemory:
    """Each memory that several processes can share."""
    found: BaseMemory = request.getfixturevalue(f"{request.param}_memory")
    return found


@pytest.fixture
def reopen(stored: BaseMemory) -> Iterator[Callable[[], BaseMemory]]:
    """Opens the store of ``stored`` again, as another process would."""
    opened: list[Any] = []

    def open_again() -> BaseMemory:
        again = copy.copy(stored)
        opened.append(again)
        return again

    yield open_again
    for memory in opened:
        memory.close()


@pytest.fixture(params=["sqlite", "redis"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, namespace: str) -> tuple[str, str, str]:
    """Kind, address and namespace of a memory that several processes share."""
    if request.param == "redis":
        return "redis", request.getfixturevalue("redis_url"), namespace
    return "sqlite", str(tmp_path / "memory.db"), namespace


@pytest.fixture(scope="session")
def environment(root: Path) -> dict[str, str]:
    """Environment that a program of a test needs to import compacter."""
    return {**os.environ, "PYTHONPATH": str(root / "middleware")}


@pytest.fixture
def openai() -> MessageFormat:
    return get_format("openai")


@pytest.fixture
def talk() -> Callable[..., list[dict[str, Any]]]:
    """A system prompt and this many messages, by user and assistant in turn, each different."""

    def make(length: int, about: str = "trains") -> list[dict[str, Any]]:
        history = [{"role": "system", "content": "Be brief."}]
        for number in range(length):
            role = "assistant" if number % 2 else "user"
            history.append(
                {"role": role, "content": f"{role} says thing {number} about {about}. " * 4}
            )
        return history

    return make
