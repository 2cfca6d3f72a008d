"""The server ends without losing an answer, and takes another configuration without losing one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compacter.errors import ConfigurationError
from compacter.gateway.serve import main
from compacter.gateway.serve.config import read_config

BODY = json.dumps({"stream": True, "messages": [{"role": "user", "content": "Hello"}]}).encode()
POST = f"POST /v1/chat/completions HTTP/1.1\nHost: localhost\nContent-Length: {len(BODY)}\n\n"


class Program:
    """The server as a program, and the lines that it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = int(self.line(r"http://127\.0\.0\.1:(\d+)/ -> ")[1])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def line(self, pattern: str) -> re.Match[str]:
        """The first line that fits, as soon as there is one."""
        until = time.monotonic() + 300
        while time.monotonic() < until:
            for line in list(self.lines):
                found = re.search(pattern, line)
                if found:
                    return found
            time.sleep(0.01)
        raise AssertionError(f"no line {pattern!r} in {self.lines}")

    def send(self, head: str = POST, body: bytes = BODY) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        return connection

    def status(self, path: str = "/v1/models") -> bytes:
        """The answer to a new request, read completely."""
        head = f"GET {path} HTTP/1.1\nHost: localhost\nConnection: close\n\n"
        with self.send(head, b"") as connection, connection.makefile("rb") as read:
            return read.read()


@contextmanager
def program(root: Path, *arguments: str) -> Generator[Program]:
    environment = {**os.environ, "PYTHONPATH": str(root / "middleware")}
    command = [sys.executable, "-m", "compacter.gateway.serve", "--port=0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


class Slow:
    """An upstream whose stream goes on when it is told."""

    def __init__(self, wire: Any) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self._wire = wire

    def __call__(self, asked: Any, write: Callable[[bytes], object]) -> None:
        if asked.method == "GET":
            write(self._wire.plain(b"{}"))
            return
        write(self._wire.STREAM + self._wire.chunk(b"data: 1\n\n"))
        self.begun.set()
        assert self.go_on.wait(300)
        write(self._wire.chunk(b"data: the end\n\n") + self._wire.chunk(b""))


def test_at_sigterm_open_answers_end_and_new_requests_are_refused(
    root: Path, upstream: Any, wire: Any
) -> None:
    slow = Slow(wire)
    with program(root, "--upstream", upstream(slow).url) as server:
        with server.send() as connection, connection.makefile("rb") as read:
            assert slow.begun.wait(300)
            server.process.send_signal(signal.SIGTERM)
            server.line("ending: 1 open requests")
            refused = server.status()
            assert refused.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 5\r\n" in refused.lower()
            assert server.status("/readyz").startswith(b"HTTP/1.1 503 ")
            assert server.status("/healthz").startswith(b"HTTP/1.1 200 ")
            slow.go_on.set()
            while b"the end" not in read.readline():
                pass
        assert server.process.wait(300) == 0


def test_what_does_not_end_in_time_is_cut_off_and_told(
    root: Path, upstream: Any, wire: Any
) -> None:
    slow = Slow(wire)
    with (
        program(root, "--upstream", upstream(slow).url, "--drain", "1") as server,
        server.send(),
    ):
        assert slow.begun.wait(300)
        server.process.send_signal(signal.SIGTERM)
        server.line("1 open requests did not end in time")
        assert server.process.wait(300) == 0
    slow.go_on.set()


def test_another_configuration_is_taken_without_losing_a_stream(
    root: Path, upstream: Any, wire: Any, tmp_path: Path
) -> None:
    slow = Slow(wire)
    first = upstream(slow)
    second = upstream(lambda asked, write: write(wire.plain(b'"second"')))
    file = tmp_path / "serve.toml"
    file.write_text(f'upstream = ["{first.url}"]\n')
    with program(root, "--config", str(file)) as server:
        with server.send() as connection, connection.makefile("rb") as read:
            assert slow.begun.wait(300)
            file.write_text(f'upstream = "{second.url}"\nratio = 0.9\n[options]\nmax_retries = 2\n')
            server.process.send_signal(signal.SIGHUP)
            server.line("the configuration was read again")
            assert server.status().endswith(b'"second"')
            slow.go_on.set()
            while b"the end" not in read.readline():
                pass
        file.write_text("upstream = 7\n")
        server.process.send_signal(signal.SIGHUP)
        server.line("the configuration was not changed: upstream takes a URL")
        assert server.status().endswith(b'"second"')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("upstream = ", "it is not TOML"),
        ('{"upstream": "https://api.openai.com/v1"}', "it is not TOML"),
        ('upstrem = "https://a"', "did you mean upstream"),
        ('upstream = "https://a"\n[options]\nratio = 1', "ratio stands above"),
        ('upstream = "https://a"\noptions = 7', "options takes a table"),
    ],
)
def test_a_file_that_is_no_configuration_is_told(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=told):
        read_config(str(file))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No such file"),
        (b"\xff\xfe\x00", "not a text file"),
        (b"port = 8080", "--upstream is needed"),
        (b'upstream = "https://a"\nmax_body = "many"', "max_body"),
        (b'upstream = "https://a"\nlog = "xml"', "log takes text or json"),
        (b'upstream = "https://a"\ndrain = -1', "drain takes"),
        (b'upstream = "https://a"\n[options]\ncompact_rato = 1', "compact_ratio|--ratio"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_and_exit_code_2(
    tmp_path: Path, content: bytes | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "serve.toml"
    if content is not None:
        file.write_bytes(content)
    assert main(["--config", str(file)]) == 2
    said = capsys.readouterr().err
    assert re.search(told, said)
    assert "Traceback" not in said
