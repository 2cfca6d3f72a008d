"""One compaction: plan it, run the strategies until the request fits, validate, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compacter.errors import CompactionError
from compacter.events import CompactionEvent, CompactionFailed, CompactionSkipped, CompactionStarted, Trigger
from compacter.flow.calibration import Calibration
from compacter.flow.effects import AskPlan, Clock, Flow, Tell
from compacter.flow.policy import Policy
from compacter.history.cut import CompactionPlan, choose_cut, free_size, protect
from compacter.history.message import Message
from compacter.history.outline import Kind, Outline
from compacter.history.validate import kept_and_discarded, violations
from compacter.history.wire import Wire
from compacter.overflow import TokenLimit
from compacter.strategies import Chain, Shorten, Truncate
from compacter.strategies.base import CompactionStrategy, CompactionTask, Tally
from compacter.strategies.folding import reserve
from compacter.summaries import tag

_WORTH_FOLDING = 2 * tag.FRAME
"""A head smaller than this cannot become smaller by a summary message."""
_EXTRACTIVE_SHARE = 0.92
"""Of a given size, what a summary without a model gets: it keeps more of what is asked for later than a verbatim tail does.

Measured on real conversations at a fifth of their size: facts .55 with half of it, .62 with .85, .68 with all.
"""
_MARGIN = 0.97
"""Share of the limit that is aimed at: sizes in tokens are estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One compaction to be made. Sizes in characters."""

    wire: Wire
    messages: tuple[Message, ...]
    trigger: Trigger
    calibration: Calibration
    pinned: tuple[int, ...] = ()
    model: str | None = None
    attempt: int = 1
    conversation: str = ""
    target: int | None = None
    """What the messages may weigh afterwards."""
    found: TokenLimit | None = None
    must: bool = False
    """Whether something has to be folded, ``preserve_recent_turns`` or not."""
    known_summaries: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that was made."""

    messages: list[Message]
    discarded: tuple[Message, ...]
    event: CompactionEvent
    fits: bool


def compact(policy: Policy, job: Job) -> Flow[Compaction | None]:
    """Make one compaction; ``None`` when nothing could be reduced or the plan was vetoed.

    Raises ``CompactionError`` when no summary can be had and there is no fallback.
    """
    started = yield from Clock()
    planned = plan(policy, job)
    approved = planned
    if policy.asks_plan and planned.cut:
        answer = yield from AskPlan(planned)
        if answer is None:
            yield from _skipped(job, "vetoed")
            return None
        approved = answer
    if approved.cut or job.must:
        yield from Tell(_started(job, approved))
    tally = Tally()
    messages = yield from _carry_out(policy, job, approved, tally)
    if messages is None:
        yield from _skipped(job, "nothing_to_fold")
        return None
    positions, discarded = kept_and_discarded(job.messages, messages)
    before, after = approved.original_data_size, sum(map(job.wire.size, messages))
    if after >= before or not discarded:
        yield from _skipped(job, "no_progress")
        return None
    finished = yield from Clock()
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
        duration=finished - started,
        retention=tally.retention,
        repaired=tally.repaired,
        discarded=discarded,
    )
    yield from Tell(event)
    return Compaction(messages, discarded, event, job.target is None or after <= job.target)


def plan(policy: Policy, job: Job) -> CompactionPlan:
    """What would be folded. Pure; a cut of 0 means nothing can be."""
    history = job.wire.outline(job.messages)
    prior = prior_summary(job.wire, job.messages, history)
    protected = protect(history, job.pinned)
    total = sum(history.sizes)
    free = free_size(history, protected)
    need = 0
    if job.target is not None:
        need = max(
            0, free - (room := max(job.target - (total - free), 0)) + _for_summary(policy, job, free, room)
        )
    turns = [index for index, kind in enumerate(history.kinds) if kind is Kind.USER and index != prior]
    cut = choose_cut(
        history,
        protected,
        ratio=policy.ratio,
        need=min(max(need, _WORTH_FOLDING), free),
        turns=turns,
        keep_turns=policy.keep_turns,
        prior=prior,
        must=job.must,
    )
    return describe(policy, job, history, protected, cut, prior)


