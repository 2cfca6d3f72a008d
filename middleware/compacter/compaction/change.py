"""A compacted list: compared with the conversation that it was made of, and checked before it is
sent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence

from compacter.compaction.conversation import Conversation
from compacter.messages.format import FILLERS, Message
from compacter.summary import message as summary_message


def origins_of(before: Sequence[Message], after: Sequence[Message]) -> tuple[int | None, ...]:
    """Return for each message of ``after`` its index in ``before``, by identity; ``None`` for a new
    one.

    An object that occurs several times is matched from the end, in order, since the oldest messages
    are compacted.
    """
    first = dict(zip(map(id, before), range(len(before)), strict=True))
    if len(first) == len(before) and len(set(map(id, after))) == len(after):
        # No object occurs several times.
        return tuple(map(first.get, map(id, after)))
    places = defaultdict[int, list[int]](list)
    for index, message in enumerate(before):
        places[id(message)].append(index)
    bound = len(before)
    origins: list[int | None] = []
    for message in reversed(after):
        left = places.get(id(message))
        origin = left.pop(bisect_left(left, bound) - 1) if left else None
        origins.append(origin)
        bound = bound if origin is None else min(bound, origin)
    return tuple(reversed(origins))


def check(
    before: Conversation, messages: Sequence[Message], *, alternate: bool, edits: bool = False
) -> tuple[Conversation, list[str]]:
    """Read the result of a strategy, and return it with what is wrong with it as a compaction of
    ``before``; nothing if it may be sent.

    If roles must ``alternate``, fillers are added. With ``edits``, a list of the same length may
    have changed copies of messages in their places.
    """
    if not messages:
        return before, ["nothing is left"]
    form = before.format
    origins = list(origins_of(before.messages, messages))
    present = set(origins)
    faults = [
        f"message {index}, which must stay, is gone"
        for index, stays in enumerate(before.protected)
        if stays and index not in present
    ]
    if edits and len(messages) == len(before.messages):
        for index, origin in enumerate(origins):
            speaks = form.speaker(messages[index]) == form.speaker(before.messages[index])
            if origin is None and speaks:
                origins[index] = index
    kept = [origin for origin in origins if origin is not None]
    if kept != sorted(kept):
        faults.append("messages changed their order")
    faults += _check_notes(before, messages, origins)
    if alternate:
        messages = with_fillers(before, messages, origins)
    after = before.with_messages(messages)
    if after.size >= before.size:
        faults.append(f"the history did not get smaller ({before.size} to {after.size} characters)")
    halves = Counter((half.what, half.call_id) for half in after.broken) - Counter(
        (half.what, half.call_id) for half in before.broken
    )
    faults.extend(f"{what} {call_id!r}" for what, call_id in halves)
    if after.end < len(after.messages) and before.end == len(before.messages):
        faults.append("a call lost its results")
    return after, faults


def _check_notes(
    before: Conversation, messages: Sequence[Message], origins: Sequence[int | None]
) -> list[str]:
    """Return what is wrong with the new messages: only one is allowed, which is the summary or
    another note.
    """
    notes = [place for place, origin in enumerate(origins) if origin is None]
    if len(notes) > 1:
        return [f"{len(notes)} messages are neither original nor the summary"]
    faults: list[str] = []
    kept = [origin for origin in origins if origin is not None]
    lead = sum(origin < before.lead for origin in kept)
    for place in notes:
        note = messages[place]
        text = before.format.plain_text(note)
        is_summary = text is not None and summary_message.parse(text) is not None
        if place < lead:
            faults.append("a message stands before the system prompt")
        elif is_summary and place > lead:
            faults.append("the summary does not stand right after the system prompt")
        if note is None or before.format.speaker(note) == "system":
            faults.append("a new message speaks as the system, or is no message")
        if place == len(kept) > lead:
            faults.append("the newest message is not one of the conversation's")
        prior = before.prior
        if is_summary and prior in kept and not before.protected[prior or 0]:
            faults.append("the prior summary stands beside the new one")
    return faults


def with_fillers(
    before: Conversation, messages: Sequence[Message], origins: Sequence[int | None]
) -> list[Message]:
    """Return the messages with a filler between two new neighbours of the same role, and before a
    first message that is not the user's.
    """
    form = before.format
    spoken = (role for role in map(form.speaker, before.messages) if role != "system")
    opens = next(spoken, "")
    result: list[Message] = []
    last = ""
    previous: int | None = None
    is_parted = True
    for message, origin in zip(messages, origins, strict=True):
        # Messages that were neighbours, or had only instructions between them, may stay so.
        is_parted = is_parted or origin is None or previous is None or origin > previous + 1
        previous = origin
        role = form.speaker(message)
        if not last and role == "assistant" and opens == "user":
            result.append(form.filler("user"))
        elif role == last and is_parted and role in FILLERS:
            result.append(form.filler("assistant" if role == "user" else "user"))
        if role != "system":
            last = role
            is_parted = False
        result.append(message)
    return result
