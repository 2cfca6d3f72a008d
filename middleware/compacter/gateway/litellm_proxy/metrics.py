"""Counters of the plug-in by model group, on the ``/metrics`` page of litellm's ``prometheus``
callback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compacter.events import CompactionEvent, Event
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
        groups = ("model_group",)
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

    def hear(self, event: Event) -> None:
        """Count an event."""
        group = event.model or ""
        for name, amount in figures_of(event):
            self.add(name, group, amount)
        if isinstance(event, CompactionEvent) and self._seconds is not None:
            self._seconds.labels(group).observe(event.duration)

    def add(self, name: str, model: str, amount: float = 1) -> None:
        """Add to a counter."""
        counter = self._made.get(name)
        if counter is not None:
            counter.labels(model).inc(amount)

    def watch_memory(self, is_open: Callable[[], float]) -> None:
        """Show whether the memory is left alone. With several processes, each sets its own value
        when it counts; a function is not read there.
        """
        if self._open is not None and hasattr(self._open, "set_function"):
            self._open.set_function(is_open)

    def refused(self, group: str) -> None:
        """Count a request that the provider refused as too long."""
        self.add("refusals", group)

    def would_fold(self, group: str) -> None:
        """Count a refusal that ``dry_run`` passed on."""
        self.add("dry_runs", group)
