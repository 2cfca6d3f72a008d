"""What a Compacter has done so far, added up."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from itertools import count

from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    Event,
    MaxTokensAdjusted,
    RetriesExhausted,
)


@dataclass(frozen=True, slots=True)
class Totals:
    """A snapshot; tokens and cost are the summarizer's alone."""

    calls: int = 0
    """Wrapped calls that were made."""
    rounds: int = 0
    """Compactions that took place."""
    reused: int = 0
    """Calls that went on with an earlier compaction after a token limit."""
    failures: int = 0
    """Summaries that were refused or could not be had."""
    given_up: int = 0
    adjusted: int = 0
    """Calls whose output limit was lowered."""
    summarizer_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """USD, as far as prices are known."""
    characters_saved: int = 0


class Ledger:
    """Adds events up. Thread-safe; counting a call costs one atomic step."""

    def __init__(self) -> None:
        self._calls = count()
        self.count_call = self._calls.__next__
        self._totals = Totals()
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        """Take an event in."""
        with self._lock:
            self._totals = _added(self._totals, event)

    def asked(self) -> None:
        """Count a request for a summary, whatever comes of it."""
        with self._lock:
            self._totals = replace(self._totals, summarizer_calls=self._totals.summarizer_calls + 1)

    def answered(self, input_tokens: int, output_tokens: int, cost: float | None) -> None:
        """Count what the answer to it took, also if it is refused then."""
        with self._lock:
            now = self._totals
            self._totals = replace(
                now,
                input_tokens=now.input_tokens + input_tokens,
                output_tokens=now.output_tokens + output_tokens,
                cost=now.cost + (cost or 0.0),
            )

    def snapshot(self) -> Totals:
        """The totals now."""
        with self._lock:
            # The counter tells its next value only; its repr is the documented way to look without a step.
            return replace(self._totals, calls=int(repr(self._calls)[6:-1]))


def _added(totals: Totals, event: Event) -> Totals:
    if isinstance(event, CompactionEvent):
        return replace(
            totals,
            rounds=totals.rounds + 1,
            characters_saved=totals.characters_saved + event.original_data_size - event.compacted_data_size,
        )
    if isinstance(event, CompactionFailed):
        return replace(totals, failures=totals.failures + 1)
    if isinstance(event, CompactionReused):
        return replace(totals, reused=totals.reused + 1)
    if isinstance(event, MaxTokensAdjusted):
        return replace(totals, adjusted=totals.adjusted + 1)
    if isinstance(event, RetriesExhausted):
        return replace(totals, given_up=totals.given_up + 1)
    return totals
