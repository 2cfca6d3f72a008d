"""Running the strategies: each on what the one before it left, each result checked before it counts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from compacter.errors import CompactionError
from compacter.events import CompactionFailed
from compacter.flow.effects import Flow, Tell
from compacter.flow.planning import Job, describe, plan, prior_summary
from compacter.flow.policy import Policy
from compacter.history.cut import CompactionPlan, protect
from compacter.history.untouched import Untouched
from compacter.history.validate import kept_and_discarded, violations
from compacter.messages.format import Message
from compacter.messages.steps import Outline
from compacter.strategies import Chain, ClearToolResults, Shorten, Summarize, Truncate
from compacter.strategies.base import CompactionStrategy, CompactionTask, Tally
from compacter.strategies.fallback import fall_back
from compacter.strategies.folding import reserve

_ROOM = 0.9
"""Share of the window that counts as fitting between two strategies: what just fits is too long a message later."""
_OURS = (ClearToolResults, Shorten, Summarize, Truncate)


def carry_out(
    policy: Policy, job: Job, approved: CompactionPlan, tally: Tally, *, chosen: bool
) -> Flow[list[Message] | None]:
    """Run the strategies until the request fits; ``None`` when none of them could reduce anything.

    Where nobody has said how large the request may be, several strategies aim at what ``compact_ratio`` would
    leave. ``Shorten`` comes last of all where something must be reduced. ``chosen`` tells that a hook has set
    the cut of the ``approved`` plan: then it holds for every strategy.
    """

    def left() -> CompactionPlan:
        fresh = plan(policy, replace(job, messages=tuple(messages), pinned=_moved(job, messages)))
        return replace(fresh, cut=_followed(job, approved.cut, messages)) if chosen else fresh

    links = links_of(policy.strategies)
    goal = job.target
    if goal is None and len(links) > 1:
        goal = _usual_size(policy, job, approved)
    enough = goal if goal is None or job.trigger == "manual" else int(goal * _ROOM)
    current, messages, changed = approved, list(job.messages), False
    for number, strategy in enumerate(links, 1):
        if changed:
            if enough is None or _size(job, messages) <= enough:
                return messages
            current = left()
        result = yield from _apply(policy, job, strategy, current, goal=goal, tally=tally, last=number == len(links))
        if result is not None:
            messages, changed = result, True
    if job.must and (not changed or (job.target is not None and _size(job, messages) > job.target)):
        current = left() if changed else current
        result = yield from _apply(policy, job, Shorten(), current, goal=goal, tally=tally, last=False)
        if result is not None:
            return result
    return messages if changed else None


def links_of(strategies: Sequence[CompactionStrategy]) -> tuple[CompactionStrategy, ...]:
    """The strategies one by one, those of a ``Chain`` in its place."""
    flat: list[CompactionStrategy] = []
    for strategy in strategies:
        flat.extend(links_of(strategy.strategies) if isinstance(strategy, Chain) else (strategy,))
    return tuple(flat)


def _usual_size(policy: Policy, job: Job, approved: CompactionPlan) -> int:
    free = approved.head_size / approved.ratio if approved.ratio else approved.head_size
    calibration = job.calibration
    summary = reserve(policy.settings, calibration.window, approved.head_size, calibration.chars_per_token)
    return int(approved.original_data_size - policy.ratio * free + summary)


def _followed(job: Job, cut: int, messages: Sequence[Message]) -> int:
    """Where a cut of the job's messages lies in what an earlier strategy made of them."""
    if len(messages) == len(job.messages):
        return cut
    positions, _ = kept_and_discarded(job.messages, messages)
    tail = (at for at, position in enumerate(positions) if position is not None and position >= cut)
    return next(tail, len(messages))


def _apply(
    policy: Policy,
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
    current = _aligned(policy, job, current, history, protected)
    alternate = wire.alternates if policy.alternate is None else policy.alternate
    task = CompactionTask(
        plan=current,
        wire=wire,
        alternate=alternate,
        protected=tuple(protected),
        target=goal,
        chars_per_token=job.calibration.chars_per_token,
        window=job.calibration.window,
        settings=policy.settings,
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
    policy: Policy, job: Job, current: CompactionPlan, history: Outline, protected: Sequence[bool]
) -> CompactionPlan:
    """A plan that a hook changed, brought back to what holds: the cut at a step, what stays held."""
    cut = max(0, min(current.cut, len(history.sizes)))
    if cut < len(history.sizes) and history.steps:
        cut = history.steps[bisect_right(history.steps, cut) - 1]
    if history.open is not None:
        cut = min(cut, history.open)
    prior = prior_summary(job.wire, current.messages, history)
    return describe(policy, replace(job, messages=current.messages), history, protected, cut=cut, prior=prior)


def _moved(job: Job, messages: Sequence[Message]) -> tuple[int, ...]:
    """Where the pinned messages are now."""
    wanted = {id(job.messages[index]) for index in job.pinned}
    return tuple(index for index, message in enumerate(messages) if id(message) in wanted)


def _same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _size(job: Job, messages: Sequence[Message]) -> int:
    return sum(map(job.wire.size, messages))
