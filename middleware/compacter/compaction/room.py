"""How a window is divided between the summary, the messages that stay verbatim, and free room.

It follows from what the history is. In a chat the newest turns say what is meant, so much of them
stays. An agent in mid-turn needs names that it has seen at any time: paths, ids, functions; lines
chosen from all of its steps hold more of these than its last messages do. An option that the
program has set wins over both.
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
# Share of the room that an agent's newest steps keep verbatim.
_TAIL = 0.15
# Largest share of the room for the summary of an agent's steps. Of real runs in a window of a
# quarter of their size, .08 of the steps lack a name; with .65 a twentieth fewer do, for a
# sixteenth more tokens that no prompt cache holds, as the next compaction is nearer.
_SUMMARY = 0.62
# Largest share of the room for results that the model has not read yet. An agent whose newest
# result is gone calls the tool again, and with the same result for ever.
_NEWEST = 0.8
# Share of what such results leave that the summary may have: less is free, once, so that no names
# are lost for it (of real runs .077 of the steps lack one, without it .103).
_BESIDE_NEWEST = 0.85
# Times the room from which on a head is that of a long history which was never compacted, and the
# largest share of its summary. Only once is less free: the next summary has the usual share. Of the
# names that later steps use, in a fifth of the size: .88 for .80.
_MORE = 2
_SUMMARY_OF_MORE = 0.88
# Part of what is new in a head by which a summary grows, as it stands for more than before. With a
# third .09 of the steps lack a name.
_PART_OF_NEW = 2
# Characters that a summary may always have: about two lines.
_LEAST = 200


@dataclass(frozen=True, slots=True)
class Division:
    """How the room for an agent's history is divided. Room is what the target leaves beside the
    messages that must stay. Sizes are in characters.
    """

    ratio: float = 0.0
    """Least share of the compactable size to compact: the option ``compact_ratio`` if it is set."""

    @classmethod
    def of(cls, options: Options, conversation: Conversation) -> Division | None:
        """Return the division for an agent's history; ``None`` for a chat, in which the summary has
        the caps of ``summarize.py``.
        """
        if not is_agents(conversation):
            return None
        is_set = "compact_ratio" in options.model_fields_set
        return cls(options.compact_ratio) if is_set else cls()

    def tail_size(self, room: int, conversation: Conversation) -> int:
        """Return the largest size of the messages that stay.

        The newest results stay too if the model has not read them yet and they leave some of the
        room.
        """
        if self.ratio:
            head = int(conversation.free * self.ratio)
            return room - self.summary_size(room, head, prior=prior_size(conversation))
        size = int(room * _TAIL)
        if conversation.kinds[-1] is Kind.RESULT:
            newest = conversation.free - conversation.heads[conversation.steps[-1]]
            if newest <= int(room * _NEWEST):
                return max(size, newest)
        return size

    def summary_size(self, room: int, head: int, *, prior: int, tail: int = 0) -> int:
        """Return the largest size of a summary.

        Args:
            room: Size of the summary, the messages that stay and what is left free.
            head: Size of what the summary replaces.
            prior: Size of the earlier summary in the head.
            tail: Size of the messages that stay, but for those that must.
        """
        share = _SUMMARY_OF_MORE if head > _MORE * room else _SUMMARY
        beside = max(int(room * (share + _TAIL)) - tail, int((room - tail) * _BESIDE_NEWEST))
        most = min(int(room * share), beside)
        return max(_LEAST, min(most, prior + (head - prior) // _PART_OF_NEW))


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
