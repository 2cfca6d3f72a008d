"""What a strategy gets, and what it may do: a plan of what would be folded, and a task with the means to fold it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from compacter.compaction.check import assemble
from compacter.effects import Effect
from compacter.errors import ConfigurationError
from compacter.messages.fields import flat
from compacter.messages.format import Message
from compacter.messages.parts import Kind, Part
from compacter.summary.message import Summary, compose, parse, rule_lines

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.compaction.plan import Job
    from compacter.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What a compaction would fold. Sizes are data sizes in characters.

    ``before_compaction`` may return a copy with another cut: ``dataclasses.replace(plan, cut=...)``. One inside a step
    is moved to the step's beginning; what must stay, stays, wherever the cut lies.
    """

    messages: tuple[Message, ...] = field(repr=False)
    """All messages, in order."""
    wire_format: str
    """``openai``, ``anthropic``, ``responses``, ``gemini`` or ``bedrock``."""
    cut: int
    """Index of the first message of the tail. Everything before it is the head, but for ``held``."""
    held: tuple[int, ...] = ()
    """Indexes before the cut that stay verbatim: system, pinned, and the last user message."""
    prior: int | None = None
    """Index of the summary message that is folded again, if the history has one."""
    original_data_size: int
    """Characters of all messages."""
    head_size: int
    """Characters of the messages that would be folded."""
    tail_size: int
    """Characters of everything that stays verbatim, held messages included."""
    ratio: float
    """Share of the compactable size that the head has."""
    trigger: str = "manual"
    """``token_limit``, ``threshold`` or ``manual``."""
    strategy: str = ""
    """Name of the strategy; names joined by ``+`` where there are several."""
    model: str | None = None
    """The model that is called, where the call names one."""
    conversation: Conversation | None = field(default=None, repr=False, compare=False)
    """The messages as they were read; ``None`` in a plan that was made by hand."""

    @property
    def folded(self) -> tuple[int, ...]:
        """Indexes of the head, ascending."""
        held = set(self.held)
        return tuple(index for index in range(self.cut) if index not in held)

    @property
    def head(self) -> tuple[Message, ...]:
        """The messages that would be folded, in order."""
        return tuple(self.messages[index] for index in self.folded)

    @property
    def tail(self) -> tuple[Message, ...]:
        """The messages from the cut on, verbatim."""
        return self.messages[self.cut :]

    @property
    def kept(self) -> tuple[Message, ...]:
        """Everything that stays verbatim, in order."""
        return tuple(self.messages[index] for index in self.held) + self.messages[self.cut :]


@dataclass(slots=True)
class Tally:
    """What making one compaction has cost so far. The one thing about a task that changes."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    fallback: bool = False
    summary: str = ""
    ledger: str = ""
    names: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    """What the check of a summary took out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """One compaction, as a strategy sees it. Sizes are data sizes in characters; messages are read only."""

    plan: CompactionPlan
    """What would be folded, and where the cut is."""
    conversation: Conversation
    """The messages as they were read: kinds, sizes, steps, and what must come out verbatim (``protected``)."""
    options: Options
    """The options of the ``Compacter``."""
    job: Job
    """What asked for the compaction. Internal."""
    alternate: bool
    """Whether user and assistant must alternate in the result."""
    target: int | None = None
    """Characters that the result may have at most, where that is known."""
    chars_per_token: float = 4.0
    """Characters that one token stands for, as far as that is known."""
    window: int | None = None
    """The model's context window in tokens, where it is known."""
    summarizer_window: int | None = None
    """Context window in tokens of a summarizer that is another model; ``None``: taken to be the model's own."""
    summary: str | None = None
    """A summary that the caller has made; it replaces the model's."""
    last: bool = True
    """Whether nothing is tried after this strategy, so that its failure calls for the fallback."""
    chosen: bool = False
    """Whether a hook has set the cut of the plan: then it holds for every strategy."""
    tally: Tally = field(default_factory=Tally, repr=False)
    """What the compaction has cost so far. Internal."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return self.conversation.messages

    @property
    def head(self) -> tuple[Message, ...]:
        """The messages that the plan would fold."""
        return self.plan.head

    @property
    def protected(self) -> tuple[bool, ...]:
        """Which messages must come out verbatim: system, pinned, the last user message."""
        return self.conversation.protected

    def size(self, messages: Sequence[Message] | None = None) -> int:
        """Data size in characters.

        Args:
            messages: The messages to measure; ``None``: all of the task's.
        """
        return self.conversation.size if messages is None else sum(map(self.conversation.format.size, messages))

    def fits(self, messages: Sequence[Message]) -> bool:
        """Whether messages reach the target; True where no target is known.

        Args:
            messages: The list that a strategy would return.
        """
        return self.target is None or self.size(messages) <= self.target

    def entries(self, messages: Sequence[Message] | None = None) -> list[Part]:
        """What can be read in the head; no reasoning, no prior summary, ``redact`` applied.

        Args:
            messages: Messages to read in place of the head.
        """
        redact, conversation, prior = self.options.redact, self.conversation, self.plan.prior
        found: list[Part] = []
        if messages is not None:
            for index, message in enumerate(messages):
                found.extend(conversation.format.parts(message, index))
        for index in self.plan.folded if messages is None else ():
            # A summary message is the prior summary and nothing else; the provider's own block has a message around it.
            summarized = index == prior and conversation.kinds[index] is Kind.USER
            if index >= conversation.start and not summarized and conversation.kinds[index] is not Kind.INSERTED:
                found.extend(conversation.format.parts(conversation.messages[index], index))
        if redact is None:
            return found
        from compacter.redaction import decode_escapes

        return [replace(part, text=redact(decode_escapes(part.text)), name=redact(part.name)) for part in found]

    def prior(self) -> Summary | None:
        """The prior summary that lies in the head, secrets redacted, or ``None``."""
        if self.plan.prior is None:
            return None
        text = self.conversation.prior_text()
        # The provider's own summary has no tag.
        found = parse(text) or Summary(text)
        redact = self.options.redact
        if redact is None:
            return found
        # It may have been made by a Compacter that redacted nothing, or less.
        try:
            rules = tuple(map(redact, found.rules))
            return replace(found, story=redact(found.story), quoted=redact(found.quoted), rules=rules)
        except Exception:  # noqa: BLE001 - the user's own; what cannot be redacted is not kept
            return Summary()

    def fold(self, summary: Summary | str, keep: Sequence[int] | None = None) -> list[Message]:
        """The compacted list, with a summary message in place of what is folded.

        Args:
            summary: The text of the summary.
            keep: Positions of the messages that stay, ascending; ``None``: all but the head.
        """
        told = summary if isinstance(summary, Summary) else Summary(summary)
        # Whatever the strategy: declared rules stand in every summary.
        declared = rule_lines(self.conversation.rules)
        told = replace(told, rules=(*declared, *(line for line in told.rules if line not in declared)))
        if keep is None:
            folded = set(self.plan.folded)
            keep = [index for index in range(len(self.conversation.messages)) if index not in folded]
        self.tally.summary, self.tally.ledger = told.prose, told.verbatim
        message = self.conversation.format.say("user", compose(told))
        return assemble(self.conversation, keep, message, alternate=self.alternate)

    def keep(self, indexes: Sequence[int], note: str = "") -> list[Message]:
        """The compacted list of some messages, what must stay, and a note in a summary message.

        Tool partners of a kept message are kept too, so no pair is ever broken. A prior summary is kept: below the
        note, which the next note replaces, or as it is where there is no note.

        Args:
            indexes: Positions of the messages to keep.
            note: One line that says what was left out; empty: no summary message.
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
        self.tally.summary = self.tally.ledger = ""
        return assemble(self.conversation, keep, None, alternate=self.alternate)


