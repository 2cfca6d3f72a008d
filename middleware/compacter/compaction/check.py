"""Putting a compacted list together, and checking whether it may be sent."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from compacter.messages.format import Message, Wire
from compacter.messages.steps import Kind, Outline
from compacter.summary import message as summary_message

FILLERS: Final[Mapping[Literal["user", "assistant"], str]] = {"user": "Continue.", "assistant": "Understood."}
"""The short messages that stand between two messages of one role where turns must alternate."""


def assemble(
    wire: Wire,
    messages: Sequence[Message],
    keep: Sequence[int],
    summary: Message | None,
    *,
    alternate: bool,
) -> list[Message]:
    """The messages at the indexes ``keep`` in order, ``summary`` after the whole system prefix.

    Where turns must ``alternate``, a filler goes between two neighbours of one role that were none before,
    and before a first message that is not the user's.
    """
    prefix = 0
    while prefix < len(keep) and keep[prefix] == prefix and wire.speaker(messages[prefix]) == "system":
        prefix += 1
    out: list[Message] = [messages[index] for index in keep[:prefix]]
    before: int | None = None
    speaker = ""
    if summary is not None:
        out.append(summary)
        speaker = "user"
    for index in keep[prefix:]:
        message = messages[index]
        if alternate:
            role = wire.speaker(message)
            if role != "system":
                if not speaker and role == "assistant" and index > 0 and _first_speaker(wire, messages) == "user":
                    out.append(wire.say("user", FILLERS["user"]))
                elif role == speaker and role in FILLERS and not _neighbours(wire, messages, before, index):
                    other: Literal["user", "assistant"] = "assistant" if role == "user" else "user"
                    out.append(wire.say(other, FILLERS[other]))
                speaker, before = role, index
        out.append(message)
    return out


def _neighbours(wire: Wire, messages: Sequence[Message], before: int | None, index: int) -> bool:
    return before is not None and all(
        wire.speaker(messages[between]) == "system" for between in range(before + 1, index)
    )


def _first_speaker(wire: Wire, messages: Sequence[Message]) -> str:
    return next((role for role in map(wire.speaker, messages) if role != "system"), "")


def violations(
    wire: Wire,
    before: Sequence[Message],
    after: Sequence[Message],
    *,
    protected: Sequence[bool],
    alternate: bool,
    edited: bool = False,
) -> list[str]:
    """What is wrong with ``after`` as a compaction of ``before``; empty when nothing is.

    ``protected`` marks the messages of ``before`` that must come out verbatim. ``edited`` allows such
    as stand for one original each (a cleared tool result, a shortened message) beside summary and fillers.
    """
    if not after:
        return ["nothing is left"]
    found: list[str] = []
    positions = _positions(before, after)
    kept = [position for position in positions if position is not None]
    if kept != sorted(kept):
        found.append("messages changed their order")
    present = set(kept)
    for index, stays in enumerate(protected):
        if stays and index not in present:
            found.append(f"message {index}, which must stay, is gone")
            break
    old, new = wire.outline(before), wire.outline(after)
    if new.total >= old.total:
        found.append(f"the history did not get smaller ({old.total} to {new.total} characters)")
    halves = Counter((half.what, half.call_id) for half in new.broken) - Counter(
        (half.what, half.call_id) for half in old.broken
    )
    found.extend(f"{what} {call_id!r}" for what, call_id in halves)
    if new.open is not None and old.open is None:
        found.append("a call lost its results")
    made = {place for place, position in enumerate(positions) if position is None}
    if edited:
        made -= _edits(wire, before, after, positions)
    found.extend(
        _strangers(wire, before, after, positions, made=made, new=new, protected=protected, alternate=alternate)
    )
    if alternate:
        found.extend(_turns(wire, after, positions))
    return found


def kept_and_discarded(
    before: Sequence[Message], after: Sequence[Message]
) -> tuple[list[int | None], tuple[Message, ...]]:
    """Origins of the messages of ``after``, by identity; the messages of ``before`` that are not in it."""
    positions = _positions(before, after)
    kept = {position for position in positions if position is not None}
    return positions, tuple(message for index, message in enumerate(before) if index not in kept)


def _positions(before: Sequence[Message], after: Sequence[Message]) -> list[int | None]:
    """Where each message of ``after`` was in ``before``, by identity.

    One object may stand at several places. Read from the end, each takes the last place that is in order yet:
    what is folded is old.
    """
    places: dict[int, list[int]] = {}
    for index, message in enumerate(before):
        places.setdefault(id(message), []).append(index)
    found: list[int | None] = [None] * len(after)
    bound = len(before)
    for place in range(len(after) - 1, -1, -1):
        left = places.get(id(after[place]))
        if left:
            index = left.pop(bisect_left(left, bound) - 1)
            found[place] = index
            bound = min(bound, index)
    return found


def _edits(
    wire: Wire, before: Sequence[Message], after: Sequence[Message], positions: Sequence[int | None]
) -> set[int]:
    """Places of ``after`` whose message stands for one original of its speaker, between the same others."""
    found: set[int] = set()
    following = len(before)
    place = len(after) - 1
    while place >= 0:
        position = positions[place]
        if position is not None:
            following = position
        else:
            before_it = next((p for p in reversed(positions[:place]) if p is not None), -1)
            origin = following - 1
            while origin > before_it and wire.speaker(before[origin]) != wire.speaker(after[place]):
                origin -= 1
            if origin > before_it:
                found.add(place)
                following = origin
        place -= 1
    return found


def _strangers(
    wire: Wire,
    before: Sequence[Message],
    after: Sequence[Message],
    positions: Sequence[int | None],
    *,
    made: set[int],
    new: Outline,
    protected: Sequence[bool],
    alternate: bool,
) -> list[str]:
    """What is wrong with the messages that are no originals: one summary, fillers where turns alternate."""
    texts = {place: wire.plain_text(after[place]) for place in made}
    fillers = {place for place in made if alternate and _is_filler(wire, after[place])}
    notes = sorted(made - fillers)
    found: list[str] = []
    if len(notes) > 1 or len(fillers) > _gaps(positions):
        found.append(f"{len(made)} messages are neither original nor the summary")
    prefix = next((place for place, kind in enumerate(new.kinds) if kind is not Kind.SYSTEM), len(after))
    tagged = [place for place in notes if summary_message.parse(texts[place] or "") is not None]
    if any(place != prefix for place in tagged):
        found.append("the summary does not stand right after the system prompt")
    elif _before_system(new.kinds, positions, made):
        found.append("a message stands before the system prompt")
    if any(new.kinds[place] is Kind.SYSTEM for place in made):
        found.append("a made message speaks as the system")
    if len(after) - 1 in made and any(position is not None for position in positions[prefix:]):
        found.append("the newest message is none of the conversation's")
    if tagged and _kept_prior(wire, before, positions, protected):
        found.append("the prior summary stands beside the new one")
    return found


def _is_filler(wire: Wire, message: Message) -> bool:
    return any(message == wire.say(role, text) for role, text in FILLERS.items())


def _kept_prior(
    wire: Wire, before: Sequence[Message], positions: Sequence[int | None], protected: Sequence[bool]
) -> bool:
    """Whether the summary message at the head of ``before`` was kept, though nobody pinned it."""
    first = next((index for index, message in enumerate(before) if wire.speaker(message) != "system"), None)
    if first is None or protected[first] or first not in positions:
        return False
    return summary_message.parse(wire.plain_text(before[first]) or "") is not None


def _gaps(positions: Sequence[int | None]) -> int:
    """Places where neighbours are new to each other, and the beginning."""
    gaps, last = 1, -1
    for position in positions:
        if position is not None:
            gaps += position > last + 1
            last = position
    return gaps


def _turns(wire: Wire, after: Sequence[Message], positions: Sequence[int | None]) -> list[str]:
    found: list[str] = []
    last: tuple[str, int | None] | None = None
    for message, position in zip(after, positions, strict=True):
        role = wire.speaker(message)
        if role == "system":
            continue
        if last and role == last[0] and role in ("user", "assistant"):
            neighbours = last[1] is not None and position == last[1] + 1
            if not neighbours:
                found.append(f"two {role} messages in a row")
        last = role, position
    return found


def _before_system(kinds: Sequence[Kind], positions: Sequence[int | None], made: set[int]) -> bool:
    """A made message before a system message of the prefix."""
    first = min(made, default=None)
    if first is None:
        return False
    prefix = 0
    while prefix in positions and kinds[positions.index(prefix)] is Kind.SYSTEM:
        if positions.index(prefix) > first:
            return True
        prefix += 1
    return False
