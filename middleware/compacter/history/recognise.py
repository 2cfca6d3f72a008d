"""Recognising the wire format of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compacter.history.fields import field
from compacter.history.message import Message
from compacter.history.wire import WireName

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
