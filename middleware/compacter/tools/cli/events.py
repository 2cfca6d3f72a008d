"""``compacter report``: an HTML report of events in a file of JSON lines."""

from __future__ import annotations

from compacter.tools.cli.terminal import (
    STDIN,
    MistakeError,
    check_writable,
    read_text,
    remarks,
    write_text,
)
from compacter.tools.report import page, plural, read_lines, stories


def report(*, file: str, output: str, no_text: bool, force: bool) -> int:
    """Write the HTML report, and return the exit code 0.

    Raises:
        MistakeError: A file cannot be read or written, or has no events.
    """
    check_writable(output, force=force)
    records, unread = read_lines(read_text(file).split("\n"))
    if not records:
        name = "standard input" if file == STDIN else file
        raise MistakeError(
            f"{name} contains no events; write them with compacter.observe.JsonLines, or with a "
            "hook that appends event.model_dump_json() and a line break"
        )
    conversations = stories(records)
    text = page(conversations, with_text=not no_text, unread=unread)
    write_text(output, text, force=force)
    lines = f", {plural(unread, 'line')} left out" if unread else ""
    remarks().print(
        f"{plural(len(records), 'event')} of {plural(len(conversations), 'conversation')}{lines}",
        markup=False,
    )
    return 0
