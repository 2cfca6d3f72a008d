"""Every command that docs/cli.md shows runs, in order, in a folder with the files that it names."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter

if TYPE_CHECKING:
    from tests.cli.conftest import Line, Run

    Write = Callable[[str, Any], Path]


def test_the_commands_of_the_manual_run(
    run: Run, write: Write, chat: list[Line], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (root / "docs" / "cli.md").read_text()
    shown = re.findall(
        r"^compacter .+$", "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)), re.MULTILINE
    )
    write("chat.json", chat)
    write(
        "error.txt",
        ("This model's maximum context length is 8192 tokens, but you sent 9001 tokens."),
    )
    event = Compacter(summarizer="extractive").compact(chat).event
    assert event
    write("events.jsonl", [json.loads(event.model_dump_json())])

    assert len(shown) >= 10
    for command in shown:
        told = run(*shlex.split(command)[1:])
        assert told.code == 0, f"{command}\n{told.out}{told.err}"
