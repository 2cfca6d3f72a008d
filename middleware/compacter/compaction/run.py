"""One compaction: plan it, run the strategies until the request fits, report it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from compacter.compaction.attempt import attempt
from compacter.compaction.chain import Chain, onward
from compacter.compaction.check import kept_and_discarded
from compacter.compaction.conversation import Conversation
from compacter.compaction.cut import CompactionPlan
from compacter.compaction.plan import Job, moved, plan, satisfied
from compacter.compaction.shorten import Shorten
from compacter.compaction.task import CompactionTask
from compacter.effects import Flow, Remember, Tell
from compacter.events import CompactionEvent, CompactionSkipped, CompactionStarted
from compacter.messages.format import Message

if TYPE_CHECKING:
    from compacter.options import Options


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that was made."""

    conversation: Conversation
    messages: list[Message]
    discarded: tuple[Message, ...]
    event: CompactionEvent
    fits: bool


def compact(
    options: Options, job: Job, *, original: Sequence[Message] | None = None, planned: CompactionPlan | None = None
) -> Flow[Compaction | None]:
    """Make one compaction; ``None`` when nothing could be reduced or the plan was vetoed.

    ``planned`` is the job's plan, where it was made already. The compaction is remembered as the view of ``original``
    before hooks are told: one that makes the call again finds it. Raises ``CompactionError`` when no summary can be had
    and there is no fallback.
    """
    before = job.conversation
    if satisfied(job, before.size):
        return None
    chain = Chain(*options.strategy)
    approved = planned or plan(options, job)
    chosen = False
    if options.before_compaction is not None and (approved.cut or job.must or chain.edits):
        question: Tell[CompactionPlan | None] = Tell(approved)
        answer = yield from question
        if answer is None:
            yield from _skipped(job, "vetoed")
            return None
        # The cut is what a hook may choose; everything else follows from it.
        cut: object = answer.cut
        if isinstance(cut, int) and cut != approved.cut:
            approved, chosen = moved(options, job, approved.conversation or before, cut), True
    if approved.cut or job.must:
        yield from Tell(
            CompactionStarted(
                model=job.model,
                attempt=job.attempt,
                conversation=job.digest,
                trigger=job.trigger,
                original_data_size=approved.original_data_size,
                head_size=approved.head_size,
                limit=job.found.limit if job.found else None,
                requested=job.found.requested if job.found else None,
            )
        )
    task = CompactionTask(
        plan=approved,
        conversation=approved.conversation or before,
        options=options,
        job=job,
        alternate=before.format.alternates if options.alternate_roles is None else options.alternate_roles,
        target=job.target,
        chars_per_token=job.calibration.chars_per_token,
        window=job.calibration.window,
        summarizer_window=job.calibration.summarizer_window,
        summary=job.summary,
        chosen=chosen,
    )
    after = yield from chain.run(task)
    if job.must and (after is task.conversation or (job.target is not None and after.size > job.target)):
        # The last resort for what no strategy could make small enough.
        rest = task if after is task.conversation else onward(task, after)
        after = (yield from attempt(Shorten(), replace(rest, last=False))) or after
    if after is task.conversation:
        yield from _skipped(job, "nothing_to_fold")
        return None
    positions, discarded = kept_and_discarded(before.messages, after.messages)
    if after.size >= before.size or not discarded:
        yield from _skipped(job, "no_progress")
        return None
    messages, tally = list(after.messages), task.tally
    kept = set(positions)
    gone = sum(size for index, size in enumerate(before.sizes) if index not in kept)
    event = CompactionEvent(
        model=job.model,
        attempt=job.attempt,
        conversation=job.digest,
        original_data_size=before.size,
        compacted_data_size=after.size,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        summary=tally.summary,
        ledger=tally.ledger,
        trigger=job.trigger,
        strategy="+".join(dict.fromkeys(tally.names)),
        fallback=tally.fallback,
        ratio=round(gone / free, 4) if (free := task.conversation.free) else 0.0,
        messages_before=len(before.messages),
        messages_after=len(messages),
        original_tokens=job.calibration.tokens(before.size),
        compacted_tokens=job.calibration.tokens(after.size),
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
    return Compaction(after, messages, discarded, event, job.target is None or after.size <= job.target)


def _skipped(job: Job, reason: Literal["nothing_to_fold", "vetoed", "no_progress"]) -> Flow[None]:
    yield from Tell(
        CompactionSkipped(
            model=job.model,
            attempt=job.attempt,
            conversation=job.digest,
            trigger=job.trigger,
            reason=reason,
        )
    )
