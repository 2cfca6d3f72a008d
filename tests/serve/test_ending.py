"""The server ends without losing an answer; a mistake in its configuration file is named."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serve.programs import program

from compacter.errors import ConfigurationError
from compacter.gateway.serve.config import read_config
from compacter.serve import main


class Slow:
    """An upstream whose stream goes on at a signal."""

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


def test_at_the_end_open_answers_end_and_nobody_connects(
    root: Path, upstream: Any, wire: Any
) -> None:
    """An answer in progress is given whole, and one that is asked for on an open connection."""
    slow = Slow(wire)
    with program(root, "--upstream", upstream(slow).url) as server:
        kept = server.send("GET /healthz HTTP/1.1\nHost: localhost\n\n", b"")
        assert b"HTTP/1.1 200 " in kept.recv(65_536)
        with server.send() as connection, connection.makefile("rb") as read:
            assert slow.begun.wait(300)
            server.process.send_signal(signal.SIGTERM)
            server.line("ending: 1 open requests have 120 seconds")
            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            with kept, kept.makefile("rb") as again:
                assert b"HTTP/1.1 200 OK\r\nconnection: close\r\n" in again.read()
            with pytest.raises(ConnectionError):
                server.status()
            slow.go_on.set()
            while b"the end" not in read.readline():
                pass
        assert server.process.wait(300) == 0


def test_a_second_signal_ends_at_once(root: Path, upstream: Any, wire: Any) -> None:
    slow = Slow(wire)
    with program(root, "--upstream", upstream(slow).url) as server, server.send():
        assert slow.begun.wait(300)
        server.process.send_signal(signal.SIGINT)
        server.line("ending: ")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(300) == 0
    slow.go_on.set()


def test_what_does_not_end_in_time_is_cut_off_and_told(
    root: Path, upstream: Any, wire: Any
) -> None:
    slow = Slow(wire)
    with program(root, "--upstream", upstream(slow).url, "--drain", "1") as server, server.send():
        assert slow.begun.wait(300)
        server.process.send_signal(signal.SIGTERM)
        server.line("Cancel 1 running")
        assert server.process.wait(300) == 0
    slow.go_on.set()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("upstream = ", "cannot be read as TOML"),
        ('{"upstream": "https://api.openai.com/v1"}', "cannot be read as TOML"),
        ('upstrem = "https://a"', "did you mean upstream"),
        ('upstream = "https://a"\noptions = 7', "cannot be read as TOML"),
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
        (b"\xff\xfe\x00", "cannot be read as TOML"),
        (b"port = 8080", "upstream: takes at least one URL"),
        (b'upstream = "https://a"\nbody_timeout = "many"', "body_timeout"),
        (b"a = " + b"[" * 100_000, "cannot be read as TOML"),
        (b"[" + b"a." * 5_000 + b"a]", "cannot be read as TOML|is unknown"),
        (b"port = " + b"9" * 10_000, "cannot be read as TOML"),
        (b'upstream = "https://a"\nlog = "xml"', "log: "),
        (b'upstream = "https://a"\ndrain = -1', "drain: "),
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
