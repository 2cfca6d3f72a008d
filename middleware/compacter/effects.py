"""Typed effects: what a compaction or a strategy asks of the world; those of a call alone are in
``call/effects.py``.

A policy is a generator: ``reply = yield from Send(...)`` asks for one effect, and continues with
its answer or its exception. So it is pure, and a test holds a conversation with it. ``pump`` of
``call/pump.py`` runs it, and the class in ``call/handlers.py`` carries out each effect, for sync
and async programs alike. A strategy may yield `Ask` alone.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from compacter.events import CompactionEvent, Event
from compacter.lines.weight import OF_PROSE
from compacter.messages.format import Message
from compacter.messages.replies import Reply

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.compaction.plan import CompactionPlan
    from compacter.lines.archive import Archive

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effect(Generic[T]):
    """Base class of the effects: requests for something that only the program around a strategy can
    do, such as calling a model. A generator yields an effect and gets its answer, which is of type
    ``T``.
    """

    def __iter__(self) -> Generator[Effect[Any], Any, T]:
        answer: T = yield self
        return answer


Flow: TypeAlias = Generator[Effect[Any], Any, T]
"""A policy: a generator of effects that returns a ``T``."""


# -- of a compaction -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask(Effect[Reply]):
    """Send a prompt to the summarizer. Raises its exceptions, and ``TimeoutError`` after the option
    ``timeout``.
    """

    messages: Sequence[Mapping[str, str]]
    """Prompt as OpenAI-style messages with ``role`` and ``content``."""
    max_tokens: int
    prefix: Sequence[Message] | None = None
    """The conversation's own messages, to which the instruction is appended, if the compaction is
    made ahead."""
    piece: int = 1
    """Number of the piece of the conversation that is in the prompt, from 1."""
    pieces: int = 1
    """Number of pieces; if it is not 1, the event ``SummaryProgress`` is sent."""
    by_provider: bool = False
    """Whether the provider itself is to compact the ``prefix``; ``messages`` are then instructions
    for that, if there are any. The answer has no ``raw`` reply if the wrapped call cannot ask for
    it, and a text that says so, once."""


@dataclass(frozen=True, slots=True)
class Emit(Effect[Event]):
    """Send an event to totals, log and hooks; answered with the event and its ``duration``."""

    event: Event


@dataclass(frozen=True, slots=True)
class Approve(Effect["CompactionPlan | None"]):
    """Pass a plan to ``before_compaction``; answered with the one to carry out, ``None`` for a
    veto.
    """

    plan: CompactionPlan


@dataclass(frozen=True, slots=True)
class Restore(Effect["Sequence[Message]"]):
    """Ask ``after_compaction`` which messages the program wants back; answered with them."""

    event: CompactionEvent


# -- of recall ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quote(Effect[str]):
    """Search what was compacted; answered with the text of the quotes, empty without any."""

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
    """Whether to send the quotes; otherwise they are only searched, and nothing is noted."""
    query: str = ""
    """Query of the model, in place of the newest message's question; ``room`` is then ignored."""
    standing: str = ""
    """Quotes of earlier calls that are sent too."""
