"""Counters of the plug-in by model group, on the ``/metrics`` page of litellm's ``prometheus`` callback."""

from __future__ import annotations

from typing import Any

from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    Event,
    MaxTokensAdjusted,
    RetriesExhausted,
)

COUNTERS = {
    "refusals": "Requests that the provider refused as too long",
    "folds": "Histories that were folded",
    "memory_hits": "Refused requests that went on with what another call had just folded",
    "tokens_saved": "Estimated input tokens by which folding made requests smaller",
    "summary_tokens": "Tokens that the summarizer has read and written",
    "summary_cost_usd": "USD for summaries, as far as prices are known",
    "summary_failures": "Summaries that were refused or could not be had",
    "fallbacks": "Folds that had to do without a model's summary",
    "output_limits_lowered": "Requests whose output limit was lowered",
    "given_up": "Requests that stayed too long; the client got the provider's error",
    "dry_runs": "Refusals that dry_run has let through",
}
"""Counter name -> description; Prometheus adds ``_total`` to the name."""


class Metrics:
    """Counters in Prometheus's default registry; none if ``prometheus_client`` is not installed."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        try:
            import prometheus_client  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            return
        groups = ("model_group",)
        for name, text in COUNTERS.items():
            self._made[name] = prometheus_client.Counter(f"compacter_{name}", text, groups)
        self._made["summary_seconds"] = prometheus_client.Histogram(
            "compacter_summary_seconds", "Seconds from the decision to fold until the folded list was ready", groups
        )

    def refused(self, group: str) -> None:
        """Count a request that the provider refused as too long."""
        self._count("refusals", group)

    def would_fold(self, group: str) -> None:
        """Count a refusal that ``dry_run`` passed on."""
        self._count("dry_runs", group)

    def count_event(self, event: Event) -> None:
        """Count an event of compacter."""
        group = event.model or ""
        match event:
            case CompactionEvent():
                self._count("folds", group)
                self._count("tokens_saved", group, max(0, event.original_tokens - event.compacted_tokens))
                self._count("summary_tokens", group, event.input_tokens + event.output_tokens)
                self._count("summary_cost_usd", group, event.cost or 0.0)
                if event.fallback:
                    self._count("fallbacks", group)
                if "summary_seconds" in self._made:
                    self._made["summary_seconds"].labels(group).observe(event.duration)
            case CompactionReused():
                self._count("memory_hits", group)
            case CompactionFailed():
                self._count("summary_failures", group)
            case MaxTokensAdjusted():
                self._count("output_limits_lowered", group)
            case RetriesExhausted():
                self._count("given_up", group)

    def _count(self, name: str, group: str, amount: float = 1) -> None:
        counter = self._made.get(name)
        if counter is not None:
            counter.labels(group).inc(amount)
