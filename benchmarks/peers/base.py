"""What an adapter of a peer is. Each one is the peer as its manual tells to set it up, in at most 60 lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compacter.testing import TokenLimitError

Message = dict[str, Any]
Native = list[Any]
"""A conversation in the peer's own types."""
Send = Callable[[Native], Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """The same for all."""

    window: int
    """Tokens of the model, of four characters each."""
    ratio: float
    """Share of the history to fold."""
    summarize: Callable[[str], str]
    """The summarizer: a text to its summary. It counts what it is given, and may fail."""


class Peer:
    """A program that talks to a model, with a peer's compaction in place.

    A peer that looks at the size before each call has ``before``, one that waits for a refusal has ``refused``; what
    they return is sent, and kept as the history where ``keeps`` is set, as that peer's own framework does.
    """

    keeps = True
    proactive = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def read(self, messages: list[Message]) -> Native:
        """OpenAI's messages in the peer's types. Never timed."""
        return list(messages)

    def write(self, native: Native) -> list[Message]:
        """The way back. Never timed."""
        return list(native)

    def before(self, native: Native) -> Native:
        """What is to be sent."""
        return native

    def refused(self, native: Native, error: Exception) -> Native:
        """What is to be sent after a refusal; raises where the peer has no answer to one."""
        raise error

    def fold(self, native: Native) -> Native:
        """One compaction of a history that is too long."""
        return self.before(native) if self.proactive else self.refused(native, TokenLimitError.__new__(TokenLimitError))

    def plan(self, native: Native) -> Any:
        """Choose what to fold; where a peer does not tell that apart, the whole compaction."""
        return self.fold(native)

    def bound(self, send: Send, tries: int = 10) -> Callable[[Native], tuple[Native, Any]]:
        """A call with compaction: what is kept as the history, and the reply."""

        def call(native: Native) -> tuple[Native, Any]:
            sent = self.before(native)
            for _ in range(tries):
                try:
                    return (sent if self.keeps else native), send(sent)
                except TokenLimitError as error:
                    shorter = self.refused(list(sent), error)
                    if len(shorter) >= len(sent):
                        raise
                    sent = shorter
            raise RuntimeError("it was refused too often")

        return call

    def detects(self, error: Exception, text: str) -> bool | None:
        """Whether an error is "the request is too long"; ``None`` where the peer does not look at errors."""
        return None


def as_text(messages: list[Message]) -> str:
    """A transcript, for peers that are given a function and not a model."""
    return "\n".join(
        f"{message['role']}: {message.get('content') or message.get('tool_calls')}" for message in messages
    )


def tokens(messages: list[Message]) -> int:
    """Four characters a token, as the scripted model counts."""
    return (
        sum(len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or "")) for message in messages)
        // 4
    )
