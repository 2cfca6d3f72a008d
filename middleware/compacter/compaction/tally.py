"""What one compaction costs and writes, counted while it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """What one compaction has cost and written so far. The only mutable part of a task."""

    facts: dict[str, Any] = field(default_factory=lambda: {"cost": 0.0})
    """Fields of the ``CompactionEvent``, by their names."""
    names: list[str] = field(default_factory=list)
    """Names of the strategies whose result is used."""

    def add(self, **values: float | tuple[str, ...] | None) -> None:
        """Add to fields of the event that are sums or lists; ``None`` makes a sum ``None``."""
        for name, value in values.items():
            if name not in self.facts or value is None:
                self.facts[name] = value
            elif self.facts[name] is not None:
                self.facts[name] += value

    def set(self, **values: object) -> None:
        """Set fields of the event."""
        self.facts.update(values)

    def costs(self) -> dict[str, Any]:
        """Return what the summarizer has cost, as fields of an event."""
        names = ("input_tokens", "output_tokens", "cost")
        return {name: self.facts[name] for name in names if name in self.facts}
