"""The interface of strategies, and the strategies without a model, which drop the head, clear tool
results or shorten the largest messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from compacter.compaction.plan import CompactionPlan
from compacter.compaction.summarize import Summarize
from compacter.effects import Ask
from compacter.errors import ConfigurationError, whole_number, with_hints
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import tools_of
from compacter.summary.message import Summary
from compacter.text.shorten import EDITED, LEAST_SHORTENED, original_size, shorten

Compacting = Generator[Ask, Any, Sequence[Message]]
"""A strategy that needs a model is a generator of effects that returns the compacted list."""


@runtime_checkable
class CompactionStrategy(Protocol):
    """A way to compact. A class with a ``name`` and this one method is enough.

    A plain function of a plan is a strategy too: ``strategy=lambda plan: plan.keep(...)``.

    ``compact`` must promise:

    * The list it returns is made of the plan's own message objects, in their order, and at most one
      more: what ``plan.replace_head`` or ``plan.keep`` put beside them. Only a strategy that also
      has ``edits = True`` may return changed copies, one for one, of messages that are not
      protected; it is called even if nothing can be compacted.
    * Messages are not changed in place. If one is, compacter restores it and refuses the result.
    * It contains every message of ``plan.protected``, tool calls keep their results and results
      their calls, and it is smaller than the list in the plan. To state that it can do nothing, a
      strategy returns that list unchanged.
    * It may raise. A ``CompactionError`` goes to the caller. Any other exception, and a result that
      breaks one of these promises, is reported in a ``CompactionFailed`` event, and the option
      ``fallback`` is used.
    """

    @property
    def name(self) -> str:
        """A stable name that events carry."""
        ...

    def compact(self, plan: CompactionPlan) -> Sequence[Message] | Compacting:
        """The compacted list, or a generator of effects that returns it.

        Args:
            plan: The messages, their sizes, the goal, and the methods that make a new list.
        """
        ...


@dataclass(frozen=True, slots=True)
class FunctionStrategy:
    """A plain function of a plan as a strategy, under the function's name."""

    function: Callable[[CompactionPlan], Sequence[Message] | Compacting]
    name: str

    def compact(self, plan: CompactionPlan) -> Sequence[Message] | Compacting:
        """Return what the function returns."""
        return self.function(plan)


StrategyLike: TypeAlias = (
    CompactionStrategy | Callable[[CompactionPlan], Sequence[Message] | Compacting]
)
"""A strategy, or a function that acts as one."""


def is_async(value: object) -> bool:
    """Return whether a function, or an object's ``__call__``, is a coroutine function."""
    # Check the method itself: a callable object is not a coroutine function, but its ``__call__``
    # may be.
    called = getattr(value, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(called)


# -- the strategies without a model ----------------------------------------------------------------

_NOTE = "Earlier messages were left out without a summary."


@with_hints
@dataclass(frozen=True, slots=True)
class Truncate:
    """Replaces the head with a note that messages were left out. A prior summary is kept below the
    note.
    """

    name: str = field(default="truncate", init=False)
    """Name that events carry."""

    def compact(self, plan: CompactionPlan) -> list[Message]:
        """Return the list of ``plan`` without its head, with the prior summary below the note."""
        if plan.compacted in ((), (plan.prior,)):
            return list(plan.messages)
        prior = plan.prior_summary() or Summary()
        # Not if an earlier compaction added it.
        notes = dict.fromkeys((*prior.notes, _NOTE))
        return plan.replace_head(replace(prior, notes=tuple(notes)))


# Least size of one of a message's texts, in characters with its receipt.
_LEAST = 100
_RECEIPT = "[tool result cleared to save room: {size:,} characters]"


@with_hints
@dataclass(frozen=True, slots=True, kw_only=True)
class ClearToolResults:
    """Replaces each old, large tool result with a short note of its size. Tool calls stay paired
    with their results.

    Results of tools that the provider runs itself are cleared too (code execution, MCP, file
    search), except those of Anthropic's web search and web fetch, which are encrypted or cited by
    place and must come back unchanged. Raises ``ConfigurationError`` if an argument is invalid.
    """

    keep_recent: int = 3
    """Number of the newest result messages to leave unchanged."""
    min_size: int = 400
    """Smallest size of a large result, in characters."""
    exclude: Iterable[str] = ()
    """Names of tools whose results are never cleared."""
    name: str = field(default="clear_tool_results", init=False)
    """Name that events carry."""
    edits: ClassVar[bool] = True
    """Its results contain changed copies of messages, one for one."""

    def __post_init__(self) -> None:
        whole_number("keep_recent", self.keep_recent, least=0, of="results")
        whole_number("min_size", self.min_size, least=0, of="characters")
        given: Any = self.exclude
        names = tuple(given) if isinstance(given, Iterable) else (0,)
        if isinstance(given, str) or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"exclude takes several names of tools, not {given!r}")
        object.__setattr__(self, "exclude", frozenset(names))

    def compact(self, plan: CompactionPlan) -> list[Message]:
        """Return the list of ``plan`` with receipts. Messages without a large result are the
        identical objects.
        """
        conversation = plan.conversation
        tools = tools_of(conversation.parts_of_each(plan.messages))
        out = list(plan.messages)
        for index in list(tools)[: max(0, len(tools) - self.keep_recent)]:
            if not plan.protected[index] and tools[index].isdisjoint(self.exclude):
                out[index] = conversation.format.rewrite(out[index], self._receipt)
        return out

    def _receipt(self, kind: str, text: str, name: str) -> str:
        if (
            kind != "result"
            or len(text) <= max(self.min_size, len(_RECEIPT))
            or name in self.exclude
        ):
            return text
        return _RECEIPT.format(size=original_size(text))


