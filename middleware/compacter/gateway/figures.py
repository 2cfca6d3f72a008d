"""What an operator counts: the figures of an event, under the same names in the LiteLLM proxy and
in the pass-through.
"""

from __future__ import annotations

from collections.abc import Iterator

from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    CompactionSkipped,
    Event,
    MaxTokensAdjusted,
    PassagesRecalled,
    RetriesExhausted,
)

COUNTERS = {
    "refusals": "Requests that the provider refused as too long",
    "folds": "Histories that were compacted",
    "prepared": "Histories that were compacted ahead, in the background",
    "prepared_used": "Compactions made ahead that were put in force",
    "preparations_failed": "Compactions made ahead that could not be had",
    "records_reused": "Calls that began from a summary made earlier: what compacting has saved",
    "memory_hits": "Refused requests that went on with what another call had just compacted",
    "memory_failures": "Operations of the memory that failed; the call went on without it",
    "tokens_saved": "Estimated input tokens by which compacting made requests smaller",
    "summary_tokens": "Tokens that the summarizer has read and written",
    "summary_cost_usd": "USD for summaries, as far as prices are known",
    "summary_failures": "Summaries that were refused or could not be had",
    "fallbacks": "Compactions that had to do without a model's summary",
    "quotes": "Requests that passages of the compacted part were quoted in",
    "output_limits_lowered": "Requests whose output limit was lowered",
    "not_foldable": "Refused requests of which nothing could be compacted",
    "given_up": "Requests that stayed too long; the client got the provider's error",
    "dry_runs": "Refusals that dry_run has let through",
}
"""Counter name -> description; Prometheus adds ``_total`` to the name."""
GAUGES = {
    "memory_open": "1 while the memory is left alone because it failed, else 0",
    "summaries_running": "Summaries that are being requested",
    "summaries_waiting": "Summaries that wait for their turn",
}
"""Gauge name -> description."""
SECONDS = "summary_seconds"
SECONDS_TEXT = "Seconds from the decision to compact until the compacted list was ready"
BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the histogram: a summary without a model takes milliseconds, one by a model some
seconds, and 300 is when ``timeout`` ends it."""
_PREPARED = "prepared"


def figures_of(event: Event) -> Iterator[tuple[str, float]]:
    """Yield the counters that an event adds to, and by how much."""
    match event:
        case CompactionEvent():
            yield ("prepared" if event.trigger == _PREPARED else "folds"), 1
            yield "tokens_saved", max(0, event.original_tokens - event.compacted_tokens)
            yield "summary_tokens", event.input_tokens + event.output_tokens
            yield "summary_cost_usd", event.cost or 0.0
            if event.fallback:
                yield "fallbacks", 1
        case CompactionReused():
            yield "memory_hits", 1
        case CompactionFailed():
            yield "summary_failures", 1
            yield "summary_tokens", event.input_tokens + event.output_tokens
            yield "summary_cost_usd", event.cost or 0.0
        case CompactionSkipped(reason="nothing_to_fold" | "no_progress") if (
            event.trigger != "quotes"
        ):  # That request is sent all the same.
            yield "not_foldable", 1
        case MaxTokensAdjusted():
            yield "output_limits_lowered", 1
        case PassagesRecalled():
            yield "quotes", 1
        case RetriesExhausted():
            yield "given_up", 1
