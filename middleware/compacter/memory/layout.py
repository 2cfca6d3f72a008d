"""How a compacted view lies over its history: which messages stay, what is put in, and where."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from compacter.compaction.check import kept_and_discarded
from compacter.memory.digest import chain, encoded, is_system, lead, record_key
from compacter.memory.record import Literal, Record
from compacter.messages.format import Message, Wire
from compacter.messages.steps import Kind


@dataclass(frozen=True, slots=True)
class Layout:
    """The view of everything up to a record's boundary.

    Offsets count from the end of the leading system messages.
    """

    items: tuple[int | Literal, ...]
    """In order: the offset of a message that stands verbatim, or a message that is put in."""
    length: int
    """Where the verbatim rest begins."""
    user_stays: bool
    """Whether the last genuine user message up to there, if there is one, stands verbatim."""


def record_of(scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> Record | None:
    """The record that makes ``after`` of ``before``; ``None`` when nothing was folded.

    The messages that were put in are copied: the function they are sent with may change its own.
    """
    origins, _ = kept_and_discarded(before, after)
    body = [index for index, message in enumerate(before) if not is_system(wire, message)]
    places = {index: position for position, index in enumerate(body)}
    kept = {places[origin] for origin in origins if origin in places}
    gone = [position for position in range(len(body)) if position not in kept]
    if not gone:
        return None
    literals = _literals(origins, after, body, places, lead(wire, before))
    boundary = gone[-1] + 1
    for literal in literals:
        boundary = max(boundary, min(literal.position + literal.behind_system, len(body)))
    spoken = [before[index] for index in body]
    parts = [encoded(wire, spoken[position]) for position in gone]
    return Record(
        key=record_key(scope, wire, spoken, gone),
        boundary=boundary,
        kept=tuple(sorted(position for position in kept if position < boundary)),
        literals=tuple(literals),
        digest=chain(parts),
        last=chain(parts[-1:]),
        folded_user=next((place for place in reversed(gone) if is_user(wire, spoken[place])), -1),
    )


def _literals(
    origins: Sequence[int | None],
    after: Sequence[Message],
    body: Sequence[int],
    places: dict[int, int],
    first: int,
) -> list[Literal]:
    found: list[Literal] = []
    position, behind = 0, False
    for origin, message in zip(origins, after, strict=True):
        if origin is None:
            found.append(Literal(position, copy.deepcopy(message), behind))
        elif origin in places:
            position, behind = places[origin] + 1, False
        elif origin >= first:
            position, behind = max(position, bisect_left(body, origin)), True
    return found


def laid_out(record: Record, wire: Wire, messages: Sequence[Message], first: int) -> Layout:
    """The layout for a history that the record matches.

    ``first`` is where its leading system messages end.
    """
    kept = set(record.kept)
    slots: dict[tuple[int, bool], list[Literal]] = {}
    for literal in record.literals:
        slots.setdefault((literal.position, literal.behind_system), []).append(literal)
    items: list[int | Literal] = list(slots.get((0, False), ()))
    user_stays = record.folded_user < 0
    position = offset = 0
    for offset, message in enumerate(islice(messages, first, None)):
        if is_system(wire, message):
            items.append(offset)
            continue
        items.extend(slots.get((position, True), ()))
        if position in kept:
            items.append(offset)
            user_stays = user_stays or (position > record.folded_user and is_user(wire, message))
        position += 1
        items.extend(slots.get((position, False), ()))
        if position >= record.boundary:
            break
    items.extend(slots.get((position, True), ()))
    return Layout(tuple(items), offset + 1, user_stays)


def view_of(
    layout: Layout, wire: Wire, messages: Sequence[Message], first: int, *, alternate: bool
) -> list[Message] | None:
    """The view of these messages.

    ``None`` where what follows the boundary does not go with what was put before it.
    """
    end = first + layout.length
    if not (layout.user_stays or _any_user(wire, messages, end)):
        return None
    if not _joins(layout, wire, messages, first, alternate=alternate):
        return None
    view = list(messages[:first])
    view.extend(
        messages[first + item] if isinstance(item, int) else copy.deepcopy(item.message) for item in layout.items
    )
    view.extend(messages[end:])
    return view


def is_user(wire: Wire, message: Message) -> bool:
    """Whether it is a genuine user message."""
    return wire.outline([message]).kinds[0] is Kind.USER


def _any_user(wire: Wire, messages: Sequence[Message], start: int) -> bool:
    return any(is_user(wire, messages[index]) for index in range(len(messages) - 1, start - 1, -1))


def _joins(layout: Layout, wire: Wire, messages: Sequence[Message], first: int, *, alternate: bool) -> bool:
    """Whether head and rest of the view may stand beside each other.

    Summary and filler were made for the message that followed them then. A fork may go on with another role,
    or end there.
    """
    end = first + layout.length
    ends_with = next(
        (
            role
            for item in reversed(layout.items)
            if (role := wire.speaker(messages[first + item] if isinstance(item, int) else item.message)) != "system"
        ),
        "",
    )
    ended_with = wire.speaker(messages[end - 1])
    following = next(
        (role for index in range(end, len(messages)) if (role := wire.speaker(messages[index])) != "system"),
        None,
    )
    if following is None:
        return ends_with != "assistant" or ended_with == "assistant"
    return not (alternate and following == ends_with != ended_with and following in ("user", "assistant"))
