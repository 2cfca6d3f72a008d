"""Names and texts of others give a terminal no orders: what they hold is shown, escaped."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import Run

ORDERS = "\x1b]0;owned\x07 \x9b31m \u202etxt\u2066 \u200e\u200f \u2028 \x00 \x85"
HIDDEN = set("\x1b\x07\x9b\u202e\u2066\u200e\u200f\u2028\x00\x85")
EVENT = {
    "event": "CompactionEvent",
    "time": 1_700_000_000.0,
    "conversation": f"{ORDERS[:9]}\nforged line",
    "model": f"gpt{ORDERS}",
    "strategy": f"summarize{ORDERS}",
    "trigger": "token_limit",
    "original_tokens": 900,
    "compacted_tokens": 300,
    "summary": f"Told{ORDERS}",
}


@pytest.fixture
def events(folder: Path) -> str:
    failed = {**EVENT, "event": "CompactionFailed", "reason": f"refused{ORDERS}"}
    lines = [json.dumps(event) for event in (EVENT, failed)]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")
    return "events.jsonl"


@pytest.mark.parametrize("words", ["report {} -o -", "report {} -o - --no-text"])
def test_events_of_others_are_printed_escaped(run: Run, events: str, words: str) -> None:
    told = run(*words.format(events).split())

    assert told.code == 0
    assert not HIDDEN & set(told.out + told.err)
    assert r"\u001b" in told.out


@pytest.mark.parametrize(
    "words",
    [
        "plan chat.json",
        "plan chat.json --json",
        "compact chat.json --json -o out.json",
        "search chat.json lighthouse",
        "search chat.json lighthouse --json",
    ],
)
def test_names_in_a_conversation_are_printed_escaped(run: Run, folder: Path, words: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": f"t{ORDERS}", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": f"Where is the lighthouse? {ORDERS}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "name": f"t{ORDERS}", "content": "The lighthouse."},
        {"role": "user", "content": "And?"},
    ]
    (folder / "chat.json").write_text(json.dumps(chat))

    told = run(*words.split())

    assert told.code == 0
    assert not HIDDEN & set(told.out + told.err)


def test_a_mistake_repeats_a_name_escaped(run: Run, folder: Path) -> None:
    told = run("plan", f"no{ORDERS.replace(chr(0), '')}.json")

    assert told.code == 2
    assert not HIDDEN & set(told.err)
    assert r"\u001b" in told.err


def test_joined_letters_stay(run: Run, folder: Path) -> None:
    """Scripts and emoji need joiners, which order nothing."""
    joined = "👩\u200d🚀 نمی\u200cخواهم at the lighthouse"
    (folder / "events.jsonl").write_text(json.dumps({**EVENT, "summary": joined}))

    assert joined in run("report", "events.jsonl", "-o", "-").out


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_nothing_is_written_through_a_link_that_leads_nowhere(
    run: Run, events: str, folder: Path, force: list[str]
) -> None:
    Path("out.html").symlink_to(folder / "elsewhere.html")

    told = run("report", events, "-o", "out.html", *force)

    assert told.code == 2
    assert "does not exist" in told.err
    assert not (folder / "elsewhere.html").exists()
    assert Path("out.html").is_symlink()


def test_nothing_is_written_through_a_link_with_the_name_of_the_part(
    run: Run, events: str, folder: Path
) -> None:
    (folder / f".compacter.{os.getpid()}.part").symlink_to(folder / "elsewhere.html")

    assert run("report", events, "-o", "out.html").code == 0

    assert Path("out.html").read_text().startswith("<!doctype html>")
    assert not (folder / "elsewhere.html").exists()
