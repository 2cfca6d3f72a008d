"""The totals of all calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Never

from compacter.errors import with_hints
from compacter.text.table import Table, plural, usd


@with_hints
@dataclass(frozen=True, slots=True)
class Totals(Table):
    """Totals of a ``Compacter`` since it was made; ``input_tokens``, ``output_tokens`` and ``cost``
    are those of the summarizer. ``print`` shows them in three lines.
    """

    calls: int = 0
    """Number of wrapped calls."""
    rounds: int = 0
    """Number of compactions."""
    reused: int = 0
    """Number of calls that used a compaction made before, by a call of this or of another process;
    each call that begins from a summary counts."""
    prepared: int = 0
    """Number of compactions that were made ahead, used or not."""
    prepared_used: int = 0
    """Number of times that one of them was put in force."""
    recalled: int = 0
    """Number of requests with quotes of compacted messages."""
    failures: int = 0
    """Number of summaries that were refused or failed."""
    given_up: int = 0
    """Number of calls that raised the provider's own exception after a token limit."""
    adjusted: int = 0
    """Number of times that an output limit was lowered."""
    unsealed: int = 0
    """Number of calls that left out blocks that only another model can read."""
    summarizer_calls: int = 0
    """Number of requests for a summary."""
    input_tokens: int = 0
    """Input tokens of the summarizer."""
    output_tokens: int = 0
    """Output tokens of the summarizer."""
    cost: float | None = 0.0
    """Cost in USD; ``None`` after a summary with an unknown price."""
    characters_saved: int = 0
    """Sum of the characters that compactions have saved."""
    tokens_saved: int = 0
    """Input tokens that calls have not sent because they used a compaction made before,
    estimated."""
    cost_saved: float = 0.0
    """Price of these tokens in USD, as far as it is known."""

    def __str__(self) -> str:
        read = f"{self.input_tokens:,} tokens read, {self.output_tokens:,} written"
        spent = "price unknown" if self.cost is None else usd(self.cost)
        lines = (
            (
                plural(self.calls, "call"),
                plural(self.rounds, "compaction"),
                f"{self.reused:,} began from a summary" if self.reused else "",
                plural(self.failures, "failed summary") if self.failures else "",
                f"{self.given_up:,} given up" if self.given_up else "",
            ),
            (
                f"{self.tokens_saved:,} input tokens not sent",
                f"worth {usd(self.cost_saved)}" if self.cost_saved else "",
            ),
            (
                f"{plural(self.summarizer_calls, 'request')} for summaries",
                read if self.input_tokens else "",
                spent if self.cost != 0 else "",
            ),
        )
        return "\n".join(", ".join(filter(None, line)) for line in lines)

    if not TYPE_CHECKING:  # Type checkers know that it cannot be called.

        def __call__(self) -> Never:  # noqa: D102 - a mistake
            raise TypeError("totals is no method: compacter.totals.rounds, print(compacter.totals)")

    def _rows(self) -> Iterator[tuple[str, str]]:
        for member in fields(self):
            value = getattr(self, member.name)
            shown = round(value, 6) if isinstance(value, float) else value
            yield member.name.replace("_", " "), "unknown" if value is None else f"{shown:,}"
