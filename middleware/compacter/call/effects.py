"""Typed effects of a call: what it asks of the world beside what its compaction asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compacter.effects import Effect
from compacter.messages.format import Message
from compacter.messages.replies import Reply

if TYPE_CHECKING:
    from compacter.memory.match import View  # noqa: F401 - named in bases


@dataclass(frozen=True, slots=True)
class Send(Effect[Reply]):
    """Call the wrapped function. A token limit is in the reply; another exception is raised."""

    messages: Sequence[Message]
    options: Mapping[str, object]
    """Options in place of the caller's."""


@dataclass(frozen=True, slots=True)
class Find(Effect["View | None"]):
    """Read the remembered view of the caller's messages."""

    head: Sequence[Message] = ()
    """Messages that are about to be compacted: wait for another call that is compacting them, else
    let later calls wait for this one."""
    is_counted: bool = True
    """Whether the use of a record counts in totals, and for quotes."""
    is_prepared: bool = False
    """Whether to read the view that was made ahead, or wait for it if it is being made."""


@dataclass(frozen=True, slots=True)
class Save(Effect[str]):
    """Store a view of the caller's messages for later calls; answered with its name, empty if none
    is kept.
    """

    after: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Forget(Effect[None]):
    """Delete the records that this call has stored in the memory."""


@dataclass(frozen=True, slots=True)
class Prepare(Effect[None]):
    """Start the next compaction in the background."""

    ratio: float
    """Share of the messages to compact; 0 if none is due yet."""
    target: int
    """Largest size of the messages afterwards, in characters."""
