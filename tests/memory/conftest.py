"""Histories, memories of each kind, and a real Redis server that lives as long as the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compacter.memory import InProcessMemory, Memory, RedisMemory, SQLiteMemory
from compacter.messages.format import MessageFormat, get_format


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis server of this test session alone, on a socket file: no port to fight for."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine (make test installs it where it may)")
    pytest.importorskip("redis", reason="the redis package is not installed")
    folder = Path(tempfile.mkdtemp(prefix="compacter-"))
    path = folder / "redis.sock"
    server = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if "eady to accept connections" in line:
                break
        else:
            pytest.fail("redis-server ended before it was ready")
        yield f"unix://{path}"
    finally:
        server.terminate()
        server.communicate(timeout=10)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A part of the server for one test."""
    return f"{os.getpid()}:{request.node.nodeid}"


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
def stored(request: pytest.FixtureRequest) -> Memory:
    """Each memory that several processes can share."""
    found: Memory = request.getfixturevalue(f"{request.param}_memory")
    return found


@pytest.fixture(scope="session")
def environment(root: Path) -> dict[str, str]:
    """What a program that a test starts needs to import compacter."""
    return {**os.environ, "PYTHONPATH": str(root / "middleware")}


@pytest.fixture
def openai() -> MessageFormat:
    return get_format("openai")


@pytest.fixture
def talk() -> Callable[..., list[dict[str, Any]]]:
    """A system prompt and so many messages, by user and assistant in turn, each different."""

    def make(length: int, about: str = "trains") -> list[dict[str, Any]]:
        history = [{"role": "system", "content": "Be brief."}]
        for number in range(length):
            role = "assistant" if number % 2 else "user"
            history.append({"role": role, "content": f"{role} says thing {number} about {about}. " * 4})
        return history

    return make
