"""Make one compaction: plan it, run the strategies until the request fits, check each result, and
report it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Any, Literal

from compacter.compaction.change import Change, violations
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import Job, plan
from compacter.compaction.strategies import BUILT_IN, Chain, RunLinks, Shorten, has_edits
from compacter.compaction.summarize import Summarize, fall_back, planned_reserve
from compacter.compaction.task import (
    Compacting,
    CompactionPlan,
    CompactionStrategy,
    CompactionTask,
    links_of,
)
from compacter.effects import AskSummarizer, Emit, World
from compacter.errors import CompactionError, FunctionError
from compacter.events import CompactionEvent, CompactionFailed, CompactionSkipped, CompactionStarted
from compacter.messages.format import Message

if TYPE_CHECKING:
    from compacter.options import Options

# Share of the target that counts as fitting between two strategies, so that the next message still
# fits too.
_ROOM = 0.9


@dataclass(frozen=True, slots=True)
class Compaction:
    """A finished compaction."""

    conversation: Conversation
    change: Change
    event: CompactionEvent
    """Not sent yet: a hook that repeats the call is to find the compaction in the memory."""
    fits: bool


async def compact(
    options: Options,
    job: Job,
    world: World,
    planned: CompactionPlan | None = None,
) -> Compaction | None:
    """Make one compaction, and return ``None`` if nothing could be reduced or a hook prevented it.

    ``planned`` is the job's plan, if it was made before. Raises ``CompactionError`` if no summary
    can be made and there is no fallback.
    """
    if job.is_satisfied(job.conversation.size):
        return None
    task = await _approve(options, job, world, planned or plan(options, job))
    if task is None:
        await _skip(job, world, "vetoed")
        return None
    before = task.conversation
    if task.plan.cut or job.must:
        started = CompactionStarted(
            trigger=job.trigger,
            original_data_size=before.size,
            head_size=task.plan.head_size,
            **job.facts,
        )
        await world.emit(started)
    after = await run_links(options.strategy, task, world)
    if job.must and (after is before or not job.is_met_by(after.size)):
        # The last resort if no strategy made the request small enough.
        rest = replace(task if after is before else _onward(task, after), last=False)
        after = await _attempt(Shorten(), rest, world) or after
    # Summarize has fallen back itself, or knows why not.
    if (
        job.must
        and after is before
        and not any(isinstance(link, Summarize) for link in links_of(options.strategy))
    ):
        after = _fall_back(task) or after
    if after is before:
        await _skip(job, world, "nothing_to_compact")
        return None
    change = Change.of(before.messages, after.messages)
    if not change.gone:
        await _skip(job, world, "no_progress")
        return None
    event = _describe(task, after, change)
    return Compaction(after, change, event, job.is_met_by(after.size))


async def _approve(
    options: Options, job: Job, world: World, planned: CompactionPlan
) -> CompactionTask | None:
    """Show the plan to ``before_compaction``, and return the task that it allows; ``None`` for a
    veto.
    """
    approved = planned
    chosen = False
    if options.before_compaction is not None and (
        approved.cut or job.must or has_edits(options.strategy)
    ):
        answer = await world.approve(approved)
        if answer is None:
            return None
        # A hook may change the cut; everything else is derived from it.
        cut: object = answer.cut
        if isinstance(cut, int) and cut != approved.cut:
            approved = plan(options, job, approved.conversation, chosen=cut)
            chosen = True
    alternate = options.alternate_roles
    if alternate is None:
        alternate = approved.conversation.format.alternates
    return CompactionTask(
        plan=approved, options=options, alternate=alternate, target=job.target, chosen=chosen
    )


def _describe(task: CompactionTask, after: Conversation, change: Change) -> CompactionEvent:
    """Return the event of a finished compaction."""
    job = task.job
    before = job.conversation
    free = task.conversation.free
    gone = sum(before.sizes[index] for index in change.gone)
    return CompactionEvent(
        original_data_size=before.size,
        compacted_data_size=after.size,
        trigger=job.trigger,
        ratio=round(gone / free, 4) if free else 0.0,
        messages_before=len(before.messages),
        messages_after=len(after.messages),
        original_tokens=job.calibration.tokens(before.size),
        compacted_tokens=job.calibration.tokens(after.size),
        discarded=change.discarded,
        strategy="+".join(dict.fromkeys(task.tally.names)),
        **task.tally.facts,
        **job.facts,
    )


async def _skip(
    job: Job, world: World, reason: Literal["nothing_to_compact", "vetoed", "no_progress"]
) -> None:
    await world.emit(CompactionSkipped(trigger=job.trigger, reason=reason, **job.named))


async def run_links(
    strategies: Sequence[CompactionStrategy], task: CompactionTask, world: World
) -> Conversation:
    """Run these strategies, and return the resulting conversation; the task's own if none changed
    it.
    """
    if task.target is None and len(links_of(strategies)) > 1:
        # What compacting the planned head would leave.
        per_token = task.job.calibration.chars_per_token
        summary = planned_reserve(task.options, task.window, task.plan.head_size, per_token)
        task = replace(task, target=task.plan.tail_size + summary)
    enough = task.target
    if enough is not None and task.job.trigger != "manual":
        enough = int(enough * _ROOM)
    left = task.conversation
    last = task.last
    for number, strategy in enumerate(strategies, 1):
        if left is not task.conversation:
            if enough is None or left.size <= enough:
                break
            task = _onward(task, left)
        here = replace(task, last=last and number == len(strategies))
        if isinstance(strategy, Chain):
            left = await run_links(strategy.strategies, here, world)
        else:
            left = await _attempt(strategy, here, world) or left
    return left


def _onward(task: CompactionTask, made: Conversation) -> CompactionTask:
    """Return the task for the next strategy, planned for the last result. A cut set by a hook stays
    in effect.
    """
    cut = task.plan.cut if task.chosen else None
    if cut is not None and len(made.messages) != len(task.messages):
        origins = Change.of(task.messages, made.messages).origins
        tail = (at for at, origin in enumerate(origins) if origin is not None and origin >= cut)
        cut = next(tail, len(made.messages))
    return replace(task, plan=plan(task.options, task.job, made, chosen=cut))


async def _attempt(
    strategy: CompactionStrategy, task: CompactionTask, world: World
) -> Conversation | None:
    """Run the strategy and return its checked result; ``None`` if it changed nothing, or the result
    may not be sent.

    A result that may not be sent is reported in an event, and after the last strategy replaced by
    the fallback. Raises ``CompactionError`` if the strategy does.
    """
    before = task.conversation
    tally = task.tally
    mark = len(task.tally.names)
    tally.names.append(strategy.name)
    kind = ""
    cause: Exception | None = None
    copies = [] if type(strategy) in BUILT_IN.values() else _copies(before.messages)
    try:
        try:
            answer = strategy.compact(task)
            if isinstance(answer, Generator):
                answer = await _carry_out(answer, world)
            messages = list(answer)
        finally:
            # Even after an error: the messages are the caller's.
            changed = bool(copies) and _restore(copies)
        if changed:
            raise ValueError("the strategy changed a message in place")
    except CompactionError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        reason = "raised"
        kind = type(error).__name__
        cause = error
        if isinstance(error, FunctionError):
            reason = f"failed, as {error}"
            kind = ""
    else:
        if len(messages) == len(before.messages) and all(map(is_, messages, before.messages)):
            del tally.names[mark:]
            return None
        made = before.with_messages(messages)
        edited = getattr(strategy, "edits", False)
        faults = violations(before, made, alternate=task.alternate, edited=edited)
        if not faults:
            if tally.facts.get("fallback") and tally.names[mark] == strategy.name:
                del tally.names[mark]
            return made
        reason = f"is refused: {'; '.join(faults[:3])}"
    del tally.names[mark:]
    tally.set(summary="", ledger="")
    why = f"strategy {strategy.name} {reason}"
    failed = CompactionFailed(
        trigger=task.job.trigger, reason=why, error=kind, cause=cause, **task.job.named
    )
    await world.emit(failed)
    if not task.last:
        return None
    return _fall_back(task)


def _fall_back(task: CompactionTask) -> Conversation | None:
    """Return the checked result of the first fallback that works; ``None`` if none does."""
    before = task.conversation
    result = fall_back(task) if task.plan.cut else None
    if result is None:
        return None
    made = before.with_messages(result)
    return None if violations(before, made, alternate=task.alternate) else made


async def _carry_out(flow: Compacting, world: World) -> Sequence[Message]:
    """Do what a strategy asks for, and return its messages."""
    outcome: Any = None
    advance: Callable[[Any], object] = flow.send
    with closing(flow):
        while True:
            try:
                effect = advance(outcome)
            except StopIteration as stop:
                messages: Sequence[Message] = stop.value
                return messages
            advance = flow.send
            try:
                if isinstance(effect, AskSummarizer):
                    outcome = await world.ask(effect)
                elif isinstance(effect, Emit):
                    outcome = await world.emit(effect.what)
                elif isinstance(effect, RunLinks):
                    outcome = (await run_links(effect.strategies, effect.task, world)).messages
                else:
                    raise TypeError(
                        f"{effect!r} is not an effect; strategies yield those of compacter.effects"
                    )
            except Exception as error:  # noqa: BLE001 - handled by the strategy
                outcome = error
                advance = flow.throw


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


def _restore(before: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> bool:
    """Restore changed messages, and return whether there were any."""
    changed = [(members, copied) for members, copied in before if members != copied]
    for members, copied in changed:
        members.clear()
        members.update(copied)
    return bool(changed)
