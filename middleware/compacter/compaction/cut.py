"""Choose the cut of a compaction: which messages to compact, and which stay verbatim.

The head is the oldest ``compact_ratio`` of the compactable messages, and the rest of them is at
most ``1 - compact_ratio`` of what fits. So a history of three windows is cut to the same size as
one that has just grown too large. Protected messages, unread results and the turns of
``preserve_recent_turns`` stay whatever the ratio is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace

from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import CompactionPlan
from compacter.messages.parts import Kind
from compacter.summary.message import FRAME
from compacter.text.shorten import EDITED, LEAST_SHORTENED, original_size

# Smallest head worth compacting, in characters: the summary message would be as large as a smaller
# one.
_WORTH = FRAME + 40
# A head that is at most this part of the room beside unread results is no larger than the summary
# that it may have.
_SMALL = 8
# Share of the compactable size by which a head may exceed its goal so that the tail begins with a
# turn: an answer without its question is hard to understand. On agents with made-up tasks .983 to
# .989 of the needs were in the request without this, .989 to 1.00 with it.
_TURN_REST = 0.05


def plan_compaction(plan: CompactionPlan) -> CompactionPlan:
    """Return the plan with the cut. A cut of 0 means that nothing can be compacted.

    A cut that a hook has set is moved to the beginning of its step, and never past an open step.
    """
    read = plan.conversation
    if plan.is_chosen:
        cut = max(0, min(plan.cut, read.end))
        return replace(plan, cut=read.steps[bisect_right(read.steps, cut) - 1])
    if plan.is_satisfied:
        return replace(plan, cut=0)
    cut = cut_before(plan, first_unread(plan))
    if not plan.is_required:
        return replace(plan, cut=cut)
    # The messages that stay exceed the target by themselves: compact the provider's own compaction
    # too, if it is readable.
    is_helpless = not cut or plan.room < FRAME
    if is_helpless and read.messages and read.format.compacted(read.messages[read.start]):
        plan = replace(plan, conversation=read.with_messages(read.messages, takes_native=True))
        read = plan.conversation
        cut = cut_before(plan, first_unread(plan))
    unread = first_unread(plan)
    keeps_unread = unread < len(read.messages)
    if keeps_unread and plan.target is not None:
        # The task may be all that stands before the results: shortening them is enough.
        is_small = read.heads[cut] <= max(2 * FRAME, plan.room // _SMALL)
        if is_small and read.free - _spare(read, unread) <= plan.room:
            cut = 0
    # Only the prior summary can be made shorter, if there is some room for it.
    if not cut and plan.room >= FRAME and not keeps_unread and read.prior_size:
        cut = read.step(max(read.prior or 0, *read.restored, 0))[1]
    return replace(plan, cut=cut, keeps_unread=keeps_unread)


def first_unread(plan: CompactionPlan) -> int:
    """Return the index of the step whose results no model has answered yet, or the number of
    messages.

    The model asked for these results: they are shortened before they are compacted. Short results,
    and those that would not fit even when shortened, do not count.
    """
    read = plan.conversation
    count = len(read.kinds)
    kinds = bytes(read.kinds)
    result = kinds.find(Kind.RESULT, kinds.rfind(Kind.ASSISTANT) + 1)
    if result < 0:
        return count
    begin = read.step(result)[0]
    if plan.target is None:
        is_kept = all(original_size(text) == len(text) for text in _unread_texts(read, begin))
        # With a compaction by hand, there may be nothing else to compact.
        is_kept = is_kept and (plan.is_required or read.heads[begin] > read.prior_size)
    else:
        left = read.free - read.heads[begin] - _spare(read, begin)
        is_kept = left <= plan.sizes.longest_tail(plan.room)
    return begin if is_kept else count


def _unread_texts(read: Conversation, begin: int) -> list[str]:
    unread = (index for index in range(begin, len(read.kinds)) if not read.protected[index])
    return [part.text for index in unread for part in read.parts(index) if part.kind in EDITED]


def _spare(read: Conversation, begin: int) -> int:
    """Return the characters by which the results from ``begin`` on can be shortened."""
    return sum(max(0, len(text) - LEAST_SHORTENED) for text in _unread_texts(read, begin))


def cut_before(plan: CompactionPlan, end: int) -> int:
    """Return the cut behind the oldest steps with ``compact_ratio`` of the compactable size, or
    more if the target needs it.

    The newest ``preserve_recent_turns`` stay as long as the rest fits. The cut is never inside a
    step, past an open step or past ``end``, and at least one message stays. Returns 0 if nothing
    can be compacted, or only a prior summary that need not become smaller.
    """
    read = plan.conversation
    steps = read.steps
    heads = read.heads
    # A prior summary is always compacted, so its size does not count towards the ratio.
    aged = read.prior_size
    worth = min(_WORTH, read.free)
    tail = plan.sizes.largest_tail(plan.room, read.free, plan.reserved, plan.budget)
    share = (read.free - aged) * plan.options.compact_ratio + aged
    goal = max(share, worth, min(read.free - tail, read.free))
    # Size that must be compacted even if ``preserve_recent_turns`` does not allow it.
    least = max(worth * plan.is_required, read.free - plan.sizes.longest_tail(plan.room))
    end = min(end, read.end)
    # The first boundary of a step at which the head is large enough, otherwise the last boundary.
    last = bisect_right(steps, end) - 1
    cut = steps[min(bisect_left(steps, bisect_left(heads, goal)), last)]
    # Move the cut to the end of the turn if that is near. A turn may begin inside a step: with
    # tool results.
    newest = steps[-2:][0]
    turn = bytes(read.kinds).find(Kind.USER, cut, min(newest, end))
    if turn in steps and heads[turn] <= heads[cut] + read.free * _TURN_REST:
        cut = turn
    kept = _recent_turns(plan, least)
    if kept < cut:
        if least <= 0 and heads[kept] <= aged:
            # No size is required, so compacting a prior summary again would gain nothing.
            return 0
        cut = kept
    if cut == len(read.kinds) and not any(read.protected):
        cut = newest  # At least one message stays.
    while heads[cut] <= aged:
        # A head with nothing but the prior summary is extended by the next step that can be
        # compacted.
        if not aged or cut >= end:
            return 0
        cut = steps[bisect_right(steps, cut)]
    return cut


def _recent_turns(plan: CompactionPlan, least: int) -> int:
    """Return the index at which the newest ``preserve_recent_turns`` begin, as many of them as
    leave a head of the ``least`` size; without any, the number of messages.
    """
    read = plan.conversation
    count = plan.options.preserve_recent_turns
    turns = [at for at, kind in enumerate(read.kinds) if kind is Kind.USER and at != read.prior]
    begins = (read.step(turn)[0] for turn in turns[-count:] if count)
    return next((begin for begin in begins if read.heads[begin] >= least), len(read.kinds))
