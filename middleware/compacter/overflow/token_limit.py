"""What a provider says when a request is too long for its model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["input", "input_plus_output"]


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A token limit as the provider stated it; numbers are in tokens, None where the text is silent."""

    limit: int | None = None
    """The most the provider accepts."""
    requested: int | None = None
    """What was sent: the total where the text names one, the sum of its parts where it names only those."""
    kind: Kind = "input"
    """``input_plus_output`` when the room asked for the completion (``max_tokens``) is counted in."""
    input_tokens: int | None = None
    """The share of the messages, where the text breaks the total down."""
    output_tokens: int | None = None
    """The share reserved for the completion, where the text breaks the total down."""
    source: str = ""
    """The rule that matched; never a piece of the message."""
