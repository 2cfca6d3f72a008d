"""Events as OpenTelemetry spans and metrics, by the semantic conventions for generative AI.

Attributes that https://opentelemetry.io/docs/specs/semconv/gen-ai/ defines are ``gen_ai.*``, others
``compacter.*``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from compacter.events import (
    UNTOLD,
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    CompactionStarted,
    Event,
    MaxTokensAdjusted,
    MessageShortened,
    PassagesRecalled,
    RetriesExhausted,
)

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise ImportError(
        "compacter.tools.observe.OpenTelemetry needs: pip install opentelemetry-api"
    ) from error

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

Attributes = dict[str, str | bool | int | float]

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bucket boundaries of ``gen_ai.client.operation.duration`` in the conventions."""
_CHARACTERS = tuple(float(4**power) for power in range(4, 14))
_COUNTERS = {
    "refusals": (
        "{request}",
        ("Requests that the provider refused as too long, and that compacter acted on"),
    ),
    "compactions": ("{compaction}", "Compactions that took place"),
    "reuses": ("{call}", "Calls that used a compaction made before; most begin from a summary"),
    "saved_tokens": ("{token}", "Input tokens that these calls did not send, estimated"),
    "saved_cost": ("{USD}", "Price of these tokens, as far as known"),
    "recalls": ("{request}", "Requests that had quotes from compacted messages"),
    "failures": ("{summary}", "Summaries that were rejected or failed"),
    "give_ups": (
        "{call}",
        ("Calls that ended with the provider's own exception after a token limit"),
    ),
    "tokens": ("{token}", "Tokens of the summarizer; gen_ai.token.type is input or output"),
    "cost": ("{USD}", "Price of the summarizer's tokens, as far as known"),
}
_REFUSED = (MaxTokensAdjusted, MessageShortened, RetriesExhausted)
_COUNTED: dict[type[Event], str] = {
    CompactionEvent: "compactions",
    CompactionReused: "reuses",
    PassagesRecalled: "recalls",
    CompactionFailed: "failures",
    RetriesExhausted: "give_ups",
}
_NAMES = {
    "model": "gen_ai.request.model",
    "conversation": "gen_ai.conversation.id",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "error": "error.type",
}
"""Event field -> attribute name in the conventions."""
_DIMENSIONS = ("model", "trigger", "strategy", "error")
"""Event fields that are attributes of metrics: each has few values."""


class OpenTelemetry:
    """A hook that creates a span for each compaction, and counts events:
    ``Compacter(on_event=OpenTelemetry())``.

    A span ``compact MODEL`` belongs to the trace that is active at the call, and lasts as long as
    the compaction. Other events are added to the active span, as span events. Text of messages is
    not exported.

    Args:
        tracer_provider: Provider of the tracer; ``None`` for the global one.
        meter_provider: Provider of the meter; ``None`` for the global one.

    Raises:
        ImportError: The package ``opentelemetry-api`` is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("compacter", tracer_provider=tracer_provider)
        meter = metrics.get_meter("compacter", meter_provider=meter_provider)
        self._counters = {
            name: meter.create_counter(f"compacter.{name}", unit, text)
            for name, (unit, text) in _COUNTERS.items()
        }
        self._duration = meter.create_histogram(
            "compacter.compaction.duration",
            "s",
            "Time from the decision to compact until the compacted messages were ready",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._size = meter.create_histogram(
            "compacter.compaction.size",
            "{character}",
            "Data size of the messages; compacter.stage is before or after",
            explicit_bucket_boundaries_advisory=_CHARACTERS,
        )

    def __call__(self, event: Event) -> None:
        """Record ``event``."""
        few = _attributes(event, only=_DIMENSIONS)
        counted = _COUNTED.get(type(event))
        if counted is not None:
            self._counters[counted].add(1, few)
        if isinstance(event, CompactionReused):
            self._counters["saved_tokens"].add(event.tokens_saved, few)
            self._counters["saved_cost"].add(event.cost_saved or 0.0, few)
        if (
            isinstance(event, _REFUSED)
            or (isinstance(event, CompactionReused) and not event.began)
            or (isinstance(event, CompactionStarted) and event.trigger == "token_limit")
        ):
            self._counters["refusals"].add(1, _attributes(event, only=("model",)))
        if isinstance(event, CompactionEvent):
            self._record_compaction(event, few)
        else:
            trace.get_current_span().add_event(
                f"compacter.{type(event).__name__}", _attributes(event)
            )

    def _record_compaction(self, event: CompactionEvent, few: Attributes) -> None:
        self._duration.record(event.duration, few)
        self._size.record(event.original_data_size, {**few, "compacter.stage": "before"})
        self._size.record(event.compacted_data_size, {**few, "compacter.stage": "after"})
        for kind, tokens in (("input", event.input_tokens), ("output", event.output_tokens)):
            self._counters["tokens"].add(tokens, {**few, "gen_ai.token.type": kind})
        self._counters["cost"].add(event.cost or 0.0, few)
        end = time.time_ns()
        span = self._tracer.start_span(
            f"compact {event.model}" if event.model else "compact",
            attributes={"gen_ai.operation.name": "compact", **_attributes(event)},
            start_time=end - int(event.duration * 1e9),
        )
        span.end(end)


def _attributes(event: Event, only: tuple[str, ...] | None = None) -> Attributes:
    """Return the fields of an event under the conventions' names, without ``None`` and empty
    values.
    """
    found: Attributes = {}
    for name, value in event:
        wanted = name not in UNTOLD if only is None else name in only
        if wanted and value != "" and isinstance(value, (str, bool, int, float)):
            found[_NAMES.get(name, f"compacter.{name}")] = value
    return found
