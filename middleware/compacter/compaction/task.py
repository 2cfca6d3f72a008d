"""The interface of strategies: the plan of a compaction, and the task that a strategy receives to
carry it out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from compacter.compaction.change import assemble
from compacter.compaction.conversation import is_inserted
from compacter.compaction.tally import Tally
from compacter.effects import Effect
from compacter.errors import ConfigurationError
from compacter.messages.fields import flat
from compacter.messages.format import Message
from compacter.messages.parts import Kind, Part
from compacter.summary.message import Summary, compose, parse, with_rules

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.compaction.plan import Job
    from compacter.events import Trigger
    from compacter.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """The messages that a compaction would replace. Sizes are data sizes in characters.

    ``before_compaction`` may return a copy with another cut: ``dataclasses.replace(plan,
    cut=...)``. A cut inside a step is moved to the beginning of the step. Protected messages are
    kept wherever the cut is.
    """

    job: Job = field(repr=False, compare=False)
    """What was asked for. Internal."""
    conversation: Conversation = field(repr=False, compare=False)
    """The messages as they were read: kinds, sizes, steps, and which must be kept verbatim
    (``protected``)."""
    cut: int
    """Index of the first message of the tail. The messages before it, except ``held``, are the
    head."""
    strategy: str = ""
    """Name of the strategy; the names of several are joined by ``+``."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return self.conversation.messages

    @property
    def wire_format(self) -> str:
        """``openai``, ``anthropic``, ``responses``, ``gemini`` or ``bedrock``."""
        return self.conversation.format.name

    @property
    def held(self) -> tuple[int, ...]:
        """Indexes before the cut of messages to keep verbatim: system, pinned, and the last user
        message.
        """
        return tuple(compress(range(self.cut), self.conversation.protected))

    @property
    def prior(self) -> int | None:
        """Index of an earlier summary message, which is compacted too; ``None`` if there is
        none.
        """
        prior = self.conversation.prior
        if prior is None or prior >= self.cut or self.conversation.protected[prior]:
            return None
        return prior

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
        free = self.conversation.free
        return round(self.head_size / free, 4) if free else 0.0

    @property
    def trigger(self) -> Trigger:
        """``token_limit``, ``threshold`` or ``manual``."""
        return self.job.trigger

    @property
    def model(self) -> str | None:
        """Name of the model, if the call has one."""
        return self.job.model

    @property
    def folded(self) -> tuple[int, ...]:
        """Indexes of the head, ascending."""
        held = set(self.held)
        return tuple(index for index in range(self.cut) if index not in held)

    @property
    def head(self) -> tuple[Message, ...]:
        """The conversation's own messages that would be compacted, in order: without the earlier
        summary and the fillers beside it, which compacter has written.
        """
        return self._own(self.folded)

    @property
    def tail(self) -> tuple[Message, ...]:
        """The conversation's own messages from the cut on, verbatim."""
        return self._own(range(self.cut, len(self.messages)))

    @property
    def kept(self) -> tuple[Message, ...]:
        """The messages to keep verbatim, in order."""
        return tuple(self.messages[index] for index in self.held) + self.messages[self.cut :]

    def _own(self, indexes: Iterable[int]) -> tuple[Message, ...]:
        """Return the messages at these indexes that compacter has not inserted."""
        prior = self.prior
        form = self.conversation.format
        messages = (self.messages[index] for index in indexes if index != prior)
        return tuple(message for message in messages if not is_inserted(message, form))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """One compaction, as passed to a strategy. Sizes are data sizes in characters. Messages must
    not be changed.
    """

    plan: CompactionPlan
    """The plan: the messages to compact, and the cut."""
    options: Options
    """The options of the ``Compacter``."""
    alternate: bool
    """Whether user and assistant must alternate in the result."""
    target: int | None = None
    """Largest size of the result, in characters; ``None`` if unknown."""
    last: bool = True
    """Whether this is the last strategy, so that the fallback is used if it fails."""
    chosen: bool = False
    """Whether a hook has set the cut of the plan, which then applies to every strategy."""
    tally: Tally = field(default_factory=Tally, repr=False)
    """Costs and results so far. Internal."""

    @property
    def job(self) -> Job:
        """What was asked for. Internal."""
        return self.plan.job

    @property
    def conversation(self) -> Conversation:
        """The messages as they were read: kinds, sizes, steps, and which must be kept verbatim
        (``protected``).
        """
        return self.plan.conversation

    @property
    def chars_per_token(self) -> float:
        """Estimate of the number of characters per token, of text."""
        calibration = self.job.calibration
        return calibration.text_per_token or calibration.chars_per_token

    @property
    def window(self) -> int | None:
        """The model's context window in tokens; ``None`` if unknown."""
        return self.job.calibration.window

    @property
    def summarizer_window(self) -> int | None:
        """Context window of another model that summarizes, in tokens; ``None``: assume that of the
        model.
        """
        return self.job.calibration.summarizer_window

    @property
    def summary(self) -> str | None:
        """Summary given by the caller, used instead of the model's."""
        return self.job.summary

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return self.conversation.messages

    @property
    def head(self) -> tuple[Message, ...]:
        """The messages to compact, the earlier summary included."""
        return tuple(self.messages[index] for index in self.plan.folded)

    @property
    def protected(self) -> tuple[bool, ...]:
        """Whether each message must be kept verbatim: system, pinned, and last user
        messages are.
        """
        return self.conversation.protected

    def size(self, messages: Sequence[Message] | None = None) -> int:
        """Return the data size of messages, in characters.

        Args:
            messages: Messages to measure; ``None``: all of the task's.
        """
        return (
            self.conversation.size
            if messages is None
            else sum(map(self.conversation.format.size, messages))
        )

    def fits(self, messages: Sequence[Message]) -> bool:
        """Return whether messages are within the target; True if the target is unknown.

        Args:
            messages: List to be returned by a strategy.
        """
        return self.target is None or self.size(messages) <= self.target

    def entries(self, messages: Sequence[Message] | None = None) -> list[Part]:
        """Return the readable parts of the head, without reasoning and the prior summary, with
        ``redact`` applied.

        Args:
            messages: Messages to read instead of the head.
        """
        redact = self.options.redact
        conversation = self.conversation
        prior = self.plan.prior
        if messages is None:
            # A summary message has nothing else in it; the provider's own block is a part of a
            # message.
            summarized = prior is not None and conversation.kinds[prior] is Kind.USER
            messages = [
                conversation.messages[index]
                for index in self.plan.folded
                if index >= conversation.start and not (summarized and index == prior)
            ]
        found = [part for read in conversation.parts_of_each(messages) for part in read.readable]
        if redact is None:
            return found
        return [replace(part, text=redact(part.text), name=redact(part.name)) for part in found]

    def prior(self) -> Summary | None:
        """Return the prior summary in the head, with secrets redacted, or ``None``."""
        if self.plan.prior is None:
            return None
        text = self.conversation.prior_text()
        # A provider's own summary has no tag.
        found = parse(text) or Summary(text)
        redact = self.options.redact
        if redact is None:
            return found
        # The Compacter that made it may have had no redaction, or another one.
        try:
            rules = tuple(_redact_rule(redact, line) for line in found.rules)
            return replace(
                found, story=redact(found.story), quoted=redact(found.quoted), rules=rules
            )
        except Exception:  # noqa: BLE001 - the user's function; text that cannot be redacted is dropped
            return Summary()

    def fold(self, summary: Summary | str, keep: Sequence[int] | None = None) -> list[Message]:
        """Return the compacted list, with a summary message in place of the compacted messages.

        Args:
            summary: Text of the summary.
            keep: Indexes of the messages to keep, ascending; ``None``: all but the head.
        """
        # Every summary contains the declared rules, whatever the strategy.
        whole = with_rules(summary, self.conversation.rules)
        if keep is None:
            folded = set(self.plan.folded)
            keep = [index for index in range(len(self.messages)) if index not in folded]
        self.tally.set(summary=whole.prose, ledger=whole.verbatim)
        message = self.conversation.format.say("user", compose(whole))
        return assemble(self.conversation, keep, message, alternate=self.alternate)

    def size_of_fillers(self) -> int:
        """Return the size of the fillers that would stand between the messages to keep, in
        characters: many, if roles must alternate and messages of one role are pinned.
        """
        if not self.alternate or not self.plan.held:
            return 0
        folded = set(self.plan.folded)
        keep = [index for index in range(len(self.messages)) if index not in folded]
        made = assemble(self.conversation, keep, None, alternate=True)
        own = set(map(id, self.messages))
        return self.size([message for message in made if id(message) not in own])

    def keep(self, indexes: Sequence[int], note: str = "") -> list[Message]:
        """Return the list of chosen messages, all protected ones, and a note in a summary message.

        All messages of a step are kept with any of them, so that tool calls keep their results. A
        prior summary is kept too: unchanged without a note, otherwise below it. A later note
        replaces this one.

        Args:
            indexes: Indexes of the messages to keep.
            note: One line that describes the dropped messages; empty: no summary message.
        """
        wanted = set(indexes)
        if self.plan.prior is not None and not note:
            wanted.add(self.plan.prior)
        steps = self.conversation.steps
        keep: list[int] = []
        for start, end in zip(steps, (*steps[1:], len(self.messages)), strict=True):
            whole = any(index in wanted for index in range(start, end))
            keep.extend(index for index in range(start, end) if whole or self.protected[index])
        if note:
            noted = replace(self.prior() or Summary(), notes=(flat(note),))
            return self.fold(noted, [index for index in keep if index != self.plan.prior])
        self.tally.set(summary="", ledger="")
        return assemble(self.conversation, keep, None, alternate=self.alternate)


