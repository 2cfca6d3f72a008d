"""Make one compaction: run the strategies of a plan until the request fits, check each result, and
report it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

from compacter.compaction.conversation import Conversation, check, origins_of
from compacter.compaction.cut import first_unread, plan_compaction
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.protocol import Compacting, CompactionStrategy
from compacter.compaction.strategies import BUILT_IN, Shorten, Truncate, shorten_largest
from compacter.compaction.summarize import RulesTooLongError, extract, read_head
from compacter.effects import AskSummarizer, World
from compacter.errors import CompactionError, FunctionError
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionSkipped,
    CompactionStarted,
    SummaryProgress,
)
from compacter.messages.format import Message
from compacter.summary.message import NoSummaryError, read_out

# Where no strategy made the request small enough.
_LAST_RESORT = Shorten()


@dataclass(frozen=True, slots=True)
class Compaction:
    """A finished compaction."""

    conversation: Conversation
    event: CompactionEvent
    """Not sent yet: a hook that repeats the call is to find the compaction in the memory."""


async def compact(plan: CompactionPlan, world: World) -> Compaction | None:
    """Make one compaction, and return ``None`` if nothing could be reduced or a hook prevented it.

    ``plan`` is what ``plan_compaction`` returned. Raises ``CompactionError`` if no summary can be
    made and there is no fallback.
    """
    if plan.is_satisfied:
        return None
    approved = await _approved(plan, world)
    if approved is None:
        return None
    limit = approved.target
    target = limit
    strategies = plan.options.strategy
    if target is None and len(strategies) > 1 and approved.cut:
        # What compacting the planned head would leave.
        target = approved.tail_size + approved.sizes.summary(approved.head_size)
    first = plan = replace(approved, target=target)
    if first.cut or first.is_required:
        await world.emit(
            CompactionStarted(
                original_data_size=first.original_data_size,
                head_size=first.head_size,
                **first.facts,
            )
        )
    before = result = first.conversation
    for strategies_left, strategy in enumerate(strategies, 1 - len(strategies)):
        if result is not before:
            if target is None or result.size <= target:
                break
            plan = _continued(plan, result, limit)
        plan = replace(plan, is_last=not strategies_left)
        if not getattr(strategy, "edits", False):
            plan = _with_short_results(plan, limit)
            result = plan.conversation
        result = await _attempt(strategy, plan, world) or result
    if first.is_required and (result is before or (limit is not None and result.size > limit)):
        plan = replace(_continued(plan, result, limit), is_last=False)
        result = await _attempt(_LAST_RESORT, plan, world) or result
    # Summarize has fallen back itself, or knows why not.
    if first.is_required and result is before and not first.options.summarizes:
        result = _fall_back(first) or result
    if result is before:
        await world.emit(CompactionSkipped(reason="nothing_to_compact", **first.named))
        return None
    return Compaction(result, _describe(first, result))


async def _approved(plan: CompactionPlan, world: World) -> CompactionPlan | None:
    """Return the plan as ``before_compaction`` wants it, or ``None`` for its veto."""
    edits = any(getattr(strategy, "edits", False) for strategy in plan.options.strategy)
    if plan.options.before_compaction is None or not (plan.cut or plan.is_required or edits):
        return plan
    answer = await world.approve(plan)
    if answer is None:
        await world.emit(CompactionSkipped(reason="vetoed", **plan.named))
        return None
    # A hook may change the cut; everything else is derived from it.
    cut: object = answer.cut
    if isinstance(cut, int) and cut != plan.cut:
        return plan_compaction(replace(plan, cut=cut, is_chosen=True))
    return plan


def _continued(plan: CompactionPlan, result: Conversation, limit: int | None) -> CompactionPlan:
    """Return the plan of compacting what a strategy has left, to the limit of the request."""
    # A cut that a hook has set leaves as many messages in the tail.
    cut = plan.cut - len(plan.messages) + len(result.messages)
    made = plan_compaction(replace(plan, conversation=result, cut=cut, target=limit))
    return replace(made, target=plan.target)


def _with_short_results(plan: CompactionPlan, limit: int | None) -> CompactionPlan:
    """Return the plan with the results shortened that no model has answered yet, each to a fair
    share of what the limit leaves beside the summary; the plan itself if they fit.
    """
    read = plan.conversation
    if not plan.is_required or limit is None or not plan.cut:
        return plan
    unread = {
        index: read.sizes[index]
        for index in range(first_unread(plan), len(read.sizes))
        if not plan.protected[index]
    }
    whole = sum(unread.values())
    left = limit - plan.tail_size + whole
    room = left - min(plan.sizes.summary(plan.head_size), max(left, 0) // 2)
    if whole <= room:
        return plan
    messages = shorten_largest(plan, unread, room)
    result, faults = check(read, messages, alternate=plan.alternates, edits=True)
    if faults:
        return plan
    plan.tally.add(strategy=(_LAST_RESORT.name,))
    return _continued(plan, result, limit)


def _describe(plan: CompactionPlan, after: Conversation) -> CompactionEvent:
    """Return the event of a finished compaction."""
    before = plan.conversation
    tokens = plan.sizes.calibration.tokens
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
        **(plan.tally | {"strategy": "+".join(dict.fromkeys(plan.tally["strategy"]))}),
        **plan.facts,
    )


async def _attempt(
    strategy: CompactionStrategy, plan: CompactionPlan, world: World
) -> Conversation | None:
    """Run the strategy and return its checked result; ``None`` if it changed nothing, or the result
    may not be sent.

    A result that may not be sent is reported in an event; after the last strategy, or if there is
    no summary, it is replaced by the fallback. Raises ``CompactionError`` if the strategy does, or
    there is neither a summary nor a fallback.
    """
    before = plan.conversation
    cause: Exception | None = None
    falls_back = plan.is_last
    is_fatal = False
    why = f"strategy {strategy.name} "
    try:
        messages = await _carry_out(strategy, plan, world)
        if list(map(id, messages)) == list(map(id, before.messages)):
            return None
        after, faults = check(
            before,
            messages,
            alternate=plan.alternates,
            edits=getattr(strategy, "edits", False),
        )
        if not faults:
            plan.tally.add(strategy=(strategy.name,))
            return after
        why += f"is refused: {'; '.join(faults[:3])}"
    except CompactionError:
        raise
    except NoSummaryError as error:
        why = str(error)
        cause = error.cause
        falls_back = not isinstance(error, RulesTooLongError)
        is_fatal = plan.summary is not None or not plan.options.fallback
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        cause = error
        why += f"failed, as {error}" if isinstance(error, FunctionError) else "raised"
    tally = plan.tally
    costs = {name: tally[name] for name in tally.keys() & CompactionFailed.model_fields.keys()}
    failed = CompactionFailed(
        reason=why,
        error="" if cause is None or isinstance(cause, FunctionError) else type(cause).__name__,
        cause=cause,
        **costs,
        **plan.named,
    )
    await world.emit(failed)
    if is_fatal:
        raise CompactionError(
            f"no summary could be had: {why}{f': {cause}' if cause else ''}"
        ) from cause
    return _fall_back(plan) if falls_back else None


def _fall_back(plan: CompactionPlan) -> Conversation | None:
    """Return the checked result of the first fallback that works; ``None`` if none does."""
    for fallback in plan.options.fallback if plan.cut else ():
        # No room, or a redaction that raised: the next one then.
        with suppress(Exception):
            if fallback == "extractive":
                messages = plan.replace_head(extract(plan, read_head(plan)))
            else:
                messages = Truncate().compact(plan)
            after, faults = check(plan.conversation, messages, alternate=plan.alternates)
            if not faults:
                plan.tally.add(fallback=True, strategy=(fallback,))
                return after
    return None


async def _carry_out(
    strategy: CompactionStrategy, plan: CompactionPlan, world: World
) -> list[Message]:
    """Run a strategy, answer its effects, and return its messages.

    Messages that it changes in place are put back, as they are the caller's; raises ``ValueError``
    then.
    """
    copies: list[tuple[Any, Any]] = []
    for message in () if type(strategy) in BUILT_IN.values() else plan.messages:
        members = message if isinstance(message, dict) else getattr(message, "__dict__", None)
        # A message that cannot be copied is not checked.
        with suppress(Exception):
            copies.append((members, copy.deepcopy(members)))
    try:
        answer = strategy.compact(plan)
        return list(
            await _converse(answer, plan, world) if isinstance(answer, Generator) else answer
        )
    finally:
        changed = [(members, copied) for members, copied in copies if members != copied]
        for members, copied in changed:
            members.clear()
            members.update(copied)
        if changed:
            raise ValueError("the strategy changed a message in place")


async def _converse(flow: Compacting, plan: CompactionPlan, world: World) -> Sequence[Message]:
    """Answer what a strategy asks, and return its messages."""
    tally = plan.tally
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
                piece = question.piece
                pieces = question.pieces
                if pieces > 1:
                    await world.emit(SummaryProgress(piece=piece, pieces=pieces, **plan.named))
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
