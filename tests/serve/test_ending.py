"""The server ends without losing an answer, and takes another configuration without losing one."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serve.programs import BODY, POST, program

from compacter.errors import ConfigurationError
from compacter.gateway.serve import create_app, main
from compacter.gateway.serve.config import read_config
from compacter.gateway.serve.server import server as server_for


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
            assert b"\ncompacter_draining 1.0\n" in server.status("/metrics")
            slow.go_on.set()
            while b"the end" not in read.readline():
                pass
        assert server.process.wait(300) == 0


def test_a_large_request_that_is_refused_at_the_end_gets_its_answer(
    root: Path, upstream: Any, wire: Any
) -> None:
    """A connection that is closed before its body was read is reset, and the answer lost."""
    slow = Slow(wire)
    body = b"x" * 4_000_000
    head = POST.replace(f"Content-Length: {len(BODY)}", f"Content-Length: {len(body)}")
    with program(root, "--upstream", upstream(slow).url) as server:
        with server.send():
            assert slow.begun.wait(300)
            server.process.send_signal(signal.SIGTERM)
            server.line("ending: 1 open requests")
            with server.send(head, body) as connection, connection.makefile("rb") as read:
                assert read.read().startswith(b"HTTP/1.1 503 ")
            slow.go_on.set()
        assert server.process.wait(300) == 0


class Listening:
    """What the server listens with."""

    closed = False

    def close(self) -> None:
        self.closed = True


async def test_it_ends_a_moment_after_it_has_stopped_listening() -> None:
    """A call that was sent as the server ended is still read, and answered."""
    listening = Listening()
    made = server_for(create_app("https://api.openai.com/v1"), drain=60)
    made.servers = [listening]  # type: ignore[list-item]
    made.handle_exit(signal.SIGTERM, None)
    assert not await made.on_tick(1)
    while not listening.closed:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0)
    assert not await made.on_tick(2)
    while not made.should_exit:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.01)
    assert await made.on_tick(3)


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
        file.write_text("a = " + "[" * 100_000)
        server.process.send_signal(signal.SIGHUP)
        server.line("the configuration was not changed: .* nested too deeply")
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
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"[" + b"a." * 50_000 + b"a]", "nested too deeply|is unknown"),
        (b"port = " + b"9" * 10_000, "it is not TOML"),
        (b'upstream = "https://a"\nratio = 0.5\n[options]\ncompact_ratio = 0.9', "same option"),
        (b'upstream = "https://a"\nprepare = 0.5\n[options]\nprepare_tokens = 9', "same option"),
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
