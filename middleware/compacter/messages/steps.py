"""What each message of a history is, how large it is, and which messages must stay together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(IntEnum):
    """What a message is to a compaction, whatever its provider calls it."""

    SYSTEM = 0
    """Instructions; never folded."""
    USER = 1
    """A genuine user message; it may also carry tool results."""
    ASSISTANT = 2
    RESULT = 3
    """Carries tool results and nothing else."""
    OTHER = 4
    """An item without a speaker, such as a reasoning item."""
    UNKNOWN = 5
    """Not a message of its format; never folded."""
    INSERTED = 6
    """Put in by compacter where turns must alternate; no user said it."""
    COMPACTED = 7
    """Carries a compaction that the provider made; what stands before the newest is not in the model's context."""


@dataclass(frozen=True, slots=True)
class Broken:
    """One half of a tool pair without the other half."""

    index: int
    """Position of the message."""
    call_id: str
    what: str
    """``"orphan result"`` or ``"unanswered call"``."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A history in short: kinds and sizes are parallel lists, one element a message."""

    kinds: list[Kind]
    sizes: list[int]
    steps: list[int]
    """Indexes at which a step begins, ascending. A step ends where the next one begins."""
    broken: tuple[Broken, ...]
    """Half pairs, in order; the calls of an open last step are not among them."""
    open: int | None
    """Where the last step begins, if its calls are still waiting for results."""

    @property
    def total(self) -> int:
        """Data size of all messages in characters."""
        return sum(self.sizes)


_SPEAKING = (Kind.USER, Kind.ASSISTANT, Kind.INSERTED, Kind.COMPACTED)


def group(outlines: Iterable[tuple[Kind, int, tuple[str, ...], tuple[str, ...]]]) -> Steps:
    """Group messages into steps, pairing calls with results by position.

    Ids are no key: real transcripts reuse them. A result belongs to the batch of calls just before it; the
    batch ends with the next user or assistant message that answers none of it. A result that answers nothing
    is a step of its own, unless calls are still waiting: then their results may follow it.
    """
    kinds: list[Kind] = []
    sizes: list[int] = []
    steps: list[int] = []
    broken: list[Broken] = []
    waiting: dict[str, int] = {}
    caller = 0
    add_kind, add_size, add_step = kinds.append, sizes.append, steps.append  # This runs for 100,000 messages.
    for index, (kind, size, calls, results) in enumerate(outlines):
        add_kind(kind)
        add_size(size)
        if not (calls or results or waiting):
            add_step(index)
            continue
        answers = False
        for result in results:
            if result in waiting:
                take(waiting, result)
                answers = True
            else:
                broken.append(Broken(index, result, "orphan result"))
        if not answers and (not waiting or kind in _SPEAKING):
            add_step(index)
        elif not calls:
            continue
        if waiting:
            broken.extend([Broken(caller, call, "unanswered call") for call in left(waiting)])
            waiting = {}
        for call in calls:
            waiting[call] = waiting.get(call, 0) + 1
            caller = index
    broken.sort(key=lambda half: half.index)
    return Steps(kinds, sizes, steps, tuple(broken), steps[-1] if waiting else None)


def take(counts: dict[str, int], call_id: str) -> None:
    """One call less of this id."""
    if counts[call_id] == 1:
        del counts[call_id]
    else:
        counts[call_id] -= 1


def left(counts: dict[str, int]) -> list[str]:
    """The ids of the calls that are left, each as often as it is."""
    return [call_id for call_id, count in counts.items() for _ in range(count)]
