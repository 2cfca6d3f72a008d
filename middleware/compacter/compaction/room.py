"""How a window is divided between the summary, the messages that stay verbatim, and free room.

What can be fetched when a step needs it is not carried everywhere: after a compaction more than
half of the window is free, so that the next one is far off. The newest messages say what is meant,
so as much of them stays as that allows. An option that the program has set wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compacter.messages.parts import Kind

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.options import Options

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


@dataclass(frozen=True, slots=True)
class Division:
    """How the room is divided. Room is what the target leaves beside the messages that must stay.
    Sizes are in characters.
    """

    ratio: float = 0.0
    """Least share of the compactable size to compact."""
    is_set: bool = False
    """Whether the program has set it: then it alone says how much stays."""

    @classmethod
    def of(cls, options: Options, conversation: Conversation) -> Division:
        """Return the division for a history. Of an agent's steps only the room decides what stays;
        of a chat at most what ``compact_ratio`` leaves.
        """
        is_set = "compact_ratio" in options.model_fields_set
        if not is_set and is_agents(conversation):
            return cls()
        return cls(options.compact_ratio, is_set)

    def tail_size(self, room: int, conversation: Conversation, summary: int, window: float) -> int:
        """Return the largest size of the messages that stay beside a summary of this size.

        ``window`` is that of the model which summarizes, in characters; 0 if it is unknown.

        The newest results stay too if the model has not read them yet and they leave some of the
        room.
        """
        size = room - summary
        if self.is_set:
            return size
        most = max(room * _TAKEN - summary, room * _TAIL)
        unread = conversation.free - window * _READABLE
        if unread <= room * _MOST_TAKEN - summary:
            most = max(most, unread)
        size = min(size, int(most))
        if conversation.kinds[-1] is Kind.RESULT:
            newest = conversation.free - conversation.heads[conversation.steps[-1]]
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
    kinds = conversation.kinds
    ends = (*conversation.steps[1:], len(kinds))
    worked = 0
    for start, end in zip(conversation.steps, ends, strict=False):  # No step in no messages.
        if Kind.RESULT in kinds[start:end]:
            worked += heads[end] - heads[start]
    return worked > _WORKING * (conversation.free - prior_size(conversation))
