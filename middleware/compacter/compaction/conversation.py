"""A history, read once: what its messages are, which stay together, and what must stay."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress

from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Part
from compacter.messages.steps import Broken, Kind
from compacter.summaries import tag

_STAYING = (Kind.SYSTEM, Kind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One list of messages and all that is known of it. Made by :meth:`of`, once for each list, and handed on.

    Parallel tuples have one element a message. Sizes are data sizes in characters.
    """

    format: MessageFormat
    messages: tuple[Message, ...] = field(repr=False)
    kinds: tuple[Kind, ...] = field(repr=False)
    sizes: tuple[int, ...] = field(repr=False)
    """What the provider's own compaction has left behind (everything before ``start``) weighs 0."""
    steps: tuple[int, ...] = field(repr=False)
    """Indexes at which a step begins, ascending. A step ends where the next one begins."""
    open: int | None
    """Where the last step begins, if its calls are still waiting for results."""
    broken: tuple[Broken, ...]
    """Calls without their results and results without their call, in order; those of an open last step are not."""
    pinned: tuple[int, ...]
    prior: int | None
    """Index of the summary message at the head of the history, if it has one."""
    protected: tuple[bool, ...] = field(repr=False)
    """What stays whatever happens: system messages, what is not of the format, what the provider has compacted; pinned
    messages and the last user message, with their tool partners."""
    start: int
    """Where the model's context begins: at the message with the provider's newest own compaction, else 0."""
    size: int
    """Data size of all that the model reads, in characters."""

    @classmethod
    def of(cls, messages: Sequence[Message], format: MessageFormat, *, pinned: Sequence[int] = ()) -> Conversation:  # noqa: A002 - what it is
        """Read ``messages``. ``pinned`` are the indexes of messages that must survive verbatim. Raises nothing."""
        held = tuple(messages)
        outline = format.outline(held)
        kinds, sizes, steps = outline.kinds, outline.sizes, outline.steps
        if Kind.OTHER in kinds and Kind.USER not in kinds:
            kinds = [Kind.UNKNOWN if kind is Kind.OTHER else kind for kind in kinds] if _strange(format, held) else kinds
        start = _start(format, held, kinds)
        if start:
            sizes = [0] * start + sizes[start:]
        lead = _lead(kinds, steps, start)
        prior = _prior(format, held, kinds, lead)
        protected = [kind in _STAYING for kind in kinds]
        protected[:start] = [True] * start
        staying = [*pinned]
        if start or (held and format.compacted(held[0]) is not None):
            staying.append(start)
        last = _last_user(format, held, kinds, prior)
        if last is not None:
            staying.append(last)
        for index in staying:
            at = bisect_right(steps, index) - 1
            end = steps[at + 1] if at + 1 < len(steps) else len(held)
            protected[steps[at] : end] = [True] * (end - steps[at])
        return cls(
            format,
            held,
            tuple(kinds),
            tuple(sizes),
            tuple(steps),
            outline.open,
            outline.broken,
            tuple(pinned),
            prior,
            tuple(protected),
            start,
            sum(sizes),
        )
