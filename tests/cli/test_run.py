"""``compacter run``: a program behind a pass-through of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients import loopback

from compacter.tools.cli.run import main

# As the vendors' SDKs do, it reads its address from the environment.
PROGRAM = """
import json, os, sys, urllib.request
variable, path = sys.argv[1:]
roles = ("user", "assistant")
said = [{"role": roles[n % 2], "content": f"Pier {n} is of oak. " * 20} for n in range(21)]
body = json.dumps({"model": "m", "max_tokens": 9, "messages": said}).encode()
headers = {"content-type": "application/json", "authorization": "Bearer k"}
request = urllib.request.Request(os.environ[variable] + path, body, headers)
print(urllib.request.urlopen(request).read().decode())
sys.exit(7)
"""
PATHS = {"openai": "/chat/completions", "anthropic": "/v1/messages"}
VARIABLES = {"openai": ("OPENAI_BASE_URL", "/v1"), "anthropic": ("ANTHROPIC_BASE_URL", "")}
Runner = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=PATHS)
def vendor(request: pytest.FixtureRequest) -> Iterator[tuple[str, loopback.Provider]]:
    with loopback.serving(getattr(loopback, request.param)) as server:
        yield request.param, server


def test_a_program_runs_behind_a_server_of_its_own_and_is_told_what_was_compacted(
    vendor: tuple[str, loopback.Provider], root: Path
) -> None:
    name, server = vendor
    variable, path = VARIABLES[name]
    environment = {
        **os.environ,
        "PYTHONPATH": str(root / "middleware"),
        variable: f"{server.url}{path}",
    }
    start = ["-m", "compacter", "run", "--summarizer", "extractive", "--", sys.executable, "-c"]
    ended = subprocess.run(
        [sys.executable, *start, PROGRAM, variable, PATHS[name]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 7, ended.stderr
    assert loopback.WORDS in ended.stdout
    assert "1 calls, 1 compactions" in ended.stderr
    assert len(server.bodies) == 2


def test_the_window_of_claude_code_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Users of Claude Code learn which window it assumes behind another address."""
    claude = tmp_path / "claude"
    claude.write_text("#!/bin/sh\n")
    claude.chmod(0o755)
    assert main(["--", str(claude)]) == 0
    assert "Claude Code assumes 200,000 tokens for its window" in capfd.readouterr().err


@pytest.mark.parametrize("vendor", ["openai"], indirect=True)
def test_codex_is_given_the_address_as_a_setting(
    vendor: tuple[str, loopback.Provider],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    codex = tmp_path / "codex"
    codex.write_text('#!/bin/sh\necho "$@"\n')
    codex.chmod(0o755)
    assert main(["--", str(codex), "exec"]) == 0
    assert '-c openai_base_url="http://127.0.0.1:' in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--"], "compacter run [OPTIONS"),
        (["claude"], "compacter run [OPTIONS"),
        (["--", "/no/such/program"], "No such file"),
        (["--ratio=7", "--", "true"], "ratio"),
    ],
)
def test_a_mistake_is_told(words: list[str], told: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert told in capfd.readouterr().err


def test_help_is_given(capsys: Any) -> None:
    assert main(["--help"]) == 0
    assert "Example:" in capsys.readouterr().out
