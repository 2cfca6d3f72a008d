"""Limits of a conversation's spending, and the sums that it has spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from compacter.errors import ConfigurationError, FunctionError, SpendingError, with_hints


@with_hints
@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Limits of one conversation's tokens and money, for the option ``spending``.

    Input and output of its calls and of its summaries count. Once ``tokens`` or ``dollars`` are
    reached, ``SpendingReached`` is sent, once. Raises ``ConfigurationError`` if a value is invalid.
    """

    tokens: int | None = None
    """Most tokens; ``None`` for no limit."""
    dollars: float | None = None
    """Most USD, as far as prices are known; ``None`` for no limit."""
    summaries: float = 0.1
    """Largest share of the tokens that requests for summaries may take. What is above it is
    replaced by quoted lines, without a model."""
    refuse: bool = False
    """Whether each further call raises ``SpendingError`` before it is made."""

    def __post_init__(self) -> None:
        for name, kinds in (("tokens", int), ("dollars", (int, float))):
            value = getattr(self, name)
            is_number = isinstance(value, kinds) and not isinstance(value, bool)
            if value is not None and not (is_number and value > 0):
                takes = "a whole number" if kinds is int else "a number"
                raise ConfigurationError(f"{name}: takes {takes} above 0, or None; not {value!r}")
        if not 0 <= self.summaries <= 1:
            raise ConfigurationError(
                f"summaries: takes a share between 0 and 1; not {self.summaries!r}"
            )


@dataclass(slots=True)
class Spent:
    """The numbers of tokens and dollars that one conversation has spent so far, its summaries
    included.
    """

    tokens: int = 0
    for_summaries: int = 0
    dollars: float = 0.0
    """Price in USD, as far as it is known."""
    is_told: bool = False
    """Whether an event has said that this is what it may spend."""

    def add(self, tokens: int, dollars: float | None, *, is_summary: bool = False) -> None:
        """Add the tokens of one reply, and their price in USD, to the sums."""
        self.tokens += tokens
        self.for_summaries += tokens * is_summary
        self.dollars += dollars or 0.0

    @property
    def numbers(self) -> tuple[int, int, float]:
        """The sums as a tuple of numbers, to be stored in a record."""
        return self.tokens, self.for_summaries, self.dollars

    def raise_to(self, numbers: Sequence[float]) -> None:
        """Use the sums of a record if they are larger: another process has spent more."""
        if len(numbers) == len(self.numbers) and numbers[0] > self.tokens:
            self.tokens = int(numbers[0])
            self.for_summaries = int(numbers[1])
            self.dollars = numbers[2]

    def is_all(self, spending: Spending) -> bool:
        """Return whether the sums have reached a limit of ``spending``."""
        dollars = spending.dollars or inf
        return self.tokens >= (spending.tokens or inf) or self.dollars >= dollars

    def check(self, spending: Spending) -> None:
        """Raise ``SpendingError`` if a limit is reached, and ``spending`` refuses further calls."""
        if spending.refuse and self.is_all(spending):
            raise SpendingError(
                f"the conversation has spent {self.tokens:,} tokens, which is all that the option "
                "spending allows; what helps: a new conversation, or a higher limit"
            )

    def check_share(self, spending: Spending, prompt: int, request: int) -> None:
        """Raise ``FunctionError`` if a prompt for a summary would take more than the summaries'
        share, the call's own request included. Both are in tokens.
        """
        if self.for_summaries + prompt > spending.summaries * (self.tokens + request):
            raise FunctionError(
                f"summaries have had their share of the spending ({spending.summaries:.0%})"
            )
