"""Several strategies, one after the other, until the request fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compacter.compaction.task import CompactionStrategy, CompactionTask
from compacter.errors import ConfigurationError
from compacter.messages.format import Message


@dataclass(frozen=True, slots=True, init=False)
class Chain:
    """Tries its strategies in order, each on what the one before it left, and stops when the request fits.

    Put the cheap ones first: ``Chain(ClearToolResults(), Summarize())``, or a list of them. Where the provider
    has not said how large a request may be, the goal is the size that folding ``compact_ratio`` would leave.
    """

    strategies: tuple[CompactionStrategy, ...]
    name: str = "chain"

    def __init__(self, *strategies: CompactionStrategy | Sequence[CompactionStrategy]) -> None:
        given: list[object] = []
        for one in strategies:
            given.extend(one if isinstance(one, (list, tuple)) else (one,))
        for strategy in given:
            if not isinstance(strategy, CompactionStrategy) or isinstance(strategy, type):
                raise ConfigurationError(f"Chain takes strategies such as Summarize(), not {strategy!r}")
        if not given:
            raise ConfigurationError("Chain needs at least one strategy")
        object.__setattr__(self, "strategies", tuple(given))
        object.__setattr__(self, "name", "chain")

    def __iter__(self) -> Iterator[CompactionStrategy]:
        return iter(self.strategies)

    def compact(self, task: CompactionTask) -> list[Message]:
        """Never asked: the flow walks the links itself, with a fresh plan for each."""
        raise NotImplementedError("a Chain is walked link by link")
