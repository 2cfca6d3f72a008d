"""The interface of strategies: the task that one receives, and what it has to be."""

from __future__ import annotations

import inspect
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from compacter.effects import Effect
from compacter.errors import ConfigurationError
from compacter.messages.fields import flat
from compacter.messages.format import Message
from compacter.messages.parts import Kind, Part
from compacter.summary.message import Summary, compose, parse, rule_lines

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.compaction.plan import CompactionPlan
    from compacter.options import Options


class Tally(dict[str, Any]):
    """What one compaction has cost and written so far: fields of the ``CompactionEvent``, by their
    names. The only mutable part of a task.
    """

    def add(self, **values: float | tuple[str, ...] | None) -> None:
        """Add to fields that are sums or lists; ``None`` makes a sum ``None``."""
        for name, value in values.items():
            if name not in self or value is None:
                self[name] = value
            elif self[name] is not None:
                self[name] += value


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """One compaction, as passed to a strategy. Sizes are data sizes in characters. Messages must
    not be changed.
    """

    plan: CompactionPlan
    """The plan: the messages to compact, and the cut."""
    options: Options
    """The options of the ``Compacter``."""
    target: int | None = None
    """Largest size of the result, in characters; ``None`` if unknown."""
    last: bool = True
    """Whether this is the last strategy, so that the fallback is used if it fails."""
    tally: Tally = field(default_factory=lambda: Tally(cost=0.0), repr=False)
    """Costs and results so far. Internal."""

    @property
    def conversation(self) -> Conversation:
        """The messages as they were read: kinds, sizes, steps, and which must be kept verbatim
        (``protected``).
        """
        return self.plan.conversation

    @property
    def alternate(self) -> bool:
        """Whether user and assistant must alternate in the result. Fillers that this needs are
        added to what a strategy returns.
        """
        wanted = self.options.alternate_roles
        return self.conversation.format.alternates if wanted is None else wanted

    @property
    def chars_per_token(self) -> float:
        """Estimate of the number of characters per token, of text."""
        return self.plan.calibration.text_per_token

    @property
    def window(self) -> int | None:
        """The model's context window in tokens; ``None`` if unknown."""
        return self.plan.calibration.window

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return self.plan.messages

    @property
    def head(self) -> tuple[Message, ...]:
        """The messages to compact, the earlier summary included."""
        return self.plan.replaced

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
        if messages is not None:
            return self._read(enumerate(messages))
        conversation = self.conversation
        prior = self.plan.prior
        # A summary message has nothing else in it; the provider's own block is a part of a message.
        return self._read(
            (index, conversation.messages[index])
            for index in self.plan.compacted
            if index >= conversation.start
            and (index != prior or conversation.kinds[index] is not Kind.USER)
        )

    def staying(self) -> list[Part]:
        """Return the readable parts of the messages that stay, like ``entries``."""
        return self._read((index, self.messages[index]) for index in self.plan.staying)

    def _read(self, numbered: Iterable[tuple[int, Message]]) -> list[Part]:
        """Return the readable parts of messages, redacted, each with the index that is given for
        its message.
        """
        redact = self.options.redact or str
        numbered = list(numbered)
        reads = self.conversation.parts_of_each([message for _, message in numbered])
        return [
            replace(part, index=index, text=redact(part.text), name=redact(part.name))
            for (index, _), read in zip(numbered, reads, strict=True)
            for part in read.readable
        ]

    def prior(self) -> Summary | None:
        """Return the prior summary in the head, with secrets redacted, or ``None``."""
        if self.plan.prior is None:
            return None
        form = self.conversation.format
        message = self.messages[self.plan.prior]
        text = form.compacted(message) or form.plain_text(message) or ""
        # A provider's own summary has no tag.
        prior = parse(text) or Summary(text)
        redact = self.options.redact
        if redact is None:
            return prior
        # The Compacter that made it may have had no redaction, or another one.
        try:
            return replace(prior, story=redact(prior.story), quoted=redact(prior.quoted))
        except Exception:  # noqa: BLE001 - the user's function; text that cannot be redacted is dropped
            return Summary()

    def replace_head(
        self, summary: Summary | str, keep: Sequence[int] | None = None
    ) -> list[Message]:
        """Return the compacted list, with a summary message in place of the compacted messages.

        Args:
            summary: Text of the summary.
            keep: Indexes of the messages to keep, ascending; ``None``: all but the head.
        """
        keep = self.plan.staying if keep is None else keep
        # Every summary contains the declared rules, whatever the strategy.
        summary = summary if isinstance(summary, Summary) else Summary(summary)
        text = compose(replace(summary, rules=rule_lines(self.conversation.rules)))
        messages = [self.messages[index] for index in keep]
        place = bisect_left(keep, self.conversation.lead)
        messages.insert(place, self.conversation.format.say("user", text))
        return messages

    # Its name up to 0.3, for one version.
    fold = replace_head

    def keep(self, indexes: Sequence[int], note: str = "") -> list[Message]:
        """Return the list of chosen messages, all protected ones, and a note in a summary message.

        All messages of a step are kept with any of them, so that tool calls keep their results. A
        prior summary is kept too: unchanged without a note, otherwise below it. A later note
        replaces this one.

        Args:
            indexes: Indexes of the messages to keep.
            note: One line that describes the dropped messages; empty: no summary message.
        """
        prior = self.plan.prior
        wanted = {*indexes} if note else {*indexes, prior}
        steps = pairwise(self.conversation.steps)
        whole = [range(*step) for step in steps if not wanted.isdisjoint(range(*step))]
        kept = {*compress(range(len(self.messages)), self.protected)}.union(*whole)
        if note:
            noted = replace(self.prior() or Summary(), notes=(flat(note),))
            return self.replace_head(noted, sorted(kept - {prior}))
        return [self.messages[index] for index in sorted(kept)]


