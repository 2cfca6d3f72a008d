"""What the scripted model writes down about each request."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compacter.messages.format import Message
    from compacter.testing.streams import AsyncScriptedStream, ScriptedStream


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the provider saw it. All sizes are in tokens."""

    model: str
    messages: tuple[Message, ...]
    """Deep copies: what the caller changes later does not show here."""
    options: Mapping[str, Any]
    """The other arguments of the call, ``tools`` or ``max_tokens`` for example; not copied."""
    tokens: int
    """The input: messages, tools, system prompt."""
    max_tokens: int | None
    cached_tokens: int
    """Tokens of the messages that this request begins with, and the request before it too."""
    streaming: bool
    refused: bool = False
    """True if it did not fit into the window."""
    invalid: str = ""
    """What was wrong with the list of messages; empty if nothing was."""


class Books:
    """The requests and streams of a model, and their sums."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._streams: list[ScriptedStream | AsyncScriptedStream] = []

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request so far, the refused ones too."""
        return tuple(self._requests)

    @property
    def rejected(self) -> int:
        """Number of requests refused because of their length."""
        return sum(request.refused for request in self._requests)

    @property
    def invalid(self) -> int:
        """Number of requests refused because of their shape."""
        return sum(bool(request.invalid) for request in self._requests)

    @property
    def tokens_sent(self) -> int:
        """Input tokens of all requests together, the refused ones too."""
        return sum(request.tokens for request in self._requests)

    @property
    def cached_tokens(self) -> int:
        """The part of `tokens_sent` that a prompt cache would have held: see `Request.cached_tokens`."""
        return sum(request.cached_tokens for request in self._requests)

    @property
    def uncached_tokens(self) -> int:
        """The part of `tokens_sent` that had to be read anew."""
        return self.tokens_sent - self.cached_tokens

    @property
    def streams(self) -> tuple[ScriptedStream | AsyncScriptedStream, ...]:
        """Every stream so far; ``closed`` and ``delivered`` tell what became of it."""
        return tuple(self._streams)

    def _same_start(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages that the last request began with too."""
        previous = self._requests[-1].messages if self._requests else ()
        same = 0
        for old, new in zip(previous, messages, strict=False):
            if old != new:
                break
            same += 1
        return messages[:same]
