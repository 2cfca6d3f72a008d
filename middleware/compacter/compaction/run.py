"""Make one compaction: plan it, run the strategies until the request fits, check each result, and report it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Any, Literal

from compacter.compaction.conversation import Conversation, kept_and_discarded, violations
from compacter.compaction.plan import Job, plan
from compacter.compaction.strategies import ClearToolResults, Shorten, Truncate
from compacter.compaction.summarize import Summarize, fall_back, reserve
from compacter.compaction.task import (
    Compacting,
    CompactionPlan,
    CompactionStrategy,
    CompactionTask,
    StrategyLike,
    as_strategy,
    links_of,
)
from compacter.effects import Emit, Flow, Remember
from compacter.errors import CompactionError, ConfigurationError, FunctionError
from compacter.events import CompactionEvent, CompactionFailed, CompactionSkipped, CompactionStarted
from compacter.messages.format import Message

if TYPE_CHECKING:
    from compacter.options import Options

BUILT_IN: Mapping[str, Callable[[], CompactionStrategy]] = {
    "summarize": Summarize, "truncate": Truncate, "clear_tool_results": ClearToolResults, "shorten": Shorten,
}  # fmt: skip
"""The strategies that come with compacter, by the names that they and settings have. Each needs no argument."""
_ROOM = 0.9
"""Share of the target that counts as fitting between two strategies, so that the next message still fits too."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A finished compaction."""

    conversation: Conversation
    messages: list[Message]
    discarded: tuple[Message, ...]
    event: CompactionEvent
    fits: bool


def compact(
    options: Options, job: Job, *, original: Sequence[Message] | None = None, planned: CompactionPlan | None = None
) -> Flow[Compaction | None]:
    """Make one compaction, and return ``None`` if nothing could be reduced or a hook prevented it.

    ``planned`` is the job's plan, if it was made before. The compaction is remembered as the view of ``original``
    before hooks are called, so that a hook that repeats the call finds it. Raises ``CompactionError`` if no summary can
    be made and there is no fallback.
    """
    before = job.conversation
    if job.satisfied(before.size):
        return None
    facts = job.named
    if job.found is not None:
        facts |= {"limit": job.found.limit, "requested": job.found.requested}
    approved = planned or plan(options, job)
    chosen = False
    if options.before_compaction is not None and (approved.cut or job.must or _edit(options.strategy)):
        question: Emit[CompactionPlan | None] = Emit(approved)
        answer = yield from question
        if answer is None:
            yield from _skipped(job, "vetoed")
            return None
        # A hook may change the cut; everything else is derived from it.
        cut: object = answer.cut
        if isinstance(cut, int) and cut != approved.cut:
            approved, chosen = plan(options, job, approved.conversation, chosen=cut), True
    read = approved.conversation or before
    if approved.cut or job.must:
        whole, head = approved.original_data_size, approved.head_size
        yield from Emit(CompactionStarted(trigger=job.trigger, original_data_size=whole, head_size=head, **facts))
    task = CompactionTask(
        plan=approved,
        conversation=read,
        options=options,
        job=job,
        alternate=read.format.alternates if options.alternate_roles is None else options.alternate_roles,
        target=job.target,
        chars_per_token=job.calibration.text_per_token or job.calibration.chars_per_token,
        window=job.calibration.window,
        summarizer_window=job.calibration.summarizer_window,
        summary=job.summary,
        chosen=chosen,
    )
    after = yield from run_links(options.strategy, task)
    if job.must and (after is read or (job.target is not None and after.size > job.target)):
        # The last resort if no strategy made the request small enough.
        rest = task if after is read else _onward(task, after)
        after = (yield from _attempt(Shorten(), replace(rest, last=False))) or after
    if after is read:
        yield from _skipped(job, "nothing_to_fold")
        return None
    positions, discarded = kept_and_discarded(before.messages, after.messages)
    if not discarded:
        yield from _skipped(job, "no_progress")
        return None
    messages, tally = list(after.messages), task.tally
    kept = set(positions)
    gone = sum(size for index, size in enumerate(before.sizes) if index not in kept)
    event = CompactionEvent(
        original_data_size=before.size,
        compacted_data_size=after.size,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        summary=tally.summary,
        ledger=tally.ledger,
        trigger=job.trigger,
        strategy="+".join(dict.fromkeys(tally.names)),
        fallback=tally.fallback,
        ratio=round(gone / free, 4) if (free := read.free) else 0.0,
        messages_before=len(before.messages),
        messages_after=len(messages),
        original_tokens=job.calibration.tokens(before.size),
        compacted_tokens=job.calibration.tokens(after.size),
        summarizer_calls=tally.calls,
        cost=tally.cost,
        unverified=tuple(tally.unverified),
        discarded=discarded,
        **facts,
    )
    if original is not None:
        yield from Remember(original, messages)
    event = yield from Emit(event)
    return Compaction(after, messages, discarded, event, job.target is None or after.size <= job.target)


def _skipped(job: Job, reason: Literal["nothing_to_fold", "vetoed", "no_progress"]) -> Flow[None]:
    yield from Emit(CompactionSkipped(trigger=job.trigger, reason=reason, **job.named))


