"""A compacted list: made from a conversation, compared with it, and checked before it is sent."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from compacter.compaction.conversation import Conversation
from compacter.messages.format import FILLERS, Message
from compacter.messages.parts import Kind
from compacter.summary import message as summary_message


def assemble(
    conversation: Conversation, keep: Sequence[int], summary: Message | None, *, alternate: bool
) -> list[Message]:
    """Return the messages at the indexes ``keep``, with ``summary`` after the leading system
    messages.

    If roles must ``alternate``, a filler is put between two new neighbours of the same role, and
    before a first message that is not the user's.
    """
    form = conversation.format
    messages = conversation.messages
    lead = conversation.lead
    places: list[int | None] = [*keep]
    if summary is not None:
        places.insert(bisect_left(keep, lead), None)
    if not alternate:
        return [summary if place is None else messages[place] for place in places]
    out: list[Message] = []
    roles = list(map(form.speaker, messages))
    user_first = next((role for role in roles if role != "system"), "") == "user"
    last = ""
    last_place = -1
    for place in places:
        message = summary if place is None else messages[place]
        role = form.speaker(message)
        if role in ("user", "assistant"):
            if not last and role == "assistant" and user_first:
                out.append(form.filler("user"))
            elif role == last and (
                last_place < 0 or any(gone != "system" for gone in roles[last_place + 1 : place])
            ):
                out.append(form.filler("assistant" if role == "user" else "user"))
        if role != "system":
            last = role
            last_place = -1 if place is None else place
        out.append(message)
    return out


def violations(
    before: Conversation,
    after: Conversation,
    *,
    alternate: bool,
    edited: bool = False,
) -> list[str]:
    """Return what is wrong with ``after`` as a compaction of ``before``; an empty list if nothing
    is.

    ``edited`` allows changed copies of messages (a cleared tool result, a shortened message)
    besides the summary and fillers.
    """
    if not after.messages:
        return ["nothing is left"]
    found: list[str] = []
    positions = list(Change.of(before.messages, after.messages).origins)
    kept = [position for position in positions if position is not None]
    if kept != sorted(kept):
        found.append("messages changed their order")
    present = set(kept)
    for index, stays in enumerate(before.protected):
        if stays and index not in present:
            found.append(f"message {index}, which must stay, is gone")
            break
    if after.size >= before.size:
        found.append(f"the history did not get smaller ({before.size} to {after.size} characters)")
    halves = Counter((half.what, half.call_id) for half in after.broken) - Counter(
        (half.what, half.call_id) for half in before.broken
    )
    found.extend(f"{what} {call_id!r}" for what, call_id in halves)
    if after.open is not None and before.open is None:
        found.append("a call lost its results")
    if edited:
        _find_edited(before, after, positions)
    found.extend(_strangers(before, after, positions, alternate=alternate))
    if alternate:
        found.extend(_turns(before, after, positions))
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a list of messages. Made once for each compaction, by :meth:`of`."""

    before: Sequence[Message] = field(repr=False)
    after: Sequence[Message] = field(repr=False)
    origins: tuple[int | None, ...]
    """For each message of ``after``, its index in ``before``; ``None`` for a new one."""

    @classmethod
    def of(cls, before: Sequence[Message], after: Sequence[Message]) -> Change:
        """Compare two lists by the identity of their messages.

        An object that occurs several times is matched from the end, in order, since the oldest
        messages are compacted.
        """
        bound = len(before)
        place = len(after)
        while bound and place and before[bound - 1] is after[place - 1]:
            bound = bound - 1
            place = place - 1
        end = range(bound, len(before))
        # Before the common end there are only a summary and the few messages that are held.
        first = after[:place]
        wanted = set(map(id, first))
        places: dict[int, list[int]] = {}
        for index, message in enumerate(before[:bound]):
            if id(message) in wanted:
                places.setdefault(id(message), []).append(index)
        origins: list[int | None] = []
        for message in reversed(first):
            left = places.get(id(message))
            origin = left.pop(bisect_left(left, bound) - 1) if left else None
            origins.append(origin)
            bound = bound if origin is None else min(bound, origin)
        return cls(before, after, (*reversed(origins), *end))

    @property
    def discarded(self) -> tuple[Message, ...]:
        """Messages of ``before`` that are gone, in order."""
        return tuple(self.before[index] for index in self.gone)

    @property
    def gone(self) -> list[int]:
        """Indexes in ``before`` of the messages that are gone."""
        kept = set(self.origins)
        return [index for index in range(len(self.before)) if index not in kept]


def _find_edited(before: Conversation, after: Conversation, positions: list[int | None]) -> None:
    """Set the positions of edited copies: each replaces one message of the same speaker, between
    the same others.
    """
    speaker = before.format.speaker
    previous: list[int] = []  # For each index, the nearest original before it.
    for position in positions:
        previous.append(position if position is not None else previous[-1] if previous else -1)
    following = len(before.messages)
    for place in range(len(positions) - 1, -1, -1):
        position = positions[place]
        if position is None:
            origin = following - 1
            role = speaker(after.messages[place])
            while origin > previous[place] and speaker(before.messages[origin]) != role:
                origin -= 1
            if origin <= previous[place]:
                continue
            position = positions[place] = origin
        following = position


def _strangers(
    before: Conversation, after: Conversation, positions: Sequence[int | None], *, alternate: bool
) -> list[str]:
    """Return what is wrong with the new messages: only one summary is allowed, and fillers if roles
    alternate.
    """
    made = {place for place, position in enumerate(positions) if position is None}
    known = list(map(after.format.filler, FILLERS)) if alternate else []
    fillers = {place for place in made if after.messages[place] in known}
    notes = sorted(made - fillers)
    found: list[str] = []
    kept = [position for position in positions if position is not None]
    # A filler may be at the beginning, and between new neighbours.
    gaps = 1 + sum(later > earlier + 1 for earlier, later in pairwise(kept))
    if len(notes) > 1 or len(fillers) > gaps:
        found.append(f"{len(made)} messages are neither original nor the summary")
    lead = after.lead
    # A filler may stand before the provider's own compaction, which is before the summary.
    first = min(notes if before.start else made, default=len(positions))
    tagged = [
        place
        for place in notes
        if summary_message.parse(after.format.plain_text(after.messages[place]) or "") is not None
    ]
    if any(place - sum(lead <= filler < place for filler in fillers) != lead for place in tagged):
        found.append("the summary does not stand right after the system prompt")
    elif any(position is not None and position < before.lead for position in positions[first:]):
        found.append("a message stands before the system prompt")
    if any(after.kinds[place] is Kind.SYSTEM for place in made):
        found.append("a made message speaks as the system")
    if len(positions) - 1 in made and any(position is not None for position in positions[lead:]):
        found.append("the newest message is not one of the conversation's")
    prior = before.prior
    if tagged and prior is not None and not before.protected[prior] and prior in positions:
        found.append("the prior summary stands beside the new one")
    return found


def _turns(before: Conversation, after: Conversation, positions: Sequence[int | None]) -> list[str]:
    found: list[str] = []
    first = next(
        (role for role in map(before.format.speaker, before.messages) if role != "system"), ""
    )
    last: tuple[str, int | None] | None = None
    for message, position in zip(after.messages, positions, strict=True):
        role = after.format.speaker(message)
        if role == "system":
            continue
        if last is None and role == "assistant" and first == "user":
            found.append("the assistant speaks first")
        if last and role == last[0] and role in ("user", "assistant"):
            neighbours = last[1] is not None and position == last[1] + 1
            if not neighbours:
                found.append(f"two {role} messages in a row")
        last = role, position
    return found
