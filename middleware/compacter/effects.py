"""Requests of a strategy, as data, and the methods that compaction needs of its world.

A strategy that needs a model is a generator: ``reply = yield from AskSummarizer(...)`` requests a
summary and continues with the answer. All other code is written as coroutines, which await the
methods of a `World`: they are pure, and ``call/perform.py`` carries out their steps.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from compacter.messages.format import Message
from compacter.messages.replies import Reply
from compacter.lines.weight import OF_PROSE

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.lines.archive import Archive


@dataclass(frozen=True, slots=True)
class AskSummarizer:
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

    def __iter__(self) -> Generator[AskSummarizer, Any, Reply]:
        reply: Reply = yield self
        return reply


World: TypeAlias = Any
"""The object whose methods a compaction awaits: a `Performer`, or a substitute in tests.

* ``ask(question)`` sends a prompt to the summarizer; see `AskSummarizer`.
* ``emit(event)`` sends an event to totals, log and hooks, and returns it with its ``duration``.
* ``approve(plan)`` passes the plan to ``before_compaction``, and returns the one to carry out;
  ``None`` for a veto.
"""


@dataclass(frozen=True, slots=True)
class Quote:
    """A question for quotes of compacted messages."""

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
