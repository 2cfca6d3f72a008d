"""Each program in examples/ runs to its end, reaches no other machine, and is in the manual with
what it prints.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from embedded_model import why_unavailable

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

AT_HOME = """
import runpy, sys

def at_home(event, args):
    host = None
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect":
        host = args[1][0]
    if isinstance(host, str) and host != "localhost" and not host.startswith("127."):
        raise PermissionError(f"the example tried to reach {host}")

sys.addaudithook(at_home)
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program that may connect to this machine only; a name that has to be looked up is refused
too."""


PAGE = runpy.run_path(str(ROOT / "docs" / "make_examples.py"))


def run(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder of its own; its standard output has its logs too."""
    return subprocess.run(
        [sys.executable, "-c", AT_HOME, program.as_posix()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "middleware"), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_the_manual_shows(program: Path, tmp_path: Path) -> None:
    if "embedded_model" in program.read_text() and (reason := why_unavailable()):
        pytest.skip(reason)
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []  # and it leaves nothing behind
    if program.stem in PAGE["names"]():
        output = PAGE["steady"](PAGE["trimmed"](done.stdout))
        shown = PAGE["PAGE"].read_text(encoding="utf-8")
        assert PAGE["section"](program.stem, output) in shown, "run `python docs/make_examples.py`"
        assert "Warning" not in output
        assert not re.search(r"\bNone\b of|\b1 compactions|log.*fallback", output)


@pytest.mark.parametrize("place", ["'192.0.2.1', 80", "'models.example', 80"])
def test_an_example_that_reaches_out_is_caught(place: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import socket\nsocket.create_connection(({place}), timeout=1)\n")
    done = run(program, tmp_path)
    assert done.returncode != 0
    assert "the example tried to reach" in done.stdout


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_the_manual_names_the_example(program: Path) -> None:
    pages = [(ROOT / "docs" / name).read_text() for name in ("index.md", "examples.md")]
    assert any(f"examples/{program.name}`](../examples/" in page for page in pages)


def test_the_example_with_a_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.argv", ["embedded_model.py"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "examples" / "embedded_model.py"), run_name="__main__")
    assert "pip install -r requirements/demo.txt" in str(ended.value)