Compacting = Generator[Effect[Any], Any, Sequence[Message]]
"""A strategy that needs a model is a generator of effects that returns the compacted list."""


@runtime_checkable
class CompactionStrategy(Protocol):
    """A way to compact. A class with a ``name`` and this one method is enough.

    Where a strategy is taken, a plain function of a task will do: ``strategy=lambda task:
    task.keep(...)``.

    ``compact`` must promise:

    * The list it returns is made of the task's own message objects, in their order, and at most one
      more: what ``task.replace_head`` or ``task.keep`` put beside them. Only a strategy that also
      has ``edits = True`` may return changed copies, one for one, of what is not protected; it is
      asked though nothing can be compacted.
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


def as_strategies(given: Iterable[object]) -> tuple[CompactionStrategy, ...]:
    """Return values as strategies, those of nested sequences in their place: a strategy as it is, a
    function wrapped. Raises ``ConfigurationError`` for anything else, and if there are none.
    """
    strategies: list[CompactionStrategy] = []
    for value in given:
        if isinstance(value, (list, tuple)):
            strategies += as_strategies(value)
        else:
            strategies.append(_as_strategy(value))
    if not strategies:
        raise ConfigurationError("takes at least one strategy, such as Summarize()")
    return tuple(strategies)


def _as_strategy(value: object) -> CompactionStrategy:
    # The class of a strategy may stand where one of its instances is wanted.
    if isinstance(value, type) or is_async(value) or is_async(getattr(value, "compact", None)):
        pass
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
        "or a function of a task; one that is not async, as it is not awaited; "
        f"not {value!r}{f'; say {meant.__name__}()' if meant else ''}"
    )


def check_name(strategy: CompactionStrategy) -> None:
    """Raise ``ConfigurationError`` if the name of a strategy is not a text."""
    name: object = strategy.name
    if not isinstance(name, str):
        raise ConfigurationError(
            f"{type(strategy).__name__} takes a name for events, not {name!r}; how much is "
            "compacted is what the options compact_ratio and preserve_recent_turns say"
        )


def is_async(value: object) -> bool:
    """Return whether a function, or an object's ``__call__``, is a coroutine function."""
    # The method itself: a callable object is none, though its ``__call__`` may be async.
    called = getattr(value, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(called)
