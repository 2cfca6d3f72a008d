"""Counts and last events of the server, as JSON and as a report. They contain no keys, and no text unless enabled.

Model names come from callers, so they are truncated, and escaped in the report.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING

from compacter.events import (
    TEXTS,
    CompactionEvent,
    CompactionFailed,
    CompactionSkipped,
    Event,
    RetriesExhausted,
    Totals,
)
from compacter.report import Record, page, stories
from compacter.report.figures import plural

if TYPE_CHECKING:
    from compacter.compaction.task import CompactionPlan

_EVENTS = 1_000
"""Number of events in the report, the last ones."""
_NAME = 60
"""Longest model name shown, in characters."""


@dataclass(slots=True)
class Board:
    """Counts and events of one server."""

    say: Callable[[str], object] = lambda _: None
    """Called with each line that the user should see."""
    texts: bool = False
    """Whether the text of summaries is kept and shown."""
    totals: list[Callable[[], Totals]] = field(default_factory=list)
    """Functions that return the totals of each upstream's calls."""
    requests: int = 0
    passed: int = 0
    """Requests to other routes, which are passed on unread."""
    unreachable: int = 0
    """Requests whose upstream could not be reached, or broke off its response."""
    would_fold: int = 0
    """With ``dry_run``: compactions that were prevented."""
    heard: int = 0
    """Number of events since the start."""
    records: deque[Record] = field(default_factory=lambda: deque(maxlen=_EVENTS))
    _started: float = field(default_factory=time.time)

    def hear(self, event: Event) -> None:
        """Count and keep an event; a hook for ``on_event``."""
        shown = event.model_copy(update={"model": _name(event.model)})
        data = json.loads(shown.model_dump_json(exclude=None if self.texts else set(TEXTS)))
        self.records.append(Record(type(event).__name__, data, time.time()))
        self.heard += 1
        match event:
            case CompactionEvent() | CompactionFailed() | RetriesExhausted():
                self.say(shown.sentence)
            case CompactionSkipped(reason="nothing_to_fold" | "no_progress"):
                self.say(shown.sentence)

    def veto(self, plan: CompactionPlan) -> bool:
        """Report what would be folded, and return False to prevent it; a hook for ``before_compaction``."""
        self.would_fold += 1
        folded, size = f"{len(plan.folded):,} of {len(plan.messages):,}", plan.original_data_size
        name = f", {_name(plan.model)}" if plan.model else ""
        self.say(f"would fold {folded} messages, {plan.head_size:,} of {size:,} characters{name}")
        return False

    def numbers(self) -> dict[str, float | None]:
        """Return all counts by name."""
        totals = [asdict(read()) for read in self.totals]
        # A sum with an unknown cost is unknown.
        every = {one.name: [each[one.name] for each in totals] for one in fields(Totals)}
        summed = {name: None if None in numbers else sum(numbers) for name, numbers in every.items()}
        own = {"requests": self.requests, "passed_on": self.passed, "unreachable": self.unreachable}
        return {"seconds": int(time.time() - self._started), **own, "would_fold": self.would_fold, **summed}

    def as_json(self) -> dict[str, object]:
        """Return the counts and the last 50 events."""
        events = [{"event": one.kind, "time": one.time, **one.fields} for one in list(self.records)[-50:]]
        return {"totals": self.numbers(), "events": events}

    def tag(self) -> str:
        """Return the entity tag of the page, which changes whenever the page does."""
        return f'"{self.heard}-{self.requests}-{self.passed}-{self.unreachable}-{self.would_fold}"'

    def page(self) -> str:
        """Return the report of the last events, as a page that updates itself."""
        numbers = self.numbers()
        counts = [
            ("Requests", f"{self.requests:,}", f"since the start; {self.passed:,} passed on unread"),
            ("Calls", f"{numbers['calls']:,}", f"inspected; {plural(int(numbers['rounds'] or 0), 'fold')}"),
            ("Would fold", f"{self.would_fold:,}", "with a dry run"),
            ("Upstream", f"{self.unreachable:,}", "times unreachable, or broken off"),
        ]
        notes = [f"The page shows the last {_EVENTS:,} events of {self.heard:,}."] if self.heard > _EVENTS else []
        found = stories(list(self.records))
        return page(found, title="compacter", with_text=self.texts, live=True, counts=counts, notes=notes)


def _name(model: str | None) -> str | None:
    return None if model is None else "".join(filter(str.isprintable, model))[:_NAME]
