"""Several strategies, one after the other, until the request fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compacter.compaction.attempt import attempt
from compacter.compaction.check import kept_and_discarded
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import moved, plan
from compacter.compaction.summarize import reserve
from compacter.compaction.task import (
    Compacting,
    CompactionStrategy,
    CompactionTask,
    StrategyLike,
    as_strategy,
    edits,
    links_of,
)
from compacter.errors import ConfigurationError

if TYPE_CHECKING:
    from compacter.effects import Flow

_ROOM = 0.9
"""Share of the window that counts as fitting between two strategies: what just fits is too long a message later."""


@dataclass(frozen=True, slots=True, init=False)
class Chain:
    """Tries its strategies in order, each on what the one before it left, and stops when the request fits.

    Put the cheap ones first: ``Chain(ClearToolResults(), Summarize())``, or a list of them. Where the provider
    has not said how large a request may be, the goal is the size that folding ``compact_ratio`` would leave.

    Args:
        *strategies: Strategies, functions of a task, or sequences of them.

    Raises:
        ConfigurationError: None is given, or one is not a strategy.
    """

    strategies: tuple[CompactionStrategy, ...]
    """The strategies, in order."""
    name: str = "chain"
    """Name that events carry; those of its strategies stand in its place."""

    def __init__(self, *strategies: StrategyLike | Sequence[StrategyLike]) -> None:
        given: list[object] = []
        for one in strategies:
            given.extend(one if isinstance(one, (list, tuple)) else (one,))
        if not given:
            raise ConfigurationError("Chain needs at least one strategy")
        object.__setattr__(self, "strategies", tuple(map(as_strategy, given)))
        object.__setattr__(self, "name", "chain")

    def __iter__(self) -> Iterator[CompactionStrategy]:
        return iter(self.strategies)

    @property
    def edits(self) -> bool:
        """Whether one of its strategies does."""
        return any(map(edits, self.strategies))

    def compact(self, task: CompactionTask) -> Compacting:
        """What its strategies have made of ``task``; each result is checked before the next strategy gets it."""
        return (yield from self.run(task)).messages

    def run(self, task: CompactionTask) -> Flow[Conversation]:
        """The conversation that its strategies have left of ``task``; the task's own if they could do nothing."""
        if task.target is None and len(links_of(self)) > 1:
            task = replace(task, target=_usual_size(task))
        enough = task.target
        if enough is not None and task.job.trigger != "manual":
            enough = int(enough * _ROOM)
        left, last = task.conversation, task.last
        for number, strategy in enumerate(self.strategies, 1):
            if left is not task.conversation:
                if enough is None or left.size <= enough:
                    break
                task = onward(task, left)
                left = task.conversation
            here = replace(task, last=last and number == len(self.strategies))
            if isinstance(strategy, Chain):
                left = yield from strategy.run(here)
            else:
                left = (yield from attempt(strategy, here)) or left
        return left


def onward(task: CompactionTask, made: Conversation) -> CompactionTask:
    """The task for the next strategy: a plan of what the last one has made. A cut that a hook has set still holds."""
    if task.chosen:
        fresh = moved(task.options, task.job, made, _followed(task, made))
    else:
        fresh = plan(task.options, task.job, made)
    return replace(task, plan=fresh, conversation=fresh.conversation or made)


def _followed(task: CompactionTask, made: Conversation) -> int:
    """Where the cut of a task lies in what a strategy made of its messages."""
    if len(made.messages) == len(task.messages):
        return task.plan.cut
    positions, _ = kept_and_discarded(task.messages, made.messages)
    tail = (at for at, position in enumerate(positions) if position is not None and position >= task.plan.cut)
    return next(tail, len(made.messages))


def _usual_size(task: CompactionTask) -> int:
    """What folding ``compact_ratio`` of the history would leave, in characters."""
    head, job = task.plan.head_size, task.job
    free = head / task.plan.ratio if task.plan.ratio else head
    summary = reserve(task.options, job.calibration.window, head, job.calibration.chars_per_token)
    return int(task.plan.original_data_size - task.options.compact_ratio * free + summary)
