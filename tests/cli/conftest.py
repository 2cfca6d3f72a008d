"""The command, run in this process: what it prints, what it says beside that, and its exit code."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compacter.tools.cli import main

Line = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """Result of one run."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command with these words; ``stdin`` is what is piped in."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")

    def run(*words: object, stdin: str | bytes | None = None) -> Outcome:
        if stdin is not None:
            data = stdin.encode() if isinstance(stdin, str) else stdin
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(list(map(str, words)))
        said = capsys.readouterr()
        code = left.value.code
        return Outcome(code if isinstance(code, int) else int(code is not None), said.out, said.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def chat() -> list[Line]:
    """A plain conversation about the harbours of a coast."""
    talk: list[Line] = [{"role": "system", "content": "You keep the register of harbours."}]
    for number in range(12):
        talk.append(
            {
                "role": "user",
                "content": (f"How deep is harbour {number}, and who runs the quay there? ") * 3,
            }
        )
        talk.append(
            {
                "role": "assistant",
                "content": (f"Harbour {number} has {number + 4} metres; berth B-{number}. ") * 4,
            }
        )
    return [*talk, {"role": "user", "content": "Which of them is the deepest?"}]


@pytest.fixture
def write(folder: Path) -> Callable[..., Path]:
    """Writes a file into the folder: a text unchanged, a list as JSON lines where the name says so,
    else JSON.
    """

    def write(name: str, value: Any) -> Path:
        path = folder / name
        if isinstance(value, str):
            path.write_text(value, encoding="utf-8")
        elif name.endswith(".jsonl"):
            path.write_text(
                "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in value),
                encoding="utf-8",
            )
        else:
            path.write_text(json.dumps(value, ensure_ascii=False, indent=2), encoding="utf-8")
        return path

    return write
