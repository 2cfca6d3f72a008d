"""The command as a program: help, exit codes, colours, narrow terminals, what is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Line, Run

COMMANDS = ("explain", "plan", "compact", "search", "report", "doctor", "serve", "run")
PROGRAM = "from compacter.tools.cli import main; main()"


def process(*words: str, program: str = PROGRAM, **more: Any) -> subprocess.CompletedProcess[str]:
    environment = (
        os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))} | more.pop("env", {})
    )
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, **more
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(run: Run, command: str) -> None:
    told = run(command, "--help")
    assert told.code == 0
    assert f"Example: compacter {command} " in " ".join(told.out.split())


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("serve", "run")])
def test_help_tells_the_default_of_each_option_that_takes_a_value(run: Run, command: str) -> None:
    """The help of an option that takes a value ends with its default."""
    rows = re.split(r"\n  (?=\S)", run(command, "--help").out)
    valued = [row for row in rows if re.match(r"(-\w \w+, )?--[\w-]+ [A-Z]", row)]
    untold = [row for row in valued if not re.search(r"\([^()]+\)$", row.partition("\n\n")[0])]
    assert (untold, bool(valued)) == ([], True)


def test_the_help_lists_every_command(run: Run) -> None:
    told = run("--help")
    assert re.findall(r"^    (\w+)  ", told.out, re.MULTILINE) == list(COMMANDS)
    assert "usage: compacter" in run().err


@pytest.mark.parametrize(
    "line",
    [
        "fly",
        "plan",
        "plan --what",
        "explain x --status 9999",
        "explain x --status many",
        "explain nofile.txt",
        "plan nofile",
        "plan chat.json --window 3",
        "plan chat.json --ratio nan",
        "plan chat.json --conversation 0",
        "compact chat.json --budget 0",
        "compact chat.json --ratio 3",
        "compact chat.json --model m --extractive",
        "compact chat.json -o no/folder",
        "search chat.json x --limit 0",
        "search chat.json x --conversation 3",
        "report nofile -o x.html",
        "report chat.json -o no/folder",
        "doctor --memory foo",
        "doctor --memory sqlite:",
        "doctor --memory redis://x:bad",
        "doctor --memory ftp://x",
        "serve --upstream x",
        "serve --upstream http://x --memory foo",
        "serve --upstream http://x --memory redis://x:bad",
        "serve --upstream http://x --port -1",
        "serve --upstream http://x --port many",
        "serve --upstream http://x --ratio 7",
        "serve --upstream http://127.0.0.1:9 --host no.such.invalid",
    ],
)
def test_a_bad_value_is_a_mistake_in_every_command(
    run: Run, folder: Path, chat: list[Line], line: str
) -> None:
    for extra in {"doctor --memory redis": "redis", "serve": "starlette"}.items():
        if line.startswith(extra[0]):
            pytest.importorskip(extra[1])
    (folder / "chat.json").write_text(json.dumps(chat))
    told = run(*line.split())
    assert (told.code, told.out) == (2, "")
    assert told.err
    assert "Traceback" not in told.err


def test_an_interrupt_has_its_exit_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("compacter.tools.cli.explain.run", interrupted)
    assert run("explain", "x").code == 130


def test_colours_are_for_terminals_that_want_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("explain", "prompt is too long: 205668 tokens > 200000 maximum")
    assert "\x1b[" not in run(*words).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[3" in run(*words).out or "\x1b[1;3" in run(*words).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", run(*words).out)


@pytest.mark.parametrize("width", [20, 24, 40])
def test_a_narrow_terminal_cuts_nothing_off(
    run: Run, folder: Path, chat: list[Line], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "chat.json").write_text(json.dumps(chat))
    words = ("explain", "prompt is too long: 205668 tokens > 200000 maximum")
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((width, 40)))
    monkeypatch.setenv("COLUMNS", str(width))
    explained = run(*words)
    planned = run("plan", "chat.json")
    assert {"200,000", "request", "tokens", "history", "compacter"} <= set(
        re.findall(r"[\w,]+", explained.out)
    )
    assert {"assistant", "characters", "compacted", "kept"} <= set(re.findall(r"\w+", planned.out))
    assert planned.code == 0
    assert max(map(len, explained.out.splitlines())) <= 100


EVENT = {
    "event": "CompactionEvent",
    "conversation": "c",
    "original_data_size": 40_000,
    "compacted_data_size": 9_000,
    "original_tokens": 10_000,
    "compacted_tokens": 2_250,
    "model": "some-model",
    "limit": 8_192,
}
PIPED = (
    "explain error.txt -v",
    "compact chat.json -o shorter.json --window 900",
    "search chat.json harbour",
    "report events.jsonl -o report.html --force",
    "doctor",
    "--help",
)


@pytest.mark.parametrize("line", PIPED)
def test_every_command_ends_soon_in_a_pipe(folder: Path, chat: list[Line], line: str) -> None:
    pytest.importorskip("starlette")
    (folder / "error.txt").write_text("prompt is too long: 205668 tokens > 200000 maximum")
    (folder / "chat.json").write_text(json.dumps(chat))
    (folder / "events.jsonl").write_text(json.dumps(EVENT) + "\n")
    width = dict.fromkeys(("COLUMNS", "LINES"), "")
    told = process(*line.split(), cwd=folder, env=width, timeout=60)
    assert told.returncode == 0, told.stderr
    assert max(map(len, [*told.stdout.splitlines(), ""])) < 1_000


@pytest.mark.parametrize(("window", "code"), [(500, 0), (64, 1)])
def test_compact_tells_tokens_and_whether_they_fit(
    run: Run, folder: Path, chat: list[Line], window: int, code: int
) -> None:
    chat[-1]["content"] *= 10  # What the user said last always stays.
    (folder / "chat.json").write_text(json.dumps(chat))
    told = run("compact", "chat.json", "-o", "shorter.json", "--window", window)
    words = " ".join(told.err.split())
    assert told.code == code
    assert re.search(r"about [\d,]+ to [\d,]+ tokens; compacted \d+ of 26 messages", words)
    verdict = "fits into" if code == 0 else "exceed"
    assert f"{verdict} the window of {window:,} tokens" in words


def test_compact_tells_what_it_did_as_json(run: Run, folder: Path, chat: list[Line]) -> None:
    (folder / "chat.json").write_text(json.dumps(chat))
    told = run("compact", "chat.json", "-o", "shorter.json", "--json")
    assert told.code == 0
    assert told.data["changed"] is True
    assert told.data["event"]["messages_before"] == len(chat)
    assert 0 < told.data["tokens"] < told.data["tokens_before"]
    assert (told.data["window"], told.data["fits"]) == (None, True)
    assert run("compact", "chat.json", "--json").code == 2


def test_the_help_comes_quickly_and_loads_nothing_heavy() -> None:
    heavy = (
        "litellm",
        "openai",
        "anthropic",
        "pydantic_core.core_schema",
        "compacter.compacter",
        "compacter.overflow",
    )
    program = f"""
