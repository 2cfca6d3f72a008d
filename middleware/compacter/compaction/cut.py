"""Where to cut: what is folded, what stays, and what the plan of it looks like."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING

from compacter.messages.format import Message
from compacter.messages.steps import Kind

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What a compaction would fold. Sizes are data sizes in characters.

    ``before_compaction`` may return a copy with another cut: ``dataclasses.replace(plan, cut=...)``. One inside a step
    is moved to the step's beginning; what must stay, stays, wherever the cut lies.
    """

    messages: tuple[Message, ...] = field(repr=False)
    """All messages, in order."""
    wire_format: str
    """``openai``, ``anthropic``, ``responses``, ``gemini`` or ``bedrock``."""
    cut: int
    """Index of the first message of the tail. Everything before it is the head, but for ``held``."""
    held: tuple[int, ...] = ()
    """Indexes before the cut that stay verbatim: system, pinned, and the last user message."""
    prior: int | None = None
    """Index of the summary message that is folded again, if the history has one."""
    original_data_size: int
    """Characters of all messages."""
    head_size: int
    """Characters of the messages that would be folded."""
    tail_size: int
    """Characters of everything that stays verbatim, held messages included."""
    ratio: float
    """Share of the compactable size that the head has."""
    trigger: str = "manual"
    """``token_limit``, ``threshold`` or ``manual``."""
    strategy: str = ""
    """Name of the strategy; names joined by ``+`` where there are several."""
    model: str | None = None
    """The model that is called, where the call names one."""
    conversation: Conversation | None = field(default=None, repr=False, compare=False)
    """The messages as they were read; ``None`` in a plan that was made by hand."""

    @property
    def folded(self) -> tuple[int, ...]:
        """Indexes of the head, ascending."""
        held = set(self.held)
        return tuple(index for index in range(self.cut) if index not in held)

    @property
    def head(self) -> tuple[Message, ...]:
        """The messages that would be folded, in order."""
        return tuple(self.messages[index] for index in self.folded)

    @property
    def tail(self) -> tuple[Message, ...]:
        """The messages from the cut on, verbatim."""
        return self.messages[self.cut :]

    @property
    def kept(self) -> tuple[Message, ...]:
        """Everything that stays verbatim, in order."""
        return tuple(self.messages[index] for index in self.held) + self.messages[self.cut :]


_TURN_REST = 0.05
"""Share of the compactable size by which a head may be larger so that the tail begins with a turn: an answer without
its question says little."""


def choose_cut(
    conversation: Conversation,
    *,
    ratio: float,
    need: int = 0,
    keep_turns: int = 0,
    keep_need: int = 0,
    must: bool = False,
) -> int:
    """The cut: the oldest steps until ``ratio`` of the compactable size, or ``need`` characters if that is more.

    The newest ``keep_turns`` turns stay as long as the head then still has ``keep_need`` characters (and, where
    something ``must`` be folded, is not empty). Never inside a step, never past an open step, never so far that nothing
    is left. 0 when nothing can be folded.
    """
    steps, sizes, protected, prior = conversation.steps, conversation.sizes, conversation.protected, conversation.prior
    count = len(sizes)
    end = count if conversation.open is None else conversation.open
    total = conversation.free
    if not total and all(protected[:end]):
        return 0
    # A prior summary is folded whatever the ratio: it does not count against the messages' share.
    aged = 0 if prior is None or protected[prior] else sizes[prior]
    goal = max((total - aged) * ratio + aged, need)
    cut, before_newest = _walk(conversation, goal, end)
    newest = steps[-1] if steps else 0
    if cut > newest > 0 and ratio < 1 and before_newest >= max(need, 1) and conversation.kinds[-1] is Kind.RESULT:
        # The model has not yet seen the newest results: nearest cut is before them, as long as that is enough.
        cut = newest
    elif cut:
        cut = _finish_turn(conversation, cut, min(end, newest), int(total * _TURN_REST))
    if keep_turns:
        kept = _respect_turns(conversation, cut, keep_turns, need=keep_need, must=must)
        if kept < cut and not must and not keep_need and _only_prior(kept, protected, prior):
            # Nothing has to become smaller, and a prior summary alone is not made again.
            return 0
        cut = kept
    if cut == count and not any(protected):
        cut = newest  # At least one message stays.
    cut = _past_prior(cut, steps, end, protected, prior)
    return 0 if all(protected[:cut]) else cut


def _walk(conversation: Conversation, goal: float, end: int) -> tuple[int, int]:
    """First step boundary at which the head has ``goal`` characters, and the size of the head one step earlier."""
    sizes, protected = conversation.sizes, conversation.protected
    reached = previous = cut = index = 0
    for boundary in (*conversation.steps[1:], len(sizes)):
        if boundary > end:
            break
        previous = reached
        while index < boundary:
            if not protected[index]:
                reached += sizes[index]
            index += 1
        cut = boundary
        if reached >= goal and reached:
            break
    return cut, previous


def _finish_turn(conversation: Conversation, cut: int, end: int, allowed: int) -> int:
    """The end of the turn that the cut lies in, if the rest of it has at most ``allowed`` characters."""
    rest, index = 0, cut
    while index < end and conversation.kinds[index] is not Kind.USER:
        rest += 0 if conversation.protected[index] else conversation.sizes[index]
        if rest > allowed:
            return cut
        index += 1
    # A user who answers and speaks in one message begins a turn inside a step.
    return index if index < end and conversation.step(index)[0] == index else cut


def _respect_turns(conversation: Conversation, cut: int, keep: int, *, need: int, must: bool) -> int:
    sizes, protected = conversation.sizes, conversation.protected
    kinds, prior = conversation.kinds, conversation.prior
    turns = [index for index, kind in enumerate(kinds) if kind is Kind.USER and index != prior]
    for turn in turns[-keep:]:
        limit = conversation.step(turn)[0]
        if limit >= cut:
            return cut
        head = sum(sizes[:limit]) - sum(compress(sizes[:limit], protected))
        if head >= need and (head or not must):
            return limit
    return cut


def _only_prior(cut: int, protected: Sequence[bool], prior: int | None) -> bool:
    return prior is not None and all(protected[index] or index == prior for index in range(cut))


def _past_prior(cut: int, steps: Sequence[int], end: int, protected: Sequence[bool], prior: int | None) -> int:
    """A head that is only the prior summary is widened by the next step that can be folded."""
    while _only_prior(cut, protected, prior):
        at = bisect_right(steps, cut)
        following = steps[at] if at < len(steps) else len(protected)
        if following > end or cut >= end:
            return 0
        cut = following
    return cut
