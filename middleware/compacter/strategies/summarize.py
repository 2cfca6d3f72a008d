"""Fold the head into one summary message."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from compacter.errors import CompactionError
from compacter.events import CompactionFailed
from compacter.flow.effects import Effect, Tell
from compacter.messages.format import Message
from compacter.strategies.base import CompactionTask
from compacter.strategies.fallback import fall_back
from compacter.strategies.folding import NoSummaryError, summarized


@dataclass(frozen=True, slots=True)
class Summarize:
    """Replaces the head by a summary of it; a prior summary is folded in, never stacked.

    When no summary can be had, the fallbacks of ``Compacter`` take over, in their order.
    """

    name: str = "summarize"

    def compact(self, task: CompactionTask) -> Generator[Effect[Any], Any, list[Message]]:
        """The list with a summary message. Raises ``CompactionError`` when there is none and no fallback."""
        if not task.plan.folded:
            return list(task.messages)
        try:
            summary = yield from summarized(task)
        except NoSummaryError as failure:
            tally = task.tally
            yield from Tell(
                CompactionFailed(
                    model=task.plan.model,
                    trigger=task.plan.trigger,  # type: ignore[arg-type]
                    reason=str(failure),
                    error=type(failure.cause).__name__ if failure.cause else "",
                    input_tokens=tally.input_tokens,
                    output_tokens=tally.output_tokens,
                    cost=tally.cost,
                )
            )
            return self._without(task, failure)
        return task.fold(summary.prose, summary.ledger)

    @staticmethod
    def _without(task: CompactionTask, failure: NoSummaryError) -> list[Message]:
        if task.settings.summary is not None or not task.settings.fallback:
            told = f": {failure.cause}" if failure.cause else ""
            raise CompactionError(f"no summary could be had: {failure}{told}") from failure.cause
        return fall_back(task) or list(task.messages)
