"""What a wire format has to know, and which ones there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from compacter.history.entry import Entry
from compacter.history.message import Message
from compacter.history.outline import Outline

WireName = Literal["openai", "anthropic", "responses", "gemini", "bedrock"]
WIRE_FORMATS: tuple[WireName, ...] = ("openai", "anthropic", "responses", "gemini", "bedrock")

Edit = Callable[[Literal["text", "call", "result"], str, str], str]
"""``(kind, text, tool name) -> text``; the text it was given means: leave this as it is."""


class Wire(Protocol):
    """Everything the rest of the house asks of a wire format. Messages are read, never changed."""

    @property
    def name(self) -> WireName:
        """The name that ``wire_format=`` takes."""
        ...

    @property
    def alternates(self) -> bool:
        """Whether user and assistant must take turns strictly, the user first."""
        ...

    def outline(self, messages: Sequence[Message]) -> Outline:
        """Kinds, sizes and steps. Raises nothing: an unknown message is an item of its own."""
        ...

    def size(self, message: Message) -> int:
        """Data size of one message in characters; media by their weight (see ``media``)."""
        ...

    def speaker(self, message: Message) -> str:
        """Whose turn it takes where turns must alternate: ``"user"``, ``"assistant"``, ``"system"``, or another."""
        ...

    def entries(self, message: Message, index: int) -> Iterator[Entry]:
        """What a summarizer reads of it: no reasoning, media as placeholders, calls and results as text."""
        ...

    def plain_text(self, message: Message) -> str | None:
        """The words of a user message that holds nothing but text (to recognise a summary message), else ``None``."""
        ...

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """A new plain text message."""
        ...

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Index of each message that carries tool results -> the tools' names in order; "" where none is known."""
        ...

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """A copy with edited texts, call arguments excepted where they must stay JSON; itself if nothing changed.

        A list of text parts inside one result is edited as one text. Media inside a result whose text was edited are
        dropped.
        """
        ...

    def content(self, message: Message) -> Any:
        """The message as JSON-like data without marks that are no content (``cache_control``), to make a digest of."""
        ...

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Any]]:
        """A ready prompt (OpenAI-style ``role``/``content`` dicts) in this wire format.

        Returns the messages and the extra call options it needs (such as ``{"system": "..."}`` for Anthropic).
        """
        ...
