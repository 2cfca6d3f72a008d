"""What the pure parts of a call ask for. Data only; ``call/perform.py`` carries it out.

A flow is a generator: ``reply = yield from Call(...)`` asks for an effect and goes on with its outcome.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from compacter.messages.format import Message
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.recall.archive import Archive

T = TypeVar("T")


class Effect(Generic[T]):
    """One thing that is asked for; ``outcome = yield from effect``."""

    __slots__ = ()

    def __iter__(self) -> Generator[Effect[Any], Any, T]:
        outcome: T = yield self
        return outcome


Flow = Generator[Effect[Any], Any, T]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a wrapped function or a summarizer answered, as far as it was read."""

    text: str = ""
    """Read of summarizers' replies only, like the tokens."""
    input_tokens: int = 0
    """Tokens the model read, as the reply's usage states them, cached ones included; 0 where it states none."""
    output_tokens: int = 0
    finish: str | None = None
    """The finish reason in lower case, such as ``stop`` or ``length``."""
    refused: bool = False
    called_tool: bool = False
    cost: float | None = None
    """USD; ``None`` where no price is known."""
    token_limit: TokenLimit | None = None
    """Set when the answer is that the request is too long."""
    error: Exception | None = None
    """The exception that said so; ``None`` where a reply did, with HTTP 200. Without ``token_limit``: to be raised as
    it is, because a Compacter inside the wrapped function has given up already."""
    raw: object = None
    """The reply as the function returned it."""


@dataclass(frozen=True, slots=True)
class Call(Effect[Reply]):
    """Call the wrapped function with these messages. Raises what it raises."""

    messages: Sequence[Message]
    options: Mapping[str, object]
    """Options that differ from the caller's (such as a lowered ``max_tokens``)."""


@dataclass(frozen=True, slots=True)
class AskSummarizer(Effect[Reply]):
    """Send a ready prompt to the summarizer. Raises what it raises, and ``TimeoutError`` at the end of ``timeout``."""

    messages: Sequence[Mapping[str, str]]
    """OpenAI-style ``role`` and ``content``."""
    max_tokens: int
    prefix: Sequence[Message] | None = None
    """With ``summary_request="native"``: the conversation's own messages, to which the instruction is appended."""


@dataclass(frozen=True, slots=True)
class Tell(Effect[T]):
    """Tell totals, log and hooks of an event; the outcome is the event, its ``duration`` filled in.

    A ``CompactionPlan`` goes to ``before_compaction``; the outcome is the plan to carry out, or ``None`` for a veto.
    """

    what: T


@dataclass(frozen=True, slots=True)
class Remembered(Effect["Sequence[Message] | None"]):
    """The remembered, compacted view of these messages, or ``None``.

    With a ``head`` that this call is about to fold: another call that folds the same one is waited for first. Where
    there is none, this call is from now on the one that others wait for.
    """

    messages: Sequence[Message]
    head: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class Remember(Effect[None]):
    """Keep ``after`` as the view of ``before`` (the caller's own messages)."""

    before: Sequence[Message]
    after: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Quote(Effect[str]):
    """The quotes of what was folded that the newest user message of a request brings; empty where it brings none."""

    original: Sequence[Message]
    """The caller's own messages."""
    conversation: Conversation
    """What is sent."""
    room: int
    """Characters that the quotes may take."""
    archive: Archive | None
    """What was folded of a ``History`` before."""
    digest: str
    """What names the conversation in events."""
