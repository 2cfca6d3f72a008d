"""One compaction: plan it, run the strategies until the request fits, check the result, report it."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from compacter.compaction.chain import Chain
from compacter.compaction.check import kept_and_discarded, violations
from compacter.compaction.clear import ClearToolResults
from compacter.compaction.cut import CompactionPlan, free_size, protect
from compacter.compaction.plan import Job, describe, plan, prior_summary, satisfied
from compacter.compaction.shorten import Shorten
from compacter.compaction.summarize import Summarize, fall_back, reserve
from compacter.compaction.task import CompactionStrategy, CompactionTask, Tally
from compacter.compaction.truncate import Truncate
from compacter.effects import Flow, Remember, Tell
from compacter.errors import CompactionError
from compacter.events import CompactionEvent, CompactionFailed, CompactionSkipped, CompactionStarted
from compacter.messages.format import Message
from compacter.messages.steps import Outline

if TYPE_CHECKING:
    from compacter.options import Options


class Untouched:
    """Remembers the content of messages that are dicts; SDK objects are left to their owner."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._held: list[tuple[dict[str, object], dict[str, object]]] = []
        for message in messages:
            if isinstance(message, dict):
                try:
                    self._held.append((message, copy.deepcopy(message)))
                except Exception:  # noqa: BLE001, S112 - what cannot be copied cannot be watched
                    continue

    def restored(self) -> bool:
        """Whether a message had been changed; it is as it was again."""
        changed = [(message, before) for message, before in self._held if message != before]
        for message, before in changed:
            message.clear()
            message.update(before)
        return bool(changed)


_ROOM = 0.9
"""Share of the window that counts as fitting between two strategies: what just fits is too long a message later."""
_OURS = (ClearToolResults, Shorten, Summarize, Truncate)


def carry_out(
    options: Options, job: Job, approved: CompactionPlan, tally: Tally, *, chosen: bool
) -> Flow[list[Message] | None]:
    """Run the strategies until the request fits; ``None`` when none of them could reduce anything.

    Where nobody has said how large the request may be, several strategies aim at what ``compact_ratio`` would
    leave. ``Shorten`` comes last of all where something must be reduced. ``chosen`` tells that a hook has set
    the cut of the ``approved`` plan: then it holds for every strategy.
    """

    def left() -> CompactionPlan:
        fresh = plan(options, replace(job, messages=tuple(messages), pinned=_moved(job, messages)))
        return replace(fresh, cut=_followed(job, approved.cut, messages)) if chosen else fresh

    links = links_of(options.strategy)
    goal = job.target
    if goal is None and len(links) > 1:
        goal = _usual_size(options, job, approved)
    enough = goal if goal is None or job.trigger == "manual" else int(goal * _ROOM)
    current, messages, changed = approved, list(job.messages), False
    for number, strategy in enumerate(links, 1):
        if changed:
            if enough is None or _size(job, messages) <= enough:
                return messages
            current = left()
        result = yield from _apply(options, job, strategy, current, goal=goal, tally=tally, last=number == len(links))
        if result is not None:
            messages, changed = result, True
    if job.must and (not changed or (job.target is not None and _size(job, messages) > job.target)):
        current = left() if changed else current
        result = yield from _apply(options, job, Shorten(), current, goal=goal, tally=tally, last=False)
        if result is not None:
            return result
    return messages if changed else None


def links_of(strategies: Sequence[CompactionStrategy]) -> tuple[CompactionStrategy, ...]:
    """The strategies one by one, those of a ``Chain`` in its place."""
    flat: list[CompactionStrategy] = []
    for strategy in strategies:
        flat.extend(links_of(strategy.strategies) if isinstance(strategy, Chain) else (strategy,))
    return tuple(flat)


def _usual_size(options: Options, job: Job, approved: CompactionPlan) -> int:
    free = approved.head_size / approved.ratio if approved.ratio else approved.head_size
    calibration = job.calibration
    summary = reserve(options, calibration.window, approved.head_size, calibration.chars_per_token)
    return int(approved.original_data_size - options.compact_ratio * free + summary)


