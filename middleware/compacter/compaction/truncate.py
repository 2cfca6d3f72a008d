"""Drop the head, and say so."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from compacter.compaction.task import CompactionTask
from compacter.messages.format import Message
from compacter.summary.message import Summary

_NOTE = re.compile(r"(\d+) earlier messages? left out without a summary\.")


@dataclass(frozen=True, slots=True)
class Truncate:
    """Replaces the head by a note that says how many messages are gone. A prior summary stays, below that note."""

    name: str = "truncate"
    """Name that events carry."""

    def compact(self, task: CompactionTask) -> list[Message]:
        """The list of ``task`` without its head."""
        return self.noted(task, task.prior() or Summary())

    @staticmethod
    def noted(task: CompactionTask, summary: Summary) -> list[Message]:
        """The list of ``task`` without its head; ``summary``, what was known before, is put below the note."""
        dropped = len(task.plan.folded) - (task.plan.prior is not None)
        if not dropped:
            return list(task.messages)
        others: list[str] = []
        for note in summary.notes:
            told = _NOTE.fullmatch(note)
            dropped += int(told[1]) if told else 0
            others += [] if told else [note]
        note = f"{dropped} earlier message{'s' if dropped > 1 else ''} left out without a summary."
        return task.fold(replace(summary, notes=(*others, note)))
