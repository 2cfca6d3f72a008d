"""A history, read once: kinds and sizes of its messages, steps that must stay together, and
protected messages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, islice

from compacter.messages.fields import field as field_of
from compacter.messages.fields import json_text
from compacter.messages.format import FILLERS, Message, MessageFormat
from compacter.messages.parts import Kind, MessageParts, Part
from compacter.summary import message as summary_message

# Kinds of messages that are always kept.
_STAYING = (Kind.SYSTEM, Kind.UNKNOWN)


class Conversation:
    """One list of messages and the facts read from it, which never change.

    Parallel tuples have one element per message. Sizes are data sizes in characters.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        format: MessageFormat,  # noqa: A002 - that is what it is
        *,
        pinned: Sequence[int] = (),
        rules: Sequence[str] = (),
        earlier: Conversation | None = None,
        takes_native: bool = False,
    ) -> None:
        """Read messages.

        Args:
            messages: The messages, in order.
            format: Their format.
            pinned: Indexes of messages to keep verbatim.
            rules: Rules declared by the program.
            earlier: A conversation whose parts are not read again.
            takes_native: Whether to use the provider's own compaction as the prior summary.
                Everything before it is compacted too, as it must not return to the model's context.
        """
        outline = format.outline(messages)
        native = bytes(outline.kinds).rfind(Kind.COMPACTED)
        is_ahead = native >= 0 and not takes_native
        count = len(messages)
        self.format = format
        self.messages = tuple(messages)
        self.pinned = tuple(pinned)
        self.rules = tuple(rules)
        """Rules declared by the program, which every summary contains."""
        self.steps = (*outline.steps, count)
        """Indexes at which a step begins, ascending, and at last the number of messages: a step
        ends where the next one begins."""
        self.end = count if outline.open is None else outline.open
        """Index at which the last step begins if some of its calls have no result yet, else the
        number of messages."""
        self.broken = outline.broken
        """Calls without results and results without a call, in order, except the calls of an open
        last step."""
        self.start = max(native, 0)
        """Index at which the model's context begins: that of the provider's newest compaction, else
        0."""
        self.sizes = (*[0] * self.start, *outline.sizes[self.start :])
        """Data size of each message; 0 for those before ``start``."""
        self.size = sum(self.sizes)
        self.lead = self.step(native)[1] if is_ahead else 0
        """Index for a summary message: after the leading system messages, or the provider's own
        compaction."""
        while self.lead < count and outline.kinds[self.lead] is Kind.SYSTEM:
            self.lead += 1
        self.prior = self.start if takes_native else self._find_prior()
        """Index of the summary message at the head of the history, if it has one."""
        self.restored = self._find_restored()
        """Indexes of the messages behind the earlier summary that a program has put back
        (``after_compaction``); the next compaction replaces them too."""
        self.kinds = self._kinds_here(outline.kinds)
        # Searching bytes is fast.
        last = bytes(self.kinds).rfind(Kind.USER)
        if last == self.prior:
            last = bytes(self.kinds).rfind(Kind.USER, 0, last)
        self.last_user = last if last >= 0 else None
        """Index of the last genuine user message, not a summary message or a filler."""
        staying = self._staying(native if is_ahead else None)
        self.protected = tuple(index in staying for index in range(count))
        """Whether each message must be kept: system messages, messages of another format, the
        provider's own compaction and all before it but summary messages, pinned messages, the last
        user message, and the other messages of their steps."""
        free = (size * (not stays) for stays, size in zip(self.protected, self.sizes, strict=True))
        self.heads = tuple(accumulate(free, initial=0))
        """For each index, the total size of the unprotected messages before it."""
        self.free = self.heads[-1]
        """Data size of all unprotected messages."""
        self.parts_read: dict[int, MessageParts] = {} if earlier is None else earlier.parts_read
        """Parts of the messages read so far, by ``id`` of the message: a text is parsed once."""

    @property
    def rules_size(self) -> int:
        """Size of the declared rules in a summary, in characters."""
        return sum(len(line) + 1 for line in summary_message.rule_lines(self.rules))

    @property
    def prior_size(self) -> int:
        """Size of the earlier summary that a compaction would replace, with the messages that were
        put back behind it; 0 without one.
        """
        prior = self.prior
        if prior is None or self.protected[prior]:
            return 0
        return sum(self.sizes[index] for index in (prior, *self.restored))

    def with_messages(
        self, messages: Sequence[Message], *, takes_native: bool = False
    ) -> Conversation:
        """Return the conversation of other messages, with the pins, rules and parts of this one."""
        wanted = {id(self.messages[index]) for index in self.pinned}
        pinned = [index for index, message in enumerate(messages) if id(message) in wanted]
        return Conversation(
            messages,
            self.format,
            pinned=pinned,
            rules=self.rules,
            earlier=self,
            takes_native=takes_native,
        )

    def step(self, index: int) -> tuple[int, int]:
        """Return the beginning and end of the step that contains this message, as a half-open
        range.
        """
        following = bisect_right(self.steps, index)
        return self.steps[following - 1], self.steps[following]

    def parts(self, index: int) -> tuple[Part, ...]:
        """Return the readable parts of the message at ``index``, read once."""
        return self.parts_of_each((self.messages[index],))[0].readable

    def parts_of_each(self, messages: Sequence[Message]) -> list[MessageParts]:
        """Return the parts of each of these messages, of this list or of the caller's own, read
        once.
        """
        known = self.parts_read
        unread = [message for message in messages if id(message) not in known]
        known.update((id(read.message), read) for read in self.format.parts_of_each(unread))
        return [known[id(message)] for message in messages]

    def texts(self, newest: int = 0) -> list[str]:
        """Return the texts that the model reads, without media and reasoning: of all messages, or
        of the last ``newest`` ones if that is not 0.
        """
        messages = self.messages[self.start :][-newest:]
        texts = self.format.bare_texts(messages)
        if None not in texts:
            # The most common form needs no parts.
            fillers = tuple(FILLERS.values())
            return [text for text in texts if text and text not in fillers]
        reads = self.parts_of_each(messages)
        return [part.text for read in reads for part in read.readable if part.kind != "media"]

    def _find_prior(self) -> int | None:
        """Return the index of the summary message after the leading messages, if there is one and
        something of the conversation follows it.
        """
        last = len(self.messages) - 1
        place = self.lead
        if place < last and self.messages[place] == self.format.filler("assistant"):
            place += 1
        text = self.format.plain_text(self.messages[place]) if place < last else None
        return place if text and summary_message.parse(text) else None

    def _find_restored(self) -> tuple[int, ...]:
        """Return the indexes of the messages that a program has put back behind the summary."""
        form = self.format
        if self.prior is None:
            return ()
        text = form.plain_text(self.messages[self.prior]) or ""
        count = summary_message.count_restored(text)
        fillers = form.filler("user"), form.filler("assistant")
        # The newest message is the conversation's own.
        places = range(self.prior + 1, len(self.messages) - 1)
        own = (index for index in places if self.messages[index] not in fillers)
        found = tuple(islice(own, count))
        contents = [content_of(self.messages[index], form) for index in found]
        return found if summary_message.is_restored(text, contents) else ()

    def _kinds_here(self, read: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kind of each message, by its index."""
        # compacter's fillers are never last; they are first, or in a list with a summary. Any other
        # text like them is the user's.
        is_compacted = self.prior is not None or Kind.COMPACTED in read
        fillers = range(len(read) - 1) if is_compacted else (self.lead,)
        kinds = [
            Kind.USER if kind is Kind.INSERTED and at not in fillers else kind
            for at, kind in enumerate(read)
        ]
        for at in self.restored:
            kinds[at] = Kind.INSERTED if kinds[at] is Kind.USER else kinds[at]
        if Kind.USER not in kinds[0 if self.prior is None else self.prior + 1 :]:
            # No message has the role of a user, so the other unknown roles may mean anything.
            for at, kind in enumerate(kinds):
                if kind is Kind.OTHER and field_of(self.messages[at], "role") is not None:
                    kinds[at] = Kind.UNKNOWN
        return tuple(kinds)

    def _staying(self, native: int | None) -> set[int]:
        """Return the indexes of the messages that must be kept; ``native`` is that of the
        provider's own compaction, if it must be.
        """
        staying = {at for at, kind in enumerate(self.kinds) if kind in _STAYING}
        for index in (*self.pinned, self.last_user, native):
            if index is not None and index not in self.restored:
                staying.update(range(*self.step(index)))
        # Summary messages before the provider's compaction are not read any more.
        texts = enumerate(map(self.format.plain_text, self.messages[: native or 0]))
        return staying.union(at for at, text in texts if summary_message.parse(text or "") is None)


def content_of(message: Message, format: MessageFormat) -> str:  # noqa: A002 - that is what it is
    """Return the content of a message as a text, equal for equal contents."""
    return json_text(format.content(message))


def is_inserted(message: Message, format: MessageFormat) -> bool:  # noqa: A002 - that is what it is
    """Return whether compacter put this message into the list: a summary message or a filler."""
    text = format.plain_text(message) or ""
    is_filler = text == FILLERS["user"] or message == format.filler("assistant")
    return is_filler or summary_message.parse(text) is not None


def find_pinned(
    pin: Callable[[Message], object] | None,
    messages: Sequence[Message],
    format: MessageFormat,  # noqa: A002 - that is what it is
    by_history: frozenset[int] = frozenset(),
) -> tuple[int, ...]:
    """Return the indexes of pinned messages.

    ``pin`` is called only with messages that compacter has not written. If a pin matched a summary,
    that summary and each later one would stay for ever. ``by_history`` are the ``id`` of messages
    that are pinned in a ``History``. The last message is the conversation's own, whatever its text.
    """
    return tuple(
        index
        for index, message in enumerate(messages if pin or by_history else ())
        if id(message) in by_history
        or (
            pin is not None
            and (index == len(messages) - 1 or not is_inserted(message, format))
            and pin(message)
        )
    )
