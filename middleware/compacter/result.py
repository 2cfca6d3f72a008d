"""What comes out of a compaction that was asked for by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from compacter.events import CompactionEvent
from compacter.messages.format import Message


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The compacted list, and what left it."""

    messages: list[Message] = field(repr=False)
    """A new list; kept messages are the identical objects."""
    discarded: tuple[Message, ...] = field(default=(), repr=False)
    """The original messages that are no longer in it, in order."""
    event: CompactionEvent | None = None
    """``None`` when nothing was changed."""
    fits: bool = True
    """Whether the messages are within ``budget``; True where none was given."""

    @property
    def changed(self) -> bool:
        """Whether anything was compacted."""
        return self.event is not None
