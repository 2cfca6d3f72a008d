"""A state that counts what an operator wants to see.

It takes events where they are recorded. With an event hook instead, every reply would be inspected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compacter.call.ahead import Preparations
from compacter.call.log import Log
from compacter.call.state import RunningTotals, State
from compacter.events import Event
from compacter.gateway.metrics import ORIGIN, Metrics
from compacter.options import Options


class CountingState(State):
    """State whose events, failures of its memory, and tokens of summaries are counted.

    Args:
        options: The options.
        metrics: Where they are counted.
        preparations: What is made ahead, with its bound: one for all states of a process.
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
        self.preparations.tenant = lambda: ORIGIN.get().caller
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
        """Count something beside events."""
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
        """Log a failure; one of the memory is counted too."""
        if what == "memory":
            self._metrics.add("memory_failures")
        super().failed(what, error)


def is_open(state: State) -> bool:
    """Return whether the memory of a state is not used because it failed."""
    memory = state.memory
    return memory is not None and any(circuit.is_open for circuit in memory.circuits)
