"""The request of one call, and what is known of its conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as member
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation, find_pinned
from compacter.errors import FunctionError
from compacter.messages.fields import json_text
from compacter.messages.format import Message, MessageFormat
from compacter.recall.weight import tokens_each
from compacter.summary.message import parse

if TYPE_CHECKING:
    from compacter.overflow import TokenLimit
    from compacter.recall.archive import Archive

# Newest messages by whose texts the script of a conversation is judged.
_SAMPLED = 16


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request of one call of the wrapped function. Sizes in characters, limits in tokens."""

    format: MessageFormat
    original: Sequence[Message]
    """The caller's own messages."""
    messages: Sequence[Message]
    """Messages to send: the original ones, or a compacted view of them."""
    overhead: int = 0
    """Size of the tools, and of a system prompt outside the messages."""
    output_tokens: int | None = None
    """Output limit of the request."""
    output_option: str = "max_tokens"
    """Name of the option for the output limit."""
    options: Mapping[str, object] = member(default_factory=dict)
    """Options that replace the caller's."""
    model: str | None = None
    digest: str = ""
    """Digest of the conversation, the same for all of its calls."""
    pin: Callable[[Message], object] | None = None
    """The option ``pin``."""
    pinned_by_history: frozenset[int] = frozenset()
    """``id`` of each message that is pinned in a ``History``."""
    rules: tuple[str, ...] = ()
    """Rules of the option ``rules`` and of a ``History``."""
    read: Conversation | None = None
    """Conversation of ``messages``, once they have been read."""
    archive: Archive | None = None
    """Archive of the compacted messages of a ``History``."""
    alternate: bool | None = None
    """The option ``alternate_roles``."""
    quotes: str = ""
    """Text of the quotes, which ``messages`` does not contain."""
    shortened: Message | None = None
    """Message to send in place of the last user message; ``messages`` contains the whole one."""
    saved: int = 0
    """Characters saved by ``shortened``."""
    sealed: bool = True
    """Whether what only the model that made it can read is sent."""

    @property
    def conversation(self) -> Conversation:
        """The messages, read once."""
        read = self.read
        if read is None:
            # Not a ``functools.cached_property``: before Python 3.12 it has a lock, which a fork
            # may copy locked.
            pins = self.find_pinned(self.messages)
            read = Conversation.of(self.messages, self.format, pinned=pins, rules=self.rules)
            object.__setattr__(self, "read", read)
        return read

    def find_pinned(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the indexes of the pinned ones among ``messages``."""
        return find_pinned(self.pin, messages, self.format, self.pinned_by_history)

    def with_view(self, view: Sequence[Message] | None) -> Request | None:
        """Return the request with a remembered view; ``None`` without one, or if a message was
        pinned since that it does not contain.
        """
        if view is None:
            return None
        present = set(map(id, view))
        if any(id(self.original[at]) not in present for at in self.find_pinned(self.original)):
            return None
        return replace(self, messages=tuple(view), read=None, quotes="")

    @property
    def size(self) -> int:
        """Size of the whole request, with overhead and quotes."""
        return self.conversation.size + self.overhead + len(self.quotes) - self.saved

    @property
    def tokens_of_one(self) -> float:
        """Estimated tokens of one of its characters, by the script of its newest texts."""
        return tokens_each(reversed(self.conversation.texts(_SAMPLED)))

    @property
    def sent(self) -> Sequence[Message]:
        """Messages as they are sent: with the shortened message, with the quotes before the last
        user message, and without what is sealed.
        """
        return self._placed if self.sealed else self.format.without_sealed(self._placed)[0]

    @property
    def _placed(self) -> Sequence[Message]:
        if self.shortened is None and not self.quotes:
            return self.messages  # Without reading them, which takes long for a whole history.
        messages = self.messages
        at = self.conversation.last_user
        if self.shortened is not None and at is not None:
            messages = [*messages[:at], self.shortened, *messages[at + 1 :]]
        if not self.quotes or at is None:
            return messages
        from compacter.recall.frame import place

        return place(messages, self.format, self.quotes, at, alternate=self.alternate)

    def output_that_counts(self, limit: TokenLimit) -> int:
        """Return the tokens of the output that a token limit counts with the input."""
        return self.output_tokens or 0 if limit.kind == "input_plus_output" else 0

    @property
    def named(self) -> dict[str, Any]:
        """Model and conversation, as fields of an event."""
        return {"model": self.model, "conversation": self.digest}


@dataclass(slots=True)
class ConversationState:
    """State of one conversation between its calls."""

    calls: int = 0
    tokens: int = 0
    """Input tokens in the usage of the last reply; 0 if unknown."""
    characters: int = 0
    """Size of that request, in characters."""
    tried: int | None = None
    """Number, from 1, of the last call that tried to compact; ``None`` before the first."""
    stuck: int = 0
    """Size of a history that stayed above the threshold, in characters; it is compacted again once
    it has grown."""
    helpless: int = 0
    """Size of what had to stay, in characters, when a call was given up although its history was
    compacted; 0 if none was. Another compaction would not help while it is as large."""
    vain: int = 0
    """Number of compactions in a row for which the summarizer was asked in vain."""
    full: int = 0
    """The same of a history in which a compaction has made no room for quotes."""


def facts_of(cause: BaseException | None) -> dict[str, Any]:
    """Return an exception as fields of the event of a failure; of a ``FunctionError`` its cause is
    named.
    """
    raised = cause.__cause__ if isinstance(cause, FunctionError) else cause
    error = "" if raised is None else type(raised).__name__
    return {"error": error, "cause": cause if isinstance(cause, Exception) else None}


def holds_secrets(
    request: Request, after: Sequence[Message], redact: Callable[[str], str] | None
) -> bool:
    """Return whether an edited message among ``after``, which would be stored itself, contains text
    that ``redact`` removes.

    Summaries are redacted already, and unchanged messages are stored as positions.
    """
    if redact is None:
        return False
    form = request.format
    verbatim = set(map(id, request.original))
    edited = (
        json_text(form.content(message))
        for message in after
        if id(message) not in verbatim and parse(form.plain_text(message) or "") is None
    )
    try:
        return any(redact(text) != text for text in edited)
    except Exception:  # noqa: BLE001 - a message that cannot be redacted is not stored
        return True
