"""Events as lines of JSON, of whatever version wrote them, and what those of each conversation add up to.

A line has the event's fields, and, where `JsonLines` wrote it, its type as ``event`` and the time in seconds as
``time``. Lines that a hook wrote with ``model_dump_json`` have neither: their type is known by their fields.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compacter import models

_TELLING = (
    ("CompactionEvent", "compacted_data_size"),
    ("CompactionStarted", "head_size"),
    ("PassagesRecalled", "passages"),
    ("SilentTruncation", "prompt_tokens"),
    ("RetriesExhausted", "rounds"),
    ("CompactionFailed", "error"),
    ("CompactionSkipped", "reason"),
    ("CompactionReused", "messages_before"),
    ("MaxTokensAdjusted", "after"),
)
"""A field by which an event is known; the first that is there decides."""


@dataclass(frozen=True, slots=True)
class Record:
    """One event."""

    kind: str
    """Its class, such as ``CompactionEvent``."""
    fields: dict[str, Any] = field(repr=False)
    time: float | None = None
    """Seconds since 1970, where the line has them."""

    def number(self, name: str) -> float:
        """A field that is a number; 0 where it is missing or is none."""
        return self.known(name) or 0

    def known(self, name: str) -> float | None:
        """A field that is a number, else ``None``."""
        return _number(self.fields.get(name))

    def count(self, name: str) -> int:
        """A field that is a whole number; 0 where it is missing or is none."""
        return int(self.number(name))

    def text(self, name: str) -> str:
        """A field that is a text; empty where it is missing or is none."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


def read_lines(lines: Iterable[str]) -> tuple[list[Record], int]:
    """The events in these lines, in order, and how many lines could not be read."""
    found: list[Record] = []
    strange = 0
    for line in lines:
        if not line.strip():
            continue
        record = read_line(line)
        if record is None:
            strange += 1
        else:
            found.append(record)
    return found, strange


def read_line(line: str) -> Record | None:
    """The event in a line; ``None`` where it holds none."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    stated = data.get("event")
    kind = stated if isinstance(stated, str) else next((kind for kind, name in _TELLING if name in data), "")
    return Record(kind, data, _number(data.get("time"))) if kind else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and abs(value) < 1e15 else None


# -- what they add up to ----------------------------------------------------------------------------------------------


class Prices(NamedTuple):
    """USD for one token, or, where no price is known, shares of the price of an input token."""

    read: float
    cached: float
    """For a token that the provider has in its prompt cache."""
    written: float
    in_usd: bool


def plural(count: int, what: str) -> str:
    """A number and the word for what it counts, such as "1 fold"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


USUAL = Prices(1.0, 0.1, 5.0, in_usd=False)
"""What most providers ask for a cached and for a written token, against one that is read."""


def prices(model: str | None) -> Prices:
    """The prices of a model by litellm's table, or the usual shares."""
    known = models.prices(model)
    if known is None:
        return USUAL
    read, cached, written = known
    return Prices(read, read if cached is None else cached, written, in_usd=True)


@dataclass(frozen=True, slots=True)
class Fold:
    """One compaction. Sizes are estimates in tokens unless they say otherwise."""

    record: Record
    before: int
    after: int
    summary: int | None
    """What stands for what was folded; ``None`` where the events were written without texts."""
    quoted: int
    """The most that quotes took in the requests that followed."""
    cost: float | None
    """For the summarizer, USD; ``None`` where it is not known."""
    pays_after: int | None
    """Calls after which it has cost less than it saved; ``None``: never."""
    saves: float | None
    """USD that each later call costs less, at the price of cached tokens; ``None`` where it is not known."""

    @property
    def kept(self) -> int | None:
        """What stayed verbatim; ``None`` where it is not known apart from the summary."""
        return None if self.summary is None else self.after - self.summary

    @property
    def saved(self) -> int:
        """What each later request has less."""
        return max(0, self.before - self.after)


