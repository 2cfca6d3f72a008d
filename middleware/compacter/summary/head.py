"""The messages that a summary replaces, read once: the user's own words, the rules, and the lines
worth quoting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compacter.messages.parts import Part
from compacter.summary import files, rules, timeline, worklist
from compacter.summary.message import Summary
from compacter.summary.worklist import WorkList
from compacter.text.own import PASTE, Marks, own_parts
from compacter.text.sentences import sentences, sentences_of_each
from compacter.text.wrapped import split_each

_RULE_SHARE = 3
"""Rules take at most this part of a summary: they are few, and the rest must tell the story."""
_FILES_SHARE = 0.1
"""Largest share of quoted lines for the files worked on."""
_WORK_SHARE = 0.1
"""Largest share of quoted lines for the agent's lists of work."""
_WORK_SIZE = 600
"""Characters that these lists may take of a small summary, about ten lines, up to a quarter: they
say what to do next."""
_RULE_SIZE = 400
"""Characters that rules may take of a summary that a long last message leaves little room, up to
two thirds: a rule that is dropped once does not come back."""


class Head:
    """The readable parts of what is compacted, and what is known beside them."""

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
        self._declared = declared
        self._stays = stays
        self.own = own_parts(parts, marks)
        """The parts, in which only what the user wrote is the user's."""
        self._own_sentences: set[str] | None = None
        self._work: WorkList | None = None

    @property
    def work(self) -> WorkList:
        """The agent's lists of work."""
        if self._work is None:
            earlier = worklist.split_off(self.prior.quoted)[1]
            self._work = WorkList(self.own, earlier, self._stays)
        return self._work

    def own_of(self, chunk: Sequence[Part]) -> list[Part]:
        """Return the parts of a chunk with their true speakers.

        A chunk may begin inside a pasted text, which only the whole message shows to be one.
        """
        if chunk is self.parts:
            return self.own
        if self._own_sentences is None:
            texts = [part.text for part in self.own if _is_from_user(part)]
            self._own_sentences = set(sentences("\n".join(texts)))
        split_parts: list[Part] = []
        said = iter(sentences_of_each([part.text for part in chunk if _is_from_user(part)]))
        for part in chunk:
            if not _is_from_user(part):
                split_parts.append(part)
                continue
            own: list[str] = []
            others: list[str] = []
            for sentence in next(said):
                (own if sentence in self._own_sentences else others).append(sentence)
            if others:
                text = "\n".join(others)
                split_parts.append(replace(part, role="tool", text=text, name=PASTE))
            if own:
                split_parts.append(replace(part, text="\n".join(own)))
        return split_parts

    def rules(self, room: int) -> tuple[str, ...]:
        """Return the lines of rules: declared, of the prior summary, and those that the user's
        words show. ``room`` is that of the summary, in characters.
        """
        share = max(0, room // _RULE_SHARE, min(room * 2 // 3, _RULE_SIZE))
        return tuple(rules.lines(self.own, self.prior.rules, self._declared, share))

    def quote(self, size: int, before: str, in_rules: Sequence[str]) -> str:
        """Return lines quoted from ``before``, an earlier summary, and from the parts, in ``size``
        characters.

        Nothing that stands in the lines ``in_rules`` or in messages that stay is quoted.
        """
        texts = [line.partition(": ")[2] for line in in_rules]
        texts += [part.text for part in self._stays]
        before, _ = worklist.split_off(before)
        before, earlier = files.split_off(before)
        worked_on = files.lines(self.parts, int(size * _FILES_SHARE), earlier)
        room = int(max(size * _WORK_SHARE, min(size / 4, _WORK_SIZE)))
        work = self.work.lines(room) if self.work else []
        chapters = [
            "\n".join([heading, *lines])
            for heading, lines in ((worklist.HEADING, work), (files.HEADING, worked_on))
            if lines
        ]
        left = size - sum(len(chapter) + 2 for chapter in chapters)
        told = timeline.timeline(
            self.work.without_lists(self.own),
            left,
            before,
            split_each(texts),
            beside=[*work, *worked_on],
            is_outdated=self.work.is_outdated if self.work else None,
        )
        return "\n\n".join(filter(None, [told, *chapters]))


def _is_from_user(part: Part) -> bool:
    return part.role == "user" and part.kind == "text"
