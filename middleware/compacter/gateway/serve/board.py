"""Counts and last events of the server, and a report on them. They contain no keys, and no text
unless enabled.

Model names come from callers, so they are truncated, and escaped in the report.
"""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

import compacter
from compacter.events import (
    TEXTS,
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    Event,
    RetriesExhausted,
)
from compacter.gateway.metrics import ORIGIN, Metrics, is_stuck, shown_name
from compacter.text.table import usd
from compacter.tools.report import Record, page, plural, stories

if TYPE_CHECKING:
    from compacter.call.state import RunningTotals
    from compacter.compaction.plan import CompactionPlan

# Number of events in the report, the last ones.
_EVENTS = 1_000
OWN_COUNTERS = {
    "requests": "Requests, those for the server's own pages left out",
    "passed_on": "Requests that were passed on unread",
    "unreachable": "Requests whose upstream could not be reached, or broke off its response",
}


@dataclass(slots=True)
class Board:
    """Counters and the newest events of one server, for its pages of metrics and its report. It
    also prints what happens.
    """

    print_line: Callable[[str], object] = lambda _: None
    """Called with each line that the user should see."""
    log_event: Callable[[str, dict[str, object]], object] | None = None
    """Called with each event's name and fields, in place of ``print_line``, for a log that programs
    read."""
    texts: bool = False
    """Whether the text of summaries is kept and shown."""
    totals: list[RunningTotals] = field(default_factory=list)
    """Totals of each upstream's calls, also in earlier configurations."""
    counts: Counter[str] = field(default_factory=Counter)
    """Requests, those passed on unread, those whose upstream was away, and refusals that
    ``dry_run`` has let through."""
    records: deque[Record] = field(default_factory=lambda: deque(maxlen=_EVENTS))
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    """Figures of the page ``/metrics``."""
    metrics: Metrics = field(init=False)
    _printed: set[str] = field(default_factory=set)
    _away: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.registry, OWN_COUNTERS.items())

    def print_once(self, line: str) -> None:
        """Print a line that was not printed before."""
        if line not in self._printed:
            self._printed.add(line)
            self.print_line(line)

    def print_status(self, upstream: str, problem: str = "") -> None:
        """Print that an upstream is away, or answers again; once each time."""
        if (not problem) == (upstream in self._away):
            self._away ^= {upstream}
            self.print_line(f"{upstream} {problem or 'answers again'}")

    def count(self, name: str) -> None:
        """Add one to a counter, for the present call."""
        self.counts[name] += 1
        self.metrics.add(name)

    def record(self, event: Event) -> None:
        """Keep an event, and print or log it."""
        shown = event.model_copy(update={"model": event.model and shown_name(event.model)})
        data = json.loads(shown.model_dump_json(exclude=None if self.texts else set(TEXTS)))
        if not (isinstance(event, CompactionReused) and event.began):  # The page has their sums.
            self.records.append(Record(type(event).__name__, data, time.time()))
        if self.log_event is not None:
            self.log_event(type(event).__name__, {"upstream": ORIGIN.get().upstream, **data})
        elif is_stuck(event) or isinstance(
            event, (CompactionEvent, CompactionFailed, RetriesExhausted)
        ):
            self.print_line(shown.sentence)

    def veto(self, plan: CompactionPlan) -> bool:
        """Report the compaction that would be made, and return False to prevent it; a hook for
        ``before_compaction``.
        """
        compacted = f"{len(plan.compacted):,} of {len(plan.messages):,}"
        size = plan.original_data_size
        name = f", {shown_name(plan.model)}" if plan.model else ""
        self.print_line(
            f"would compact {compacted} messages, {plan.head_size:,} of {size:,} characters{name}"
        )
        return False

    def numbers(self) -> dict[str, float | None]:
        """Return all counts by name. A sum with an unknown cost is unknown."""
        names = (*OWN_COUNTERS, "dry_runs")
        sums: dict[str, float | None] = {name: self.counts[name] for name in names}
        for totals in self.totals:
            for name, number in asdict(totals.snapshot()).items():
                before = sums.get(name, 0)
                sums[name] = None if number is None or before is None else before + number
        return sums

    def page(self) -> str:
        """Return the report of the last events."""
        numbers = self.numbers()
        reused, saved, price = (
            numbers.get(name) or 0 for name in ("reused", "tokens_saved", "cost_saved")
        )
        notes = [f"compacter {compacter.__version__}."]
        if reused:
            worth = f", worth {usd(price)}" if price else ""
            notes.append(
                f"Since the start {plural(int(reused), 'call')} began from a summary: "
                f"{saved:,.0f} input tokens not sent{worth}."
            )
        if len(self.records) == _EVENTS:
            notes.append(f"The page shows the last {_EVENTS:,} events.")
        return page(stories(list(self.records)), with_text=self.texts, notes=notes)