@dataclass(slots=True)
class Story:
    """All events of one conversation, in order."""

    key: str
    """The digest that names it; empty where the events have none."""
    records: list[Record] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    model: str = ""
    """The model of most of its calls."""
    window: int | None = None
    """In tokens: as the provider has stated it, else by litellm's table."""
    window_stated: bool = False

    def of(self, *kinds: str) -> list[Record]:
        """The events of these kinds."""
        return [record for record in self.records if record.kind in kinds]

    @property
    def troubles(self) -> list[Record]:
        """Whatever went wrong, or did not take place."""
        return self.of("CompactionFailed", "CompactionSkipped", "SilentTruncation", "RetriesExhausted")

    @property
    def failures(self) -> int:
        """Summaries that failed and calls that were given up."""
        return len(self.of("CompactionFailed", "RetriesExhausted"))

    @property
    def saved(self) -> int:
        """Tokens that folds took out, each counted once."""
        return sum(fold.saved for fold in self.folds)

    @property
    def summarizer_tokens(self) -> int:
        """Tokens that the summarizer read and wrote."""
        return sum(fold.record.count("input_tokens") + fold.record.count("output_tokens") for fold in self.folds)

    @property
    def cost(self) -> float | None:
        """USD for the summarizer; ``None`` where the price of some of it is not known."""
        costs = [fold.cost for fold in self.folds]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def largest(self) -> int:
        """The largest request, in tokens."""
        sizes = [fold.before for fold in self.folds]
        sizes += [record.count("requested") for record in self.of("RetriesExhausted")]
        return max(sizes, default=0)

    @property
    def begin(self) -> float | None:
        """Time of the first event, seconds since 1970."""
        return min((record.time for record in self.records if record.time is not None), default=None)

    @property
    def end(self) -> float | None:
        """Time of the last event."""
        return max((record.time for record in self.records if record.time is not None), default=None)


def stories(records: Iterable[Record], *, price: Callable[[str | None], Prices] = prices) -> list[Story]:
    """The conversations, in the order in which they first appear."""
    found: dict[str, Story] = {}
    for record in records:
        key = record.text("conversation")
        found.setdefault(key, Story(key)).records.append(record)
    for story in found.values():
        _add_up(story, price)
    return list(found.values())


def _add_up(story: Story, price: Callable[[str | None], Prices]) -> None:
    names = [record.text("model") for record in story.records if record.text("model")]
    story.model = Counter(names).most_common(1)[0][0] if names else ""
    stated = [limit for record in story.records if (limit := record.count("limit"))]
    story.window_stated = bool(stated)
    story.window = stated[-1] if stated else models.window(story.model or None)
    quoted = 0
    # Backwards: the quotes of the requests that follow a fold belong to it.
    for record in reversed(story.records):
        if record.kind == "PassagesRecalled":
            quoted = max(quoted, record.count("tokens"))
        elif record.kind == "CompactionEvent":
            story.folds.append(_fold(record, quoted, price(record.text("model") or None)))
            quoted = 0
    story.folds.reverse()


def _fold(record: Record, quoted: int, price: Prices) -> Fold:
    before = record.count("requested") or record.count("original_tokens")
    after = record.count("compacted_tokens")
    words = len(record.text("summary")) + len(record.text("ledger"))
    share = min(1.0, words / max(1, record.count("compacted_data_size"))) if "summary" in record.fields else None
    read, written, cost = record.count("input_tokens"), record.count("output_tokens"), record.known("cost")
    spent = cost if cost is not None and price.in_usd else read * price.read + written * price.written
    if cost is None and (price.in_usd or not (read or written)):
        cost = spent if price.in_usd else 0.0
    return Fold(
        record=record,
        before=before,
        after=after,
        summary=None if share is None else round(after * share),
        quoted=quoted,
        cost=cost,
        pays_after=_pays_after(spent, before, after, price),
        saves=max(0, before - after) * price.cached if price.in_usd else None,
    )


def _pays_after(spent: float, before: int, after: int, price: Prices) -> int | None:
    """Calls until a fold has paid.

    It costs the summarizer, and once the difference between reading the new request and having it in the prompt cache.
    Each later call saves the cached price of what is gone.
    """
    saves = (before - after) * price.cached
    if saves <= 0:
        return None
    return max(1, math.ceil((spent + after * (price.read - price.cached)) / saves))
