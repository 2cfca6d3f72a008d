"""A state that counts what an operator wants to see.

It takes events where they are recorded. With an event hook instead, every reply would be inspected.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

from compacter.call.log import Log
from compacter.call.preparations import Preparations
from compacter.call.state import State
from compacter.events import Event
from compacter.options import Options

TENANT: ContextVar[str] = ContextVar("compacter_tenant", default="")
"""Who sends the request that is being handled: each has a fair share of what is made ahead."""


class Counts(Protocol):
    """Where a state's counts go."""

    def hear(self, event: Event) -> None:
        """Take an event."""

    def add(self, name: str, model: str, amount: float = 1) -> None:
        """Add to a counter of ``figures.COUNTERS``."""


class CountingState(State):
    """State that also gives its events, and failures of its memory, to ``counts``.

    Args:
        options: The options.
        counts: Where the counts go.
        preparations: What is made ahead, with its bound: one for all states of a process.
    """

    def __init__(
        self, options: Options, counts: Counts, preparations: Preparations | None = None
    ) -> None:
        super().__init__(options)
        if preparations is not None:
            self.preparations = preparations
        self.preparations.tenant = TENANT.get
        self._counts = counts
        self.log = _CountingLog(options, counts)

    def record(self, event: Event) -> list[Callable[..., object]]:
        """Count an event, and return the hooks to call with it."""
        self.safely("hook", lambda: self._counts.hear(event))
        return super().record(event)

    def count(self, what: str, model: str) -> None:
        """Count something that is no event."""
        self.safely("hook", lambda: self._counts.add(what, model))


class _CountingLog(Log):
    def __init__(self, options: Options, counts: Counts) -> None:
        super().__init__(options)
        self._counts = counts

    def failed(self, what: str, error: BaseException) -> None:
        """Log a failure; one of the memory is counted too."""
        if what == "memory":
            self._counts.add("memory_failures", "")
        super().failed(what, error)


def is_open(state: State) -> bool:
    """Return whether the memory of a state is left alone because it failed."""
    memory = state.memory
    return memory is not None and any(circuit.is_open for circuit in memory.circuits)
