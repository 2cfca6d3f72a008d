"""What hooks receive. Frozen, JSON-serialisable; no event but ``CompactionEvent.summary`` holds text of messages."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Trigger = Literal["token_limit", "threshold", "manual"]


class Event(BaseModel):
    """Base of every event."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: str | None = None
    """The model that was called, where the call names one."""
    attempt: int = 0
    """The round inside this call, from 1; 0 outside a round."""
    conversation: str = ""
    """Digest of the conversation's first message: the same for every call of one conversation."""


class CompactionEvent(Event):
    """A compaction took place. Sizes are data sizes in characters."""

    original_data_size: int
    compacted_data_size: int
    input_tokens: int = 0
    """Tokens the summarizer read, as its replies state them."""
    output_tokens: int = 0
    """Tokens the summarizer wrote, as its replies state them."""
    summary: str = ""
    """The prose that stands for the head (empty where a strategy makes none)."""
    ledger: str = ""
    """The part of the summary message that is made without a model: rules, identifiers, tasks, verbatim."""
    trigger: Trigger
    strategy: str
    """Name of the strategy whose result is used; names joined by ``+`` where several took part."""
    fallback: bool = False
    """Whether the result is the fallback's, because no summary could be had."""
    ratio: float
    """Share of the compactable size that was folded."""
    messages_before: int
    messages_after: int
    original_tokens: int
    """Estimate, calibrated by what the provider said of earlier requests."""
    compacted_tokens: int
    """Estimate, as ``original_tokens``."""
    limit: int | None = None
    """The provider's limit in tokens, as its error stated it."""
    requested: int | None = None
    """The size of the refused request in tokens, as its error stated it."""
    summarizer_calls: int = 0
    cost: float | None = None
    """USD for the summarizer's calls, or None where the price is not known."""
    duration: float = 0.0
    """Seconds from the decision to compact until the compacted list was ready."""
    retention: float | None = None
    """Share (0 to 1) of the ledger's top entries that survive in the summary message, where it was measured."""
    repaired: tuple[str, ...] = ()
    """What the gate had to mend in the summary, in words."""
    discarded: tuple[Any, ...] = Field(default=(), exclude=True, repr=False)
    """The original messages that left the request, in order."""


class CompactionStarted(Event):
    """A compaction is about to begin."""

    trigger: Trigger
    original_data_size: int
    head_size: int
    limit: int | None = None
    requested: int | None = None


class CompactionFailed(Event):
    """A summary was refused or could not be had."""

    trigger: Trigger
    reason: str
    error: str = ""
    """Type name of the exception, if one was raised."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


class CompactionSkipped(Event):
    """A compaction was due and did not take place."""

    trigger: Trigger
    reason: Literal[
        "nothing_to_fold",
        "vetoed",
        "cool_down",
        "no_progress",
        "unknown_window",
        "history_changed",
    ]


class CompactionReused(Event):
    """An earlier compaction was used again; nothing was summarised."""

    messages_before: int
    messages_after: int


class MaxTokensAdjusted(Event):
    """The output limit was lowered instead of touching the history."""

    before: int
    after: int
    limit: int | None = None


class SilentTruncation(Event):
    """The reply's usage shows fewer prompt tokens than the request can have had: the server cut the prompt."""

    expected_tokens: int
    prompt_tokens: int


class RetriesExhausted(Event):
    """The call is given up; the provider's own exception follows."""

    rounds: int
    reason: str
    limit: int | None = None
    requested: int | None = None
