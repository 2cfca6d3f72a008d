"""Is this list of messages one that a provider takes? What is wrong with it, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compacter.messages.format import Message
from compacter.testing.reading import fields

Check: TypeAlias = Callable[[Sequence[Message]], str | None]
"""What is wrong with the messages, or None."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def is_list(messages: object) -> bool:
    """Whether this is a list of messages by its type; a text or a lone message is none."""
    return isinstance(messages, Sequence) and not isinstance(messages, (str, bytes))


@dataclass(frozen=True, slots=True)
class ChatRules:
    """The rules of OpenAI's chat completions, and the stricter ones of many local chat templates."""

    alternate_roles: bool = False
    """No two user and no two assistant messages in a row, system messages aside; the first is the user's."""
    user_first: bool = False
    """The first message after the system messages is the user's."""
    refuse_blank: bool = False
    """A user, system or plain assistant message of white space only is refused, as Anthropic does."""

    def __call__(self, messages: Sequence[Message], /) -> str | None:
        """Return the first fault of the list, with its index, or None."""
        if not is_list(messages):
            return f"'messages' must be an array, got {type(messages).__name__}"
        if not messages:
            return "'messages' must hold at least one message"
        return self._shapes(messages) or _pairs(messages) or self._order(messages)

    def _shapes(self, messages: Sequence[Message]) -> str | None:
        for index, message in enumerate(messages):
            read = fields(message)
            if read is None:
                return f"messages[{index}] must be an object, got {type(message).__name__}"
            role = read.get("role")
            if role not in _ROLES:
                return f"messages[{index}] has the unknown role {role!r}"
            if fault := self._content(read):
                return f"messages[{index}] (role {role}) {fault}"
        return None

    def _content(self, read: Mapping[str, Any]) -> str | None:
        content, calls = read.get("content"), read.get("tool_calls")
        speaks = bool(calls or read.get("function_call") or read.get("refusal") or read.get("audio"))
        if calls is not None and not calls and read.get("role") == "assistant":
            return "has an empty array of tool_calls"
        if content is None:
            return None if speaks and read.get("role") == "assistant" else "has no content"
        if not isinstance(content, (str, list, tuple)):
            return f"has content of type {type(content).__name__}"
        if self.refuse_blank and not speaks and read.get("role") not in {"tool", "function"} and _blank(content):
            return "has blank content"
        return None

    def _order(self, messages: Sequence[Message]) -> str | None:
        if not (self.alternate_roles or self.user_first):
            return None
        previous: object = None
        for index, message in enumerate(messages):
            role = _field(message, "role")
            if role in {"system", "developer"}:
                continue
            if previous is None and role != "user":
                return f"messages[{index}]: the first message must be the user's, got {role}"
            if self.alternate_roles and role == previous and role in {"user", "assistant"}:
                return f"messages[{index}]: roles must alternate, got {role} after {role}"
            previous = role
        return None if previous else "there must be a user message"


def _field(message: Message, name: str) -> object:
    read = fields(message)
    return None if read is None else read.get(name)


def _blank(content: str | Sequence[object]) -> bool:
    if isinstance(content, str):
        return not content.strip()
    return all(_field(part, "type") == "text" and not str(_field(part, "text")).strip() for part in content)


def _pairs(messages: Sequence[Message]) -> str | None:
    """By position: each result right behind its call, each call with one; ids may come again later."""
    waiting: list[Any] = []
    asked = -1
    legacy: object = None
    for index, message in enumerate(messages):
        read = fields(message) or {}
        role = read.get("role")
        if role == "tool":
            call = read.get("tool_call_id")
            if call not in waiting:
                return f"messages[{index}]: the tool result {call!r} answers no call of the preceding message"
            waiting.remove(call)
            continue
        if role == "function":
            if legacy is None or read.get("name") != legacy:
                return f"messages[{index}]: the function result {read.get('name')!r} answers no preceding call"
            legacy = None
            continue
        if waiting:
            return f"messages[{asked}]: no tool result follows for the tool call {waiting[0]!r}"
        legacy = None
        if role == "assistant":
            asked, waiting = index, [_field(call, "id") for call in read.get("tool_calls") or ()]
            if len(set(map(repr, waiting))) != len(waiting):
                return f"messages[{index}]: two of its tool calls have the same id"
            call = read.get("function_call")
            legacy = None if call is None else _field(call, "name")
    return f"messages[{asked}]: no tool result follows for the tool call {waiting[0]!r}" if waiting else None
