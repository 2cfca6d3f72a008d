"""What the server tells of itself: counts, the last compactions, one line for each. Never a key or a text.

The names of models are the callers' words: they are cut to a length, and escaped where they are shown.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING

from compacter.events import CompactionEvent, CompactionFailed, CompactionSkipped, Event, RetriesExhausted, Totals

if TYPE_CHECKING:
    from compacter.compaction.task import CompactionPlan

_ROWS = 50
_NAME = 60
"""Characters of a model's name that are shown."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that happened."""

    time: float
    """Unix seconds."""
    what: str
    model: str
    messages: str
    characters: str
    seconds: float = 0.0


@dataclass(slots=True)
class Board:
    """Counts of one server."""

    say: Callable[[str], object] = lambda _: None
    """Gets one line for each row."""
    totals: list[Callable[[], Totals]] = field(default_factory=list)
    """Gives the totals of each upstream's calls."""
    requests: int = 0
    passed: int = 0
    """Requests of other routes, which are passed on and not looked into."""
    unreachable: int = 0
    """Requests that the upstream could not be reached for, or broke off."""
    would_fold: int = 0
    """With ``dry_run``: compactions that did not take place."""
    rows: deque[Row] = field(default_factory=lambda: deque(maxlen=_ROWS))
    _started: float = field(default_factory=time.time)

    def hear(self, event: Event) -> None:
        """Take an event in; a hook for ``on_event``."""
        match event:
            case CompactionEvent():
                self._add(
                    f"folded by {event.strategy}" + (" (fallback)" if event.fallback else ""),
                    event.model,
                    f"{event.messages_before:,} to {event.messages_after:,}",
                    f"{event.original_data_size:,} to {event.compacted_data_size:,}",
                    event.duration,
                )
            case CompactionFailed():
                self._add(f"no summary: {event.reason}", event.model)
            case CompactionSkipped(reason="nothing_to_fold" | "no_progress"):
                self._add(f"not folded: {event.reason}", event.model)
            case RetriesExhausted():
                self._add(f"given up: {event.reason}", event.model)

    def veto(self, plan: CompactionPlan) -> bool:
        """Tell what would be folded, and forbid it; a hook for ``before_compaction``."""
        self.would_fold += 1
        folded, total = f"{len(plan.folded):,} of {len(plan.messages):,}", plan.original_data_size
        self._add("would fold", plan.model, folded, f"{plan.head_size:,} of {total:,}")
        return False

    def _add(
        self, what: str, model: str | None, messages: str = "", characters: str = "", seconds: float = 0.0
    ) -> None:
        name = "".join(filter(str.isprintable, model or ""))[:_NAME]
        self.rows.appendleft(Row(time.time(), what, name, messages, characters, seconds))
        sizes = [f"{size} {unit}" for size, unit in ((messages, "messages"), (characters, "characters")) if size]
        self.say(", ".join([what, *filter(None, [name]), *sizes, *([f"{seconds:.1f} s"] if seconds else [])]))

    def numbers(self) -> dict[str, float | None]:
        """All counts by name."""
        totals = [asdict(read()) for read in self.totals]
        # A cost that is known in part is not known.
        every = {one.name: [each[one.name] for each in totals] for one in fields(Totals)}
        summed = {name: None if None in numbers else sum(numbers) for name, numbers in every.items()}
        own = {"requests": self.requests, "passed_on": self.passed, "unreachable": self.unreachable}
        return {"seconds": int(time.time() - self._started), **own, "would_fold": self.would_fold, **summed}

    def as_json(self) -> dict[str, object]:
        """The counts and the last rows."""
        return {"totals": self.numbers(), "rows": [asdict(row) for row in list(self.rows)]}

    def page(self) -> str:
        """The same as a page that loads itself anew every two seconds."""
        counts = "".join(
            f"<tr><th scope=row>{name.replace('_', ' ')}<td>{'unknown' if number is None else f'{number:,}'}"
            for name, number in self.numbers().items()
        )
        rows = "".join(
            f"<tr><td>{time.strftime('%H:%M:%S', time.localtime(row.time))}<td>{escape(row.what)}<td>"
            f"{escape(row.model)}<td>{row.messages}<td>{row.characters}<td>{row.seconds:.1f}"
            for row in list(self.rows)
        )
        return _PAGE.format(counts=counts, rows=rows or "<tr><td colspan=6>Nothing yet.")


_PAGE = """<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=2>
<meta name=viewport content="width=device-width"><meta name=color-scheme content="light dark"><title>compacter</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}}
table{{border-collapse:collapse}}th,td{{text-align:left;padding:.15rem 1rem .15rem 0}}
td{{font-variant-numeric:tabular-nums}}.wide{{overflow-x:auto}}</style>
<main><h1>compacter</h1><h2>Totals</h2><table>{counts}</table>
<h2>The last events</h2><div class=wide tabindex=0 role=region aria-label="The last events"><table>
<thead><tr><th scope=col>Time<th scope=col>What<th scope=col>Model<th scope=col>Messages<th scope=col>Characters
<th scope=col>Seconds</thead><tbody>{rows}</tbody></table></div></main></html>
"""
