"""Figures for operators, with common names in the LiteLLM proxy and in the pass-through, on a page
for Prometheus.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compacter.call.ahead import Preparations
from compacter.call.log import Log
from compacter.call.state import RunningTotals, State
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    CompactionSkipped,
    Event,
    MaxTokensAdjusted,
    PassagesRecalled,
    PreparationFailed,
    RetriesExhausted,
)
from compacter.options import Options

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

COUNTERS = {
    "refusals": "Requests that the provider refused as too long",
    "compactions": "Histories that were compacted",
    "prepared": "Histories that were compacted ahead, in the background",
    "prepared_used": "Compactions made ahead that were put in force",
    "preparations_failed": "Compactions made ahead that could not be had",
    "records_reused": "Calls that began from a summary made earlier: what compacting has saved",
    "memory_hits": "Refused requests that went on with what another call had just compacted",
    "memory_failures": "Operations of the memory that failed; the call went on without it",
    "tokens_saved": "Estimated input tokens by which answered requests were smaller",
    "saved_usd": "USD for input tokens that calls from a summary did not send, if prices are known",
    "summary_tokens": "Tokens that the summarizer has read and written",
    "summary_cost_usd": "USD for summaries, as far as prices are known",
    "summary_failures": "Summaries that were refused or could not be had",
    "fallbacks": "Compactions that had to do without a model's summary",
    "quotes": "Requests that passages of the compacted part were quoted in",
    "output_limits_lowered": "Requests whose output limit was lowered",
    "not_compactable": "Refused requests in which nothing could be compacted",
    "given_up": "Requests that stayed too long; the client got the provider's error",
    "dry_runs": "Refusals that dry_run has let through",
}
"""Counter name -> description; Prometheus adds ``_total`` to the name."""
SECONDS = {
    "summary_seconds": "Seconds from the decision to compact until the compacted list was ready",
    "wait_seconds": "Seconds that a caller waited for its request to be made smaller",
}
"""Histogram name -> description."""
MEMORY_OPEN = "memory_open"
MEMORY_OPEN_TEXT = "1 while the memory fails, else 0"
# Upper bounds of the histograms: a summary without a model takes milliseconds, one by a model some
# seconds, and 300 is when ``timeout`` ends it.
_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
# Longest name of a model or a class, in characters.
_NAME = 60
# Most names that are counted separately, as callers choose names, and each is kept for good;
# further names are counted as `other`.
_MOST_NAMES = 200


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call came from and where it goes. The figures of the call are counted under these
    names.
    """

    upstream: str = ""
    model: str = ""
    tenant_class: str = "other"


ORIGIN: ContextVar[Origin] = ContextVar("compacter_origin", default=Origin())  # noqa: B039 - frozen
"""The call that is being handled."""


def shown_name(name: str | None) -> str:
    """Return a name that a caller has chosen, without characters that cannot be shown."""
    return "".join(filter(str.isprintable, name or ""))[:_NAME]


