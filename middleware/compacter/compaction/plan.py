"""What one compaction would fold, and how small it has to become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compacter.compaction.calibration import Calibration
from compacter.compaction.chain import Chain
from compacter.compaction.cut import CompactionPlan, choose_cut, free_size, protect
from compacter.compaction.summarize import Summarize, reserve
from compacter.events import Trigger
from compacter.messages.format import Message, Wire
from compacter.messages.steps import Kind, Outline
from compacter.overflow import TokenLimit
from compacter.summaries import tag

if TYPE_CHECKING:
    from compacter.options import Options

_WORTH_FOLDING = 2 * tag.FRAME
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
    summary: str | None = None
    """A summary that the caller has made; it replaces the model's."""
    must: bool = False
    """Whether something has to be folded, ``preserve_recent_turns`` or not."""


def plan(options: Options, job: Job) -> CompactionPlan:
    """What would be folded. Pure; a cut of 0 means nothing can be."""
    history = job.wire.outline(job.messages)
    prior = prior_summary(job.wire, job.messages, history)
    protected = protect(history, job.pinned, prior=prior)
    total = sum(history.sizes)
    if satisfied(job, total):
        return describe(options, job, history, protected, cut=0, prior=prior)
    free = free_size(history, protected)
    need = 0
    if job.target is not None:
        need = max(0, free - (room := max(job.target - (total - free), 0)) + _for_summary(options, job, free, room))
    turns = [index for index, kind in enumerate(history.kinds) if kind is Kind.USER and index != prior]
    worth = min(max(need, _WORTH_FOLDING), free)
    cut = choose_cut(
        history,
        protected,
        ratio=options.compact_ratio,
        need=worth,
        turns=turns,
        keep_turns=options.preserve_recent_turns,
        keep_need=worth if job.must else min(need, free),
        prior=prior,
        must=job.must,
    )
    return describe(options, job, history, protected, cut=cut, prior=prior)


def satisfied(job: Job, size: int) -> bool:
    """Whether a compaction by hand has nothing to do: there is a budget, and the messages are within it."""
    by_hand = job.trigger == "manual" and job.summary is None
    return by_hand and job.target is not None and size <= job.target


def _for_summary(options: Options, job: Job, free: int, room: int) -> int:
    """Characters of ``room`` that a cut leaves to the summary; the rest is for what stays verbatim."""
    calibration = job.calibration
    most = max(int(room * _SUMMARY_SHARE), tag.FRAME)
    if options.extractive and job.trigger == "manual":
        return most
    wanted = reserve(options, calibration.window, free, calibration.chars_per_token)
    if job.summary is None and options.ledger_share and job.trigger == "manual" and _summarizes(options):
        return min(wanted, most)
    return min(wanted, max(room // 2, tag.FRAME))


def _summarizes(options: Options) -> bool:
    links = (link for one in options.strategy for link in (one if isinstance(one, Chain) else [one]))
    return any(isinstance(link, Summarize) for link in links)


def describe(
    options: Options,
    job: Job,
    history: Outline,
    protected: Sequence[bool],
    *,
    cut: int,
    prior: int | None,
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
        strategy="+".join(strategy.name for strategy in options.strategy),
        model=job.model,
    )


def prior_summary(wire: Wire, messages: Sequence[Message], history: Outline) -> int | None:
    """Index of the summary message at the head of a history: first after the system prefix, if it is one."""
    for index, kind in enumerate(history.kinds):
        if kind is Kind.SYSTEM:
            continue
        text = wire.plain_text(messages[index]) if kind is Kind.USER else None
        return index if text is not None and tag.parse(text) is not None else None
    return None


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
