"""``report`` and ``watch``, on files of events."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from compacter import Compacter
from compacter.events import Event
from compacter.observe import JsonLines
from compacter.testing import ScriptedModel
from compacter.tools.cli.events import Tail, line, picture
from compacter.tools.report import page, read_lines, stories

if TYPE_CHECKING:
    from tests.cli.conftest import Line, Run

    Write = Callable[[str, Any], Path]


@pytest.fixture
def events(folder: Path) -> Path:
    """What a hook writes while a conversation overflows again and again; half by hand, half with
    type and time.
    """
    path = folder / "events.jsonl"

    def hook(event: Event) -> None:
        with path.open("a") as file:
            fields = json.loads(event.model_dump_json())
            head = (
                {"event": type(event).__name__, "time": 1_790_000_000.5}
                if event.attempt == 1
                else {}
            )
            file.write(json.dumps({**head, **fields}) + "\n")

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


def test_report_leaves_texts_out_and_takes_a_title(run: Run, events: Path) -> None:
    told = run("report", events, "-o", "-", "--no-text", "--title", "Ferries & <berths>")
    assert "takes the ferry" not in told.out
    assert "<title>Ferries &amp; &lt;berths&gt;</title>" in told.out


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


def test_watch_wants_events_too(run: Run, write: Write) -> None:
    write("empty.jsonl", "")
    told = run("watch", "empty.jsonl", "--once")
    assert (told.code, "contains no events" in told.err) == (2, True)


def test_watch_says_what_it_waits_for(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    told = run("watch", "missing.jsonl")
    assert (told.code, told.err) == (0, "waiting for events in missing.jsonl\n")


# What a shell starts in the background ignores Ctrl-C, and so does all that is started from there.
INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("compacter", run_name="__main__")
"""


@contextlib.contextmanager
def watching(path: Path, output: int) -> Generator[subprocess.Popen[bytes]]:
    """The program, which has to end well once the test has interrupted it."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, sys.path)),
        "TERM": "xterm",
        "COLUMNS": "80",
    }
    command = [sys.executable, "-c", INTERRUPTIBLE, "watch", str(path)]
    with subprocess.Popen(
        command, env=environment, stdout=output, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
            assert process.wait(300) == 0
        finally:
            process.kill()


def added(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_watch_prints_a_line_for_each_event_that_is_added(events: Path, folder: Path) -> None:
    written = events.read_text().splitlines(keepends=True)
    path = folder / "live.jsonl"
    path.write_text(written[0])
    reading, writing = os.pipe()
    with os.fdopen(reading) as lines, watching(path, writing) as process:
        os.close(writing)
        first = lines.readline()
        added(path, "".join(written[1:3]))
        rest = [lines.readline(), lines.readline()]
        process.send_signal(signal.SIGINT)
    assert [first, *rest] == [line(record) + "\n" for record in read_lines(written[:3])[0]]


def test_watch_draws_on_a_terminal_what_is_added(events: Path, folder: Path) -> None:
    pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")
    path = folder / "live.jsonl"
    path.touch()
    master, terminal = pty.openpty()

    def shown(words: str) -> bool:
        seen = b""
        while words.encode() not in seen:
            seen += os.read(master, 65_536)
        return True

    with watching(path, terminal) as process:
        os.close(terminal)
        assert shown("waiting for events in")
        added(path, events.read_text())
        assert shown("of 1,000 tokens")
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # The program has left the terminal.
            while os.read(master, 65_536):
                pass
    os.close(master)


def test_watch_draws_once(run: Run, events: Path) -> None:
    told = run("watch", events, "--once")
    assert told.code == 0
    assert "of 1,000 tokens" in told.out
    assert "compactions: " in told.out


@pytest.mark.parametrize("width", [30, 60, 200])
def test_the_picture_fits_the_terminal(events: Path, width: int) -> None:
    console = Console(width=width, record=True, file=None, quiet=False, highlight=False)
    with console.capture() as drawn:
        console.print(picture(stories(read_lines(events.read_text().splitlines())[0]), None, width))
    assert max(map(len, drawn.get().splitlines())) <= width


def test_a_line_has_sizes_and_no_text(events: Path) -> None:
    records, _ = read_lines(events.read_text().splitlines())
    said = "\n".join(map(line, records))
    assert "CompactionEvent, gpt-4o" in said
    assert "ferry" not in said


def test_a_tail_sees_what_is_added_whole_lines_only(folder: Path) -> None:
    path = folder / "e.jsonl"
    tail = Tail(path)
    assert tail.lines() == []
    path.write_text("one\ntw")
    assert tail.lines() == ["one"]
    with path.open("a") as file:
        file.write("o\nthree\n")
    assert tail.lines() == ["two", "three"]
    assert tail.lines() == []


def test_a_tail_follows_a_rotation(folder: Path) -> None:
    path = folder / "e.jsonl"
    path.write_text("one\n")
    tail = Tail(path)
    tail.lines()
    path.rename(folder / "e.jsonl.1")
    path.write_text("new file\n")
    assert tail.lines() == ["new file"]
    path.write_text("cut\n")
    assert tail.lines() == ["cut"]


def test_watch_of_a_folder_that_is_not_there_ends(run: Run, folder: Path) -> None:
    assert run("watch", "no/such/events.jsonl").code == 2


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
    records, _ = read_lines(rows)
    console = Console(width=160)
    with console.capture() as captured:
        console.print(picture(stories(records), None, 160))
    texts = [captured.get(), page(stories(records)), "\n".join(map(line, records))]
    for text in texts:
        assert names[0] in text
        assert names[1] in text
        assert names[2] not in text
        assert names[2][:12] in text
