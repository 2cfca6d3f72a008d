"""``report``, on files of events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter
from compacter.events import Event
from compacter.observe import JsonLines
from compacter.testing import ScriptedModel
from compacter.tools.report import page, read_lines, stories

if TYPE_CHECKING:
    from tests.cli.conftest import Line, Run

    Write = Callable[[str, Any], Path]


@pytest.fixture
def events(folder: Path) -> Path:
    """Lines of hooks while a conversation overflows again and again: half from the sink, half from
    a user's own hook.
    """
    path = folder / "events.jsonl"
    sink = JsonLines(path, texts=True)

    def hook(event: Event) -> None:
        if event.attempt == 1:
            sink(event)
        else:
            with path.open("a") as file:
                file.write(f"{event.model_dump_json()}\n")

    model = ScriptedModel(window=1_000, replies="It is noted. " * 20)
    call = Compacter(summarizer="extractive", on_event=hook).wrap(model.completion)
    talk: list[Line] = []
    for number in range(24):
        talk.append(
            {"role": "user", "content": (f"Berth {number} takes the ferry on day {number}. ") * 6}
        )
        talk.append(call(model="gpt-4o", messages=talk)["choices"][0]["message"])
    return path


def test_report_writes_a_page_of_real_events(run: Run, events: Path) -> None:
    told = run("report", events, "-o", "report.html")
    assert told.code == 0, told.err
    text = Path("report.html").read_text()
    assert "gpt-4o" in text
    assert "takes the ferry" in text
    assert "of 1 conversation\n" in told.err


@pytest.mark.parametrize("texts", [True, False])
def test_report_reads_what_the_sink_writes(
    run: Run, folder: Path, chat: list[Line], texts: bool
) -> None:
    sink = JsonLines(folder / "sink.jsonl", texts=texts)
    Compacter(summarizer="extractive", on_event=sink).compact(chat)
    told = run("report", "sink.jsonl", "-o", "-")
    assert told.code == 0
    assert ("berth B-3" in told.out) is texts
    assert "UTC" in told.out


def test_report_writes_over_nothing(run: Run, events: Path) -> None:
    Path("report.html").write_text("mine")
    assert run("report", events, "-o", "report.html").code == 2
    assert Path("report.html").read_text() == "mine"


def test_a_file_without_events_says_how_to_write_some(run: Run, write: Write) -> None:
    write("chat.json", [{"role": "user", "content": "a"}])
    told = run("report", "chat.json", "-o", "report.html")
    assert told.code == 2
    assert "JsonLines" in told.err
    assert not Path("report.html").exists()


def test_only_digests_are_shown_short_names_are_shown_whole() -> None:
    names = ["customer-4711-thread-1", "customer-4711-thread-2", "c0ffee" * 6]
    rows = [
        json.dumps(
            {
                "event": "CompactionEvent",
                "conversation": name,
                "messages_before": 9,
                "messages_after": 3,
                "original_data_size": 9_000,
                "compacted_data_size": 900,
            }
        )
        for name in names
    ]
    text = page(stories(read_lines(rows)[0]))
    assert names[0] in text
    assert names[1] in text
    assert names[2] not in text
    assert names[2][:12] in text