def _followed(job: Job, cut: int, messages: Sequence[Message]) -> int:
    """Where a cut of the job's messages lies in what an earlier strategy made of them."""
    if len(messages) == len(job.messages):
        return cut
    positions, _ = kept_and_discarded(job.messages, messages)
    tail = (at for at, position in enumerate(positions) if position is not None and position >= cut)
    return next(tail, len(messages))


def _apply(
    options: Options,
    job: Job,
    strategy: CompactionStrategy,
    current: CompactionPlan,
    *,
    goal: int | None,
    tally: Tally,
    last: bool,
) -> Flow[list[Message] | None]:
    """One strategy's result if it may be sent; if it may not and it was the ``last``, the fallback's."""
    wire = job.wire
    history = wire.outline(current.messages)
    pinned = job.pinned if current.messages is job.messages else _moved(job, current.messages)
    prior = prior_summary(wire, current.messages, history)
    protected = protect(history, pinned, prior=prior)
    current = _aligned(options, job, current, history, protected)
    alternate = wire.alternates if options.alternate_roles is None else options.alternate_roles
    task = CompactionTask(
        plan=current,
        wire=wire,
        alternate=alternate,
        protected=tuple(protected),
        target=goal,
        chars_per_token=job.calibration.chars_per_token,
        window=job.calibration.window,
        options=options,
        summary=job.summary,
        summarizer_window=job.calibration.summarizer_window,
        tally=tally,
    )
    mark = len(tally.names)
    tally.names.append(strategy.name)
    reason, kind, result = "", "", None
    try:
        result = yield from _asked(strategy, task)
    except CompactionError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        reason, kind = "raised", type(error).__name__
    if result is not None:
        if _same(result, current.messages):
            del tally.names[mark:]
            return None
        edited = bool(getattr(strategy, "edits", False))
        faults = violations(wire, current.messages, result, protected=protected, alternate=alternate, edited=edited)
        if not faults:
            if tally.fallback and tally.names[mark] == strategy.name:
                del tally.names[mark]
            return result
        reason = f"is refused: {'; '.join(faults[:3])}"
    del tally.names[mark:]
    tally.summary = tally.ledger = ""
    yield from Tell(
        CompactionFailed(
            model=job.model,
            conversation=job.conversation,
            trigger=job.trigger,
            reason=f"strategy {strategy.name} {reason}",
            error=kind,
        )
    )
    if not last or not current.cut:
        return None
    result = fall_back(task)
    if result is None or violations(wire, current.messages, result, protected=protected, alternate=alternate):
        return None
    return result


def _asked(strategy: CompactionStrategy, task: CompactionTask) -> Flow[list[Message]]:
    """What the strategy answers. Raises what it raises; ``ValueError`` if it changed a message in place."""
    untouched = Untouched(() if isinstance(strategy, _OURS) else task.messages)
    outcome = strategy.compact(task)
    if untouched.restored():
        raise ValueError("the strategy changed a message in place")
    return list((yield from outcome) if not isinstance(outcome, (list, tuple)) else outcome)


def _aligned(
    options: Options, job: Job, current: CompactionPlan, history: Outline, protected: Sequence[bool]
) -> CompactionPlan:
    """A plan that a hook changed, brought back to what holds: the cut at a step, what stays held."""
    cut = max(0, min(current.cut, len(history.sizes)))
    if cut < len(history.sizes) and history.steps:
        cut = history.steps[bisect_right(history.steps, cut) - 1]
    if history.open is not None:
        cut = min(cut, history.open)
    prior = prior_summary(job.wire, current.messages, history)
    return describe(options, replace(job, messages=current.messages), history, protected, cut=cut, prior=prior)


def _moved(job: Job, messages: Sequence[Message]) -> tuple[int, ...]:
    """Where the pinned messages are now."""
    wanted = {id(job.messages[index]) for index in job.pinned}
    return tuple(index for index, message in enumerate(messages) if id(message) in wanted)


