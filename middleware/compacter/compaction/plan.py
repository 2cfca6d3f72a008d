"""The plan of one compaction, and the methods with which a strategy makes the new list."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise
from sys import maxsize
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation, is_inserted
from compacter.compaction.settings import Settings
from compacter.compaction.sizes import Sizes
from compacter.errors import with_hints
from compacter.messages.fields import flat
from compacter.messages.format import Message
from compacter.messages.parts import Kind, Part
from compacter.overflow import TokenLimit
from compacter.summary.message import Summary, compose, parse, place_of, rule_lines, with_place
from compacter.text.table import Table

if TYPE_CHECKING:
    from compacter.events import Trigger


class Tally(dict[str, Any]):
    """Costs and results of one compaction so far: fields of the ``CompactionEvent``, by their
    names. The only mutable part of a plan.
    """

    def add(self, **values: float | tuple[str, ...] | None) -> None:
        """Add to fields that are sums or lists; ``None`` makes a sum ``None``."""
        for name, value in values.items():
            if name not in self or value is None:
                self[name] = value
            elif self[name] is not None:
                self[name] += value


@with_hints
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactionPlan(Table):
    """One compaction: the messages to replace, and the methods with which a strategy makes the new
    list. Sizes are data sizes in characters. Messages must not be changed.

    ``before_compaction`` may return a copy with another cut: ``dataclasses.replace(plan,
    cut=...)``. A cut inside a step is moved to the beginning of the step. Protected messages are
    kept wherever the cut is.
    """

    conversation: Conversation
    """The messages as they were read: kinds, sizes, steps, and which must be kept verbatim
    (``protected``)."""
    options: Settings
    """The ``Options`` of the ``Compacter``."""
    sizes: Sizes
    """Sizes that its parts may have, and the calibration of the model: ``sizes.calibration`` has
    the window, and the characters per token."""
    cut: int = 0
    """Index of the first message of the tail. The messages before it that are not ``protected`` are
    the head."""
    trigger: Trigger
    """``token_limit``, ``threshold``, ``quotes``, ``manual`` or ``prepared``."""
    model: str | None = None
    """Name of the model, if the call has one."""
    target: int | None = None
    """Largest size of the messages afterwards; ``None`` if unknown."""
    reserved: int = 0
    """Part of the target to leave free for quotes, at most half of the room."""
    summary: str | None = None
    """Summary given by the caller, used instead of the model's."""
    is_required: bool = False
    """Whether something must be compacted: a request was refused, or a budget is to be kept."""
    is_chosen: bool = False
    """Whether a hook has set the cut."""
    keeps_unread: bool = False
    """Whether results stay that no model has answered yet; they are shortened if they do not fit
    beside the summary."""
    attempt: int = 1
    """Number of the round in its call."""
    digest: str = ""
    """Digest that identifies the conversation in events."""
    token_limit: TokenLimit | None = None
    """The refusal that requires the compaction."""
    is_cached: bool = False
    """Whether the provider has the head in its cache. Internal."""
    older: int = 0
    """Number of messages that are sent without their thinking. Internal."""
    tally: Tally = field(default_factory=lambda: Tally(cost=0.0))
    """Costs and results so far. Internal."""
    # What follows from these, computed once for each plan.
    protected: tuple[bool, ...] = field(init=False)
    """Whether each message must be kept verbatim: system, pinned, last user messages are."""
    compacted: tuple[int, ...] = field(init=False)
    """Indexes of the head, ascending."""
    kept: tuple[int, ...] = field(init=False)
    """Indexes of the messages to keep verbatim, ascending: the tail, and before the cut system,
    pinned and last user messages."""
    head_size: int = field(init=False)
    """Size of the messages that would be compacted, in characters."""
    rules_size: int = field(init=False)
    """Size of the declared rules in a summary."""
    room: int = field(init=False)
    """Characters of the target that the messages which must stay, and the rules, leave; infinite
    without a target."""

    def __post_init__(self) -> None:
        talk = self.conversation
        count = len(talk.messages)
        cut = max(0, min(self.cut, count))
        rules = talk.rules_size
        before = range(cut)
        derived = {
            "protected": talk.protected,
            "compacted": tuple(index for index in before if not talk.protected[index]),
            "kept": (*compress(before, talk.protected), *range(cut, count)),
            "head_size": talk.heads[cut],
            "rules_size": rules,
            "room": maxsize if self.target is None else self.target - talk.size + talk.free - rules,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"CompactionPlan(cut={self.cut}, strategy={self.strategy!r})"

    def _rows(self) -> Iterator[tuple[str, str]]:
        tokens = self.sizes.calibration.tokens
        for name, count, size in (
            ("messages", len(self.messages), self.original_data_size),
            ("compacted", len(self.compacted), self.head_size),
            ("kept", len(self.kept), self.tail_size),
        ):
            yield name, f"{count:,}, {size:,} characters, about {tokens(size):,} tokens"
        yield "cut", f"{self.cut}: index of the first message behind the compacted ones"
        yield "strategy", self.strategy
        if self.target is not None:
            yield "target", f"at most {self.target:,} characters"

    @property
    def strategy(self) -> str:
        """Name of the strategy; the names of several are joined by ``+``."""
        return "+".join(strategy.name for strategy in self.options.strategy)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return self.conversation.messages

    @property
    def alternates(self) -> bool:
        """Whether user and assistant must alternate in the result. Fillers that this needs are
        added to what a strategy returns.
        """
        wanted = self.options.alternate_roles
        return self.conversation.format.alternates if wanted is None else wanted

    @property
    def prior(self) -> int | None:
        """Index of an earlier summary message, which is compacted too, or ``None``."""
        prior = self.conversation.prior
        return prior if prior in self.compacted else None

    @property
    def original_data_size(self) -> int:
        """Size of all messages, in characters."""
        return self.conversation.size

    @property
    def tail_size(self) -> int:
        """Size of the messages to keep verbatim, protected ones included, in characters."""
        return self.original_data_size - self.head_size

    @property
    def ratio(self) -> float:
        """Share of the head in the compactable size, from 0 to 1."""
        return round(self.head_size / (self.conversation.free or 1), 4)

    @property
    def head(self) -> tuple[Message, ...]:
        """The conversation's own messages that would be compacted, in order: without the earlier
        summary and the fillers beside it, which compacter has written.
        """
        form = self.conversation.format
        messages = (self.messages[index] for index in self.compacted if index != self.prior)
        return tuple(message for message in messages if not is_inserted(message, form))

    @property
    def facts(self) -> dict[str, Any]:
        """Fields of events: its trigger, its call and conversation, and the numbers of the token
        limit that requires it.
        """
        limit = self.token_limit or TokenLimit()
        return {
            "trigger": self.trigger,
            "model": self.model,
            "attempt": self.attempt,
            "conversation": self.digest,
            "limit": limit.limit,
            "requested": limit.requested,
        }

    @property
    def budget(self) -> int:
        """The budget in characters that a caller of ``compact()`` has given, all of which the
        result may use; 0 if none was given.
        """
        return self.target or 0 if self.trigger == "manual" and self.is_required else 0

    @property
    def is_satisfied(self) -> bool:
        """Whether the messages are within the budget of a compaction by hand already."""
        return self.original_data_size <= self.budget and self.summary is None

    @property
    def goal(self) -> int:
        """Size to aim at, in characters: ``target``, or half of the size of all messages if there
        is no target.
        """
        return self.original_data_size // 2 if self.target is None else self.target

    @property
    def longest_summary(self) -> int:
        """Largest size of the summary's text in characters, without the declared rules."""
        left = self.left
        if self.keeps_unread:
            left = max(left, min(self.sizes.summary(self.head_size), self.room // 2))
        form = self.conversation.format
        beside = self.size([form.with_blocks_before("", self.blocks)]) if self.blocks else 0
        replaced = self.head_size - self.rules_size - beside
        return self.sizes.longest_text(replaced, left - beside, self.reserved, self.budget)

    @property
    def left(self) -> int:
        """Characters that the messages which stay, and the rules, leave for a summary message."""
        return self.room - self.conversation.free + self.head_size

    @property
    def blocks(self) -> Sequence[Message]:
        """Blocks of the provider's own compaction in the earlier summary message. Internal."""
        prior = self.prior
        form = self.conversation.format
        return () if prior is None else form.blocks_before(self.messages[prior])

    # -- for strategies ----------------------------------------------------------------------------

    def size(self, messages: Sequence[Message]) -> int:
        """Return the data size of messages, in characters.

        Args:
            messages: Messages to measure.
        """
        return sum(map(self.conversation.format.size, messages))

    def fits(self, messages: Sequence[Message]) -> bool:
        """Return whether messages are within the target; True if the target is unknown.

        Args:
            messages: List to be returned by a strategy.
        """
        return self.fits_size(self.size(messages))

    def fits_size(self, size: int) -> bool:
        """Return whether messages of this size are within the target; True if it is unknown.

        Args:
            size: Data size in characters.
        """
        return self.target is None or size <= self.target

    def parts(self, indexes: Iterable[int] | None = None) -> list[Part]:
        """Return the readable parts of messages, without reasoning, with ``redact`` applied.

        Args:
            indexes: Indexes of the messages; ``None``: those of the head but the earlier summary.
        """
        conversation = self.conversation
        if indexes is None:
            # A whole message is a summary, but the provider's own block is only a part of a
            # message.
            prior = self.prior
            indexes = (
                index
                for index in self.compacted
                if index >= conversation.start
                and index not in conversation.restored
                and (index != prior or conversation.kinds[index] is not Kind.USER)
            )
        indexes = list(indexes)
        reads = conversation.parts_of_each([self.messages[index] for index in indexes])
        redact = self.options.redact or str
        # Create a new part, as ``dataclasses.replace`` takes twenty times as long.
        return [
            Part(
                part.role,
                part.kind,
                redact(part.text),
                redact(part.name),
                index,
                part.size,
                part.call_id,
            )
            for index, read in zip(indexes, reads, strict=True)
            for part in read.readable
        ]

    def prior_summary(self) -> Summary | None:
        """Return the prior summary in the head, with secrets redacted, or ``None``."""
        if self.prior is None:
            return None
        form = self.conversation.format
        message = self.messages[self.prior]
        text = form.plain_text(message) or form.compacted(message) or ""
        # A provider's own summary has no tag.
        prior = parse(text) or Summary(text)
        redact = self.options.redact
        if redact is None:
            return prior
        # Redact again: the Compacter that made it may have had no redaction, or another one.
        try:
            return replace(prior, story=redact(prior.story), quoted=redact(prior.quoted))
        except Exception:  # noqa: BLE001 - the user's function; the text is dropped
            return Summary()

    def replace_head(
        self,
        summary: Summary | str,
        keep: Sequence[int] | None = None,
        blocks: Sequence[Message] = (),
    ) -> list[Message]:
        """Return the compacted list, with a summary message in place of the compacted messages.

        Args:
            summary: Text of the summary.
            keep: Indexes of the messages to keep, ascending; ``None``: all but the head.
            blocks: The provider's own compaction of the head. Without it, an earlier one stays.
        """
        keep = self.kept if keep is None else keep
        # Every summary contains the declared rules, whatever the strategy.
        summary = summary if isinstance(summary, Summary) else Summary(summary)
        summary = replace(summary, rules=rule_lines(self.conversation.rules))
        messages = [self.messages[index] for index in keep]
        place = bisect_left(keep, self.conversation.lead)
        blocks = blocks or self.blocks
        if blocks:
            summary = self._behind_thoughts(summary, keep[place:])
        whole = self.conversation.format.with_blocks_before(compose(summary), blocks)
        messages.insert(place, whole)
        return messages

    def _behind_thoughts(self, summary: Summary, later: Sequence[int]) -> Summary:
        """Return the summary with a note of its place behind the kept messages with thoughts: what
        stands before a thought must stay as it was, or the thought is not valid.
        """
        form = self.conversation.format
        thought = (at for at in reversed(later) if form.without_sealed([self.messages[at]])[1])
        end = self.conversation.step(next(thought, -1))[1]
        kept = bisect_left(later, end)
        return with_place(summary, kept, min(kept, bisect_left(later, self.cut)))

    def keep(self, indexes: Sequence[int], note: str = "") -> list[Message]:
        """Return the list of chosen messages, all protected ones, and a note in a summary message.

        If a message of a step is kept, all of its step are, so that tool calls keep their results.
        A prior summary is kept too: unchanged without a note, otherwise below it. A later note
        replaces this one.

        Args:
            indexes: Indexes of the messages to keep.
            note: One line that describes the dropped messages; empty: no summary message.
        """
        prior = self.prior
        wanted = {*indexes} if note else {*indexes, prior}
        steps = pairwise(self.conversation.steps)
        whole = [range(*step) for step in steps if not wanted.isdisjoint(range(*step))]
        kept = {*compress(range(len(self.messages)), self.protected)}.union(*whole)
        if note:
            noted = replace(self.prior_summary() or Summary(), notes=(flat(note),))
            return self.replace_head(noted, sorted(kept - {prior}))
        return [self.messages[index] for index in sorted(kept)]


def unfold(conversation: Conversation, messages: Sequence[Message]) -> list[Message]:
    """Return the messages of a conversation in the form in which they are sent. If the summary
    message contains a compaction by the provider, that block becomes a message of its own. The
    summary's own text then follows the messages that contain thinking from before that compaction.
    """
    form = conversation.format
    prior = conversation.prior
    if prior is None or prior >= len(messages):
        return list(messages)
    blocks = form.blocks_before(messages[prior])
    if not blocks:
        return list(messages)
    text = form.plain_text(messages[prior]) or ""
    kept, older = place_of(text)
    filler = form.filler("assistant")
    # Joined user messages need no filler.
    rest = [message for message in messages[prior + 1 :] if message != filler]
    own = len(conversation.restored)
    if kept:
        older += own
        kept += own
    return [
        *messages[:prior],
        *form.stand_alone(blocks),
        *rest[older:kept],
        form.say("user", text),
        *rest[:older],
        *rest[kept:],
    ]
