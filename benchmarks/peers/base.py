"""What an adapter of a peer is. Each one is the peer as its manual tells to set it up, in at most
60 lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from compacter.testing import TokenLimitError

Message = dict[str, Any]
Native = list[Any]
"""A conversation in the peer's own types."""
Send = Callable[[Native], Any]
ASend = Callable[[Native], Awaitable[Any]]
TRIES = 10


@dataclass(frozen=True, slots=True)
class Settings:
    """The same for all."""

    window: int
    """Tokens of the model, of four characters each."""
    ratio: float
    """Share of the history to fold."""
    summarize: Callable[[str], str]
    """The summarizer: a text to its summary. It counts what it is given, and may fail."""
    asummarize: Callable[[str], Awaitable[str]]
    """The same, awaited."""
    timeout: float | None = None
    """Seconds after which a peer that can is to give its summarizer up."""


class Peer:
    """A program that talks to a model, with a peer's compaction in place.

    A peer that looks at the size before each call has ``before``, one that waits for a refusal has
    ``refused``; what they return is sent, and kept as the history where ``keeps`` is set, as that
    peer's own framework does. A peer without async methods is called from an async program as it
    is, which then waits.
    """

    package = ""
    """The distribution, and what a program imports of it."""
    imports = ""
    keeps = True
    proactive = False
    waits = False
    """It has async methods alone; a sync program runs an event loop around them."""
    alone = False
    """An object is for one conversation."""
    formats: tuple[str, ...] = ("openai",)
    """Wire formats whose lists it takes as they are."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def read(self, messages: list[Message]) -> Native:
        """OpenAI's messages in the peer's types. Never timed."""
        return list(messages)

    def write(self, native: Native) -> list[Message]:
        """The way back. Never timed."""
        return list(native)

    def more(self, native: Native, messages: list[Message]) -> Native:
        """A history with further messages at its end."""
        return [*native, *self.read(messages)]

    def without_last(self, native: Native) -> Native:
        """A history without its last message."""
        return native[:-1]

    def before(self, native: Native) -> Native:
        """What is to be sent."""
        return native

    async def abefore(self, native: Native) -> Native:
        """The same in an async program."""
        return self.before(native)

    def refused(self, native: Native, error: Exception) -> Native:
        """What is to be sent after a refusal; raises where the peer has no answer to one."""
        raise error

    async def arefused(self, native: Native, error: Exception) -> Native:
        """The same in an async program."""
        return self.refused(native, error)

    def fold(self, native: Native) -> Native:
        """One compaction of a history that is too long."""
        return (
            self.before(native)
            if self.proactive
            else self.refused(native, TokenLimitError.__new__(TokenLimitError))
        )

    def fold_as(self, wire_format: str, native: Native) -> Native:
        """One compaction of a list in that wire format, which is one of ``formats``."""
        assert wire_format in self.formats
        return self.fold(native)

    def bound(self, send: Send, **options: Any) -> Callable[[Native], tuple[Native, Any]]:
        """A call with compaction: what is kept as the history, and the reply. ``options`` are the
        call's own.
        """
        del options

        def call(native: Native) -> tuple[Native, Any]:
            sent = self.before(native)
            for _ in range(TRIES):
                try:
                    return (sent if self.keeps else native), send(sent)
                except TokenLimitError as error:
                    shorter = self.refused(list(sent), error)
                    if len(shorter) >= len(sent):
                        raise
                    sent = shorter
            raise RuntimeError("it was refused too often")

        return call

    def abound(self, send: ASend) -> Callable[[Native], Awaitable[tuple[Native, Any]]]:
        """The same in an async program."""

        async def call(native: Native) -> tuple[Native, Any]:
            sent = await self.abefore(native)
            for _ in range(TRIES):
                try:
                    return (sent if self.keeps else native), await send(sent)
                except TokenLimitError as error:
                    shorter = await self.arefused(list(sent), error)
                    if len(shorter) >= len(sent):
                        raise
                    sent = shorter
            raise RuntimeError("it was refused too often")

        return call

    def detects(self, error: Exception, text: str) -> bool | None:
        """Whether an error is "the request is too long"; ``None`` where the peer does not look at
        errors.
        """
        return None


class AsyncPeer(Peer):
    """A peer that has async methods alone: a sync program gives it an event loop, here one for all
    calls.
    """

    waits = True
    _loop = asyncio.new_event_loop()

    def before(self, native: Native) -> Native:
        return self._loop.run_until_complete(self.abefore(native))


def as_text(messages: list[Message]) -> str:
    """A transcript, for peers that are given a function and not a model."""
    return "\n".join(
        f"{message['role']}: {message.get('content') or message.get('tool_calls')}"
        for message in messages
    )


def tokens(messages: list[Message]) -> int:
    """Four characters a token, as the scripted model counts."""
    return (
        sum(
            len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or ""))
            for message in messages
        )
        // 4
    )
