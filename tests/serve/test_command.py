"""The command line, and what outlives the server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.serve.programs import program

from compacter import serve
from compacter.errors import ConfigurationError
from compacter.gateway.serve.config import parser
from compacter.serve import main, run

Talk = Callable[..., Any]
UPSTREAM = "http://127.0.0.1:9/v1"


def ask(url: str, history: Any) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=9) as client:
        client.chat.completions.create(model="m", messages=history)


def test_a_server_that_was_killed_goes_on_with_its_summaries(
    root: Path, openai_server: Any, talk: Talk, tmp_path: Path
) -> None:
    arguments = (
        "--upstream",
        f"{openai_server.url}/v1",
        "--memory",
        f"sqlite:{tmp_path / 'memory.db'}",
        "--prepare=0",
    )
    with program(root, *arguments) as server:
        ask(server.url, talk())
        server.process.kill()
        server.process.wait(300)
    before = len(openai_server.bodies)
    with program(root, *arguments) as server:
        ask(server.url, talk())
        server.process.terminate()
        assert server.process.wait(300) in (0, -signal.SIGTERM)
        assert [line for line in server.lines if " -> " not in line and "report" not in line] == []
    assert len(openai_server.bodies) == before + 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "upstream"),
        (["--upstream", "nowhere"], "upstream"),
        (["--upstream", UPSTREAM, "--port", "many"], "--port"),
        (["--upstream", UPSTREAM, "--port", "70000"], "port"),
        (["--upstream", UPSTREAM, "--ratio", "2"], "--ratio: "),
        (["--upstream", UPSTREAM, "--ratio", "x"], "--ratio"),
        (["--upstream", UPSTREAM, "--memory", "postgres://x"], "memory"),
        (
            ["--upstream", UPSTREAM, "--memory", "sqlite:/no/such/folder/x.db"],
            "/no/such/folder/x.db",
        ),
        (["--upstream", UPSTREAM, "--summarizer", " "], "summarizer"),
        (["--upstream", UPSTREAM, "--summarizer", "extrative"], "did you mean 'extractive'"),
        (["--upstream", UPSTREAM, "--host", "no such host"], "--host"),
        (["--upstream", UPSTREAM, "--colour"], "colour"),
        (["--upstream", UPSTREAM, "--upstream", UPSTREAM], "name"),
        (["--upstream", UPSTREAM, "please"], "please"),
        (["--upstream"], "upstream"),
    ],
)
def test_a_mistake_is_told_by_name(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("upstream", 7),
        ("host", 7),
        ("port", "8484"),
        ("memory", 7),
        ("ratio", 2),
        ("compact_rato", 0.5),
    ],
)
def test_a_mistake_in_python_is_told_by_name(argument: str, value: Any) -> None:
    run: Any = serve.run
    with pytest.raises(
        ConfigurationError, match="compact_ratio" if argument == "ratio" else argument
    ):
        run(**{"upstream": UPSTREAM, argument: value})


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_given(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    assert capsys.readouterr().out == parser().format_help()


def test_a_port_that_is_taken_is_told() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigurationError, match="--port"),
    ):
        run(upstream=UPSTREAM, port=taken.getsockname()[1])


def started_without(
    root: Path, missing: str, module: str, *words: str
) -> subprocess.CompletedProcess[str]:
    """``python -m MODULE WORDS`` where one package is not installed."""
    program = (
        f"import runpy, sys; sys.modules[{missing!r}] = None\n"
        f"sys.argv = ['x', *{words!r}]\n"
        f"runpy.run_module({module!r}, run_name='__main__')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "middleware")}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "words", "missing"),
    [
        ("compacter.serve", (), "uvicorn"),
        ("compacter", ("serve",), "starlette"),
        ("compacter.serve", (), "httpx"),
    ],
)
def test_without_the_extra_the_remedy_is_told_in_one_line(
    root: Path, module: str, words: tuple[str, ...], missing: str
) -> None:
    told = started_without(root, missing, module, *words, "--upstream", UPSTREAM)
    assert told.returncode == 2
    assert "pip install httpx prometheus-client starlette uvicorn" in told.stderr
    assert "Traceback" not in told.stderr


def test_help_needs_no_extra(root: Path) -> None:
    told = started_without(root, "starlette", "compacter", "serve", "--help")
    assert told.stdout == parser().format_help()


def test_a_memory_that_does_not_answer_is_told_at_start(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("redis")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        place = f"--port={occupied.getsockname()[1]}"
        arguments = ["--upstream", UPSTREAM, "--memory", f"redis://:secret@127.0.0.1:{port}/0"]
        assert main([*arguments, place]) == 2  # The port is taken: it does not go on to serve.
    said = capsys.readouterr().err
    assert f"the memory at redis://127.0.0.1:{port}/0 does not answer" in said
    assert "secret" not in said
