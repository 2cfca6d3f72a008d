"""What one compaction would fold, and how small it has to become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.compaction.cut import CompactionPlan, choose_cut
from compacter.compaction.summarize import Summarize, reserve
from compacter.compaction.task import links_of
from compacter.events import Trigger
from compacter.messages.steps import Kind
from compacter.overflow import TokenLimit
from compacter.summary import message as summary_message

if TYPE_CHECKING:
    from compacter.options import Options

_WORTH_FOLDING = summary_message.FRAME + 40
"""A head smaller than this cannot become smaller by a summary message."""
_SUMMARY_SHARE = 0.92
"""Of a given size, what a summary gets: passages chosen from the head hold more of what is needed later than a tail.

On real conversations at a fifth of their size, without a model: facts .55 with half of it, .62 with .85, .68 with all.
"""
MARGIN = 0.97
"""Share of the limit that is aimed at: sizes in tokens are estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One compaction to be made. Sizes in characters."""

    conversation: Conversation
    trigger: Trigger
    calibration: Calibration
    model: str | None = None
    attempt: int = 1
    digest: str = ""
    """What names the conversation in events."""
    target: int | None = None
    """What the messages may weigh afterwards."""
    reserved: int = 0
    """Of the target, what is left free for quotes; half of what there is at most."""
    found: TokenLimit | None = None
    summary: str | None = None
    """A summary that the caller has made; it replaces the model's."""
    must: bool = False
    """Whether something has to be folded, ``preserve_recent_turns`` or not."""


def plan(options: Options, job: Job, conversation: Conversation | None = None) -> CompactionPlan:
    """What would be folded. Pure; a cut of 0 means nothing can be.

    ``conversation`` is what an earlier strategy has made of the job's.
    """
    current = conversation or job.conversation
    if satisfied(job, current.size):
        return describe(options, job, current, 0)
    cut = _cut(options, job, current)
    if job.must and (
        not cut or (job.target is not None and current.size - current.free + summary_message.FRAME > job.target)
    ):
        # What stays is too much by itself: the provider's own compaction is folded too, where it can be read.
        whole = current.without_native()
        if whole is not None:
            return describe(options, job, whole, _cut(options, job, whole))
    return describe(options, job, current, cut)


def _cut(options: Options, job: Job, conversation: Conversation) -> int:
    cut = _cut_beside(options, job, conversation, job.reserved)
    if job.reserved and conversation.kinds and conversation.kinds[-1] is Kind.RESULT and cut > conversation.steps[-1]:
        # Room for quotes of what was folded is not worth results that the model has not read yet.
        return _cut_beside(options, job, conversation, 0)
    return cut


def _cut_beside(options: Options, job: Job, conversation: Conversation, reserved: int) -> int:
    """The cut that leaves ``reserved`` characters of the target free."""
    free, need = conversation.free, 0
    if job.target is not None:
        room = max(job.target - (conversation.size - free), 0)
        room -= min(reserved, room // 2)
        need = max(0, free - room + _for_summary(options, job, free, room))
    worth = min(max(need, _WORTH_FOLDING), free)
    return choose_cut(
        conversation,
        ratio=options.compact_ratio,
        need=worth,
        keep_turns=options.preserve_recent_turns,
        keep_need=worth if job.must else min(need, free),
        must=job.must,
    )


def satisfied(job: Job, size: int) -> bool:
    """Whether a compaction by hand has nothing to do: there is a budget, and the messages are within it."""
    by_hand = job.trigger == "manual" and job.summary is None
    return by_hand and job.target is not None and size <= job.target


def _for_summary(options: Options, job: Job, free: int, room: int) -> int:
    """Characters of ``room`` that a cut leaves to the summary; the rest is for what stays verbatim."""
    calibration = job.calibration
    most = max(int(room * _SUMMARY_SHARE), summary_message.FRAME)
    if options.extractive and job.trigger == "manual":
        return most
    wanted = reserve(options, calibration.window, free, calibration.chars_per_token)
    if (
        job.summary is None
        and job.trigger == "manual"
        and any(isinstance(link, Summarize) for link in links_of(options.strategy))
    ):
        return min(wanted, most)
    declared = sum(len(line) + 1 for line in summary_message.rule_lines(job.conversation.rules))
    return min(wanted + declared, max(room // 2, summary_message.FRAME + declared))


def describe(options: Options, job: Job, conversation: Conversation, cut: int) -> CompactionPlan:
    """The plan that this cut means."""
    sizes, protected, prior = conversation.sizes, conversation.protected, conversation.prior
    held = tuple(index for index in range(cut) if protected[index])
    head = sum(sizes[:cut]) - sum(sizes[index] for index in held)
    return CompactionPlan(
        messages=conversation.messages,
        wire_format=conversation.format.name,
        cut=cut,
        held=held,
        prior=prior if prior is not None and prior < cut and not protected[prior] else None,
        original_data_size=conversation.size,
        head_size=head,
        tail_size=conversation.size - head,
        ratio=round(head / conversation.free, 4) if conversation.free else 0.0,
        trigger=job.trigger,
        strategy="+".join(strategy.name for strategy in options.strategy),
        model=job.model,
        conversation=conversation,
    )


def moved(options: Options, job: Job, conversation: Conversation, cut: int) -> CompactionPlan:
    """The plan with a cut that somebody else has chosen, moved to the beginning of a step and not past an open one."""
    count = len(conversation.messages)
    cut = max(0, min(cut, count))
    if cut < count:
        cut = conversation.step(cut)[0]
    if conversation.open is not None:
        cut = min(cut, conversation.open)
    return describe(options, job, conversation, cut)


def target_characters(
    found: TokenLimit | None,
    calibration: Calibration,
    *,
    overhead: int,
    output_tokens: int | None,
) -> int | None:
    """What the messages may weigh so that the request fits, in characters; ``None`` where no limit is known.

    ``overhead`` is the size of what is sent beside the messages (tools, a system prompt outside the list),
    ``output_tokens`` the request's output limit, which counts where the provider counts it in.
    """
    limit = found.limit if found and found.limit else calibration.window
    if not limit:
        return None
    counted = output_tokens or 0 if found and found.kind == "input_plus_output" else 0
    return max(0, int((limit - counted) * MARGIN * calibration.chars_per_token) - overhead)
