"""Choose the cut of a compaction: how a window is divided between the summary, the messages that
stay verbatim, and free room.

What can be fetched when a step needs it is not carried everywhere: after a compaction more than
half of the window is free, so that the next one is far off. The newest messages say what is meant,
so as much of them stays as that allows. An option that the program has set wins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.summarize import planned_reserve, rules_size, summarizes
from compacter.messages.parts import Kind
from compacter.summary.message import FRAME

if TYPE_CHECKING:
    from compacter.options import Options

# Smallest head worth compacting, in characters: the summary message would be as large as a smaller
# one.
_WORTH = FRAME + 40
# Share of a given size that the summary gets: passages chosen from the head are needed later more
# often than a tail.
#
# On real conversations at a fifth of their size, without a model: facts .55 with half of it, .62
# with .85, .68 with all.
_SUMMARY_SHARE = 0.92
# Share of the compactable size by which a head may exceed its goal so that the tail begins with a
# turn: an answer without its question is hard to understand.
_TURN_REST = 0.05
# Share of the size that steps with tool results have, from which on a history is an agent's.
_WORKING = 0.5
# Share of the room for the summary and the messages that stay, and the largest one: so much stays
# where the rest is then read in one request to the model that summarizes, which each costs its
# instruction and the earlier summary.
_TAKEN = 0.43
_MOST_TAKEN = 0.5
# Share of the summarizer's window that a head may have to be read in one request.
_READABLE = 0.77
# Share of the room that the newest messages may have in any case.
_TAIL = 0.15
# Largest share of the room for results that the model has not read yet. An agent whose newest
# result is gone calls the tool again, and with the same result for ever.
_NEWEST = 0.8


def plan(options: Options, asked: CompactionPlan) -> CompactionPlan:
    """Return the plan with the cut: what to compact; with a cut of 0 nothing can be compacted.

    A cut that a hook has set is moved to the beginning of its step, and never past an open step.
    """
    read = asked.conversation
    if asked.is_chosen:
        cut = max(0, min(asked.cut, read.end))
        cut = read.steps[bisect_right(read.steps, cut) - 1]
    elif asked.is_satisfied:
        cut = 0
    else:
        cut = _cut(options, asked)
        staying = read.size - read.free + FRAME
        # The messages that stay exceed the target alone: compact the provider's own compaction too,
        # if it is readable.
        is_helpless = asked.must and not (cut and asked.is_met_by(staying))
        if is_helpless and read.messages and read.format.compacted(read.messages[read.start]):
            read = Conversation.of(
                read.messages,
                read.format,
                pinned=read.pinned,
                rules=read.rules,
                earlier=read,
                takes_native=True,
            )
            cut = _cut(options, replace(asked, conversation=read))
            staying = read.size - read.free + FRAME
        # Nothing else may go: the prior summary itself can be made shorter, if some room is left
        # for it.
        has_room = asked.target is None or staying < asked.target
        if not cut and asked.must and has_room and prior_size(read):
            cut = read.step(read.prior or 0)[1]
    return replace(
        asked,
        conversation=read,
        cut=cut,
        strategy="+".join(strategy.name for strategy in options.strategy),
    )


def _cut(options: Options, asked: CompactionPlan) -> int:
    """Choose the cut by the options and the target, with enough room for the summary too."""
    conversation = asked.conversation
    free = conversation.free
    need = 0
    ratio = options.compact_ratio
    if asked.target is not None:
        room = asked.target - (conversation.size - free)
        room -= min(asked.reserved, room // 2)
        summary = planned_reserve(options, asked, free)
        most = int(room * _SUMMARY_SHARE)
        by_hand = asked.trigger == "manual"
        if by_hand and options.summarizer == "extractive":
            summary = most
        elif by_hand and asked.summary is None and summarizes(options):
            summary = min(summary, most)
        else:
            declared = rules_size(conversation)
            summary = min(summary + declared, max(room // 2, FRAME + declared))
        tail = room - summary
        if not by_hand and "compact_ratio" not in options.model_fields_set:
            if is_agents(conversation):
                ratio = 0.0
            tail = _tail_size(asked, room, summary)
        need = max(0, free - tail)
    worth = min(max(need, _WORTH), free)
    cut = choose_cut(
        conversation,
        ratio=ratio,
        need=worth,
        keep_turns=options.preserve_recent_turns,
        keep_need=worth if asked.must else need,
        must=asked.must,
    )
    if (
        asked.reserved
        and cut
        and conversation.kinds[-1] is Kind.RESULT
        and cut > conversation.steps[-2]
    ):
        # Results that the model has not read yet are worth more than room for quotes.
        return _cut(options, replace(asked, reserved=0))
    return cut


def choose_cut(
    conversation: Conversation,
    *,
    ratio: float,
    need: int = 0,
    keep_turns: int = 0,
    keep_need: int = 0,
    must: bool = False,
) -> int:
    """Return the cut behind the oldest steps with ``ratio`` of the compactable size, or ``need``
    characters if more.

    The newest ``keep_turns`` turns stay as long as the head still has ``keep_need`` characters. The
    cut is never inside a step or past an open step, and at least one message stays. Returns 0 if
    nothing can be compacted, and if only a prior summary could be that need not (``must``) become
    smaller.
    """
    steps = conversation.steps
    heads = conversation.heads
    kinds = conversation.kinds
    total = conversation.free
    # A prior summary is always compacted, so its size does not count towards the ratio.
    aged = prior_size(conversation)
    goal = max((total - aged) * ratio + aged, need)

    # The first boundary of a step at which the head is large enough, otherwise the last boundary.
    last = bisect_right(steps, conversation.end) - 1
    cut = steps[min(bisect_left(steps, bisect_left(heads, goal)), last)]
    newest = steps[-2:][0]
    if cut > newest and ratio < 1 and heads[newest] >= max(need, 1) and kinds[-1] is Kind.RESULT:
        # The model has not seen the newest results yet: cut before them if that is enough.
        cut = newest
    else:
        # Move the cut to the end of the turn if that is near. A turn may begin inside a step: with
        # tool results.
        turn = bytes(kinds).find(Kind.USER, cut, newest)
        if turn in steps and heads[turn] <= heads[cut] + total * _TURN_REST:
            cut = turn
    if keep_turns:
        prior = conversation.prior
        turns = [index for index, kind in enumerate(kinds) if kind is Kind.USER and index != prior]
        limits = (conversation.step(turn)[0] for turn in turns[-keep_turns:])
        kept = next((limit for limit in limits if heads[limit] >= keep_need), cut)
        if kept < cut:
            if not must and not keep_need and heads[kept] <= aged:
                # No size is required, and compacting only a prior summary again would gain nothing.
                return 0
            cut = kept
    if cut == len(kinds) and not any(conversation.protected):
        cut = newest  # At least one message stays.
    while heads[cut] <= aged:
        # A head with nothing but the prior summary is extended by the next step that can be
        # compacted.
        if not aged or cut >= conversation.end:
            return 0
        cut = steps[bisect_right(steps, cut)]
    return cut


def _tail_size(asked: CompactionPlan, room: int, summary: int) -> int:
    """Return the largest size of the messages that stay beside a summary of this size.

    ``room`` is what the target leaves beside the messages that must stay. As much stays as lets the
    rest be read in one request; the newest results too, if the model has not read them yet and they
    leave some of the room.
    """
    conversation = asked.conversation
    calibration = asked.calibration
    window = calibration.summarizer_window or calibration.window or 0
    most = max(room * _TAKEN - summary, room * _TAIL)
    unread = conversation.free - window * calibration.chars_per_token * _READABLE
    if unread <= room * _MOST_TAKEN - summary:
        most = max(most, unread)
    size = min(room - summary, int(most))
    if conversation.kinds[-1] is Kind.RESULT:
        newest = conversation.free - conversation.heads[conversation.steps[-2]]
        if newest <= room * _NEWEST:
            return max(size, newest)
    return size


def prior_size(conversation: Conversation) -> int:
    """Return the size of the earlier summary that a compaction would replace; 0 without one."""
    prior = conversation.prior
    return 0 if prior is None or conversation.protected[prior] else conversation.sizes[prior]


def is_agents(conversation: Conversation) -> bool:
    """Return whether most of what may be compacted are steps with tool results."""
    heads = conversation.heads
    worked = sum(
        heads[end] - heads[start]
        for start, end in pairwise(conversation.steps)
        if Kind.RESULT in conversation.kinds[start:end]
    )
    return worked > _WORKING * (conversation.free - prior_size(conversation))
