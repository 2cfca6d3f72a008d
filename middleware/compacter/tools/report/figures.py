"""Read events from JSON lines, written by any version, and add up those of each conversation.

A line has the event's fields and, if `JsonLines` wrote it, its type as ``event`` and the time in
seconds as ``time``. A line that a hook wrote with ``model_dump_json`` has neither: its type is the
one with the most similar fields.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from compacter import events
from compacter.runtime import models


@dataclass(frozen=True, slots=True)
class Record:
    """One event, as it was read from a line of JSON."""

    kind: str
    """Name of its class, such as ``CompactionEvent``."""
    fields: dict[str, Any] = field(repr=False)
    time: float | None = None
    """Unix time in seconds, if the line has it."""

    def number(self, name: str) -> float:
        """Return the field ``name``; 0 if it is missing or not a number."""
        return self.known(name) or 0

    def known(self, name: str) -> float | None:
        """Return the field ``name``; ``None`` if it is missing or not a number."""
        return _number(self.fields.get(name))

    def count(self, name: str) -> int:
        """Return the field ``name`` as an integer; 0 if it is missing or not a number."""
        return int(self.number(name))

    def text(self, name: str) -> str:
        """Return the field ``name``; an empty string if it is missing or not a string."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    @property
    def sentence(self) -> str:
        """The event in words, without the text of messages; if a field is missing or something
        else, the fields that are known.
        """
        kinds = {kind.__name__: kind for kind in events.Event.__subclasses__()}
        event = kinds.get(self.kind, events.Event)
        try:
            known = {name: self.fields[name] for name in event.model_fields if name in self.fields}
            sentence: str = event.model_validate(known).sentence
        except ValidationError:
            sentence = f"{self.kind} {self.text('reason')}"
        return sentence.strip()


def read_lines(lines: Iterable[str]) -> tuple[list[Record], int]:
    """Return the events in these lines, in order, and the number of lines that could not
    be read.
    """
    found: list[Record] = []
    strange = 0
    for line in filter(str.strip, lines):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = {}
        kind = isinstance(data, dict) and (data.get("event") or _similar(data))
        if isinstance(kind, str):
            found.append(Record(kind, data, _number(data.get("time"))))
        else:
            strange += 1
    return found, strange


def _similar(data: Mapping[str, Any]) -> str | None:
    """Return the type of event with the most similar fields; ``None`` if it is no event."""
    if not {"attempt", "conversation"} <= data.keys():
        return None
    kinds = events.Event.__subclasses__()
    return min(kinds, key=lambda kind: len(kind.model_fields.keys() ^ data.keys())).__name__


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and abs(value) < 1e15 else None


# -- figures of each conversation ------------------------------------------------------------------


_DIGEST = re.compile(r"[0-9a-f]{32,}")
# Characters of a digest that a column of a table shows.
_DIGEST_SHOWN = 12


def short_key(key: str) -> str:
    """Return the shown form of a conversation's key: the first digits of a digest, or a whole
    name.
    """
    return key[:_DIGEST_SHOWN] if _DIGEST.fullmatch(key) else key


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction. Sizes are estimates in tokens."""

    record: Record
    before: int
    after: int
    cost: float | None
    """Price of the summarizer's tokens in USD; ``None`` if unknown."""

    @property
    def saved(self) -> int:
        """Estimated number of tokens by which the compaction makes each later request smaller."""
        return max(0, self.before - self.after)


@dataclass(slots=True)
class Story:
    """All events of one conversation, in order."""

    key: str
    """Conversation digest; empty if the events have none."""
    records: list[Record] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    model: str = ""
    """Model of most of its events."""
    window: int | None = None
    """Context window in tokens, as stated by the provider, else by litellm's table."""

    def of(self, *kinds: str) -> list[Record]:
        """Return the events of this conversation that are of these kinds."""
        return [record for record in self.records if record.kind in kinds]

    @property
    def failures(self) -> int:
        """Number of failed summaries and of calls that were given up."""
        return len(self.of("CompactionFailed", "RetriesExhausted"))

    @property
    def saved(self) -> int:
        """Estimated number of tokens that the compactions have removed from requests. Each token
        counts once, not once for each later request.
        """
        return sum(compaction.saved for compaction in self.compactions)

    @property
    def cost(self) -> float | None:
        """Price of the summarizer's tokens in USD; ``None`` if a part of it is unknown."""
        costs = [compaction.cost for compaction in self.compactions]
        return None if None in costs else sum(filter(None, costs))

    @property
    def largest(self) -> int:
        """Size of the largest request, in tokens."""
        sizes = [compaction.before for compaction in self.compactions]
        sizes += [record.count("requested") for record in self.of("RetriesExhausted")]
        return max(sizes, default=0)

    @property
    def times(self) -> list[float]:
        """Unix times of the events, in seconds; empty if the lines have no times."""
        return [record.time for record in self.records if record.time is not None]

    @property
    def end(self) -> float | None:
        """Unix time of the last event, in seconds."""
        return max(self.times, default=None)


def stories(records: Iterable[Record]) -> list[Story]:
    """Return the conversations, in the order in which they first appear."""
    found: dict[str, Story] = {}
    for record in records:
        key = record.text("conversation")
        found.setdefault(key, Story(key)).records.append(record)
    for story in found.values():
        names = [record.text("model") for record in story.records if record.text("model")]
        story.model = Counter(names).most_common(1)[0][0] if names else ""
        stated = [limit for record in story.records if (limit := record.count("limit"))]
        story.window = stated[-1] if stated else models.window(story.model or None)
        story.compactions = [_compaction(record) for record in story.of("CompactionEvent")]
    return list(found.values())


def _compaction(record: Record) -> Compaction:
    cost = record.known("cost")
    if cost is None and not record.count("summarizer_calls") and not record.count("input_tokens"):
        cost = 0.0  # No model was called. The cost is unknown if a model states no usage.
    before = record.count("requested") or record.count("original_tokens")
    return Compaction(record, before, record.count("compacted_tokens"), cost)
