"""How large the parts of one compaction may be: the tail that stays, and the text of a summary."""

from __future__ import annotations

from compacter.compaction.plan import CompactionPlan
from compacter.compaction.sizes import CHARS_PER_TOKEN, EXTRACT_PART, FEWEST_SUMMARY, LEAST_TEXT
from compacter.summary.message import FRAME

# Share of a budget that the summary gets by hand: passages chosen from the head are needed later
# more often than a tail. On real conversations at a fifth of their size, without a model: facts .55
# with half of it, .62 with .85, .68 with all.
_OF_BUDGET = 0.92
# Share of a budget for the summary if the messages that must stay exceed it. On agents' histories
# at a tenth of their size .88 of what was needed later survived with it, .82 with a tenth of the
# head.
_OF_EXCEEDED_BUDGET = 0.75


def largest_tail(plan: CompactionPlan) -> int:
    """Return the largest size of the compactable messages that stay: ``1 - compact_ratio`` of
    what fits, less if summary and quotes leave less.
    """
    room = plan.room
    left = room - min(plan.reserved, max(room, 0) // 2)
    return min(left - _beside_tail(plan, left), room - int(room * plan.options.compact_ratio))


def _beside_tail(plan: CompactionPlan, room: int) -> int:
    """Return the part of the room for summary and tail that the summary has."""
    summary = plan.sizes.summary(plan.conversation.free)
    if plan.trigger == "manual":
        most = int(room * _OF_BUDGET)
        if plan.options.summarizer == "extractive":
            return most
        if plan.summary is None and plan.options.summarizes:
            return min(summary, most)
    declared = plan.rules_size
    return min(summary + declared, max(room // 2, FRAME + declared))


def longest_tail(plan: CompactionPlan) -> int:
    """Return the size of the compactable messages that may stay whatever the ratio is: all but
    the declared rules and the shortest summary.
    """
    return plan.room - FRAME - plan.rules_size - int(FEWEST_SUMMARY * CHARS_PER_TOKEN)


def longest_summary(plan: CompactionPlan) -> int:
    """Return the largest size of a summary's text: less than it replaces, and within the
    target.

    A budget that is smaller than what must stay cannot be kept; a summary made by hand then
    gets a share of it, because losing everything would be worse.
    """
    size = plan.head_size - FRAME - 1
    if plan.target is None:
        return size
    left = plan.target - plan.tail_size - plan.fillers_size - FRAME
    left -= min(plan.reserved, max(left, 0) // 2)
    if left < 0 and plan.has_budget:
        left = int(plan.target * _OF_EXCEEDED_BUDGET)
    return min(size, left)


def text_size(plan: CompactionPlan, *, by_model: bool) -> int:
    """Return the size that a summary's text may have without the declared rules: a model's with
    the lines beside it, or that of one made without a model. A budget is used up.
    """
    size = longest_summary(plan)
    if not plan.has_budget:
        size = min(size, plan.sizes.text_beside_lines(plan.head_size))
        if not by_model:
            most = int(plan.options.max_summary_tokens * plan.sizes.calibration.chars_per_token)
            size = min(size, most, max(plan.head_size // EXTRACT_PART, LEAST_TEXT))
    size -= plan.rules_size
    # What stays may be too large by itself: then it is shortened, not the model's text.
    return max(size, LEAST_TEXT) if by_model else size