def _same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _size(job: Job, messages: Sequence[Message]) -> int:
    return sum(map(job.wire.size, messages))


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that was made."""

    messages: list[Message]
    discarded: tuple[Message, ...]
    event: CompactionEvent
    fits: bool


def compact(options: Options, job: Job, *, original: Sequence[Message] | None = None) -> Flow[Compaction | None]:
    """Make one compaction; ``None`` when nothing could be reduced or the plan was vetoed.

    It is remembered as the view of ``original`` before hooks are told: one that makes the call again finds it.
    Raises ``CompactionError`` when no summary can be had and there is no fallback.
    """
    planned = plan(options, job)
    if satisfied(job, planned.original_data_size):
        return None
    approved = planned
    if options.before_compaction is not None and (planned.cut or job.must or _edits(options)):
        question: Tell[CompactionPlan | None] = Tell(planned)
        answer = yield from question
        if answer is None:
            yield from _skipped(job, "vetoed")
            return None
        # The cut is what a hook may choose; everything else follows from it.
        cut: object = answer.cut
        if isinstance(cut, int) and cut != planned.cut:
            approved = replace(planned, cut=cut)
    if approved.cut or job.must:
        yield from Tell(_started(job, approved))
    tally = Tally()
    messages = yield from carry_out(options, job, approved, tally, chosen=approved is not planned)
    if messages is None:
        yield from _skipped(job, "nothing_to_fold")
        return None
    positions, discarded = kept_and_discarded(job.messages, messages)
    before, after = approved.original_data_size, sum(map(job.wire.size, messages))
    if after >= before or not discarded:
        yield from _skipped(job, "no_progress")
        return None
    event = CompactionEvent(
        model=job.model,
        attempt=job.attempt,
        conversation=job.conversation,
        original_data_size=before,
        compacted_data_size=after,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        summary=tally.summary,
        ledger=tally.ledger,
        trigger=job.trigger,
        strategy="+".join(dict.fromkeys(tally.names)),
        fallback=tally.fallback,
        ratio=round(_share(job, positions), 4),
        messages_before=len(job.messages),
        messages_after=len(messages),
        original_tokens=job.calibration.tokens(before),
        compacted_tokens=job.calibration.tokens(after),
        limit=job.found.limit if job.found else None,
        requested=job.found.requested if job.found else None,
        summarizer_calls=tally.calls,
        cost=tally.cost if tally.calls else 0.0,
        retention=tally.retention,
        repaired=tally.repaired,
        discarded=discarded,
    )
    if original is not None:
        yield from Remember(original, messages)
    event = yield from Tell(event)
    return Compaction(messages, discarded, event, job.target is None or after <= job.target)


def _edits(options: Options) -> bool:
    """Whether a strategy may change messages where there is no head to fold."""
    return any(getattr(strategy, "edits", False) for strategy in links_of(options.strategy))


def _share(job: Job, positions: Sequence[int | None]) -> float:
    """Share of the compactable size that is no longer there verbatim."""
    history = job.wire.outline(job.messages)
    prior = prior_summary(job.wire, job.messages, history)
    protected = protect(history, job.pinned, prior=prior)
    kept = {position for position in positions if position is not None}
    free = free_size(history, protected)
    gone = sum(size for index, size in enumerate(history.sizes) if index not in kept)
    return gone / free if free else 0.0


def _started(job: Job, approved: CompactionPlan) -> CompactionStarted:
    return CompactionStarted(
        model=job.model,
        attempt=job.attempt,
        conversation=job.conversation,
        trigger=job.trigger,
        original_data_size=approved.original_data_size,
        head_size=approved.head_size,
        limit=job.found.limit if job.found else None,
        requested=job.found.requested if job.found else None,
    )


def _skipped(job: Job, reason: Literal["nothing_to_fold", "vetoed", "no_progress"]) -> Flow[None]:
    yield from Tell(
        CompactionSkipped(
            model=job.model,
            attempt=job.attempt,
            conversation=job.conversation,
            trigger=job.trigger,
            reason=reason,
        )
    )
