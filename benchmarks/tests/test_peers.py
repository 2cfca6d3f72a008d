"""The benchmark beside other projects: what needs none of them. ``benchmarks/peers/README.md``
tells what it is.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import compacter

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "benchmarks" / "peers"
MACHINE = {"date": "2026-01-01", "python": "3.11", "system": "Linux", "cores": 2, "load": 1.0}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``__main__.py`` of the benchmark."""
    monkeypatch.syspath_prepend(str(PEERS))
    spec = importlib.util.spec_from_file_location("peers_run", PEERS / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "peers_run", module)
    spec.loader.exec_module(module)
    return module


def asked(peer: str, *asks: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer of a peer's process."""
    lines = "".join(json.dumps(ask) + "\n" for ask in asks)
    done = subprocess.run(
        [sys.executable, PEERS / "worker.py", peer],
        input=lines,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()[1:]]


def test_each_peer_has_an_adapter_of_at_most_ninety_lines(run: ModuleType) -> None:
    for name in run.PEERS:
        path = PEERS / f"peer_{name.partition(' (')[0].replace(' ', '_').replace('-', '_')}.py"
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""'), path.name
        assert sum(bool(line.strip()) for line in text.splitlines()) <= 90, path.name


@pytest.mark.parametrize("path", sorted(PEERS.glob("peer_*.py")), ids=lambda path: path.stem)
def test_what_an_adapter_takes_from_a_client_is_there(path: Path) -> None:
    # The project that both need may not be installed, so names are looked up in the client's file.
    for module, names in re.findall(
        r"(?m)^from compacter\.clients\.(\w+) import ([\w, ]+)$", path.read_text("utf-8")
    ):
        text = (Path(compacter.__file__).parent / "clients" / f"{module}.py").read_text("utf-8")
        for name in names.split(", "):
            assert re.search(rf"(?m)^(?:class |def )?{name}\b", text), name


def test_each_environment_is_pinned(run: ModuleType) -> None:
    pinned = {path.stem for path in (ROOT / "requirements" / "peers").glob("*.txt")}

    assert pinned == {name for name in run.PEERS.values() if name}


def test_a_peer_that_is_not_installed_is_named_and_left_out(
    run: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VENV", str(tmp_path / ".venv"))

    workers, missing = run.started(["langchain", "gollem"])

    assert [worker.name for worker in workers] == [
        "compacter",
        "compacter without quotes",
        "gollem (port)",
    ]
    assert missing == ["langchain"]
    assert "langchain is not installed" in capsys.readouterr().out
    for worker in workers:
        worker.stop()


def test_a_peer_that_takes_too_long_is_ended_and_answers_again(run: ModuleType) -> None:
    worker = run.Worker("usual loop", Path(sys.executable))
    hangs, raises = ({"task": "fault", "kind": kind} for kind in ("hangs", "raises"))

    assert worker.ask(hangs, 1) == {"failed": "over 1 s"}
    assert worker.ask(raises, 60)["error"] == "RuntimeError"
    worker.stop()


def test_a_growing_conversation_is_paid_once_by_compacter() -> None:
    (ours,) = asked("peer_compacter", {"task": "grow", "turns": 60, "resend": True})
    (theirs,) = asked("peer_usual_loop", {"task": "grow", "turns": 60, "resend": True})

    assert ours["answered"] == theirs["answered"] == 60
    assert (ours["broken"], ours["lost"]) == (0, 0)
    assert ours["summaries"] * 5 < theirs["summaries"]


def test_the_same_conversation_of_many_callers_is_summarised_once_by_compacter() -> None:
    ask = {"task": "crowd", "callers": 12, "conversations": 3, "threads": True}
    ((ours,), (theirs,)) = (asked(f"peer_{name}", ask) for name in ("compacter", "usual_loop"))

    assert ours["summaries"] == ours["least"] > 0
    assert (ours["failed_calls"], ours["mixed"]) == (0, 0)
    assert theirs["summaries"] == 4 * theirs["least"]


def test_streams_are_passed_on_chunk_by_chunk_and_a_refusal_inside_is_mended() -> None:
    (found,) = asked("peer_compacter", {"task": "stream", "chunks": 20, "times": 2})

    assert (found["held"], found["inside"]) == (0, "answers")


def test_the_judge_of_the_other_formats_sees_broken_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PEERS))
    formats, histories = (importlib.import_module(name) for name in ("formats", "histories"))
    messages = histories.history(20, parallel=2)

    for write, rules in formats.FORMATS.values():
        assert rules(write(messages)) is None
        without_result = [message for message in messages if message["role"] != "tool"]
        without_call = [{**message, "tool_calls": []} for message in messages]
        assert rules(write(without_result)) is not None
        assert rules(write(without_call)) is not None


def sentences(page: str) -> list[str]:
    """Lines of the page that no run of the benchmark writes."""
    written = ("|", "Ahead of compacter here", "Answers in all of these")
    return [
        line
        for line in page.splitlines()
        if line and not line.startswith(written) and ", Python " not in line
    ]


def test_the_page_names_who_is_ahead_and_the_history_has_a_line_a_version(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks").mkdir()
    page = tmp_path / "docs" / "benchmarks.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text("utf-8"), encoding="utf-8")
    before = sentences(page.read_text("utf-8"))
    row = {
        "compacter": {"ns": 900.0, "async": 900.0},
        "usual loop": {"ns": 90.0, "async": 90.0},
        "slow": {"ns": 5e6},
    }
    whole: dict[str, Any] = {
        "versions": {"compacter": "0.2.0", "slow": "1.0"},
        "missing": ["strands"],
        "rows": {"a": MACHINE},
        "results": {
            "idle/2000": row,
            "answers/10": {
                "compacter": {"reached": 3, "asked": 9, "failed_calls": 0},
                "usual loop": {"reached": 4, "asked": 9, "failed_calls": 0},
            },
        },
    }

    for version in ("0.1.0", "0.2.0", "0.2.0"):
        whole["versions"]["compacter"] = version
        run.report.write(tmp_path, whole, release=True)

    text = page.read_text(encoding="utf-8")
    assert sentences(text) == before
    assert "| usual loop | 4 of 9 |" in text
    assert "Ahead of compacter here: answers/10: usual loop." in text
    assert "Versions: compacter 0.2.0, slow 1.0. Not installed in the last run" in text
    assert "prefers-color-scheme:dark" in (tmp_path / "docs" / "benchmarks" / "idle.svg").read_text(
        encoding="utf-8"
    )
    lines = [
        json.loads(line)
        for line in (tmp_path / "benchmarks" / "history.jsonl").read_text().splitlines()
    ]
    assert [line["version"] for line in lines] == ["0.1.0", "0.2.0"]
    assert lines[1]["idle/2000 ns to usual loop"] == 10.0
