"""``compacter run``: a program behind a pass-through of its own."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
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


# It asks its base URL for `/chat/completions`, as an SDK does.
CALL = """
import os, sys, urllib.request
base = os.environ[sys.argv[1]]
body = b'{"model": "m", "messages": []}'
print(urllib.request.urlopen(base + sys.argv[2], body).read().decode())
"""
RUN = (sys.executable, "-m", "compacter", "run")


@pytest.fixture
def paths() -> Iterator[tuple[str, list[str]]]:
    """A server's address, and the paths of the requests that it was sent."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment without proxies and base URLs; it is this process's too."""
    for name in list(os.environ):
        if name.upper().endswith(("_PROXY", "_BASE_URL", "_API_BASE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(root / "middleware"))
    return dict(os.environ)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("own", "variable", "path"),
    [
        *(
            (own, "OPENAI_BASE_URL", "/chat/completions")
            for own in ("", "/", "/v1", "/v1beta/openai/", "/api/paas/v4", "/a%20b/v1/x")
        ),
        ("", "OPENAI_API_BASE", "/v1/chat/completions"),
        ("/v1", "OPENAI_API_BASE", "/v1/chat/completions"),
        ("/anthropic", "ANTHROPIC_BASE_URL", "/v1/messages"),
        ("/v1", "ANTHROPIC_BASE_URL", "/v1/messages"),
        ("/google/v1beta", "GOOGLE_GEMINI_BASE_URL", "/v1beta/models/g:generateContent"),
    ],
)
def test_an_address_keeps_its_path(
    own: str,
    variable: str,
    path: str,
    paths: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, seen = paths
    monkeypatch.setenv(variable, url + own)
    assert main(["--", sys.executable, "-c", CALL, variable, path]) == 0
    assert seen == [own.rstrip("/") + path]


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("upstream", "variable", "path", "arrives"),
    [
        ("{}/v1", "OPENAI_BASE_URL", "/chat/completions", "/v1/chat/completions"),
        ("{}/v1", "ANTHROPIC_BASE_URL", "/v1/messages", "/v1/messages"),
        ("anthropic={}/v1", "ANTHROPIC_BASE_URL", "/v1/messages", "/v1/messages"),
        ("anthropic={}/x", "ANTHROPIC_BASE_URL", "/v1/messages", "/x/v1/messages"),
        ("openai={}/v1", "OPENAI_BASE_URL", "/chat/completions", "/v1/chat/completions"),
        # Not named: it goes where it went.
        ("anthropic=http://127.0.0.1:9", "OPENAI_BASE_URL", "/chat", "/chat"),
    ],
)
def test_an_upstream_of_ones_own_is_reached(
    upstream: str,
    variable: str,
    path: str,
    arrives: str,
    paths: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, seen = paths
    monkeypatch.setenv(variable, url)
    words = ["--upstream", upstream.format(url), "--"]
    assert main([*words, sys.executable, "-c", CALL, variable, path]) == 0
    assert seen == [arrives]


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("before", "direct"),
    [
        ({}, "127.0.0.1,localhost"),
        ({"NO_PROXY": "a.example"}, "a.example,127.0.0.1,localhost"),
        ({"no_proxy": "a.example"}, "a.example,127.0.0.1,localhost"),
        ({"NO_PROXY": "*"}, "*"),
    ],
)
def test_no_proxy_stands_between_a_program_and_its_server(
    before: dict[str, str],
    direct: str,
    paths: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    url, seen = paths
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    for name, value in {**proxies, "OPENAI_BASE_URL": url, **before}.items():
        monkeypatch.setenv(name, value)
    shown = "\nprint(os.environ['NO_PROXY'], os.environ['no_proxy'])"
    program = [sys.executable, "-c", CALL + shown, "OPENAI_BASE_URL", "/chat"]
    assert main(["--", *program]) == 0
    assert seen == ["/chat"]
    assert capfd.readouterr().out.split() == [direct, direct]


# It says when it is there, and makes a last request when it is told to end.
LAST = """
import os, signal, sys, urllib.request
def end(number, _):
    base = os.environ["OPENAI_BASE_URL"].partition("/openai")[0]
    print("last", urllib.request.urlopen(base + "/healthz").status, flush=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), end)
print("there", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT"])
def test_a_signal_goes_to_the_program_which_the_server_outlives(
    name: str, environment: dict[str, str], tmp_path: Path
) -> None:
    number = getattr(signal, name)
    # In a session of its own no terminal sends what is typed to both.
    with subprocess.Popen(
        (*RUN, "--", sys.executable, "-c", LAST, name),
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.send_signal(number)
        said, told = process.communicate(timeout=60)
    assert said == "last 200\n"
    assert "0 calls, 0 compactions" in told
    assert process.returncode == 128 + number


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_that_a_signal_ends_has_the_code_of_a_shell(
    number: signal.Signals, tmp_path: Path
) -> None:
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    assert main(["--", sys.executable, "-c", code]) == 128 + number


def test_what_is_ignored_stays_ignored() -> None:
    """As after ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        code = "import os, signal, sys; sys.exit(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
        assert main(["--", sys.executable, "-c", code]) == 1
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("stderr", [None, "/dev/full"])
def test_the_exit_code_is_the_programs_where_nothing_can_be_told(
    stderr: str | None, environment: dict[str, str]
) -> None:
    """A terminal that was closed takes no more lines."""
    end = f"2>{stderr}" if stderr else "2>&-"
    command = f"{sys.executable} -m compacter run -- sh -c 'exit 6' {end}"
    assert subprocess.run(["/bin/sh", "-c", command], env=environment, check=False).returncode == 6


def test_help_is_given(capsys: Any) -> None:
    assert main(["--help"]) == 0
    assert "Example:" in capsys.readouterr().out
