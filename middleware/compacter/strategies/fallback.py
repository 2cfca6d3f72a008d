"""What stands in for a summary that could not be had, and for a strategy that broke its promise."""

from __future__ import annotations

from compacter.messages.format import Message
from compacter.strategies.base import CompactionTask
from compacter.strategies.folding import extracted, kept_ledger
from compacter.strategies.truncate import Truncate


def fall_back(task: CompactionTask) -> list[Message] | None:
    """The result of the first fallback that works, in their order; ``None`` where there is none."""
    for fallback in task.settings.fallback:
        if fallback == "truncate":
            # A model that failed is no reason to lose the user's rules: the ledger needs none.
            result = Truncate.noted(task, _ledger(task))
        else:
            try:
                summary = extracted(task)
            except Exception:  # noqa: BLE001, S112 - no room, or a redaction that raised: the next one then
                continue
            result = task.fold(summary.prose, summary.ledger)
        task.tally.fallback = True
        task.tally.names.append(fallback)
        return result
    return None


def _ledger(task: CompactionTask) -> str:
    """The ledger; only the prior one where a redaction or an extractor of the user's raises."""
    try:
        return kept_ledger(task)
    except Exception:  # noqa: BLE001 - what cannot be redacted is not kept, and the call goes on
        prior = task.prior()
        return prior.ledger if prior else ""
