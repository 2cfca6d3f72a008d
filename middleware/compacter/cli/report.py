"""``compacter report``: events as JSON lines into one HTML page."""

from __future__ import annotations

from compacter.cli.terminal import STDIN, MistakeError, check_writable, read_text, remarks, write_text
from compacter.report import Record, page, plural, read_lines, stories


def run(path: str, output: str, *, title: str, with_text: bool, force: bool) -> int:
    """Write the page; the exit code is 0.

    Args:
        path: The events.
        output: The file to write, or ``-``.
        title: The page's title.
        with_text: Whether the text of summaries is part of it.
        force: Whether to write over a file.
    """
    check_writable(output, force=force)
    records, strange = read_events(path)
    found = stories(records)
    text = page(found, title=title, with_text=with_text, unread=strange)
    write_text(output, text, force=force)
    lines = f", {plural(strange, 'line')} left out" if strange else ""
    remarks().print(f"{plural(len(records), 'event')} of {plural(len(found), 'conversation')}{lines}", markup=False)
    return 0


def read_events(path: str) -> tuple[list[Record], int]:
    """The events in a file, and how many lines could not be read.

    Raises:
        MistakeError: It cannot be read, or holds none.
    """
    records, strange = read_lines(read_text(path).split("\n"))
    if not records:
        name = "standard input" if path == STDIN else path
        raise MistakeError(
            f"{name} holds no events; write them with compacter.observe.JsonLines, or with a hook that appends "
            "event.model_dump_json() and a line break"
        )
    return records, strange
