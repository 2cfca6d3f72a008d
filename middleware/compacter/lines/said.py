"""The texts of a conversation, each with its speaker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from compacter.lines.own import Marks, is_shell, is_summary, separate
from compacter.lines.read import Line, read_output, read_talk
from compacter.lines.words import plain, stems
from compacter.messages.parts import Part

Redact = Callable[[str], str]
PASTE = "Tool paste"
"""Speaker of text that a user has pasted."""
OUTPUT = "Tool output"
"""Speaker of a shell's output in a user's message."""
EARLIER = "Tool earlier summary"
"""Speaker of another program's summary in a user's message, of which the newest counts."""
# Characters after which sentences can be understood without the next one.
_ENOUGH = 90
QUESTION = re.compile(r"[?？؟՞][\"'”’)\]]{0,3}\s{0,3}$")
_NAME = re.compile(r"[^\w. /-]+")
# Characters of a tool's name: some gateways put a whole path into it.
_LONGEST_NAME = 60


@dataclass(eq=False, slots=True)
class Said:
    """One text of the conversation: a message, what is pasted in it, a call's arguments, a
    result.
    """

    text: str
    speaker: str
    """``User``, ``Assistant``, ``Tool NAME``, or a label of compacter's."""
    part: Part
    """The part of a message that it is, or a piece of."""
    is_kept: bool = False
    """Whether an earlier summary quotes it."""
    _lines: list[Line] | None = None
    _runs: list[list[int]] | None = None
    _plain: str | None = None
    _stems: dict[int, frozenset[str]] = field(default_factory=dict)

    @property
    def lines(self) -> list[Line]:
        """Its lines."""
        if self._lines is None:
            is_output = self.speaker.startswith("Tool") or self.part.kind != "text"
            self._lines = (read_output if is_output else read_talk)(self.text)
        return self._lines

    @property
    def plain(self) -> str:
        """The text in lower case and without accents."""
        if self._plain is None:
            self._plain = plain(self.text)
        return self._plain

    def stems(self, at: int) -> frozenset[str]:
        """Return the words of a line, with those of what it needs."""
        if at not in self._stems:
            line = self.lines[at]
            above = " ".join(self.lines[need].text for need in line.needs)
            self._stems[at] = frozenset(stems(f"{line.lead} {above} {line.text}"))
        return self._stems[at]

    @property
    def runs(self) -> list[list[int]]:
        """The lines that are searched and quoted together: sentences that follow one another, until
        they can be understood; any other line by itself.
        """
        if self._runs is None:
            self._runs = []
            size = _ENOUGH
            for at, line in enumerate(self.lines):
                is_prose = self.part.kind == "text" and not (line.needs or line.is_head)
                if is_prose and size < _ENOUGH:
                    self._runs[-1].append(at)
                    size += len(line.text)
                else:
                    self._runs.append([at])
                    size = len(line.text) if is_prose else _ENOUGH
        return self._runs

    def run(self, at: int) -> list[int]:
        """Return the run that a line is in."""
        return next(run for run in self.runs if at in run)

    @property
    def is_question(self) -> bool:
        """Whether it ends with a question."""
        return bool(QUESTION.search(self.text[-8:]))


def cleaned(parts: Iterable[Part], redact: Redact | None) -> list[Part]:
    """Return parts without what ``redact`` removes."""
    if redact is None:
        return list(parts)
    return [replace(part, text=redact(part.text), name=redact(part.name)) for part in parts]


def read_parts(parts: Iterable[Part], marks: Marks | None, *, is_first: bool) -> Iterator[Said]:
    """Yield the texts of parts; text that a user has pasted counts as a tool's."""
    names: dict[str | None, str] = {}
    started = not is_first
    for part in parts:
        text = part.text
        if part.kind not in ("text", "call", "result") or part.role == "system" or not text.strip():
            continue
        if part.kind != "text" or part.role == "tool":
            if part.kind == "call":
                names[part.call_id] = part.name
            # Some formats leave the name out in results.
            name = _NAME.sub(" ", part.name or names.get(part.call_id, ""))
            yield Said(text, f"Tool {name.strip()[:_LONGEST_NAME] or part.kind}", part)
        elif part.role == "user":
            if started and is_shell(text):
                yield Said(text, OUTPUT, part)
                continue
            other = EARLIER if is_summary(text) else PASTE
            for own, is_own in separate(text, marks):
                yield Said(own, "User" if is_own else other, part)
        else:
            yield Said(text, "Assistant", part)
        started = True
