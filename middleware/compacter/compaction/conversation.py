"""A history, read once: what its messages are, which stay together, and what must stay."""

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
"""Kinds of messages that always stay."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One list of messages and all that is known of it. Made by :meth:`of`, once for each list, and handed on.

    Parallel tuples have one element a message. Sizes are data sizes in characters.
    """

    format: MessageFormat
    messages: tuple[Message, ...] = field(repr=False)
    kinds: tuple[Kind, ...] = field(repr=False)
    sizes: tuple[int, ...] = field(repr=False)
    """What stands before ``start`` has no size."""
    steps: tuple[int, ...] = field(repr=False)
    """Indexes at which a step begins, ascending. A step ends where the next one begins."""
    open: int | None
    """Where the last step begins, if its calls are still waiting for results."""
    broken: tuple[Broken, ...]
    """Calls without results and results without a call, in order; the calls of an open last step are not among them."""
    pinned: tuple[int, ...]
    """Indexes of the messages that the user has pinned."""
    prior: int | None = None
    """Index of the summary message at the head of the history, if it has one."""
    protected: tuple[bool, ...] = field(default=(), repr=False)
    """What stays whatever happens: system messages, and what is not of the format; the provider's own compaction and
    what stands before it; pinned messages and the last user message; each with its tool partners."""
    start: int = 0
    """Where the model's context begins: at the newest compaction that the provider has made, else 0."""
    lead: int = 0
    """Where a summary message belongs: behind the system messages at the beginning, or the provider's own one."""
    last_user: int | None = None
    """Index of the last genuine user message: no summary message, and no filler."""
    size: int = 0
    """Data size of all that the model reads."""
    heads: tuple[int, ...] = field(default=(0,), repr=False)
    """For each message, the size of what may be folded before it; and last, of all that may be folded."""
    free: int = 0
    """Data size of what may be folded."""
    rules: tuple[str, ...] = ()
    """Rules that the program has declared: they stand in every summary."""

    @classmethod
    def of(
        cls,
        messages: Sequence[Message],
        format: MessageFormat,  # noqa: A002 - that is what it is
        *,
        pinned: Sequence[int] = (),
        rules: Sequence[str] = (),
    ) -> Conversation:
        """Read ``messages``. ``pinned`` are the indexes of those that must stay verbatim, ``rules`` declared ones."""
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
            # No user speaks in a role that the format knows: then the meaning of the other roles is unknown too.
            unknown = (
                Kind.UNKNOWN if kind is Kind.OTHER and field_of(message, "role") is not None else kind
                for kind, message in zip(kinds, held, strict=True)
            )
            found = replace(found, kinds=tuple(unknown))
        return found._settled(prior if summarized else None, start, lead)  # noqa: SLF001 - its own kind

    def _settled(self, prior: int | None, start: int | None, lead: int) -> Conversation:
        """With what follows from where the prior summary and the provider's own compaction are."""
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
        """Where the step of this message begins and ends."""
        at = bisect_right(self.steps, index) - 1
        return self.steps[at], self.steps[at + 1] if at + 1 < len(self.steps) else len(self.kinds)

    def with_messages(self, messages: Sequence[Message]) -> Conversation:
        """Another list, made of messages of this one and new ones; what was pinned stays pinned."""
        wanted = {id(self.messages[index]) for index in self.pinned}
        pinned = [index for index, message in enumerate(messages) if id(message) in wanted] if wanted else ()
        return Conversation.of(messages, self.format, pinned=pinned, rules=self.rules)

    def without_native(self) -> Conversation | None:
        """As if the provider's own compaction could be folded, as the prior summary; ``None`` where it is unreadable.

        Everything before it goes then too: it must not come back into the model's context.
        """
        if not self.kinds or self.kinds[self.start] is not Kind.COMPACTED:
            return None
        if not self.format.compacted(self.messages[self.start]):
            return None
        lead = next((index for index, kind in enumerate(self.kinds) if kind is not Kind.SYSTEM), len(self.kinds))
        return self._settled(self.start, None, lead)

    def prior_text(self) -> str:
        """The text of the prior summary; empty where there is none."""
        if self.prior is None:
            return ""
        message = self.messages[self.prior]
        return self.format.compacted(message) or self.format.plain_text(message) or ""
