"""Read the messages that a summary replaces: each text with its speaker, the user's own words apart
from pasted text.

Every text becomes a ``Said``; the lines that an earlier summary quotes are read as texts too, so
that no other code needs to know about it. A text's sentences are read when a source of kept lines
first needs them, and then kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from sys import maxsize

from compacter.messages.parts import Part
from compacter.lines.labels import NAMES, WORK
from compacter.summary.message import Summary
from compacter.text.pieces import Marks, output_lines, separate, split_lines

ELLIPSIS = " … "
"""Mark of omitted text between two pieces of a line."""
SINCE = "After the user's message below:"
"""Line between the quotes from before a message that stays behind the summary, and those from after
it."""
OUTPUT = "Tool output"
"""Speaker of a shell's output in a user's message."""
PASTE = "Tool paste"
"""Speaker of text that a user has pasted."""
_LINE = re.compile(rf"(User|Assistant|Tool [^:\n]{{1,80}}|{NAMES}|{WORK}): (.+)")
_NAME = re.compile(r"[^\w. /-]+")
# Characters of a tool's name: some gateways put a whole path into it.
_LONGEST_NAME = 60
# Texts of one kind are read up to this multiple of the budget for kept lines: more could not be
# Texts of one kind are read up to this multiple of the budget for kept lines. Of constraints that
# users state in a message of their own (``benchmarks/constraints.py``) .93 are kept with 30, and
# .69 with 24: those further back are not read.
_REACH = 30
# A last line that is a shell waiting for the next command.
_SHELL_END = re.compile(
    r"\n(?:(?:ba|z|c)?sh[\w.-]{0,10}[$#]|[\w.-]{1,40}@[\w.-]{1,60}[:~ ]\S{0,80}[$#%]|"
    r"[A-Z]:\\\S{0,80}>|>>>|[$#])\s*\Z"
)


@dataclass(eq=False, slots=True)
class Said:
    """One text of the conversation: a message, a call's arguments, a result, a line of an earlier
    summary.
    """

    text: str
    speaker: str
    """``User``, ``Assistant``, ``Tool NAME``, or the label of a line of compacter's."""
    place: tuple[int, int]
    """Index of its message, and its number; an earlier summary stands before all messages."""
    is_call: bool = False
    """Whether it is a call's arguments."""
    was_kept: bool = False
    """Whether an earlier summary quotes it."""
    _pieces: list[tuple[int, str]] | None = None

    @property
    def pieces(self) -> list[tuple[int, str]]:
        """Sentences of talk, or lines of a tool's text, each on one line and with a number: two
        that follow one another in one line of the text have numbers that do.
        """
        if self._pieces is None:
            text = self.text.replace(ELLIPSIS, "\n")
            is_output = self.speaker.startswith("Tool")
            lines = [[line] for line in output_lines(text)] if is_output else split_lines(text)
            self._pieces = []
            number = 0
            for line in lines:
                self._pieces += enumerate(line, number)
                number += len(line) + 1
        return self._pieces


class Head:
    """The texts to compact, and those that the model reads beside the summary."""

    def __init__(
        self,
        parts: Sequence[Part],
        prior: Summary | None = None,
        *,
        stays: Sequence[Part] = (),
        marks: Marks | None = None,
    ) -> None:
        """Read the texts that a summary is made of.

        Args:
            parts: Readable parts of the messages, redacted.
            prior: The summary that is updated.
            stays: Readable parts of the messages that the model reads beside the summary.
            marks: Marks before and after retrieved text in a user's message.
        """
        self.parts = parts
        self.prior = prior or Summary()
        self.view = _read(stays, marks)
        """The texts of messages that stay."""
        new = _read(parts, marks)
        asked = [said.place[0] for said in (*new, *self.view) if said.speaker == "User"]
        self.said = sorted(
            [*_read_quoted(self.prior.quoted, min(asked, default=0)), *new],
            key=lambda said: said.place,
        )
        """All texts in order of time."""
        # The task may stand between tags, or in a fence.
        speakers = ("User",) if marks else ("User", PASTE)
        self.first = next((said for said in self.said if said.speaker in speakers), None)
        """The first request, with the text pasted into it."""
        if self.first and not (marks or self.first.was_kept):
            at = self.first.place[0]
            whole = (part.text for part in parts if (part.index, part.role) == (at, "user"))
            self.first = Said(next(whole), "User", self.first.place)
        self.view_text = " ".join(" ".join(part.text for part in stays).split())
        """All texts of messages that stay, on one line."""
        self.budget = inf
        """Characters that kept lines may have."""

    def by(self, *speakers: str, calls: bool = False) -> Iterator[Said]:
        """Yield the texts of these speakers (``Tool`` for any), or only their calls, the newest
        first. Stop where older texts are no longer worth their room, except those that an earlier
        summary quotes.
        """
        left = _REACH * self.budget
        for said in reversed(self.said):
            is_near = left > 0 or said.was_kept
            if is_near and said.speaker.startswith(speakers) and said.is_call >= calls:
                yield said
                left -= len(said.text)


def _read_quoted(text: str, asked: int) -> Iterator[Said]:
    """Yield the lines that an earlier summary quotes, each with its speaker. Those that came after
    a message behind it have their places after that one, whose index is ``asked``.
    """
    index = -1
    for at, line in enumerate(text.splitlines()):
        if line == SINCE:
            index = asked
        if match := _LINE.fullmatch(line):
            is_call = match[2][:1] in "{[" or match[1] == NAMES
            yield Said(match[2], match[1], (index, maxsize + at), is_call, was_kept=True)


def _read(parts: Iterable[Part], marks: Marks | None) -> list[Said]:
    """Return the texts of ``parts``; text that a user has pasted counts as a tool's."""
    said: list[Said] = []
    names: dict[str | None, str] = {}
    for part in parts:
        text = part.text
        pieces = [(part.role.title(), text)]
        if part.kind == "media" or part.role == "system" or not text.strip():
            continue
        if part.kind != "text" or part.role == "tool":
            if part.kind == "call":
                names[part.call_id] = part.name
            # Some formats leave the name out in results.
            name = _NAME.sub(" ", part.name or names.get(part.call_id, ""))
            name = name.strip()[:_LONGEST_NAME] or part.kind
            pieces = [(f"Tool {name}", text)]
        elif part.role == "user" and said and _SHELL_END.search(text):
            pieces = [(OUTPUT, text)]
        elif part.role == "user":
            pieces = [("User" if is_own else PASTE, own) for own, is_own in separate(text, marks)]
        for speaker, own in pieces:
            said.append(Said(own, speaker, (part.index, len(said)), part.kind == "call"))
    return said