Compacting = Generator[Effect[Any], Any, Sequence[Message]]
"""A strategy that needs a model is a generator of effects that returns the compacted list."""


@runtime_checkable
class CompactionStrategy(Protocol):
    """A way to compact. A class with a ``name`` and this one method is enough.

    Where a strategy is taken, a plain function of a task will do: ``strategy=lambda task: task.keep(...)``.

    ``compact`` must promise:

    * The list it returns is made of the task's own message objects, in their order, and at most one more: what
      ``task.fold`` or ``task.keep`` put beside them. Only an :class:`EditingStrategy` may return changed copies.
    * Messages are read only. One that was changed in place is put back, and the result refused.
    * What is ``task.protected`` is in it, tool calls keep their results and results their calls, and it is smaller
      than what came in. The list as it came in, unchanged, means that there is nothing this strategy can do.
    * It may raise. Whatever it raises (``CompactionError`` excepted, which goes to the caller), and a result that
      breaks one of these promises, is reported in a ``CompactionFailed`` event and never sent; the option ``fallback``
      is used.
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

    Such a strategy is asked though nothing can be folded, and its copies may stand for what is not protected.
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


StrategyLike: TypeAlias = CompactionStrategy | Callable[[CompactionTask], Sequence[Message] | Compacting]
"""What is taken where a strategy is wanted."""


def as_strategy(value: object) -> CompactionStrategy:
    """``value`` as a strategy: one as it is, a function wrapped. Raises ``ConfigurationError`` for anything else."""
    if isinstance(value, type):
        pass  # The class of a strategy, where one of its instances is wanted.
    elif isinstance(value, CompactionStrategy):
        return value
    elif callable(value):
        name = str(getattr(value, "__name__", type(value).__name__))
        function: Callable[[CompactionTask], Any] = value
        return FunctionStrategy(function, name.strip("<>"))
    meant = value.__name__ if isinstance(value, type) else str(value).title().replace("_", "")
    known = isinstance(value, type) or meant in ("Summarize", "Truncate", "ClearToolResults", "Shorten")
    raise ConfigurationError(
        "takes a strategy such as Summarize(), with a `name` and `compact(task)`, or a function of a task, "
        f"not {value!r}{f'; say {meant}()' if known else ''}"
    )


def links_of(strategies: Iterable[CompactionStrategy]) -> tuple[CompactionStrategy, ...]:
    """The strategies one by one, those of a ``Chain`` in its place."""
    links: list[CompactionStrategy] = []
    for strategy in strategies:
        links.extend(links_of(strategy) if isinstance(strategy, Iterable) else (strategy,))
    return tuple(links)


def whole_number(name: str, value: object, *, least: int, of: str) -> int:
    """``value``, a whole number from ``least`` on. Raises ``ConfigurationError`` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} takes a number of {of} from {least} on, not {value!r}")
    return value
