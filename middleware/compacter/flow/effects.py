"""What a flow asks the world to do. A flow yields effects and gets their outcome sent, or thrown, back."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from compacter.compaction.cut import CompactionPlan
from compacter.events import Event
from compacter.messages.format import Message
from compacter.overflow import TokenLimit

T = TypeVar("T")


class Effect(Generic[T]):
    """One request to the world; ``outcome = yield from effect``."""

    __slots__ = ()

    def __iter__(self) -> Generator[Effect[Any], Any, T]:
        outcome: T = yield self
        return outcome


Flow = Generator[Effect[Any], Any, T]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reply, and whether it says (with HTTP 200) that the request is too long."""

    reply: object
    found: TokenLimit | None = None


@dataclass(frozen=True, slots=True)
class Call(Effect[Outcome]):
    """Call the wrapped function with these messages."""

    messages: Sequence[Message]
    options: Mapping[str, object]
    """Options that differ from the caller's (such as a lowered ``max_tokens``)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a summarizer answered, read. Tokens as its usage states them."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    finish: str | None = None
    refused: bool = False
    called_tool: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class AskSummarizer(Effect[Answer]):
    """Send a ready prompt to the summarizer."""

    messages: Sequence[Mapping[str, str]]
    """OpenAI-style ``role`` and ``content``."""
    max_tokens: int
    prefix: Sequence[Message] | None = None
    """With ``summary_request="native"``: the conversation's own messages, to which the instruction is appended."""


@dataclass(frozen=True, slots=True)
class Tell(Effect[None]):
    """Tell hooks, totals and the log of an event."""

    event: Event


@dataclass(frozen=True, slots=True)
class AskPlan(Effect["CompactionPlan | None"]):
    """Show the plan to ``before_compaction``; the outcome is the plan to carry out, or ``None`` for a veto."""

    plan: CompactionPlan


@dataclass(frozen=True, slots=True)
class Recall(Effect["list[Message] | None"]):
    """Look for a compacted view of the caller's messages; the outcome is the view, or ``None``."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Claim(Effect[bool]):
    """Be the one who folds this head, or wait for the one who does: True when another one just did."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Remember(Effect[None]):
    """Keep ``after`` as the view of ``before`` (the caller's own messages)."""

    before: Sequence[Message]
    after: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Sleep(Effect[None]):
    """Wait this many seconds before the next attempt."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Clock(Effect[float]):
    """Monotonic seconds."""


@dataclass(frozen=True, slots=True)
class Usage(Effect[int]):
    """Input tokens that a reply states, cache reads counted; 0 where it states none."""

    reply: object
