"""A history, read once: kinds and sizes of its messages, steps that must stay together, and protected messages."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from compacter.messages.fields import field as field_of
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Broken, Kind
from compacter.summary import message as summary_message

_STAYING = re.compile(b"[%c%c]" % (Kind.SYSTEM, Kind.UNKNOWN))
"""Kinds of messages that are always kept."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One list of messages and the facts read from it. Made by :meth:`of`, once for each list.

    Parallel tuples have one element per message. Sizes are data sizes in characters.
    """

    format: MessageFormat
    messages: tuple[Message, ...] = field(repr=False)
    kinds: tuple[Kind, ...] = field(repr=False)
    sizes: tuple[int, ...] = field(repr=False)
    """Data size of each message; 0 for those before ``start``."""
    steps: tuple[int, ...] = field(repr=False)
    """Indexes at which a step begins, ascending. A step ends where the next one begins."""
    open: int | None
    """Index at which the last step begins, if some of its calls have no result yet."""
    broken: tuple[Broken, ...]
    """Calls without results and results without a call, in order, except the calls of an open last step."""
    pinned: tuple[int, ...]
    """Indexes of the pinned messages."""
    prior: int | None = None
    """Index of the summary message at the head of the history, if it has one."""
    protected: tuple[bool, ...] = field(default=(), repr=False)
    """Whether each message must be kept: system messages, messages of another format, the provider's own compaction and
    all before it, pinned messages, the last user message, and the other messages of these steps."""
    start: int = 0
    """Index at which the model's context begins: that of the provider's newest compaction, else 0."""
    lead: int = 0
    """Index for a summary message: after the leading system messages, or the provider's own compaction."""
    last_user: int | None = None
    """Index of the last genuine user message, not a summary message or a filler."""
    size: int = 0
    """Data size of all messages from ``start`` on."""
    heads: tuple[int, ...] = field(default=(0,), repr=False)
    """For each index, the total size of the unprotected messages before it; the last element is ``free``."""
    free: int = 0
    """Data size of all unprotected messages."""
    rules: tuple[str, ...] = ()
    """Rules declared by the program, which every summary contains."""

    @classmethod
    def of(
        cls,
        messages: Sequence[Message],
        format: MessageFormat,  # noqa: A002 - that is what it is
        *,
        pinned: Sequence[int] = (),
        rules: Sequence[str] = (),
    ) -> Conversation:
        """Read ``messages``. ``pinned`` are the indexes of messages to keep verbatim, ``rules`` the declared rules."""
        held = tuple(messages)
        outline = format.outline(held)
        kinds, sizes = outline.kinds, outline.sizes
        codes = bytes(kinds)  # Searched at the speed of C.
        native = codes.rfind(Kind.COMPACTED)
        start = native if native >= 0 else None
        if start:
            sizes = [0] * start + sizes[start:]
        found = cls(
            format=format,
            messages=held,
            kinds=tuple(kinds),
            sizes=tuple(sizes),
            steps=tuple(outline.steps),
            open=outline.open,
            broken=outline.broken,
            pinned=tuple(pinned),
            start=start or 0,
            size=sum(sizes),
            rules=tuple(rules),
        )
        lead = prior = 0 if start is None else found.step(start)[1]
        while lead < len(kinds) and kinds[lead] is Kind.SYSTEM:
            lead = prior = lead + 1
        if lead < len(kinds) and held[lead] == format.filler("assistant"):
            prior += 1
        text = format.plain_text(held[prior]) if prior < len(kinds) and kinds[prior] is Kind.USER else None
        summarized = text is not None and summary_message.parse(text) is not None
        if Kind.OTHER in codes and codes.find(Kind.USER, prior + 1 if summarized else 0) < 0:
            # No message has the role of a user: the meaning of the other unknown roles cannot be relied on either.
            unknown = (
                Kind.UNKNOWN if kind is Kind.OTHER and field_of(message, "role") is not None else kind
                for kind, message in zip(kinds, held, strict=True)
            )
            found = replace(found, kinds=tuple(unknown))
        return found._settled(prior if summarized else None, start, lead)  # noqa: SLF001 - its own kind

    def _settled(self, prior: int | None, start: int | None, lead: int) -> Conversation:
        """Return a copy with the fields that depend on the prior summary and the provider's own compaction."""
        codes = bytes(self.kinds)
        last = codes.rfind(Kind.USER)
        if last == prior:
            last = codes.rfind(Kind.USER, 0, prior)
        staying = {found.start() for found in _STAYING.finditer(codes)}
        for index in (*self.pinned, last, -1 if start is None else start):
            if index >= 0:
                staying.update(range(*self.step(index)))
        staying.update(range(start or 0))
        protected, foldable = [False] * len(codes), list(self.sizes)
        for index in staying:
            protected[index], foldable[index] = True, 0
        heads = tuple(accumulate(foldable, initial=0))
        return replace(
            self,
            prior=prior,
            protected=tuple(protected),
            lead=lead,
            last_user=last if last >= 0 else None,
            heads=heads,
            free=heads[-1],
        )

    def step(self, index: int) -> tuple[int, int]:
        """Return the beginning and end of the step that contains this message, as a half-open range."""
        at = bisect_right(self.steps, index) - 1
        return self.steps[at], self.steps[at + 1] if at + 1 < len(self.steps) else len(self.kinds)

    def with_messages(self, messages: Sequence[Message]) -> Conversation:
        """Read a list made of messages of this one and new ones; pinned messages stay pinned."""
        wanted = {id(self.messages[index]) for index in self.pinned}
        pinned = [index for index, message in enumerate(messages) if id(message) in wanted] if wanted else ()
        return Conversation.of(messages, self.format, pinned=pinned, rules=self.rules)

    def without_native(self) -> Conversation | None:
        """Return a copy in which the provider's own compaction is the prior summary; ``None`` if it is not readable.

        Everything before it is folded too, as it must not return to the model's context.
        """
        if not self.kinds or self.kinds[self.start] is not Kind.COMPACTED:
            return None
        if not self.format.compacted(self.messages[self.start]):
            return None
        lead = next((index for index, kind in enumerate(self.kinds) if kind is not Kind.SYSTEM), len(self.kinds))
        return self._settled(self.start, None, lead)

    def prior_text(self) -> str:
        """Return the text of the prior summary, or an empty string."""
        if self.prior is None:
            return ""
        message = self.messages[self.prior]
        return self.format.compacted(message) or self.format.plain_text(message) or ""
