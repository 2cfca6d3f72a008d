"""Make one compaction: run the strategies of a plan until the request fits, check each result, and
report it.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from compacter.compaction.check import check, origins_of, with_restored
from compacter.compaction.conversation import Conversation
from compacter.compaction.cut import plan_compaction
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.strategies import (
    BUILT_IN,
    Compacting,
    CompactionStrategy,
    Shorten,
    Truncate,
)
from compacter.compaction.summarize import RulesTooLongError, extract, read_head
from compacter.effects import Approve, Ask, Emit, Flow, Restore
from compacter.errors import CompactionError, FunctionError
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionSkipped,
    CompactionStarted,
    Event,
    SummaryProgress,
)
from compacter.messages.format import Message
from compacter.summary.message import NoSummaryError, read_out

E = TypeVar("E", bound=Event)


class StrategyError(ValueError):
    """A strategy has broken a rule for strategies. The message names the rule and the remedy.
    Internal.
    """


# Tried last, if the request is still too large.
_LAST_RESORT = Shorten()


def compact(plan: CompactionPlan) -> Flow[tuple[Conversation, CompactionEvent] | None]:
    """Make one compaction. Return the compacted conversation and the event, or ``None`` if nothing
    could be reduced or a hook prevented it. The caller emits the event after storing the
    compaction, so that a hook that repeats the call finds it in the memory.

    ``plan`` is what ``plan_compaction`` returned. Raises ``CompactionError`` if no summary can be
    made and there is no fallback.
    """
    if plan.is_satisfied:
        return None
    approved = yield from _approved(plan)
    if approved is None:
        return None
    first = plan = approved
    if first.cut or first.is_required:
        size = first.original_data_size
        head = first.head_size
        yield from Emit(_event(CompactionStarted, first, original_data_size=size, head_size=head))
    before = result = first.conversation
    strategies = first.options.strategy
    for number, strategy in enumerate(strategies, 1):
        if result is not before:
            if result.size <= first.goal:
                break
            plan = _continued(plan, result)
        result = yield from _attempt(strategy, plan, is_last=number == len(strategies))
    if first.is_required and (result is before or not first.fits_size(result.size)):
        plan = _continued(plan, result)
        result = yield from _attempt(_LAST_RESORT, plan, is_last=False)
    # Summarize falls back itself, or reports why it does not.
    if first.is_required and result is before and not first.options.summarizes:
        result = _fall_back(first)
    if result is before:
        yield from Emit(_event(CompactionSkipped, first, reason="nothing_to_compact"))
        return None
    if first.options.after_compaction is not None and result.prior is not None:
        result = yield from _restore(first, result)
    return result, _describe(first, result)


def _restore(plan: CompactionPlan, result: Conversation) -> Flow[Conversation]:
    """Return the compacted conversation with the messages that ``after_compaction`` returns right
    behind the summary: as many of the first as fit. If they may not be sent, emit an event, and
    return it without them.
    """
    messages = list((yield from Restore(_describe(plan, result))))
    if not messages:
        return result
    most = plan.original_data_size - 1 if plan.target is None else plan.target
    after, faults = with_restored(result, messages, alternate=plan.alternates)
    why = "; ".join(faults[:3])
    # Dropping one may part a call from its result: then drop the call as well.
    while messages and not why and (faults or after.size > most):
        messages.pop()
        after, faults = with_restored(result, messages, alternate=plan.alternates)
    if messages and not why:
        return after
    reason = f"after_compaction is refused: {why or 'there is no room for its messages'}"
    yield from Emit(_event(CompactionFailed, plan, reason=reason))
    return result


def _approved(plan: CompactionPlan) -> Flow[CompactionPlan | None]:
    """Return the plan that ``before_compaction`` approves, or ``None`` for a veto."""
    edits = any(getattr(strategy, "edits", False) for strategy in plan.options.strategy)
    if plan.options.before_compaction is None or not (plan.cut or plan.is_required or edits):
        return plan
    answer = yield from Approve(plan)
    if answer is None:
        plan.tally.add(vetoed=True)
        yield from Emit(_event(CompactionSkipped, plan, reason="vetoed"))
        return None
    # A hook may change the cut; everything else is derived from it.
    cut: object = answer.cut
    if isinstance(cut, int) and cut != plan.cut:
        return plan_compaction(replace(plan, cut=cut, is_chosen=True))
    return plan


def _continued(plan: CompactionPlan, result: Conversation) -> CompactionPlan:
    """Return the plan for the remaining strategies, which begin with the result so far."""
    # A cut that a hook has set leaves as many messages in the tail.
    cut = plan.cut - len(plan.messages) + len(result.messages)
    return plan_compaction(replace(plan, conversation=result, cut=cut))


def _checked(
    plan: CompactionPlan, messages: Sequence[Message], name: str, *, edits: bool = False
) -> tuple[Conversation, list[str]]:
    """Return the result of the strategy of this name, and its faults. If it has no faults, record
    that the strategy was used.
    """
    after, faults = check(plan.conversation, messages, alternate=plan.alternates, edits=edits)
    if not faults:
        plan.tally.add(strategy=(name,))
    return after, faults


def _event(kind: type[E], plan: CompactionPlan, **facts: Any) -> E:
    """Return an event of this kind, with fields from the plan."""
    known = {**plan.tally, **plan.facts, **facts}
    return kind(**{name: known[name] for name in known.keys() & kind.model_fields.keys()})


def _describe(plan: CompactionPlan, after: Conversation) -> CompactionEvent:
    """Return the event of a finished compaction."""
    before = plan.conversation
    tokens = plan.sizes.calibration.tokens
    origins = origins_of(before.messages, after.messages)
    gone = sorted({*range(len(before.messages))}.difference(origins))
    summary = ledger = ""
    if after.prior is not None and origins[after.prior] is None:
        message = after.messages[after.prior]
        summary, ledger = read_out(after.format.plain_text(message) or "")
        summary = after.format.compacted(message) or summary
    return _event(
        CompactionEvent,
        plan,
        original_data_size=before.size,
        compacted_data_size=after.size,
        summary=summary,
        ledger=ledger,
        ratio=round(sum(before.sizes[index] for index in gone) / (before.free or 1), 4),
        messages_before=len(before.messages),
        messages_after=len(after.messages),
        first_removed=min(gone, default=-1) + 1,
        last_removed=max(gone, default=-1) + 1,
        original_tokens=tokens(before.size),
        compacted_tokens=tokens(after.size),
        discarded=tuple(before.messages[index] for index in gone),
        strategy="+".join(dict.fromkeys(plan.tally["strategy"])),
    )


def _attempt(
    strategy: CompactionStrategy, plan: CompactionPlan, *, is_last: bool
) -> Flow[Conversation]:
    """Run the strategy and return its checked result; the plan's conversation if it changed
    nothing, or the result may not be sent.

    A result that may not be sent is reported in an event; after the last strategy, or if there is
    no summary, it is replaced by the fallback. Raises ``CompactionError`` if the strategy does, or
    there is neither a summary nor a fallback.
    """
    before = plan.conversation
    cause: Exception | None = None
    is_fatal = False
    why = f"strategy {strategy.name} "
    try:
        messages = yield from _carry_out(strategy, plan)
        if list(map(id, messages)) == list(map(id, before.messages)):
            return before
        edits = getattr(strategy, "edits", False)
        after, faults = _checked(plan, messages, strategy.name, edits=edits)
        if not faults:
            return after
        why += f"is refused: {'; '.join(faults[:3])}"
    except CompactionError:
        raise
    except NoSummaryError as error:
        cause = error.cause
        why = str(cause if isinstance(cause, FunctionError) else error)
        is_last = not isinstance(error, RulesTooLongError)
        is_fatal = plan.summary is not None or not plan.options.fallback
    except StrategyError as error:
        why += str(error)
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        cause = error
        why += f"failed, as {error}" if isinstance(error, FunctionError) else "raised"
    name = "" if cause is None or isinstance(cause, FunctionError) else type(cause).__name__
    yield from Emit(_event(CompactionFailed, plan, reason=why, error=name, cause=cause))
    if is_fatal:
        raise CompactionError(
            f"no summary could be had: {why}{f': {cause}' if cause else ''}"
        ) from cause
    return _fall_back(plan) if is_last else before


def _fall_back(plan: CompactionPlan) -> Conversation:
    """Return the checked result of the first fallback that works; the plan's conversation if none
    does.
    """
    for fallback in plan.options.fallback if plan.cut else ():
        # There is no room, or the redaction failed: try the next one.
        with suppress(Exception):
            if fallback == "extractive":
                messages = plan.replace_head(extract(plan, read_head(plan)))
            else:
                messages = Truncate().compact(plan)
            after, faults = _checked(plan, messages, fallback)
            if not faults:
                plan.tally["fallback"] = True
                return after
    return plan.conversation


def _carry_out(strategy: CompactionStrategy, plan: CompactionPlan) -> Flow[list[Message]]:
    """Run a strategy, answer its effects, and return its messages.

    Restores the caller's messages if the strategy changed any in place; raises ``ValueError`` then.
    """
    copies: list[tuple[Any, Any]] = []
    for message in () if type(strategy) in BUILT_IN.values() else plan.messages:
        # A message that cannot be copied is not checked.
        with suppress(Exception):
            members = message if isinstance(message, dict) else vars(message)
            copies.append((members, copy.deepcopy(members)))
    try:
        answer = strategy.compact(plan)
        if isinstance(answer, Generator):
            answer = yield from _converse(answer, plan)
        if not isinstance(answer, (list, tuple)):
            raise StrategyError(
                f"returned {answer and type(answer).__name__}, not a list of messages; what "
                "helps: return plan.replace_head(...) or plan.keep(...), or plan.messages to "
                "change nothing"
            )
        return list(answer)
    finally:
        changed = [(members, copied) for members, copied in copies if members != copied]
        for members, copied in changed:
            members.clear()
            members.update(copied)
        if changed:
            raise StrategyError(
                "changed a message in place; what helps: copy it, and state edits = True"
            )


def _converse(flow: Compacting, plan: CompactionPlan) -> Flow[Sequence[Message]]:
    """Answer the effects of a strategy, and return its messages."""
    done = 0.0
    advance = partial(flow.send, None)
    with closing(flow):
        while True:
            try:
                question: object = advance()
            except StopIteration as stop:
                messages: Sequence[Message] = stop.value
                return messages
            if reason := plan.tally.pop("not_by_provider", ""):
                yield from Emit(_event(CompactionFailed, plan, reason=reason))
            try:
                if not isinstance(question, Ask):
                    raise StrategyError(
                        f"yielded {type(question).__name__}; what helps: yield Ask of "
                        "compacter.effects, or return a list"
                    )
                plan.tally.add(summarizer_calls=1)
                reply = yield from question
            except Exception as error:  # noqa: BLE001 - handled by the strategy
                advance = partial(flow.throw, error)
                continue
            advance = partial(flow.send, reply)
            plan.tally.add(
                input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=reply.cost
            )
            share = question.piece / question.pieces
            # There are more pieces if one was too long: progress never runs backwards.
            if question.pieces > 1 and share > done:
                done = share
                facts = {"piece": question.piece, "pieces": question.pieces}
                yield from Emit(_event(SummaryProgress, plan, **facts))
