"""Passages as users get them, and the settings of quotes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from compacter.errors import ConfigurationError, check_size, faults_of, with_hints
from compacter.messages.parts import Speaker
from compacter.text.table import Table

# Upper limit of a share of the window, in tokens: twice as many did not answer one more of 360
# questions.
_MOST_TOKENS = 4_000
# In a small window a share may be raised to this many tokens, up to this part of the window: with
# 600 tokens .02 less of these questions have their answer.
_FEWEST_TOKENS = 800
_MOST_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Passage(Table):
    """Some sentences or lines of one message, word for word."""

    text: str
    """Verbatim text, with an ellipsis between two pieces that are not adjacent."""
    role: Speaker
    """Speaker: ``"user"``, ``"assistant"`` or ``"tool"``."""
    name: str = ""
    """Name of the tool, for a call and, if known, for a result."""
    index: int = 0
    """Position of the message in the caller's list."""
    score: float = 0.0
    """Relevance to the question; comparable within one search only."""

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield f"message {self.index}", self.text
        yield "said by", f"{self.role} {self.name}".strip()
        yield "score", f"{self.score:.2f}"


Search = Callable[[str, Sequence[Passage]], Sequence[float] | Awaitable[Sequence[float]]]
"""``(question, passages) -> one number for each passage``, sync or async."""


_TAKES = {
    "share": "a share of the window between 0 and 1 such as 0.15, or a whole number of tokens",
    "steps": "True or False",
    "search": "a function of a question and a list of passages, or None",
    "tool": "True or False",
}


def _unknown(name: str) -> str:
    return f"Quotes has no {name!r}; it takes {', '.join(_TAKES)}"


@with_hints
class Quotes(BaseModel):
    """Settings of the option ``recall``: ``Compacter(recall=Quotes(share=0.2, steps=False))``.

    Raises ``ConfigurationError`` for invalid values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    share: Annotated[Annotated[float, Field(lt=1)] | int, BeforeValidator(check_size)] = 0.15
    """Room for quotes: a share of the window between 0 and 1, of up to 4,000 tokens, or a number of
    tokens."""
    steps: bool = True
    """Whether compacter also adds quotes to the steps of an agent: lines that have the names which
    the newest step or the newest order of the user mentions.
    """
    search: Search | None = None
    """Function that finds passages which use other words than the question. It is called with the
    user's message, if that asks something, and with all compacted passages. It returns one number
    for each passage; 0 means that the passage does not answer the question. The passages with the
    highest numbers are quoted beside those that have the question's own words."""
    tool: bool = False
    """Whether the model gets a tool ``recall(query)`` to search the compacted messages, once there
    are some. compacter answers the calls of this tool, at most three times in a row, before it
    returns the reply, or inside the stream. Bedrock's format does not have it."""

    if not TYPE_CHECKING:  # Type checkers know the arguments.

        def __init__(self, **settings: Any) -> None:
            """Check the settings. Raises ``ConfigurationError``."""
            try:
                super().__init__(**settings)
            except ValidationError as error:
                fault = faults_of(error, settings, _TAKES, _unknown)
                raise ConfigurationError(fault) from None

    def room_in_tokens(self, window: int | None) -> float:
        """Return how many tokens the quotes in one request may take. If ``share`` is a share of the
        window, and the window is unknown, return 0.

        Args:
            window: The model's context window in tokens, if known.
        """
        if isinstance(self.share, int):
            return self.share
        window = window or 0
        return min(
            max(self.share * window, min(_FEWEST_TOKENS, _MOST_SHARE * window)), _MOST_TOKENS
        )