@dataclass(frozen=True, slots=True, init=False)
class Chain:
    """Tries its strategies in order, each on the result of the one before it, and stops when the request fits.

    Put the cheap ones first: ``Chain(ClearToolResults(), Summarize())``, or a list of them. If the
    provider has not stated a limit, the goal is the size that folding the head would leave.

    Args:
        *strategies: Strategies, functions of a task, or sequences of them.

    Raises:
        ConfigurationError: No strategy is given, or an argument is not a strategy.
    """

    strategies: tuple[CompactionStrategy, ...]
    """The strategies, in order."""
    name: str = "chain"
    """Name of the chain; events have the names of its strategies instead."""

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
        """Whether one of its strategies edits messages."""
        return _edit(self.strategies)

    def compact(self, task: CompactionTask) -> Compacting:
        """Run its strategies on ``task`` and return the messages. Each result is checked before the next one runs."""
        return (yield from run_links(self.strategies, task)).messages


def _edit(strategies: Sequence[CompactionStrategy]) -> bool:
    """Return whether one of the strategies returns changed copies of messages."""
    return any(getattr(strategy, "edits", False) for strategy in strategies)


def run_links(strategies: Sequence[CompactionStrategy], task: CompactionTask) -> Flow[Conversation]:
    """Run these strategies, and return the resulting conversation; the task's own if none changed it."""
    if task.target is None and len(links_of(strategies)) > 1:
        task = replace(task, target=_usual_size(task))
    enough = task.target
    if enough is not None and task.job.trigger != "manual":
        enough = int(enough * _ROOM)
    left, last = task.conversation, task.last
    for number, strategy in enumerate(strategies, 1):
        if left is not task.conversation:
            if enough is None or left.size <= enough:
                break
            task = _onward(task, left)
            left = task.conversation
        here = replace(task, last=last and number == len(strategies))
        if isinstance(strategy, Chain):
            left = yield from run_links(strategy.strategies, here)
        else:
            left = (yield from _attempt(strategy, here)) or left
    return left


def _onward(task: CompactionTask, made: Conversation) -> CompactionTask:
    """Return the task for the next strategy, planned for the last result. A cut set by a hook stays in effect."""
    cut = task.plan.cut if task.chosen else None
    if cut is not None and len(made.messages) != len(task.messages):
        positions, _ = kept_and_discarded(task.messages, made.messages)
        tail = (at for at, position in enumerate(positions) if position is not None and position >= cut)
        cut = next(tail, len(made.messages))
    fresh = plan(task.options, task.job, made, chosen=cut)
    return replace(task, plan=fresh, conversation=fresh.conversation or made)


def _usual_size(task: CompactionTask) -> int:
    """Return the size that folding the planned head would leave, in characters."""
    head, calibration = task.plan.head_size, task.job.calibration
    summary = reserve(task.options, calibration.window, head, calibration.chars_per_token)
    return task.plan.original_data_size - head + summary


def _attempt(strategy: CompactionStrategy, task: CompactionTask) -> Flow[Conversation | None]:
    """Run the strategy and return its checked result; ``None`` if it changed nothing, or the result may not be sent.

    A result that may not be sent is reported in an event, and after the last strategy replaced by the fallback.
    Raises ``CompactionError`` if the strategy does.
    """
    before, tally, mark = task.conversation, task.tally, len(task.tally.names)
    tally.names.append(strategy.name)
    reason, kind = "", ""
    cause: Exception | None = None
    copies = [] if type(strategy) in BUILT_IN.values() else _copies(before.messages)
    try:
        try:
            answer = strategy.compact(task)
            messages = list((yield from answer) if isinstance(answer, Generator) else answer)
        finally:
            changed = bool(copies) and _restored(copies)  # Even after an error: the messages are the caller's.
        if changed:
            raise ValueError("the strategy changed a message in place")
    except CompactionError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        reason, kind, cause = "raised", type(error).__name__, error
        if isinstance(error, FunctionError):
            reason, kind = f"failed, as {error}", ""
    else:
        if len(messages) == len(before.messages) and all(map(is_, messages, before.messages)):
            del tally.names[mark:]
            return None
        made = before.with_messages(messages)
        edited = getattr(strategy, "edits", False)
        faults = violations(before, made, alternate=task.alternate, edited=edited)
        if not faults:
            if tally.fallback and tally.names[mark] == strategy.name:
                del tally.names[mark]
            return made
        reason = f"is refused: {'; '.join(faults[:3])}"
    del tally.names[mark:]
    tally.summary = tally.ledger = ""
    why = f"strategy {strategy.name} {reason}"
    failed = CompactionFailed(trigger=task.job.trigger, reason=why, error=kind, cause=cause, **task.job.named)
    yield from Emit(failed)
    if not task.last or not task.plan.cut:
        return None
    result = fall_back(task)
    if result is None:
        return None
    made = before.with_messages(result)
    return None if violations(before, made, alternate=task.alternate) else made


def _copies(messages: Sequence[Message]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return pairs of each message (the attributes, for an object) and a deep copy of it."""
    found = []
    for message in messages:
        members = message if isinstance(message, dict) else getattr(message, "__dict__", None)
        if isinstance(members, dict):
            try:
                found.append((members, copy.deepcopy(members)))
            except Exception:  # noqa: BLE001, S112 - a message that cannot be copied is not checked
                continue
    return found


def _restored(before: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> bool:
    """Restore changed messages, and return whether there were any."""
    changed = [(members, copied) for members, copied in before if members != copied]
    for members, copied in changed:
        members.clear()
        members.update(copied)
    return bool(changed)