def _redact_rule(redact: Callable[[str], str], line: str) -> str:
    """Return a line of rules with its text redacted; its label is compacter's own."""
    label, _, text = line.partition(": ")
    return f"{label}: {redact(text)}"


Compacting = Generator[Effect[Any], Any, Sequence[Message]]
"""A strategy that needs a model is a generator of effects that returns the compacted list."""


@runtime_checkable
class CompactionStrategy(Protocol):
    """A way to compact. A class with a ``name`` and this one method is enough.

    Where a strategy is taken, a plain function of a task will do: ``strategy=lambda task:
    task.keep(...)``.

    ``compact`` must promise:

    * The list it returns is made of the task's own message objects, in their order, and at most one
      more: what ``task.fold`` or ``task.keep`` put beside them. Only an :class:`EditingStrategy`
      may return changed copies.
    * Messages are read only. One that was changed in place is put back, and the result refused.
    * What is ``task.protected`` is in it, tool calls keep their results and results their calls,
      and it is smaller than what came in. The list as it came in, unchanged, means that there is
      nothing this strategy can do.
    * It may raise. Whatever it raises (``CompactionError`` excepted, which goes to the caller), and
      a result that breaks one of these promises, is reported in a ``CompactionFailed`` event and
      never sent; the option ``fallback`` is used.
    """

    @property
    def name(self) -> str:
        """A stable name that events carry."""
        ...

    def compact(self, task: CompactionTask) -> Sequence[Message] | Compacting:
        """The compacted list, or a generator of effects that returns it.

        Args:
            task: The messages, their sizes, the goal, and the methods that make a new list.
        """
        ...


