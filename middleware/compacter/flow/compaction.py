"""One compaction: plan it, run the strategies until the request fits, validate, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compacter.events import CompactionEvent, CompactionSkipped, CompactionStarted
from compacter.flow.carrying import carry_out, links_of
from compacter.flow.effects import AskPlan, Clock, Flow, Remember, Tell
from compacter.flow.planning import Job, plan, prior_summary, satisfied
from compacter.flow.policy import Policy
from compacter.history.cut import CompactionPlan, free_size, protect
from compacter.history.validate import kept_and_discarded
from compacter.messages.format import Message
from compacter.strategies.base import Tally


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that was made."""

    messages: list[Message]
    discarded: tuple[Message, ...]
    event: CompactionEvent
    fits: bool


def compact(policy: Policy, job: Job, *, original: Sequence[Message] | None = None) -> Flow[Compaction | None]:
    """Make one compaction; ``None`` when nothing could be reduced or the plan was vetoed.

    It is remembered as the view of ``original`` before hooks are told: one that makes the call again finds it.
    Raises ``CompactionError`` when no summary can be had and there is no fallback.
    """
    started = yield from Clock()
    planned = plan(policy, job)
    if satisfied(policy, job, planned.original_data_size):
        return None
    approved = planned
    if policy.asks_plan and (planned.cut or job.must or _edits(policy)):
        answer = yield from AskPlan(planned)
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
    messages = yield from carry_out(policy, job, approved, tally, chosen=approved is not planned)
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
    if original is not None:
        yield from Remember(original, messages)
    yield from Tell(event)
    return Compaction(messages, discarded, event, job.target is None or after <= job.target)


def _edits(policy: Policy) -> bool:
    """Whether a strategy may change messages where there is no head to fold."""
    return any(getattr(strategy, "edits", False) for strategy in links_of(policy.strategies))


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
