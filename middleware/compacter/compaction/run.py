"""Make one compaction: run the strategies of a plan until the request fits, check each result, and
report it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation, check, origins_of
from compacter.compaction.cut import first_unread, plan
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.strategies import BUILT_IN, Shorten, Truncate, shorten_largest
from compacter.compaction.summarize import (
    RulesTooLongError,
    extract,
    planned_reserve,
    read_head,
    summarizes,
)
from compacter.compaction.task import Compacting, CompactionStrategy, CompactionTask, Tally
from compacter.effects import AskSummarizer, World
from compacter.errors import CompactionError, FunctionError
from compacter.events import CompactionEvent, CompactionFailed, CompactionSkipped, CompactionStarted
from compacter.messages.format import Message
from compacter.summary.message import NoSummaryError, read_out

if TYPE_CHECKING:
    from compacter.options import Options

# Where no strategy made the request small enough.
_LAST_RESORT = Shorten()


@dataclass(frozen=True, slots=True)
class Compaction:
    """A finished compaction."""

    conversation: Conversation
    event: CompactionEvent
    """Not sent yet: a hook that repeats the call is to find the compaction in the memory."""


async def compact(options: Options, planned: CompactionPlan, world: World) -> Compaction | None:
    """Make one compaction, and return ``None`` if nothing could be reduced or a hook prevented it.

    ``planned`` is what ``plan`` returned. Raises ``CompactionError`` if no summary can be made and
    there is no fallback.
    """
    if planned.is_satisfied:
        return None
    approved = await _approved(options, planned, world)
    if approved is None:
        return None
    planned = approved
    if planned.cut or planned.must:
        await world.emit(
            CompactionStarted(
                original_data_size=planned.original_data_size,
                head_size=planned.head_size,
                **planned.facts,
            )
        )
    target = planned.target
    if target is None and len(options.strategy) > 1 and planned.cut:
        # What compacting the planned head would leave.
        target = planned.tail_size + planned_reserve(options, planned, planned.head_size)
    first = task = CompactionTask(plan=planned, options=options, target=target)
    before = result = planned.conversation
    for strategies_left, strategy in enumerate(options.strategy, 1 - len(options.strategy)):
        if result is not before:
            if target is None or result.size <= target:
                break
            task = _continued(task, result)
        task = replace(task, last=not strategies_left)
        if not getattr(strategy, "edits", False):
            task = _with_short_results(task)
            result = task.conversation
        result = await _attempt(strategy, task, world) or result
    if planned.must and (result is before or not planned.is_met_by(result.size)):
        task = replace(_continued(task, result), last=False)
        result = await _attempt(_LAST_RESORT, task, world) or result
    # Summarize has fallen back itself, or knows why not.
    if planned.must and result is before and not summarizes(options):
        result = _fall_back(first) or result
    if result is before:
        await world.emit(CompactionSkipped(reason="nothing_to_compact", **planned.named))
        return None
    return Compaction(result, _describe(first, result))


async def _approved(
    options: Options, planned: CompactionPlan, world: World
) -> CompactionPlan | None:
    """Return the plan as ``before_compaction`` wants it, or ``None`` for its veto."""
    edits = any(getattr(strategy, "edits", False) for strategy in options.strategy)
    if options.before_compaction is None or not (planned.cut or planned.must or edits):
        return planned
    answer = await world.approve(planned)
    if answer is None:
        await world.emit(CompactionSkipped(reason="vetoed", **planned.named))
        return None
    # A hook may change the cut; everything else is derived from it.
    cut: object = answer.cut
    if isinstance(cut, int) and cut != planned.cut:
        return plan(options, replace(planned, cut=cut, is_chosen=True))
    return planned


def _continued(task: CompactionTask, result: Conversation) -> CompactionTask:
    """Return the task of compacting what a strategy has left."""
    # A cut that a hook has set leaves as many messages in the tail.
    cut = task.plan.cut - len(task.messages) + len(result.messages)
    return replace(task, plan=plan(task.options, replace(task.plan, conversation=result, cut=cut)))


def _with_short_results(task: CompactionTask) -> CompactionTask:
    """Return the task with the results shortened that no model has answered yet, each to a fair
    share of what the target leaves beside the summary; the task itself if they fit.
    """
    planned = task.plan
    read = planned.conversation
    if not planned.must or planned.target is None or not planned.cut:
        return task
    unread = {
        index: read.sizes[index]
        for index in range(first_unread(planned), len(read.sizes))
        if not read.protected[index]
    }
    whole = sum(unread.values())
    left = planned.target - planned.tail_size + whole
    room = left - min(planned_reserve(task.options, planned, planned.head_size), max(left, 0) // 2)
    if whole <= room:
        return task
    messages = shorten_largest(task, unread, room)
    result, faults = check(read, messages, alternate=task.alternate, edits=True)
    if faults:
        return task
    task.tally.add(strategy=(_LAST_RESORT.name,))
    return _continued(task, result)


def _describe(task: CompactionTask, after: Conversation) -> CompactionEvent:
    """Return the event of a finished compaction."""
    planned = task.plan
    before = planned.conversation
    tokens = planned.calibration.tokens
    origins = origins_of(before.messages, after.messages)
    kept = set(origins)
    gone = [index for index in range(len(before.messages)) if index not in kept]
    text: str | None = None
    if after.prior is not None and origins[after.prior] is None:
        text = after.format.plain_text(after.messages[after.prior])
    summary, ledger = read_out(text or "")
    return CompactionEvent(
        original_data_size=before.size,
        compacted_data_size=after.size,
        summary=summary,
        ledger=ledger,
        ratio=round(sum(before.sizes[index] for index in gone) / (before.free or 1), 4),
        messages_before=len(before.messages),
        messages_after=len(after.messages),
        original_tokens=tokens(before.size),
        compacted_tokens=tokens(after.size),
        discarded=tuple(before.messages[index] for index in gone),
        **(task.tally | {"strategy": "+".join(dict.fromkeys(task.tally["strategy"]))}),
        **planned.facts,
    )


async def _attempt(
    strategy: CompactionStrategy, task: CompactionTask, world: World
) -> Conversation | None:
    """Run the strategy and return its checked result; ``None`` if it changed nothing, or the result
    may not be sent.

    A result that may not be sent is reported in an event; after the last strategy, or if there is
    no summary, it is replaced by the fallback. Raises ``CompactionError`` if the strategy does, or
    there is neither a summary nor a fallback.
    """
    before = task.conversation
    planned = task.plan
    cause: Exception | None = None
    falls_back = task.last
    is_fatal = False
    why = f"strategy {strategy.name} "
    try:
        messages = await _carry_out(strategy, task, world)
        if list(map(id, messages)) == list(map(id, before.messages)):
            return None
        after, faults = check(
            before,
            messages,
            alternate=task.alternate,
            edits=getattr(strategy, "edits", False),
        )
        if not faults:
            task.tally.add(strategy=(strategy.name,))
            return after
        why += f"is refused: {'; '.join(faults[:3])}"
    except CompactionError:
        raise
    except NoSummaryError as error:
        why = str(error)
        cause = error.cause
        falls_back = not isinstance(error, RulesTooLongError)
        is_fatal = planned.summary is not None or not task.options.fallback
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        cause = error
        why += f"failed, as {error}" if isinstance(error, FunctionError) else "raised"
    tally = task.tally
    costs = {name: tally[name] for name in tally.keys() & CompactionFailed.model_fields.keys()}
    failed = CompactionFailed(
        reason=why,
        error="" if cause is None or isinstance(cause, FunctionError) else type(cause).__name__,
        cause=cause,
        **costs,
        **planned.named,
    )
    await world.emit(failed)
    if is_fatal:
        raise CompactionError(
            f"no summary could be had: {why}{f': {cause}' if cause else ''}"
        ) from cause
    return _fall_back(task) if falls_back else None


def _fall_back(task: CompactionTask) -> Conversation | None:
    """Return the checked result of the first fallback that works; ``None`` if none does."""
    for fallback in task.options.fallback if task.plan.cut else ():
        # No room, or a redaction that raised: the next one then.
        with suppress(Exception):
            if fallback == "extractive":
                summary = extract(task, read_head(task), task.options.max_summary_tokens)
                messages = task.replace_head(summary)
            else:
                messages = Truncate().compact(task)
            after, faults = check(task.conversation, messages, alternate=task.alternate)
            if not faults:
                task.tally.add(fallback=True, strategy=(fallback,))
                return after
    return None


async def _carry_out(
    strategy: CompactionStrategy, task: CompactionTask, world: World
) -> list[Message]:
    """Run a strategy, answer its effects, and return its messages.

    Messages that it changes in place are put back, as they are the caller's; raises ``ValueError``
    then.
    """
    copies: list[tuple[Any, Any]] = []
    for message in () if type(strategy) in BUILT_IN.values() else task.messages:
        members = message if isinstance(message, dict) else getattr(message, "__dict__", None)
        # A message that cannot be copied is not checked.
        with suppress(Exception):
            copies.append((members, copy.deepcopy(members)))
    try:
        answer = strategy.compact(task)
        return list(
            await _converse(answer, task.tally, world) if isinstance(answer, Generator) else answer
        )
    finally:
        changed = [(members, copied) for members, copied in copies if members != copied]
        for members, copied in changed:
            members.clear()
            members.update(copied)
        if changed:
            raise ValueError("the strategy changed a message in place")


async def _converse(flow: Compacting, tally: Tally, world: World) -> Sequence[Message]:
    """Answer what a strategy asks, and return its messages."""
    outcome: Any = None
    advance: Callable[[Any], object] = flow.send
    with closing(flow):
        while True:
            try:
                question = advance(outcome)
            except StopIteration as stop:
                messages: Sequence[Message] = stop.value
                return messages
            advance = flow.send
            try:
                if not isinstance(question, AskSummarizer):
                    raise TypeError(
                        f"{question!r} is not an effect; strategies yield AskSummarizer of "
                        f"compacter.effects"
                    )
                tally.add(summarizer_calls=1)
                reply = outcome = await world.ask(question)
                tally.add(
                    input_tokens=reply.input_tokens,
                    output_tokens=reply.output_tokens,
                    cost=reply.cost,
                )
            except Exception as error:  # noqa: BLE001 - handled by the strategy
                outcome = error
                advance = flow.throw