class Metrics:
    """The figures of one process.

    Args:
        registry: Registry that shows them; ``None`` to show them nowhere.
        more: Further counters.
    """

    def __init__(
        self, registry: CollectorRegistry | None = None, more: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._figures: dict[str, Any] = {}
        self._names: set[str] = set()
        self._lock = threading.Lock()
        if registry is None:
            return
        import prometheus_client as client

        labels = ("upstream", "model_group", "tenant_class")
        for name, text in (*COUNTERS.items(), *more):
            self._figures[name] = client.Counter(
                f"compacter_{name}", text, labels, registry=registry
            )
        for name, text in SECONDS.items():
            self._figures[name] = client.Histogram(
                f"compacter_{name}", text, labels, buckets=_BUCKETS, registry=registry
            )

    def add(self, name: str, amount: float = 1, origin: Origin | None = None) -> None:
        """Add ``amount`` to the counter called ``name``. It is counted for the ``origin``, or for
        that of the call in progress if none is given.
        """
        if name in self._figures:
            self._figures[name].labels(*self._labels(origin)).inc(amount)

    def observe(self, name: str, seconds: float) -> None:
        """Add a duration in seconds to the histogram called ``name`` (one of ``SECONDS``), for the
        call in progress.
        """
        if name in self._figures:
            self._figures[name].labels(*self._labels()).observe(seconds)

    def record(self, event: Event) -> None:
        """Count an event."""
        for name in _counters_of(event):
            self.add(name)
        if isinstance(event, CompactionReused):
            self.add("saved_usd", event.cost_saved or 0.0)
        if isinstance(event, CompactionEvent):
            self.observe("summary_seconds", event.duration)

    def _labels(self, origin: Origin | None = None) -> tuple[str, str, str]:
        of = origin or ORIGIN.get()
        return of.upstream, self._countable(of.model), self._countable(of.tenant_class)

    def _countable(self, name: str) -> str:
        shown = shown_name(name)
        with self._lock:
            if len(self._names) < _MOST_NAMES:
                self._names.add(shown)
            return shown if shown in self._names else "other"


def default_registry() -> CollectorRegistry | None:
    """Return Prometheus' own registry, which other programs' pages show; ``None`` if
    ``prometheus_client`` is not installed.
    """
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        return None
    return REGISTRY


def show(
    name: str, text: str, read: Callable[[], float], registry: CollectorRegistry | None
) -> None:
    """Show a number of this process on the page of metrics.

    ``read`` is called when the page is requested. With several processes it is not called; each
    sets its value when it counts.
    """
    if registry is None:
        return
    from prometheus_client import Gauge

    gauge = Gauge(f"compacter_{name}", text, registry=registry, multiprocess_mode="livemax")
    if hasattr(gauge, "set_function"):
        gauge.set_function(read)


_COUNTED: dict[type[Event], str] = {
    PreparationFailed: "preparations_failed",
    CompactionFailed: "summary_failures",
    MaxTokensAdjusted: "output_limits_lowered",
    PassagesRecalled: "quotes",
    RetriesExhausted: "given_up",
}


_USED = {True: "records_reused", False: "memory_hits"}
"""Counter of a compaction that is used, by whether the call began from it."""


def _counters_of(event: Event) -> Iterator[str]:
    """Yield the counters to which an event adds one. Tokens and cost are counted at the request for
    the summary.
    """
    if isinstance(event, CompactionEvent):
        yield "prepared" if event.trigger == "prepared" else "compactions"
        if event.fallback:
            yield "fallbacks"
    elif isinstance(event, CompactionReused):
        yield "prepared_used" if event.prepared else _USED[event.began]
    elif is_stuck(event):
        yield "not_compactable"
    elif type(event) in _COUNTED:
        yield _COUNTED[type(event)]


def is_stuck(event: Event) -> bool:
    """Return whether an event means that a refused request cannot be made smaller. A request
    without room for quotes is sent, and does not count.
    """
    return (
        isinstance(event, CompactionSkipped)
        and event.reason in ("nothing_to_compact", "no_progress")
        and event.trigger != "quotes"
    )


# -- a state that counts ---------------------------------------------------------------------------
#  It counts events when they are recorded: an event hook would make every reply be inspected.


class CountingState(State):
    """State whose events, failures of its memory, and tokens of summaries are counted.

    Args:
        options: The options.
        metrics: Figures that count them.
        preparations: Compactions made ahead, with their bound: one object for all states of a
            process.
        on_event: Called with each event.
        tenant_class: Class of callers that the options are for.
    """

    def __init__(
        self,
        options: Options,
        metrics: Metrics,
        preparations: Preparations,
        *,
        on_event: Callable[[Event], object] = lambda _: None,
        tenant_class: str = "other",
    ) -> None:
        super().__init__(options)
        self.tenant_class = tenant_class
        self.preparations = preparations
        self.metrics = metrics
        self._on_event = on_event
        self.log = _CountingLog(options, metrics)
        self.totals = _CountingTotals(metrics)
        self.count_call = self.totals.count_call

    def record(self, event: Event) -> None:
        """Count an event."""
        for record in (self.metrics.record, self._on_event):
            with self.safely("hook"):
                record(event)
        super().record(event)

    def count(self, what: str, model: str) -> None:
        """Count something that is not an event, such as a refusal."""
        origin = ORIGIN.get()
        self.metrics.add(what, origin=replace(origin, model=model or origin.model))


class _CountingTotals(RunningTotals):
    """Totals that also count what each request for a summary costs: events repeat it if a fallback
    follows a failure.
    """

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    def add(self, event: Event | None = None, **more: float | None) -> None:
        """Add an event, or numbers to the fields of these names."""
        super().add(event, **more)
        for name in ("input_tokens", "output_tokens", "cost"):
            if more.get(name):
                counter = "summary_cost_usd" if name == "cost" else "summary_tokens"
                self._metrics.add(counter, more[name] or 0)


class _CountingLog(Log):
    def __init__(self, options: Options, metrics: Metrics) -> None:
        super().__init__(options)
        self._metrics = metrics

    def failed(self, what: str, error: BaseException) -> None:
        """Log a failure, and count it if it is the memory's."""
        if what == "memory":
            self._metrics.add("memory_failures")
        super().failed(what, error)


def is_open(state: State) -> bool:
    """Return whether the last operation of the memory failed."""
    return state.memory is not None and state.memory.is_away
