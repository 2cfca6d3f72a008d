"""Events as lines of JSON, of whatever version wrote them.

A line has the event's fields, and, where `JsonLines` wrote it, its type as ``event`` and the time in seconds as
``time``. Lines that a hook wrote with ``model_dump_json`` have neither: their type is known by their fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

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
