"""What a conversation may spend."""

from __future__ import annotations

from dataclasses import dataclass

from compacter.errors import ConfigurationError, with_hints


@with_hints
@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What one conversation may spend, for the option ``spending``.

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
        for name in ("tokens", "dollars"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not value > 0):
                raise ConfigurationError(f"{name}: takes a number above 0, or None; not {value!r}")
        if not 0 <= self.summaries <= 1:
            raise ConfigurationError(
                f"summaries: takes a share between 0 and 1; not {self.summaries!r}"
            )
