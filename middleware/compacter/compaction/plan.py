"""The plan of one compaction, and the methods with which a strategy makes the new list."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise
from operator import not_
from typing import TYPE_CHECKING, Any, Protocol

from compacter.compaction.conversation import Conversation, is_inserted, with_fillers
from compacter.compaction.sizes import SizeOptions, Sizes
from compacter.messages.fields import flat
from compacter.messages.format import Message
from compacter.messages.parts import Kind, Part
from compacter.overflow import TokenLimit
from compacter.summary.message import Summary, compose, parse, rule_lines
from compacter.text.table import Table

if TYPE_CHECKING:
    from compacter.events import Trigger


class PlanOptions(SizeOptions, Protocol):
    """The options of a ``Compacter`` that a compaction depends on; ``Options`` has all of them."""

    strategy: tuple[Any, ...]
    fallback: tuple[Any, ...]
    preserve_recent_turns: int
    alternate_roles: bool | None
    summary_prompt: str | None
    redact: Callable[[str], str] | None
    retrieved: Any
    before_compaction: Any

    @property
    def summarizes(self) -> bool:
        """Whether one of the strategies writes a summary."""
        ...

    def detect(self, error: BaseException, /) -> TokenLimit | None:
        """Return the numbers of a refusal; ``None`` for any other error."""
        ...


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactionPlan(Table):
    """One compaction: what it would replace, and what a strategy makes the new list with. Sizes are
    data sizes in characters. Messages must not be changed.

    ``before_compaction`` may return a copy with another cut: ``dataclasses.replace(plan,
    cut=...)``. A cut inside a step is moved to the beginning of the step. Protected messages are
    kept wherever the cut is.
    """

    conversation: Conversation
    """The messages as they were read: kinds, sizes, steps, and which must be kept verbatim
    (``protected``)."""
    options: PlanOptions
    """The ``Options`` of the ``Compacter``."""
    sizes: Sizes
    """How large its parts may be, and what is known of the model: ``sizes.calibration`` has the
    window, and the characters per token."""
    cut: int = 0
    """Index of the first message of the tail. The messages before it, except ``held``, are the
    head."""
    trigger: Trigger
    """``token_limit``, ``threshold``, ``quotes``, ``manual`` or ``prepared``."""
    model: str | None = None
    """Name of the model, if the call has one."""
    target: int | None = None
    """Largest size of the messages afterwards; ``None`` if unknown."""
    reserved: int = 0
    """Part of the target to leave free for quotes; at most half of the room is."""
    summary: str | None = None
    """Summary given by the caller, used instead of the model's."""
    is_required: bool = False
    """Whether something must be compacted: a request was refused, or a budget is to be kept."""
    is_chosen: bool = False
    """Whether a hook has set the cut."""
    attempt: int = 1
    """Number of the round in its call."""
    digest: str = ""
    """Digest that identifies the conversation in events."""
    token_limit: TokenLimit | None = None
    """The refusal that requires the compaction."""
    is_last: bool = True
    """Whether its strategy is the last one, so that the fallback is used if that fails."""
    tally: Tally = field(default_factory=lambda: Tally(cost=0.0))
    """Costs and results so far. Internal."""

    def __repr__(self) -> str:
        return f"CompactionPlan(cut={self.cut}, strategy={self.strategy!r})"

    def _rows(self) -> Iterator[tuple[str, str]]:
        tokens = self.sizes.calibration.tokens
        sizes = {
            "messages": (len(self.messages), self.original_data_size),
            "compacted": (len(self.compacted), self.head_size),
            "kept": (len(self.kept), self.tail_size),
        }
        for name, (count, size) in sizes.items():
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
    def wire_format(self) -> str:
        """``openai``, ``anthropic``, ``responses``, ``gemini`` or ``bedrock``."""
        return self.conversation.format.name

    @property
    def protected(self) -> tuple[bool, ...]:
        """Whether each message must be kept verbatim: system, pinned, last user messages are."""
        return self.conversation.protected

    @property
    def alternates(self) -> bool:
        """Whether user and assistant must alternate in the result. Fillers that this needs are
        added to what a strategy returns.
        """
        wanted = self.options.alternate_roles
        return self.conversation.format.alternates if wanted is None else wanted

    @property
    def compacted(self) -> tuple[int, ...]:
        """Indexes of the head, ascending."""
        return tuple(compress(range(self.cut), map(not_, self.protected)))

    @property
    def prior(self) -> int | None:
        """Index of an earlier summary message, which is compacted too; ``None`` if there is
        none.
        """
        prior = self.conversation.prior
        return prior if prior in self.compacted else None

    @property
    def original_data_size(self) -> int:
        """Size of all messages, in characters."""
        return self.conversation.size

    @property
    def head_size(self) -> int:
        """Size of the messages that would be compacted, in characters."""
        return self.conversation.heads[max(0, min(self.cut, len(self.messages)))]

    @property
    def tail_size(self) -> int:
        """Size of the messages to keep verbatim, held ones included, in characters."""
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
        return self._own(self.compacted)

    @property
    def tail(self) -> tuple[Message, ...]:
        """The conversation's own messages from the cut on, verbatim."""
        return self._own(range(self.cut, len(self.messages)))

    @property
    def held(self) -> tuple[int, ...]:
        """Indexes before the cut of messages to keep verbatim: system, pinned, and the last user
        message.
        """
        return tuple(compress(range(self.cut), self.protected))

    @property
    def kept(self) -> tuple[int, ...]:
        """Indexes of the messages to keep verbatim, ascending."""
        return (*self.held, *range(self.cut, len(self.messages)))

    def _own(self, indexes: Iterable[int]) -> tuple[Message, ...]:
        """Return the messages at these indexes that compacter has not inserted."""
        prior = self.prior
        form = self.conversation.format
        messages = (self.messages[index] for index in indexes if index != prior)
        return tuple(message for message in messages if not is_inserted(message, form))

    @property
    def named(self) -> dict[str, Any]:
        """Fields of events that say why it is made, in which call and conversation."""
        return {
            "trigger": self.trigger,
            "model": self.model,
            "attempt": self.attempt,
            "conversation": self.digest,
        }

    @property
    def facts(self) -> dict[str, Any]:
        """``named``, and the numbers of the token limit that requires the compaction."""
        limit = self.token_limit or TokenLimit()
        return self.named | {"limit": limit.limit, "requested": limit.requested}

    @property
    def has_budget(self) -> bool:
        """Whether a budget was given by hand, all of which is to be used."""
        return self.trigger == "manual" and self.target is not None

    @property
    def is_satisfied(self) -> bool:
        """Whether a compaction by hand has nothing to do, as the messages are within its budget."""
        is_met = self.has_budget and self.fits_size(self.original_data_size)
        return is_met and self.summary is None

    @property
    def room(self) -> int:
        """Part of the target beside the messages that must stay; with a target alone."""
        return (self.target or 0) - self.conversation.size + self.conversation.free

    @property
    def rules_size(self) -> int:
        """Size of the declared rules in a summary."""
        return sum(len(line) + 1 for line in rule_lines(self.conversation.rules))

    @property
    def fillers_size(self) -> int:
        """Size of the fillers that the messages to keep need among them: many, if messages of one
        role are pinned.
        """
        if not (self.alternates and self.held):
            return 0
        kept = [self.messages[index] for index in self.kept]
        return self.size(with_fillers(self.conversation, kept, self.kept)) - self.size(kept)

    # -- for strategies ----------------------------------------------------------------------------

    def size(self, messages: Sequence[Message] | None = None) -> int:
        """Return the data size of messages, in characters.

        Args:
            messages: Messages to measure; ``None``: all of the plan's.
        """
        if messages is None:
            return self.conversation.size
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
            # A summary message has nothing else in it; the provider's own block is a part of a
            # message.
            prior = self.prior
            indexes = (
                index
                for index in self.compacted
                if index >= conversation.start
                and (index != prior or conversation.kinds[index] is not Kind.USER)
            )
        redact = self.options.redact or str
        indexes = list(indexes)
        reads = conversation.parts_of_each([self.messages[index] for index in indexes])
        return [
            replace(part, index=index, text=redact(part.text), name=redact(part.name))
            for index, read in zip(indexes, reads, strict=True)
            for part in read.readable
        ]

    def prior_summary(self) -> Summary | None:
        """Return the prior summary in the head, with secrets redacted, or ``None``."""
        if self.prior is None:
            return None
        form = self.conversation.format
        message = self.messages[self.prior]
        text = form.compacted(message) or form.plain_text(message) or ""
        # A provider's own summary has no tag.
        prior = parse(text) or Summary(text)
        redact = self.options.redact
        if redact is None:
            return prior
        # The Compacter that made it may have had no redaction, or another one.
        try:
            return replace(prior, story=redact(prior.story), quoted=redact(prior.quoted))
        except Exception:  # noqa: BLE001 - the user's function; the text is dropped
            return Summary()

    def replace_head(
        self, summary: Summary | str, keep: Sequence[int] | None = None
    ) -> list[Message]:
        """Return the compacted list, with a summary message in place of the compacted messages.

        Args:
            summary: Text of the summary.
            keep: Indexes of the messages to keep, ascending; ``None``: all but the head.
        """
        keep = self.kept if keep is None else keep
        # Every summary contains the declared rules, whatever the strategy.
        summary = summary if isinstance(summary, Summary) else Summary(summary)
        text = compose(replace(summary, rules=rule_lines(self.conversation.rules)))
        messages = [self.messages[index] for index in keep]
        place = bisect_left(keep, self.conversation.lead)
        messages.insert(place, self.conversation.format.say("user", text))
        return messages

    def keep(self, indexes: Sequence[int], note: str = "") -> list[Message]:
        """Return the list of chosen messages, all protected ones, and a note in a summary message.

        All messages of a step are kept with any of them, so that tool calls keep their results. A
        prior summary is kept too: unchanged without a note, otherwise below it. A later note
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
