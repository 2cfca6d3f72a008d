"""Effects: the actions that pure code requests, as data. ``call/perform.py`` performs them.

A flow is a generator of effects: ``reply = yield from Call(...)`` requests one and continues with
its outcome.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from compacter.messages.format import Message
from compacter.messages.replies import Reply
from compacter.recall.weight import OF_PROSE

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.recall.archive import Archive

T = TypeVar("T")


class Effect(Generic[T]):
    """Base of the effects; ``outcome = yield from effect``."""

    __slots__ = ()

    def __iter__(self) -> Generator[Effect[Any], Any, T]:
        outcome: T = yield self
        return outcome


Flow = Generator[Effect[Any], Any, T]


@dataclass(frozen=True, slots=True)
class Call(Effect[Reply]):
    """Call the wrapped function with these messages. Raises its exceptions."""

    messages: Sequence[Message]
    options: Mapping[str, object]
    """Options that replace the caller's (such as a lowered ``max_tokens``)."""


@dataclass(frozen=True, slots=True)
class AskSummarizer(Effect[Reply]):
    """Send a prompt to the summarizer. Raises its exceptions, and ``TimeoutError`` after the option
    ``timeout``.
    """

    messages: Sequence[Mapping[str, str]]
    """Prompt as OpenAI-style messages with ``role`` and ``content``."""
    max_tokens: int
    prefix: Sequence[Message] | None = None
    """With ``Summarize(request="native")``: the conversation's own messages, to which the
    instruction is appended."""


@dataclass(frozen=True, slots=True)
class Emit(Effect[T]):
    """Send an event to totals, log and hooks; the outcome is the event with its ``duration``.

    A ``CompactionPlan`` is passed to ``before_compaction``; the outcome is the plan to carry out,
    ``None`` for a veto.
    """

    what: T


@dataclass(frozen=True, slots=True)
class Remembered(Effect["Sequence[Message] | None"]):
    """Read the compacted view of these messages from memory; the outcome is ``None`` if there is
    none.

    With a ``head`` that this call is about to compact, first wait for another call that is
    compacting the same head. If there is no such call, later ones wait for this one.
    """

    messages: Sequence[Message]
    head: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class Remember(Effect[None]):
    """Store ``after`` in memory as the view of ``before`` (the caller's own messages)."""

    before: Sequence[Message]
    after: Sequence[Message]
    origins: Sequence[int | None] | None = None
    """For each message of ``after``, its index in ``before``, if that is known already."""


@dataclass(frozen=True, slots=True)
class Quote(Effect[str]):
    """Find quotes of compacted messages for the newest user message; the outcome is empty if there
    are none.
    """

    original: Sequence[Message]
    """The caller's own messages."""
    conversation: Conversation
    """Messages to be sent."""
    room: int
    """Largest size of the quotes, in characters."""
    archive: Archive | None
    """Archive of the compacted messages of a ``History``."""
    digest: str
    """Digest of the conversation in events."""
    tokens_of_one: float = OF_PROSE
    """Estimated tokens of one of these characters."""
    sent: bool = True
    """Whether the quotes are sent; without, they are only looked for, and nothing is noted."""