@runtime_checkable
class EditingStrategy(CompactionStrategy, Protocol):
    """A strategy with one more member: whether it returns changed copies of messages, one for one.

    Such a strategy is asked though nothing can be compacted, and its copies may stand for what is
    not protected.
    """

    @property
    def edits(self) -> bool:
        """True for a strategy that does. One without this member does not."""
        ...


@dataclass(frozen=True, slots=True)
class FunctionStrategy:
    """A plain function of a task as a strategy, under the function's name."""

    function: Callable[[CompactionTask], Sequence[Message] | Compacting]
    name: str

    def compact(self, task: CompactionTask) -> Sequence[Message] | Compacting:
        """What the function returns."""
        return self.function(task)


StrategyLike: TypeAlias = (
    CompactionStrategy | Callable[[CompactionTask], Sequence[Message] | Compacting]
)
"""What is taken where a strategy is wanted."""


def as_strategy(value: object) -> CompactionStrategy:
    """``value`` as a strategy: one as it is, a function wrapped. Raises ``ConfigurationError`` for
    anything else.
    """
    if isinstance(value, type):
        pass  # The class of a strategy, where one of its instances is wanted.
    elif is_async(value) or is_async(getattr(value, "compact", None)):
        raise ConfigurationError(
            f"takes a strategy that is not async, as it is not awaited; not {value!r}"
        )
    elif isinstance(value, CompactionStrategy) and isinstance(value.name, str):
        return value
    elif callable(value):
        name = str(getattr(value, "__name__", type(value).__name__))
        function: Callable[[CompactionTask], Any] = value
        return FunctionStrategy(function, name.strip("<>"))
    from compacter.compaction.strategies import BUILT_IN

    meant = value if isinstance(value, type) else BUILT_IN.get(str(value).lower())
    raise ConfigurationError(
        "takes a strategy such as Summarize(), with a text `name` and `compact(task)`, "
        "or a function of a task, "
        f"not {value!r}{f'; say {meant.__name__}()' if meant else ''}"
    )


def is_async(value: object) -> bool:
    """Return whether a function, or an object's ``__call__``, is a coroutine function."""
    # The method itself: a callable object is none, though its ``__call__`` may be async.
    called = getattr(value, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(called)


def links_of(strategies: Iterable[CompactionStrategy]) -> tuple[CompactionStrategy, ...]:
    """The strategies one by one, those of a ``Chain`` in its place."""
    links: list[CompactionStrategy] = []
    for strategy in strategies:
        links.extend(links_of(strategy) if isinstance(strategy, Iterable) else (strategy,))
    return tuple(links)
