"""The texts that a summary replaces, with those that an earlier summary quotes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from compacter.lines.labels import NAMES, SINCE, WORK
from compacter.lines.own import Marks
from compacter.lines.said import PASTE, Said
from compacter.lines.talk import ELLIPSIS, Talk
from compacter.messages.parts import Part

# Texts of one kind are read up to this multiple of the budget for kept lines: more could not be
# kept.
_REACH = 30
_LINE = re.compile(rf"(User|Assistant|Tool [^:\n]{{1,80}}|{NAMES}|{WORK}): (.+)")


class Prior(Protocol):
    """The earlier summary of a conversation that is compacted again."""

    @property
    def story(self) -> str:
        """The text that a model wrote."""
        ...

    @property
    def quoted(self) -> str:
        """The lines of the conversation that the earlier summary quotes."""
        ...

    @property
    def text(self) -> str:
        """The whole text of the earlier summary."""
        ...


class Head:
    """The texts to compact, and those that the model reads beside the summary.

    Args:
        parts: Readable parts of the messages, redacted.
        prior: The summary that is updated.
        stays: Readable parts of the messages that the model reads beside the summary.
        marks: Marks before and after retrieved text in a user's message.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        prior: Prior,
        *,
        stays: Sequence[Part] = (),
        marks: Marks | None = None,
    ) -> None:
        self.parts = parts
        self.prior = prior
        self.view = Talk(stays, marks).said
        """The texts of messages that stay."""
        new = Talk(parts, marks).said
        asked = [said.part.index for said in (*new, *self.view) if said.speaker == "User"]
        kept = list(_read_quoted(prior.quoted, min(asked, default=0)))
        self.talk = Talk().with_said(
            sorted([*kept, *new], key=lambda said: (said.part.index, said.is_kept))
        )
        """All texts in order of time."""
        self.view_text = " ".join(" ".join(part.text for part in stays).split())
        """All texts of messages that stay, on one line."""
        # The task may stand between tags, or in a fence.
        speakers = ("User",) if marks else ("User", PASTE)
        texts = enumerate(self.talk.said)
        said_first = [n for n, said in texts if said.speaker in speakers]
        self.first = next(
            (n for n in said_first if self.talk.said[n].speaker == "User"),
            min(said_first, default=None),
        )
        """Number of the text that has the first request."""
        self.budget = math.inf
        """Characters that kept lines may have."""

    def by(self, *speakers: str, calls: bool = False) -> Iterator[tuple[int, Said]]:
        """Yield the texts of these speakers, the newest first, each with its number. ``Tool``
        stands for all tools. With ``calls``, yield only the calls of these speakers. Texts that are
        too old to be worth their room are left out, unless the earlier summary quotes them.
        """
        left = _REACH * self.budget
        for number in reversed(range(len(self.talk.said))):
            said = self.talk.said[number]
            is_call = said.part.kind == "call" or said.speaker == NAMES
            if (
                (left > 0 or said.is_kept)
                and said.speaker.startswith(speakers)
                and is_call >= calls
            ):
                yield number, said
                left -= len(said.text)


def _read_quoted(text: str, asked: int) -> Iterator[Said]:
    """Yield the lines that an earlier summary quotes, each with its speaker. Those that came after
    a message behind it have their places after that one, whose index is ``asked``.
    """
    index = -1
    for line in text.split("\n"):
        if line == SINCE:
            index = asked
        if match := _LINE.fullmatch(line):
            for piece in match[2].split(ELLIPSIS):
                part = Part("user" if match[1] == "User" else "assistant", "text", piece, "", index)
                yield Said(piece, match[1], part, is_kept=True)