import sys
from compacter.tools.cli import main
try:
    main(["--help"])
finally:
    loaded = [name for name in {heavy!r} if name in sys.modules and not name.startswith("pydantic")]
    sys.stderr.write(" ".join(loaded))
"""
    told = process(program=program)
    assert told.returncode == 0
    assert told.stderr == ""


EXPLAIN = ("explain", "context_length_exceeded")


@pytest.mark.parametrize(
    "words", [(*EXPLAIN, "--json"), EXPLAIN, ("--help",), ("--version",), ("plan", "--help")]
)
def test_a_reader_that_has_enough_is_no_error(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", PROGRAM, *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("words", [EXPLAIN, (*EXPLAIN, "--json"), ("--version",)])
def test_a_full_disk_gets_one_line(words: tuple[str, ...]) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (told.returncode, told.stderr) == (
        2,
        ("compacter: standard output: No space left on device\n"),
    )


def test_the_server_gets_the_words_after_its_name(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Sequence[str]] = []
    module = SimpleNamespace(main=started.append)
    monkeypatch.setitem(sys.modules, "compacter.gateway.serve", module)
    assert run("serve", "--upstream", "http://127.0.0.1:1/v1", "--dry-run").code == 0
    assert started == [["--upstream", "http://127.0.0.1:1/v1", "--dry-run"]]
