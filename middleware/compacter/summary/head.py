"""The messages that a summary replaces, read once: who said what, in the user's own words or not.

Every text becomes a ``Said``; the lines that an earlier summary quotes are read as texts too, so
that nothing else needs to know of it. What a source of kept lines or a check needs of a text (its
sentences, its words) is read when it is first asked for, and then kept.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby

from compacter.messages.parts import Part
from compacter.summary.message import Summary
from compacter.text.own import CARRIES, Marks, separate
from compacter.text.sentences import output_lines, split, unwrap
from compacter.text.values import Json, parse, values
from compacter.text.words import stem_sets

SHORT = 320
"""Characters of the longest message of a user that is kept whole: about three lines."""
ELLIPSIS = "…"
"""Mark of omitted text between two pieces of a line."""
PASTE = "Tool paste"
"""Speaker of what a user's message only carries."""
_LINE = re.compile(r"(?:> )?(User|Assistant|Tool [^:\n]{1,80}): (.+)")
_NAME = re.compile(r"[^\w. /-]+")
# Characters of a tool's name: some gateways put a whole path into it.
_LONGEST_NAME = 60
# Characters of a kind of text, the newest, in which kept lines are looked for: a window full.
_READ = 40_000
# Characters of a value that stands alone, and of values of one record that stand together.
_LONGEST_VALUE = 160
_LONGEST_RUN = 200
# An assistant's text that ends with a call written as text: the next message is its output.
_CALL_END = re.compile(
    r"(?is)(?:</(?:tool_call|function_calls?|invoke|tool_use|execute_\w{1,20}|function|action)>|"
    r"\baction(?: input)?:[^\n]{1,400}|<\|?(?:tool_call|function_call)[^\n]{0,400}|"
    r"\{\s*\"(?:tool|tool_name|function|action|name)\":.{1,800}\})\s*(?:```)?\s*\Z"
)
# Characters at the end of a text in which such a call is looked for.
_CALL_TAIL = 1_000
# A last line that is a shell waiting for the next command.
_SHELL_END = re.compile(
    r"\n(?:(?:ba|z|c)?sh[\w.-]{0,10}[$#]|[\w.-]{1,40}@[\w.-]{1,60}[:~ ]\S{0,80}[$#%]|"
    r"[A-Z]:\\\S{0,80}>|>>>|[$#])\s*\Z"
)


class Said:
    """One text of the conversation: a message, a call's arguments, a result, a line of an earlier
    summary.
    """

    def __init__(self, text: str, speaker: str, place: int, kind: str = "text") -> None:
        self.text = text
        self.speaker = speaker
        """``User``, ``Assistant``, or ``Tool NAME``."""
        self.place = place
        """Its number in time; texts of an earlier summary have negative ones."""
        self.kind = kind
        """``text``, ``call`` or ``result``."""
        self._pieces: list[tuple[int, str]] | None = None

    @property
    def pieces(self) -> list[tuple[int, str]]:
        """Sentences of talk, or lines of a tool's text, each on one line and with a number: two
        that follow one another in one line of the text have numbers that do.
        """
        if self._pieces is None:
            number = count()
            self._pieces = [
                (next(number), piece)
                for line in self._lines()
                if line and next(number) >= 0
                for piece in line
            ]
        return self._pieces

    @property
    def sentences(self) -> list[str]:
        """The texts of its pieces."""
        return [text for _, text in self.pieces]

    def _lines(self) -> list[list[str]]:
        """Return its lines, each in pieces."""
        text = self.text
        if self.place < 0:
            return [[piece] for piece in text.split(f" {ELLIPSIS} ")]
        if not self.speaker.startswith("Tool"):
            text = unwrap(text) if "\n" in text else text
            return list(map(split, text.splitlines()))
        data = parse(text) if text.lstrip()[:1] in "{[" else None
        if data is None:
            return [[line] for line in output_lines(text)]
        return [[line] for lines in _records(data) for line in lines]


