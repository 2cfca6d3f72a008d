"""What a message format has to know, which formats there are, and how one is recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from compacter.messages.fields import field
from compacter.messages.parts import Entry
from compacter.messages.steps import Outline

Message: TypeAlias = Any
"""One provider-native item, a dict or an SDK object; read, never changed."""


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


def wire(name: str) -> Wire:
    """The wire format of that name. Raises ``ValueError`` that lists the names there are."""
    if name == "openai":
        from compacter.messages.openai import OPENAI

        return OPENAI
    if name == "anthropic":
        from compacter.messages.anthropic import ANTHROPIC

        return ANTHROPIC
    if name == "responses":
        from compacter.messages.responses import RESPONSES

        return RESPONSES
    if name == "gemini":
        from compacter.messages.gemini import GEMINI

        return GEMINI
    if name == "bedrock":
        from compacter.messages.bedrock import BEDROCK

        return BEDROCK
    raise ValueError(f"wire_format={name!r} is unknown; use one of {', '.join(map(repr, WIRE_FORMATS))}")


_LOOK_AT = 40
"""Messages that are looked at before the plain chat form is assumed."""
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ANTHROPIC_PARTS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document"}
)
_BEDROCK_KEYS = frozenset({"toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent"})


def recognise(messages: Sequence[Message], *, param: str = "") -> WireName:
    """The wire format, from what only it has. Plain role and content, which several share, count as ``openai``.

    ``param`` is the name of the argument the messages came in: ``contents`` is Gemini's, ``input`` the Responses API's.
    """
    if param == "contents":
        return "gemini"
    for message in messages[:_LOOK_AT]:
        found = _telling(message)
        if found is not None:
            return found
    return "responses" if param == "input" else "openai"


def _telling(message: Message) -> WireName | None:
    if field(message, "parts") is not None:
        return "gemini"
    kind = field(message, "type")
    if isinstance(kind, str) and field(message, "role") is None:
        return "responses"
    if field(message, "tool_calls") or field(message, "role") in ("tool", "function", "developer"):
        return "openai"
    content = field(message, "content")
    if isinstance(content, (list, tuple)):
        for part in content:
            found = _telling_part(part)
            if found is not None:
                return found
    return "responses" if kind == "message" and isinstance(message, dict) else None


def _telling_part(part: Any) -> WireName | None:
    kind = field(part, "type")
    if kind in _RESPONSES_PARTS:
        return "responses"
    if kind in _ANTHROPIC_PARTS:
        return "anthropic"
    if kind == "image" and field(part, "source") is not None:
        return "anthropic"
    if kind is None and isinstance(part, dict) and (not _BEDROCK_KEYS.isdisjoint(part) or set(part) == {"text"}):
        return "bedrock"
    return None
