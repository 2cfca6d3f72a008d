"""``compacter report`` and ``compacter watch``: an HTML report, or a live view, of events in a file
of JSON lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from compacter.tools.cli.terminal import (
    STDIN,
    MistakeError,
    bar,
    check_writable,
    read_text,
    remarks,
    results,
    write_text,
)
from compacter.tools.report import Record, Story, page, plural, read_lines, stories
from compacter.tools.report.figures import short_key
from compacter.tools.visible import one_line

STEPS = "▁▂▃▄▅▆▇█"
_EVERY = 0.25
"""Seconds between two reads of the file."""
_MOST = 4
"""Largest number of conversations drawn; those with the newest events are chosen."""


def report(path: str, output: str, *, title: str, with_text: bool, force: bool) -> int:
    """Write the HTML report, and return the exit code 0."""
    check_writable(output, force=force)
    records, strange = read_events(path)
    found = stories(records)
    text = page(found, title=title, with_text=with_text, unread=strange)
    write_text(output, text, force=force)
    lines = f", {plural(strange, 'line')} left out" if strange else ""
    remarks().print(
        (f"{plural(len(records), 'event')} of {plural(len(found), 'conversation')}{lines}"),
        markup=False,
    )
    return 0


def read_events(path: str) -> tuple[list[Record], int]:
    """Return the events in a file, and the number of lines that could not be read.

    Raises:
        MistakeError: The file cannot be read, or contains no events.
    """
    records, strange = read_lines(read_text(path).split("\n"))
    if not records:
        name = "standard input" if path == STDIN else path
        raise MistakeError(
            f"{name} contains no events; write them with compacter.observe.JsonLines, or "
            f"with a hook that appends "
            "event.model_dump_json() and a line break"
        )
    return records, strange


class Tail:
    """Reader of a growing file. If the file is replaced or truncated, as by rotation, it is read
    from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._file: tuple[int, int] | None = None
        self._rest = b""

    def lines(self) -> list[str]:
        """Return the complete lines added since the last call; none while the file does
        not exist.
        """
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._file or status.st_size < self._at:
                    self._file = (status.st_dev, status.st_ino)
                    self._at = 0
                    self._rest = b""
                file.seek(self._at)
                added = file.read()
        except FileNotFoundError:
            return []
        self._at += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]


def watch(path: str, *, window: int | None, once: bool) -> int:
    """Draw until Ctrl-C, or once, and return the exit code 0. Without a terminal, print a line for
    each event.
    """
    console = results()
    if once or path == STDIN:
        records, _ = read_events(path)
        console.print(picture(stories(records), window, min(console.width, 120)))
        return 0
    if not Path(path).parent.is_dir():
        raise MistakeError(f"{path}: there is no such folder")
    waiting = Text(f"waiting for events in {path}", "dim")
    live = Live(waiting, console=console, refresh_per_second=4) if console.is_terminal else None
    tail = Tail(Path(path))
    seen: list[Record] = []
    with suppress(KeyboardInterrupt), live or nullcontext():  # The normal end of the command.
        if live is None:
            remarks().print(waiting)
        while True:
            added, _ = read_lines(tail.lines())
            if live is None:
                for record in added:
                    console.print(Text(line(record)), soft_wrap=True)
            elif added:
                seen += added
                live.update(picture(stories(seen), window, min(console.width, 120)), refresh=True)
            time.sleep(_EVERY)
    return 0


def line(record: Record) -> str:
    """Return one event as text: sizes and counts, never a message's text."""
    model = record.text("model")
    numbers = (
        f"{name.replace('_', ' ')} {int(value):,}"
        for name in (
            "requested",
            "limit",
            "original_tokens",
            "compacted_tokens",
            "passages",
            "rounds",
            "before",
            "after",
        )
        if (value := record.known(name)) is not None
    )
    reason = record.text("reason")
    key = short_key(record.text("conversation"))
    return one_line(", ".join(filter(None, (record.kind, model, key, *numbers, reason))))


def picture(found: Sequence[Story], window: int | None, width: int) -> RenderableType:
    """Return the newest conversations, each with the sizes of its last request and of all
    compactions, and the totals.
    """
    newest = sorted(found, key=lambda story: story.end or 0)[-_MOST:]
    panels = [_panel(story, window, width) for story in newest]
    compactions = [compaction for story in found for compaction in story.compactions]
    costs = [compaction.cost for compaction in compactions if compaction.cost is not None]
    spent = f"{sum(costs):.4f} USD" if costs or not compactions else "cost unknown"
    totals = (
        f"{plural(len(found), 'conversation')}, {plural(len(compactions), 'compaction')}, "
        f"{sum(compaction.saved for compaction in compactions):,} tokens taken out, "
        f"{sum(story.summarizer_tokens for story in found):,} summarizer tokens, {spent}, "
        f"{plural(sum(story.failures for story in found), 'failure')}"
    )
    key = [Text("▓ summary  █ kept", "dim")] if compactions else []
    return Group(*panels, *key, Text(totals, "dim"))


def _panel(story: Story, window: int | None, whole: int) -> Panel:
    width = max(10, min(60, whole - 42))
    limit = window or story.window or story.largest
    name = one_line(f"{short_key(story.key) or 'conversation'} {story.model}".rstrip())
    rows: list[RenderableType] = []
    if story.compactions:
        last = story.compactions[-1]
        summary = last.summary or 0
        parts = [(summary, "▓", "magenta"), (last.after - summary, "█", "green")]
        drawn = Text.from_markup(f"sent   {bar(parts, limit, width)}  ")
        rows += [drawn.append(f"{last.after:,} of {limit:,} tokens"), _saw(story, limit, width)]
        by = last.record.text("strategy")
        rows.append(Text(f"compactions: {len(story.compactions):,}, the last by {by}", "dim"))
    rows += [Text(line(record), "yellow") for record in story.troubles[-2:]]
    return Panel(Group(*rows), title=Text(name), title_align="left", width=whole)


def _saw(story: Story, limit: int, width: int) -> Text:
    saw = Text("sizes  ")
    for before, after in _sizes(story, max(1, width // 2)):
        saw.append(_step(before, limit), "green").append(_step(after, limit), "magenta")
    return saw


def _sizes(story: Story, most: int) -> Iterator[tuple[int, int]]:
    return ((compaction.before, compaction.after) for compaction in story.compactions[-most:])


def _step(tokens: int, limit: int) -> str:
    return STEPS[max(0, min(len(STEPS) - 1, tokens * len(STEPS) // max(1, limit)))]