@with_hints
@dataclass(frozen=True, slots=True, kw_only=True)
class Shorten:
    """Shortens the largest messages until the request fits. Beginning and end are kept, with a
    receipt between them.

    System prompts, pinned messages, the last user message and the arguments of tool calls are never
    changed. Raises ``ConfigurationError`` if ``min_size`` is invalid.
    """

    min_size: int = LEAST_SHORTENED
    """Smallest size of a shortened message, in characters; at least 100."""
    name: str = field(default="shorten", init=False)
    """Name that events carry."""
    edits: ClassVar[bool] = True
    """Its results contain changed copies of messages, one for one."""

    def __post_init__(self) -> None:
        whole_number("min_size", self.min_size, least=_LEAST, of="characters")

    def compact(self, plan: CompactionPlan) -> list[Message]:
        """Return the list of ``plan`` with the largest messages shortened, no more than needed."""
        read = plan.conversation
        sizes = {
            index: size
            for index, size in enumerate(read.sizes)
            if not plan.protected[index] and index != read.prior
        }
        room = plan.goal - read.size + sum(sizes.values())
        ceiling = max(self.min_size, _fair_share(list(sizes.values()), room))
        redact = plan.options.redact

        def cut(text: str, most: int) -> str:
            short = shorten(text, most)
            # Redact first: half of a secret would not be recognised later, in a summary or the
            # memory.
            return short if redact is None or short == text else shorten(redact(text), most)

        out = list(plan.messages)
        for index, size in sizes.items():
            texts = (part for part in read.parts(index) if part.kind in EDITED)
            # Otherwise its texts do not make it too large.
            if size > ceiling > size - sum(len(part.text) for part in texts):
                out[index] = shorten_message(read.format, out[index], size - ceiling, cut)
        return out


def _fair_share(sizes: Sequence[int], room: int) -> int:
    """Return the largest size of a message with which all are within the room: what is smaller than
    its share leaves the rest to larger ones.
    """
    share = room
    for smaller, size in enumerate(sorted(sizes)):
        share = room // (len(sizes) - smaller)
        if size > share:
            break
        room -= size
    return share


def shorten_message(
    form: MessageFormat,
    message: Message,
    excess: int,
    cut: Callable[[str, int], str],
    spans: Callable[[str], Iterable[tuple[int, int]]] = lambda text: [(0, len(text))],
    edited: Collection[str] = EDITED,
) -> Message:
    """Return a copy of a message, shorter by up to ``excess`` characters; the message itself if it
    cannot be shortened.

    Args:
        form: Format of the message.
        message: A message, which is not changed.
        excess: Size to leave out, in characters; each text is cut in proportion to its size.
        cut: Called with each text and its largest size in characters; returns the shorter text.
        spans: Returns beginnings and ends of the texts within one that may be shortened.
        edited: Kinds of parts to shorten.
    """
    texts = (part.text for part in form.all_parts(message, 0) if part.kind in edited)
    total = sum(end - begin for text in texts for begin, end in spans(text))

    def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - as every edit
        if kind not in edited:
            return text
        pieces = list[str]()
        at = 0
        for begin, end in spans(text):
            most = max(_LEAST, (end - begin) * (total - excess) // (total or 1))
            pieces += text[at:begin], cut(text[begin:end], most)
            at = end
        short = "".join((*pieces, text[at:]))
        return short if len(short) < len(text) else text

    return form.rewrite(message, edit)


BUILT_IN: Mapping[str, Callable[[], CompactionStrategy]] = {
    "summarize": Summarize,
    "truncate": Truncate,
    "clear_tool_results": ClearToolResults,
    "shorten": Shorten,
}
"""The strategies that come with compacter, by the names that they and settings have. Each needs no
argument."""


def as_strategies(given: object) -> tuple[CompactionStrategy, ...]:
    """Return a strategy, a function or a sequence of these as strategies. Raises
    ``ConfigurationError`` for anything else, and for an empty sequence.
    """
    several = given if isinstance(given, (list, tuple)) else (given,)
    if not several:
        raise ConfigurationError("takes at least one strategy, such as Summarize()")
    return tuple(map(_as_strategy, several))


def _as_strategy(value: object) -> CompactionStrategy:
    # A user may pass the class of a strategy in place of an instance.
    if isinstance(value, type) or is_async(value) or is_async(getattr(value, "compact", None)):
        pass
    elif isinstance(value, CompactionStrategy) and isinstance(value.name, str):
        return value
    elif callable(value):
        name = str(getattr(value, "__name__", type(value).__name__))
        function: Callable[[CompactionPlan], Any] = value
        return FunctionStrategy(function, name.strip("<>"))
    meant = value if isinstance(value, type) else BUILT_IN.get(str(value).lower())
    helps = f"; say {meant.__name__}()" if meant else ""
    raise ConfigurationError(
        "takes a strategy such as Summarize() or Truncate(), a function of a plan, or a list of "
        f"these, not async; not {value!r}{helps}"
    )