def _records(data: Json) -> Iterator[Iterable[str]]:
    """Yield the lines of JSON: the short values of each record together, and long ones alone."""
    for _, record in groupby(values(data), lambda value: value.record):
        run: list[str] = []
        for value in record:
            if "\n" in value.text or len(value.text) > _LONGEST_VALUE:
                yield output_lines(value.text)
            elif len(value.text) > 1:
                run.append(value.text)
        yield _join(run)


def _join(run: Iterable[str]) -> list[str]:
    """Return the values of one record, some on a line."""
    lines: list[str] = []
    for value in run:
        if lines and len(lines[-1]) + len(value) < _LONGEST_RUN:
            lines[-1] += f" {ELLIPSIS} {value}"
        else:
            lines.append(value)
    return lines


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
        self._stems: list[set[str]] | None = None
        self.view = list(_read(stays, marks))
        """The texts of messages that stay."""
        self.view_text = " ".join(" ".join(part.text for part in stays).split())
        """What the model reads anyway, on one line."""

    @property
    def stems(self) -> list[set[str]]:
        """Beginnings of the words of each text."""
        if self._stems is None:
            self._stems = stem_sets([said.text for said in self.said])
        return self._stems

    def by(self, *speakers: str, kind: str = "") -> Iterator[Said]:
        """Yield the texts of these speakers (``Tool`` for any), or of one kind, the newest first,
        as far back as what may be worth its room.
        """
        left = _READ
        for said in reversed(self.said):
            if said.speaker.partition(" ")[0] in speakers and kind in ("", said.kind):
                yield said
                left -= len(said.text)
                if left < 0:
                    return


def _read_quoted(text: str) -> list[Said]:
    """Return the lines that an earlier summary quotes, each with its speaker."""
    lines = [found for line in text.splitlines() if (found := _LINE.fullmatch(line.strip()))]
    kinds = [
        "text" if line[1] in ("User", "Assistant") else "call" if line[2][:1] in "{[" else "result"
        for line in lines
    ]
    return [
        Said(line[2], line[1], place, kind)
        for place, (line, kind) in enumerate(zip(lines, kinds, strict=True), -len(lines))
    ]


def _read(  # noqa: C901 - one kind of part a line
    parts: Iterable[Part], marks: Marks | None
) -> Iterator[Said]:
    """Yield the texts of ``parts``; what a user's message only carries is a tool's."""
    waiting: dict[str | None, deque[str]] = defaultdict(deque)
    place = count()
    names: dict[str | None, str] = {}
    before = ""
    for part in parts:
        if part.kind in ("media", "reasoning") or part.role == "system" or not part.text.strip():
            continue
        if part.kind == "text" and part.role in ("user", "assistant"):
            if part.role == "assistant":
                yield Said(part.text, "Assistant", next(place))
            elif _CALL_END.search(before) or (before and _SHELL_END.search(part.text[-200:])):
                yield Said(part.text, "Tool output", next(place), "result")
            elif marks is None and not CARRIES.search(part.text):
                yield Said(part.text, "User", next(place))
            else:
                for piece in separate(part.text, marks):
                    speaker = "User" if piece.is_own else PASTE
                    kind = "text" if piece.is_own else "result"
                    yield Said(piece.text, speaker, next(place), kind)
            before = part.text[-_CALL_TAIL:] if part.role == "assistant" else "-"
            continue
        before = "-"
        name = part.name
        if part.kind == "call":
            waiting[part.call_id].append(name)
        elif part.kind == "result" and not name:
            # Some formats leave the name out in results; a result of several parts has one call.
            if waiting[part.call_id]:
                names[part.call_id] = waiting[part.call_id].popleft()
            name = names.get(part.call_id, "")
        name = _NAME.sub(" ", name).strip()[:_LONGEST_NAME]
        yield Said(part.text, f"Tool {name or part.kind}", next(place), part.kind)
