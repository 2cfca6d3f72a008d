"""Events as lines of JSON: what a line holds, and several writers at once."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter
from compacter.errors import ConfigurationError
from compacter.events import CompactionEvent, CompactionSkipped
from compacter.observe import JsonLines
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

TALK = [{"role": "user", "content": f"Harbour {n} takes ships of {n} metres."} for n in range(60)]
SKIPPED = CompactionSkipped(trigger="threshold", reason="cool_down", conversation="c" * 16)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


WRITE_MANY = """
import sys
from compacter.events import CompactionSkipped
from compacter.tools.observe import JsonLines
sink = JsonLines(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    sink(
        CompactionSkipped(
            trigger="threshold", reason="cool_down", conversation=sys.argv[2], attempt=number
        )
    )
"""


class TestALine:
    def test_names_the_event_and_the_time_and_has_its_fields(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        compacter = Compacter(summarizer="extractive", on_event=JsonLines(path))

        compacter.wrap(ScriptedModel(window=300).completion)("gpt-4o", TALK)

        started, compacted = lines(path)
        assert (started["event"], compacted["event"]) == ("CompactionStarted", "CompactionEvent")
        assert 1_700_000_000 < started["time"] <= compacted["time"]
        assert compacted["messages_before"] == 60
        assert compacted["model"] == "gpt-4o"

    def test_holds_no_text_of_a_message_unless_asked(self, tmp_path: Path) -> None:
        quiet = tmp_path / "quiet.jsonl"
        full = tmp_path / "full.jsonl"
        compacter = Compacter(
            summarizer="extractive", on_event=[JsonLines(quiet), JsonLines(full, texts=True)]
        )

        compacter.compact(TALK)

        assert "metres" not in quiet.read_text()
        assert "metres" in lines(full)[-1]["summary"] + lines(full)[-1]["ledger"]

    def test_is_the_event_again_when_it_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        event = Compacter(summarizer="extractive").compact(TALK).event
        assert event is not None

        JsonLines(path, texts=True)(event)

        fields = {
            key: value for key, value in lines(path)[0].items() if key not in {"event", "time"}
        }
        assert CompactionEvent.model_validate(fields) == event.model_copy(update={"discarded": ()})

    def test_is_one_line_whatever_the_text_is(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        event = Compacter().compact(TALK, summary="One.\nTwo.\r\u2028Three. \ud83d").event
        assert event is not None
        JsonLines(path, texts=True)(event)
        assert len(path.read_bytes().splitlines()) == 1
        assert lines(path)[0]["summary"].startswith("One.\nTwo.")


class TestFiles:
    def test_a_file_that_was_renamed_is_begun_anew(self, tmp_path: Path) -> None:
        """Programs that rotate logs may rename the file at any time."""
        path = tmp_path / "events.jsonl"
        sink = JsonLines(path)
        sink(SKIPPED)
        path.rename(tmp_path / "events.jsonl.1")
        sink(SKIPPED)
        assert [len(lines(file)) for file in sorted(tmp_path.iterdir())] == [1, 1]

    def test_only_its_owner_can_read_it(self, tmp_path: Path) -> None:
        JsonLines(tmp_path / "events.jsonl")(SKIPPED)
        assert (tmp_path / "events.jsonl").stat().st_mode & 0o077 == 0

    def test_threads_lose_no_line(self, tmp_path: Path) -> None:
        sink = JsonLines(tmp_path / "events.jsonl")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: sink(SKIPPED.model_copy(update={"attempt": n})), range(200)))
        assert sorted(line["attempt"] for line in lines(tmp_path / "events.jsonl")) == list(
            range(200)
        )

    def test_processes_with_the_same_file_lose_no_line(self, root: Path, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        environment = os.environ | {"PYTHONPATH": str(root / "middleware")}
        with contextlib.ExitStack() as stack:
            writers = [
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-c", WRITE_MANY, path, f"writer {n}"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        env=environment,
                    )
                )
                for n in range(4)
            ]
            for writer in writers:
                assert writer.stdout is not None
                assert writer.stdout.readline() == b"ready\n"
            for writer in writers:
                assert writer.stdin is not None
                writer.stdin.close()
        assert [writer.returncode for writer in writers] == [0] * 4

        found = sorted((line["conversation"], line["attempt"]) for line in lines(path))
        assert found == sorted((f"writer {n}", number) for n in range(4) for number in range(100))

    def test_it_can_be_pickled(self, tmp_path: Path) -> None:
        sink = pickle.loads(pickle.dumps(JsonLines(tmp_path / "events.jsonl", texts=True)))  # noqa: S301 - its own
        sink(SKIPPED)
        assert sink.texts
        assert len(lines(tmp_path / "events.jsonl")) == 1

    def test_it_shows_its_file(self, tmp_path: Path) -> None:
        path = str(tmp_path / "events.jsonl")
        assert repr(JsonLines(path, texts=True)) == f"JsonLines({path!r}, texts=True)"

    @pytest.mark.parametrize("name", ["missing/events.jsonl", "nul\0.jsonl"])
    def test_a_file_that_cannot_be_written_is_named_at_once(
        self, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(ConfigurationError, match="jsonl"):
            JsonLines(tmp_path / name)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
    def test_a_pipe_is_written_to(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as reader:
            sink = JsonLines(path)
            sink(SKIPPED)
            assert json.loads(reader.readline())["event"] == "CompactionSkipped"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_disk_that_fails_breaks_no_call(self, tmp_path: Path) -> None:
        folder = tmp_path / "gone"
        folder.mkdir()
        sink = JsonLines(folder / "events.jsonl")
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        model = ScriptedModel(window=300)
        reply = Compacter(summarizer="extractive", on_event=sink).wrap(model.completion)("m", TALK)
        assert reply["choices"]
