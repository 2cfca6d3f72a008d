"""Counts and last events of the server, as JSON and as a report. They contain no keys, and no text
unless enabled.

Model names come from callers, so they are truncated, and escaped in the report.
"""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
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
from compacter.gateway.figures import BUCKETS, figures_of
from compacter.tools.report import Record, page, stories
from compacter.tools.report.figures import plural

if TYPE_CHECKING:
    from compacter.compaction.task import CompactionPlan

# Number of events in the report, the last ones.
_EVENTS = 1_000
# Longest model name shown, in characters.
_NAME = 60
# Number of models counted apart. Callers choose the names, and each is kept for good; what comes
# after these is counted as `other`.
_MODELS = 200


@dataclass(slots=True)
class Board:
    """Counts and events of one server."""

    say: Callable[[str], object] = lambda _: None
    """Called with each line that the user should see."""
    tell: Callable[[str, dict[str, object]], object] | None = None
    """Called with each event's name and fields, in place of ``say``, for a log that is read by
    programs."""
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
    counted: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """Counter's name, upstream and model -> amount."""
    seconds: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Upstream and model -> number of compactions for each of the ``BUCKETS``, and of longer
    ones."""
    spent: dict[tuple[str, str], float] = field(default_factory=dict)
    """Upstream and model -> seconds of all compactions."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    _said: set[str] = field(default_factory=set)
    _models: set[str] = field(default_factory=set)
    _started: float = field(default_factory=time.time)

    def say_once(self, line: str) -> None:
        """Say a line that has not been said before."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    def of(self, upstream: str) -> _Part:
        """Return where the calls to one upstream count."""
        return _Part(self, upstream)

    def add(self, name: str, upstream: str, model: str | None, amount: float = 1) -> None:
        """Add to a counter of ``figures.COUNTERS``."""
        with self.lock:
            place = name, upstream, self._name_to_count(model)
            self.counted[place] = self.counted.get(place, 0) + amount

    def _name_to_count(self, model: str | None) -> str:
        shown = _name(model) or ""
        if len(self._models) < _MODELS:
            self._models.add(shown)
        return shown if shown in self._models else "other"

    def _took(self, upstream: str, model: str | None, seconds: float) -> None:
        with self.lock:
            place = upstream, self._name_to_count(model)
            counts = self.seconds.setdefault(place, [0] * (len(BUCKETS) + 1))
            counts[bisect_left(BUCKETS, seconds)] += 1
            self.spent[place] = self.spent.get(place, 0.0) + seconds

    def hear(self, event: Event, upstream: str = "") -> None:
        """Count and keep an event."""
        for name, amount in figures_of(event):
            self.add(name, upstream, event.model, amount)
        if isinstance(event, CompactionEvent):
            self._took(upstream, event.model, event.duration)
        shown = event.model_copy(update={"model": _name(event.model)})
        data = json.loads(shown.model_dump_json(exclude=None if self.texts else set(TEXTS)))
        self.records.append(Record(type(event).__name__, data, time.time()))
        self.heard += 1
        if self.tell is not None:
            self.tell(type(event).__name__, {"upstream": upstream, **data})
            return
        match event:
            case CompactionEvent() | CompactionFailed() | RetriesExhausted():
                self.say(shown.sentence)
            case CompactionSkipped(reason="nothing_to_fold" | "no_progress") if (
                event.trigger != "quotes"
            ):  # That request is sent all the same.
                self.say(shown.sentence)

    def veto(self, plan: CompactionPlan) -> bool:
        """Report what would be compacted, and return False to prevent it; a hook for
        ``before_compaction``.
        """
        self.would_fold += 1
        folded = f"{len(plan.folded):,} of {len(plan.messages):,}"
        size = plan.original_data_size
        name = f", {_name(plan.model)}" if plan.model else ""
        self.say(
            f"would compact {folded} messages, {plan.head_size:,} of {size:,} characters{name}"
        )
        return False

    def numbers(self) -> dict[str, float | None]:
        """Return all counts by name."""
        totals = [asdict(read()) for read in self.totals]
        # A sum with an unknown cost is unknown.
        every = {one.name: [each[one.name] for each in totals] for one in fields(Totals)}
        summed = {
            name: None if None in numbers else sum(numbers) for name, numbers in every.items()
        }
        own = {"requests": self.requests, "passed_on": self.passed, "unreachable": self.unreachable}
        return {
            "seconds": int(time.time() - self._started),
            **own,
            "would_fold": self.would_fold,
            **summed,
        }

    def as_json(self, settings: Mapping[str, object] = MappingProxyType({})) -> dict[str, object]:
        """Return version, settings, counts and the last 50 events."""
        events = [
            {"event": one.kind, "time": one.time, **one.fields} for one in list(self.records)[-50:]
        ]
        told = {"version": _version(), "settings": dict(settings)}
        return {**told, "totals": self.numbers(), "events": events}

    def tag(self) -> str:
        """Return the entity tag of the page, which changes whenever the page does."""
        return f'"{self.heard}-{self.requests}-{self.passed}-{self.unreachable}-{self.would_fold}"'

    def page(self, settings: Mapping[str, object] = MappingProxyType({})) -> str:
        """Return the report of the last events, as a page that updates itself."""
        numbers = self.numbers()
        counts = [
            (
                "Requests",
                f"{self.requests:,}",
                (f"since the start; {self.passed:,} passed on unread"),
            ),
            (
                "Calls",
                f"{numbers['calls']:,}",
                (f"inspected; {plural(int(numbers['rounds'] or 0), 'compaction')}"),
            ),
            ("Would compact", f"{self.would_fold:,}", "with a dry run"),
            ("Upstream", f"{self.unreachable:,}", "times unreachable, or broken off"),
        ]
        told = [f"{name} {value}" for name, value in settings.items() if value not in (None, "")]
        notes = [f"compacter {_version()}. {'; '.join(told)}".strip()]
        if self.heard > _EVENTS:
            notes.append(f"The page shows the last {_EVENTS:,} events of {self.heard:,}.")
        found = stories(list(self.records))
        return page(
            found, title="compacter", with_text=self.texts, live=True, counts=counts, notes=notes
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """What one upstream's calls count on a board."""

    board: Board
    upstream: str

    def hear(self, event: Event) -> None:
        """Take an event."""
        self.board.hear(event, self.upstream)

    def add(self, name: str, model: str, amount: float = 1) -> None:
        """Add to a counter."""
        self.board.add(name, self.upstream, model, amount)


def _version() -> str:
    try:
        return version("llm-compacter")
    except PackageNotFoundError:  # A checkout that is not installed.
        return "unknown"


def _name(model: str | None) -> str | None:
    return None if model is None else "".join(filter(str.isprintable, model))[:_NAME]
