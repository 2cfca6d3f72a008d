"""Counters of the plug-in by model group and class of tenants, on the page ``/metrics`` of litellm
``prometheus`` callback.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compacter.events import CompactionEvent, Event
from compacter.gateway.counting import Counts
from compacter.gateway.figures import BUCKETS, COUNTERS, SECONDS, SECONDS_TEXT, figures_of


class Metrics:
    """Counters in Prometheus's default registry; none if ``prometheus_client`` is not installed."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._seconds: Any = None
        self._open: Any = None
        try:
            import prometheus_client as client  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            return
        groups = ("model_group", "tenant_class")
        for name, text in COUNTERS.items():
            self._made[name] = client.Counter(f"compacter_{name}", text, groups)
        self._seconds = client.Histogram(
            f"compacter_{SECONDS}", SECONDS_TEXT, groups, buckets=BUCKETS
        )
        self._open = client.Gauge(
            "compacter_memory_open",
            "1 while the memory is left alone because it failed, else 0",
            multiprocess_mode="livemax",
        )

    def of(self, tenant_class: str) -> Counts:
        """Return where the calls of one class of tenants count."""
        return _Part(self, tenant_class)

    def hear(self, event: Event, tenant_class: str) -> None:
        """Count an event."""
        group = event.model or ""
        for name, amount in figures_of(event):
            self.add(name, group, tenant_class, amount)
        if isinstance(event, CompactionEvent) and self._seconds is not None:
            self._seconds.labels(group, tenant_class).observe(event.duration)

    def add(self, name: str, model: str, tenant_class: str, amount: float) -> None:
        """Add to a counter."""
        counter = self._made.get(name)
        if counter is not None:
            counter.labels(model, tenant_class).inc(amount)

    def watch_memory(self, is_open: Callable[[], float]) -> None:
        """Show whether the memory is left alone. With several processes, each sets its own value
        when it counts; a function is not read there.
        """
        if self._open is not None and hasattr(self._open, "set_function"):
            self._open.set_function(is_open)


@dataclass(frozen=True, slots=True)
class _Part:
    """What the calls of one class of tenants count."""

    metrics: Metrics
    tenant_class: str

    def hear(self, event: Event) -> None:
        """Take an event."""
        self.metrics.hear(event, self.tenant_class)

    def add(self, name: str, model: str, amount: float = 1) -> None:
        """Add to a counter."""
        self.metrics.add(name, model, self.tenant_class, amount)
