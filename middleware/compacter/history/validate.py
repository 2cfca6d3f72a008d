"""Is a compacted list one that the provider accepts, and does it keep what it must? (DESIGN, "What must always hold")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compacter.history.message import Message
from compacter.history.outline import Kind
from compacter.history.wire import Wire


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

    ``protected`` marks the messages of ``before`` that must come out verbatim. ``edited`` allows messages that stand for
    one original each (a cleared tool result, a shortened message) beside summaries and fillers.
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
    strangers = positions.count(None)
    if not edited and strangers > _allowed(wire, positions, alternate=alternate):
        found.append(f"{strangers} messages are neither original nor the summary")
    if alternate:
        found.extend(_turns(wire, after, positions))
    if _system_after_start(new.kinds, positions):
        found.append("the summary stands before the system prompt")
    return found


def _positions(before: Sequence[Message], after: Sequence[Message]) -> list[int | None]:
    """Where each message of ``after`` was in ``before``, by identity, the same object's occurrences in order."""
    places: dict[int, list[int]] = {}
    for index in range(len(before) - 1, -1, -1):
        places.setdefault(id(before[index]), []).append(index)
    return [places[id(message)].pop() if places.get(id(message)) else None for message in after]


def kept_and_discarded(
    before: Sequence[Message], after: Sequence[Message]
) -> tuple[list[int | None], tuple[Message, ...]]:
    """Origins of the messages of ``after`` (by identity), and the messages of ``before`` that are not among them."""
    positions = _positions(before, after)
    kept = {position for position in positions if position is not None}
    return positions, tuple(message for index, message in enumerate(before) if index not in kept)


def _allowed(wire: Wire, positions: Sequence[int | None], *, alternate: bool) -> int:
    gaps = 1
    last = -1
    for position in positions:
        if position is not None:
            gaps += position > last + 1
            last = position
    return 1 + (gaps if alternate else 0)


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


def _system_after_start(kinds: Sequence[Kind], positions: Sequence[int | None]) -> bool:
    """A made message before a system message of the prefix."""
    made = next((place for place, position in enumerate(positions) if position is None), None)
    if made is None:
        return False
    prefix = 0
    while positions.count(prefix) and kinds[positions.index(prefix)] is Kind.SYSTEM:
        if positions.index(prefix) > made:
            return True
        prefix += 1
    return False
