"""What session files of one JSON object a line have in common: which lines stay where messages were
replaced, where the lines of new messages stand, and the links between lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compacter.messages.format import Message
from compacter.tools.cli.terminal import json_text

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    """One session of an agent."""

    agent: str
    """Name of the agent, such as ``Codex``."""
    wire_format: str
    messages: list[Message] = field(repr=False)
    write: Callable[[Sequence[Message]], str] = field(repr=False)
    """Returns the session's file with these messages. Those that are identical objects keep their
    lines."""
    id: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Kinds of lines that are not known, and how many there are of each."""


@dataclass(frozen=True, slots=True)
class Form:
    """Form of an agent's lines, and of the links between them."""

    agent: str
    wire_format: str
    keeps: Callable[[Line], bool]
    """Returns whether a line without a message always stays: a header does, an event of a removed
    turn does not."""
    made: Callable[[Message, Line], Line]
    """Returns a line for a new message, with the common members of an existing line."""
    key: str = ""
    parent: str = ""
    """Names of the members with a line's own id and its parent's; empty if lines are not linked."""


def blocks(content: object) -> list[Any]:
    """Return the content of a message as a list of blocks."""
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def skipped(kinds: Iterable[object]) -> Mapping[str, int]:
    """Return how many lines there are of each kind; a kind that is no text counts as none."""
    return Counter(kind if isinstance(kind, str) and kind else "no type" for kind in kinds)


def linked(
    form: Form,
    lines: list[Line],
    messages: list[Message],
    sources: list[list[int]],
    left: Iterable[int],
    unknown: Mapping[str, int],
) -> Session:
    """Return the session.

    Args:
        form: Form of the lines.
        lines: All lines of the file.
        messages: What the model is sent.
        sources: Indexes of the lines of each message.
        left: Indexes of lines that are not written again.
        unknown: Kinds of lines that were skipped, and how many of each.
    """
    gone = set(left)
    taken = {index for several in sources for index in several}
    where = {id(message): several for message, several in zip(messages, sources, strict=True)}
    identity = next(
        (str(line[key]) for line in lines for key in ("sessionId",) if line.get(key)), ""
    )
    if not identity:
        headers = (line.get("payload") if "payload" in line else line for line in lines[:1])
        identity = next(
            (str(header.get("id", "")) for header in headers if isinstance(header, dict)), ""
        )

    def write(new: Sequence[Message]) -> str:
        kept = [where.get(id(message), []) for message in new]
        places = {index for several in kept for index in several}
        like = lines[min(places, default=len(lines) - 1)]
        placed = [(index, 1, lines[index]) for index in places]
        follows_kept = False
        for index, line in enumerate(lines):
            if index in taken:
                # Events after a removed message would have nothing to refer to.
                follows_kept = index in places
            elif index not in gone and (follows_kept or form.keeps(line)):
                placed.append((index, 1, line))
        # A new message goes right before the next one that has a line.
        made: list[tuple[int, int, Line]] = []
        following = len(lines)
        for message, several in zip(reversed(new), reversed(kept), strict=True):
            if several:
                following = min(several)
            else:
                made.append((following, 0, form.made(message, like)))
        ordered = sorted([*made[::-1], *placed], key=lambda each: each[:2])
        return "".join(
            _jsonl(_relink([line for _, _, line in ordered], form, {id(line) for *_, line in made}))
        )

    return Session(form.agent, form.wire_format, messages, write, identity, unknown)


def _relink(lines: list[Line], form: Form, new: set[int]) -> list[Line]:
    """Return the lines with existing parents: the line before if the parent was removed, or a new
    line after it.
    """
    if not form.key:
        return lines
    known: set[str] = set()
    behind: dict[object, str] = {}
    """Id of a line -> id of the new line between it and the lines that followed it."""
    before: str | None = None
    mended: list[Line] = []
    for line in lines:
        key = line.get(form.key)
        parent = line.get(form.parent)
        if not isinstance(key, str) or form.parent not in line:
            mended.append(line)
            continue
        while isinstance(parent, (str, type(None))) and parent in behind:
            parent = behind[parent]
        if id(line) in new:
            parent = before
            behind[before] = key
        stays = isinstance(parent, str) and parent in known
        mended.append(
            line
            if stays and parent == line[form.parent]
            else {**line, form.parent: parent if stays else before}
        )
        known.add(key)
        before = key
    return mended


def _jsonl(lines: Iterable[Line]) -> Iterable[str]:
    return (json_text(line) + "\n" for line in lines)
