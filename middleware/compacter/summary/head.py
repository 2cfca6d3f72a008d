"""The messages that a summary replaces, read once: the user's own words, the rules, and the lines
worth quoting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compacter.messages.parts import Part
from compacter.objects import cached_attribute
from compacter.summary import rules, timeline
from compacter.summary.message import Summary
from compacter.text.own import PASTE, Marks, own_parts
from compacter.text.sentences import sentences, sentences_of_each, split

_RULE_SHARE = 3
"""Rules take at most this part of a summary: they are few, and the rest must tell the story."""
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
        stays: Sequence[str] = (),
        marks: Marks | None = None,
    ) -> None:
        """Keep what a summary is made of.

        Args:
            parts: Readable parts of the messages, redacted.
            prior: The summary that is updated.
            declared: Rules that the program declares.
            stays: Texts of the messages that the model reads beside the summary.
            marks: What stands before and after retrieved text in a user's message.
        """
        self.parts = parts
        self.prior = prior or Summary()
        self._declared = declared
        self._stays = stays
        self._marks = marks

    @cached_attribute
    def own(self) -> list[Part]:
        """The parts, in which only what the user wrote is the user's."""
        return own_parts(self.parts, self._marks)

    @cached_attribute
    def _own_sentences(self) -> set[str]:
        texts = [part.text for part in self.own if _is_from_user(part)]
        return set(sentences("\n".join(texts)))

    def own_of(self, chunk: Sequence[Part]) -> list[Part]:
        """Return the parts of a chunk with their true speakers.

        A chunk may begin inside a pasted text, which only the whole message shows to be one.
        """
        if chunk is self.parts:
            return self.own
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
        texts += self._stays
        return timeline.timeline(self.own, size, before, set(split("\n".join(texts))))


def _is_from_user(part: Part) -> bool:
    return part.role == "user" and part.kind == "text"
