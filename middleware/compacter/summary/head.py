"""The messages that a summary replaces, read once: who said what, in the user's own words or not.

Every text becomes a ``Said``; the lines that an earlier summary quotes are read as texts too, so
that nothing else needs to know of it. What a source of kept lines or a check needs of a text (its
sentences, its words) is read when it is first asked for, and then kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from compacter.messages.parts import Part
from compacter.summary.message import Summary
from compacter.text.own import BEGINS, SIGNS, Marks, separate
from compacter.text.sentences import LONGEST, output_lines, split_lines
from compacter.text.values import parse, records
from compacter.text.words import stems

SHORT = 320
"""Characters of the longest message of a user that is kept whole: about three lines."""
ELLIPSIS = "…"
"""Mark of omitted text between two pieces of a line."""
PASTE = "Tool paste"
"""Speaker of what a user's message only carries."""
NAMES = "Tool calls"
"""Speaker of the line with the names that calls used most."""
_LINE = re.compile(r"(?:> )?(User|Assistant|Tool [^:\n]{1,80}): (.+)")
_NAME = re.compile(r"[^\w. /-]+")
# Characters of a tool's name: some gateways put a whole path into it.
_LONGEST_NAME = 60
# Characters of a value that stands on a line with others of its record.
_LONGEST_VALUE = 160
# An assistant's text that ends with a call written as text: the next message is its output. It
# begins with one set of characters, so that ``re`` skips all others at once.
_CALL_END = re.compile(
    r"(?s)[<{aA](?i:(?<=<)/"
    r"(?:tool_call|function_calls?|invoke|tool_use|execute_\w{1,20}|function|action)>|"
    r"(?<=\ba)ction(?: input)?:[^\n]{1,400}|(?<=<)\|?(?:tool_call|function_call)[^\n]{0,400}|"
    r"(?<=\{)\s*\"(?:tool|tool_name|function|action|name)\":.{1,800}\})\s*(?:```)?\s*\Z"
)
# Characters at the end of a text in which such a call is looked for, or a shell that waits.
_CALL_TAIL = 1_000
_SHELL_TAIL = 200
# Times the budget of kept lines of what is read of texts of one kind: no more of them can be kept.
_REACH = 10
# Most sentences of one line that are told apart from those of the next.
_MOST_PIECES = 10_000
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
    """``User``, ``Assistant``, or ``Tool NAME``."""
    place: int
    """Its number in time; texts of an earlier summary have negative ones."""
    kind: str = "text"
    """``text``, ``call`` or ``result``."""
    _stems: set[str] | None = None
    _pieces: list[tuple[int, str]] | None = None

    @property
    def stems(self) -> set[str]:
        """Beginnings of its significant words."""
        if self._stems is None:
            self._stems = stems(self.text)
        return self._stems

    @property
    def pieces(self) -> list[tuple[int, str]]:
        """Sentences of talk, or lines of a tool's text, each on one line and with a number: two
        that follow one another in one line of the text have numbers that do.
        """
        if self._pieces is None:
            if self.place < 0:
                lines = [[piece] for piece in self.text.split(f" {ELLIPSIS} ")]
            elif self.speaker.startswith("Tool"):
                lines = [[line] for line in _tell(self.text) if line]
            else:
                lines = split_lines(self.text)
            self._pieces = [
                (_MOST_PIECES * row + at, piece)
                for row, line in enumerate(lines)
                for at, piece in enumerate(line)
            ]
        return self._pieces


class Head:
    """What is compacted, and what is known beside it."""

    def __init__(
        self,
        parts: Sequence[Part],
        prior: Summary | None = None,
        *,
        declared: Sequence[str] = (),
        stays: Sequence[Part] = (),
        marks: Marks | None = None,
    ) -> None:
        """Keep what a summary is made of.

        Args:
            parts: Readable parts of the messages, redacted.
            prior: The summary that is updated.
            declared: Rules that the program declares.
            stays: Readable parts of the messages that the model reads beside the summary.
            marks: What stands before and after retrieved text in a user's message.
        """
        self.parts = parts
        self.prior = prior or Summary()
        self.declared = declared
        self.said = [*_read_quoted(self.prior.quoted), *_read(parts, marks)]
        """All texts in order, those that the earlier summary quotes first."""
        self.view = _read(stays, marks)
        """The texts of messages that stay."""
        self.view_text = " ".join(" ".join(part.text for part in stays).split())
        """What the model reads anyway, on one line."""
        self.budget = inf
        """Characters that kept lines may have."""

    def by(self, *speakers: str, kind: str = "") -> Iterator[Said]:
        """Yield the texts of these speakers (``Tool`` for any), or of one kind, the newest first,
        as far back as any may be worth its room; what was kept before is never too far.
        """
        left = _REACH * self.budget
        for said in reversed(self.said):
            is_near = left > 0 or said.place < 0
            if is_near and said.speaker.startswith(speakers) and kind in ("", said.kind):
                yield said
                left -= len(said.text)


def _tell(text: str) -> Iterator[str]:
    """Yield the lines of a tool's text that tell something; of JSON the short values of each record
    on one, and those of long texts.
    """
    values = list(records(text))
    for record in values:
        members = record.values() if isinstance(record, dict) else record
        told = [str(each) for each in members if isinstance(each, (str, int, float))]
        short = [each for each in told if len(each) <= _LONGEST_VALUE and "\n" not in each]
        line = f" {ELLIPSIS} ".join(filter(None, short))
        yield from [line] if len(line) <= LONGEST else short
        for each in told:
            if each not in short and parse(each) is None:
                yield from output_lines(each)
    if not values:
        yield from output_lines(text)


def _read_quoted(text: str) -> list[Said]:
    """Return the lines that an earlier summary quotes, each with its speaker."""
    lines = [line for line in map(_LINE.fullmatch, text.splitlines()) if line]
    return [
        Said(
            line[2],
            line[1],
            place,
            "text"
            if line[1][:4] != "Tool"
            else "call"
            if line[2][:1] in "{[" or line[1] == NAMES
            else "result",
        )
        for place, line in enumerate(lines, -len(lines))
    ]


def _read(parts: Iterable[Part], marks: Marks | None) -> list[Said]:
    """Return the texts of ``parts``; what a user's message only carries is a tool's."""
    said: list[Said] = []
    names: dict[str | None, str] = {}
    for part in parts:
        text = part.text
        if part.kind in ("media", "reasoning") or part.role == "system" or not text.strip():
            continue
        if part.kind != "text" or part.role == "tool":
            if part.kind == "call":
                names[part.call_id] = part.name
            # Some formats leave the name out in results.
            name = _NAME.sub(" ", part.name or names.get(part.call_id, ""))
            name = name.strip()[:_LONGEST_NAME] or part.kind
            said.append(Said(text, f"Tool {name}", len(said), part.kind))
        elif part.role == "assistant":
            said.append(Said(text, "Assistant", len(said)))
        elif said and _is_output(said[-1], text):
            said.append(Said(text, "Tool output", len(said), "result"))
        else:
            may_carry = marks or SIGNS.search(text) or '"""' in text or BEGINS.match(text)
            for own, is_own in separate(text, marks) if may_carry else [(text, True)]:
                speaker, kind = ("User", "text") if is_own else (PASTE, "result")
                said.append(Said(own, speaker, len(said), kind))
    return said


def _is_output(before: Said, text: str) -> bool:
    """Return whether a user's message is what a call gave that was written as text."""
    return _SHELL_END.search(text[-_SHELL_TAIL:]) is not None or (
        before.speaker == "Assistant" and _CALL_END.search(before.text[-_CALL_TAIL:]) is not None
    )
