"""Choose the cut of a compaction: how a window is divided between the summary, the messages that
stay verbatim, and free room.

One rule: the head is the oldest ``compact_ratio`` of what may be compacted, and what stays is at
most ``1 - compact_ratio`` of what fits, so that a history of three windows is cut to the size of
one that has just grown too large. The summary has its share beside it; with the default, more than
half of the window is free afterwards. Protected messages, unread results and the turns of
``preserve_recent_turns`` stay whatever the ratio is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.summarize import (
    least_reserve,
    planned_reserve,
    rules_size,
    summarizes,
)
from compacter.messages.parts import Kind
from compacter.summary.message import FRAME
from compacter.text.shorten import EDITED, LEAST_SHORTENED, original_size

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
        is_read = first_unread(asked) == len(read.messages)
        if not cut and asked.must and has_room and is_read and prior_size(read):
            cut = read.step(read.prior or 0)[1]
    return replace(
        asked,
        conversation=read,
        cut=cut,
        strategy="+".join(strategy.name for strategy in options.strategy),
    )


def _cut(options: Options, asked: CompactionPlan) -> int:
    """Choose the cut by the ratio and the target, with enough room for the summary too."""
    conversation = asked.conversation
    free = conversation.free
    ratio = options.compact_ratio
    need = 0
    keep_need = 0
    if asked.target is not None:
        room = asked.target - (conversation.size - free)
        tail = room - min(asked.reserved, max(room, 0) // 2)
        tail = min(tail - _summary_room(options, asked, tail), room - int(room * ratio))
        need = max(0, free - tail)
        keep_need = max(0, free - room + least_reserve(conversation))
    worth = min(max(need, _WORTH), free)
    choose = partial(
        choose_cut,
        conversation,
        ratio=ratio,
        need=worth,
        keep_turns=options.preserve_recent_turns,
        keep_need=max(keep_need, min(_WORTH, free)) if asked.must else keep_need,
        must=asked.must,
    )
    cut = choose(end=first_unread(asked))
    if not cut and asked.target is None and not asked.must:
        # Compacted by hand, and there is nothing but unread results.
        return choose()
    return cut


def first_unread(asked: CompactionPlan) -> int:
    """Return the index of the step whose results no model has answered yet; the number of messages
    if there is none.

    The model asked for these results: they are shortened before they are compacted. If the rest of
    the target cannot hold them even when they are short, or they are short already, they are not
    counted.
    """
    read = asked.conversation
    count = len(read.kinds)
    kinds = bytes(read.kinds)
    result = kinds.find(Kind.RESULT, kinds.rfind(Kind.ASSISTANT) + 1)
    if result < 0:
        return count
    begin = read.step(result)[0]
    unread = [index for index in range(begin, count) if not read.protected[index]]
    texts = [part.text for index in unread for part in read.parts(index) if part.kind in EDITED]
    if asked.target is None:
        is_kept = all(original_size(text) == len(text) for text in texts)
    else:
        spare = sum(max(0, len(text) - LEAST_SHORTENED) for text in texts)
        left = read.size - read.heads[begin] - spare
        is_kept = asked.is_met_by(left + least_reserve(read))
    return begin if is_kept else count


def _summary_room(options: Options, asked: CompactionPlan, room: int) -> int:
    """Return the part of the room for summary and tail that the summary has, in characters."""
    summary = planned_reserve(options, asked, asked.conversation.free)
    if asked.trigger == "manual":
        most = int(room * _SUMMARY_SHARE)
        if options.summarizer == "extractive":
            return most
        if asked.summary is None and summarizes(options):
            return min(summary, most)
    declared = rules_size(asked.conversation)
    return min(summary + declared, max(room // 2, FRAME + declared))


def choose_cut(
    conversation: Conversation,
    *,
    ratio: float,
    need: int = 0,
    keep_turns: int = 0,
    keep_need: int = 0,
    must: bool = False,
    end: int | None = None,
) -> int:
    """Return the cut behind the oldest steps with ``ratio`` of the compactable size, or ``need``
    characters if more.

    The newest ``keep_turns`` turns stay as long as the head still has ``keep_need`` characters. The
    cut is never inside a step, past an open step or past ``end``, and at least one message stays.
    Returns 0 if nothing can be compacted, and if only a prior summary could be that need not
    (``must``) become smaller.
    """
    steps = conversation.steps
    heads = conversation.heads
    kinds = conversation.kinds
    total = conversation.free
    # A prior summary is always compacted, so its size does not count towards the ratio.
    aged = prior_size(conversation)
    goal = max((total - aged) * ratio + aged, need)

    end = conversation.end if end is None else min(end, conversation.end)
    # The first boundary of a step at which the head is large enough, otherwise the last boundary.
    last = bisect_right(steps, end) - 1
    cut = steps[min(bisect_left(steps, bisect_left(heads, goal)), last)]
    # Move the cut to the end of the turn if that is near. A turn may begin inside a step: with
    # tool results.
    newest = steps[-2:][0]
    turn = bytes(kinds).find(Kind.USER, cut, min(newest, end + 1))
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
        if not aged or cut >= end:
            return 0
        cut = steps[bisect_right(steps, cut)]
    return cut


def prior_size(conversation: Conversation) -> int:
    """Return the size of the earlier summary that a compaction would replace; 0 without one."""
    prior = conversation.prior
    return 0 if prior is None or conversation.protected[prior] else conversation.sizes[prior]