def _for_summary(policy: Policy, job: Job, free: int, room: int) -> int:
    """Characters of ``room`` that a cut leaves to the summary; the rest is for messages that stay verbatim."""
    if policy.settings.extractive:
        return max(int(room * _EXTRACTIVE_SHARE), tag.FRAME)
    calibration = job.calibration
    wanted = reserve(policy.settings, calibration.window, free, calibration.chars_per_token)
    return min(wanted, max(room // 2, tag.FRAME))


def describe(
    policy: Policy, job: Job, history: Outline, protected: Sequence[bool], cut: int, prior: int | None
) -> CompactionPlan:
    """The plan that this cut means."""
    sizes = history.sizes
    held = tuple(index for index in range(cut) if protected[index])
    total = sum(sizes)
    head = sum(sizes[:cut]) - sum(sizes[index] for index in held)
    free = free_size(history, protected)
    return CompactionPlan(
        messages=job.messages,
        wire_format=job.wire.name,
        cut=cut,
        held=held,
        prior=prior if prior is not None and prior < cut and not protected[prior] else None,
        original_data_size=total,
        head_size=head,
        tail_size=total - head,
        ratio=round(head / free, 4) if free else 0.0,
        trigger=job.trigger,
        strategy="+".join(strategy.name for strategy in policy.strategies),
        model=job.model,
    )


def prior_summary(wire: Wire, messages: Sequence[Message], history: Outline) -> int | None:
    """Index of the summary message at the head of a history: the first message after the system prefix, if it is one."""
    for index, kind in enumerate(history.kinds):
        if kind is Kind.SYSTEM:
            continue
        text = wire.plain_text(messages[index]) if kind is Kind.USER else None
        return index if text is not None and tag.parse(text) is not None else None
    return None


def _carry_out(
    policy: Policy, job: Job, approved: CompactionPlan, tally: Tally
) -> Flow[list[Message] | None]:
    """Run the strategies, each on what the one before it left, until the request fits."""
    current, messages = approved, list(job.messages)
    goal = job.target
    links = _links(policy.strategies)
    if goal is None and len(links) > 1:
        free = current.head_size / current.ratio if current.ratio else current.head_size
        goal = int(
            current.original_data_size
            - policy.ratio * free
            + reserve(
                policy.settings, job.calibration.window, current.head_size, job.calibration.chars_per_token
            )
        )
    changed = False
    for strategy in (*links, None):
        if strategy is None:
            if (job.must and job.target is not None) or (not changed and job.must):
                strategy = Shorten()
            else:
                break
        if changed:
            if goal is None or sum(map(job.wire.size, messages)) <= goal:
                break
            current = plan(policy, replace(job, messages=tuple(messages), pinned=_moved(job, messages)))
        result = yield from _apply(policy, job, strategy, current, goal, tally)
        if result is not None:
            messages, changed = result, True
    return messages if changed else None


def _apply(
    policy: Policy,
    job: Job,
    strategy: CompactionStrategy,
    current: CompactionPlan,
    goal: int | None,
    tally: Tally,
) -> Flow[list[Message] | None]:
    """One strategy's result, if it is one that may be sent; the fallback's, if it is not."""
    wire = job.wire
    history = wire.outline(current.messages)
    pinned = job.pinned if current.messages is job.messages else _moved(job, current.messages)
    protected = protect(history, pinned)
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
    try:
        outcome = strategy.compact(task)
        result = list((yield from outcome) if not isinstance(outcome, (list, tuple)) else outcome)
    except CompactionError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        yield from Tell(
            CompactionFailed(
                model=job.model,
                trigger=job.trigger,
                reason=f"strategy {strategy.name} raised",
                error=type(error).__name__,
            )
        )
        result = None
    if tally.fallback and strategy.name in tally.names[mark:]:
        tally.names.remove(strategy.name)
    unchanged = result is not None and _same(result, current.messages)
    edits = bool(getattr(strategy, "edits", False))
    faults = (
        []
        if result is None or unchanged
        else violations(
            wire, current.messages, result, protected=protected, alternate=alternate, edited=edits
        )
    )
    if result is not None and not unchanged and not faults:
        return result
    del tally.names[mark:]
    if faults:
        yield from Tell(
            CompactionFailed(
                model=job.model,
                trigger=job.trigger,
                reason=f"strategy {strategy.name} is refused: {'; '.join(faults[:3])}",
            )
        )
    if (
        (unchanged or isinstance(strategy, (Truncate, Shorten)))
        or not policy.settings.fallback
        or not current.cut
    ):
        return None
    result = Truncate().compact(task)
    if violations(wire, current.messages, result, protected=protected, alternate=alternate):
        return None
    tally.fallback = True
    tally.names.append("truncate")
    return result


def _aligned(
    policy: Policy, job: Job, current: CompactionPlan, history: Outline, protected: Sequence[bool]
) -> CompactionPlan:
    """A plan that a hook changed, brought back to what must hold: the cut at a step, what must stay held."""
    from bisect import bisect_right

    cut = max(0, min(current.cut, len(history.sizes)))
    if cut < len(history.sizes) and history.steps:
        cut = history.steps[bisect_right(history.steps, cut) - 1]
    if history.open is not None:
        cut = min(cut, history.open)
    prior = prior_summary(job.wire, current.messages, history)
    return describe(policy, replace(job, messages=current.messages), history, protected, cut, prior)


def _links(strategies: Sequence[CompactionStrategy]) -> tuple[CompactionStrategy, ...]:
    flat: list[CompactionStrategy] = []
    for strategy in strategies:
        flat.extend(_links(strategy.strategies) if isinstance(strategy, Chain) else (strategy,))
    return tuple(flat)


def _moved(job: Job, messages: Sequence[Message]) -> tuple[int, ...]:
    """Where the pinned messages are now."""
    wanted = {id(job.messages[index]) for index in job.pinned}
    return tuple(index for index, message in enumerate(messages) if id(message) in wanted)


def _same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _share(job: Job, positions: Sequence[int | None]) -> float:
    """Share of the compactable size that is no longer there verbatim."""
    history = job.wire.outline(job.messages)
    protected = protect(history, job.pinned)
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


def target_characters(
    found: TokenLimit | None, calibration: Calibration, *, overhead: int, output_tokens: int | None
) -> int | None:
    """What the messages may weigh so that the request fits, in characters; ``None`` where no limit is known.

    ``overhead`` is the size of what is sent beside the messages (tools, a system prompt outside the list), ``output_tokens``
    the request's output limit, which counts where the provider counts it in.
    """
    limit = found.limit if found and found.limit else calibration.window
    if not limit:
        return None
    counted = output_tokens or 0 if found and found.kind == "input_plus_output" else 0
    return max(0, int((limit - counted) * _MARGIN * calibration.chars_per_token) - overhead)
