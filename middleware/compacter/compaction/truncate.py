"""Drop the head, and say so."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compacter.compaction.task import CompactionTask
from compacter.messages.format import Message

_NOTE = re.compile(r"\A(\d+) earlier messages? left out without a summary\.(?:\n\n|\Z)")


@dataclass(frozen=True, slots=True)
class Truncate:
    """Replaces the head by one line that tells how many messages are gone. A prior summary stays, below that line."""

    name: str = "truncate"

    def compact(self, task: CompactionTask) -> list[Message]:
        """The list without its head."""
        prior = task.prior()
        return self.noted(task, prior.ledger if prior else "")

    @staticmethod
    def noted(task: CompactionTask, ledger: str) -> list[Message]:
        """The list without its head, this ledger below the note."""
        prior = task.prior()
        folded = task.plan.folded
        dropped = len(folded) - (prior is not None)
        if not dropped:
            return list(task.messages)
        prose = prior.prose if prior else ""
        told = _NOTE.match(prose)
        if told:
            dropped += int(told[1])
            prose = prose[told.end() :]
        note = f"{dropped} earlier message{'s' if dropped > 1 else ''} left out without a summary."
        return task.fold(f"{note}\n\n{prose}" if prose else note, ledger)
