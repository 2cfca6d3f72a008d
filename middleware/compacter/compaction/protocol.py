"""The interface of strategies: what one is passed, and what it must return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from compacter.compaction.plan import CompactionPlan
from compacter.effects import AskSummarizer
from compacter.errors import ConfigurationError
from compacter.messages.format import Message

Compacting = Generator[AskSummarizer, Any, Sequence[Message]]
"""A strategy that needs a model is a generator of effects that returns the compacted list."""


@runtime_checkable
class CompactionStrategy(Protocol):
    """A way to compact. A class with a ``name`` and this one method is enough.

    Where a strategy is taken, a plain function of a plan will do: ``strategy=lambda plan:
    plan.keep(...)``.

    ``compact`` must promise:

    * The list it returns is made of the plan's own message objects, in their order, and at most one
      more: what ``plan.replace_head`` or ``plan.keep`` put beside them. Only a strategy that also
      has ``edits = True`` may return changed copies, one for one, of what is not protected; it is
      called even if nothing can be compacted.
    * Messages are read only. One that was changed in place is put back, and the result refused.
    * What is ``plan.protected`` is in it, tool calls keep their results and results their calls,
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
    # The method itself: a callable object is no coroutine function, but its ``__call__`` may be.
    called = getattr(value, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(called)
