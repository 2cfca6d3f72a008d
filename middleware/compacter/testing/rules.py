"""Size of a request in tokens, and the rules by which a provider accepts its list of messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compacter.messages.format import Message


def fields(message: Message) -> Mapping[str, Any] | None:
    """Return the fields of a message or block, or None if it has none."""
    if isinstance(message, (dict, Mapping)):  # Most are dicts, which is seen at once.
        return message
    dump = getattr(message, "model_dump", None)
    if callable(dump):
        dumped = dump()
        return dumped if isinstance(dumped, Mapping) else None
    members = getattr(message, "__dict__", None)
    return members if isinstance(members, dict) else None


Count: TypeAlias = Callable[[Sequence[Message], Mapping[str, Any]], int]
"""Tokens of a request: its messages and the other arguments of the call (``tools``, ``system``,
...)."""

# Members that the provider does not read as text.
_SILENT = frozenset(
    {
        "role",
        "type",
        "id",
        "tool_call_id",
        "tool_use_id",
        "call_id",
        "index",
        "cache_control",
        "signature",
        "status",
    }
)
# Members that contain media, in any wire format.
_MEDIA = frozenset(
    {
        "image_url",
        "input_audio",
        "inline_data",
        "inlineData",
        "file_data",
        "fileData",
        "image",
        "audio",
        "video",
        "document",
    }
)
_MEDIA_TYPES = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "document", "file", "input_file"}
)
# Members that may be JSON objects, which the model reads as JSON text.
_JSON = frozenset({"arguments", "input", "args"})
_UNREAD = _SILENT | _JSON
# Arguments of a call that are part of the prompt.
_PROMPT_OPTIONS = ("tools", "functions", "system", "instructions")


@dataclass(frozen=True, slots=True)
class CharacterCount:
    """Tokenizer: characters divided by `chars_per_token`, rounded up once per request.

    Counts the text of every wire format: contents, names and arguments of calls, results,
    reasoning, tool schemas. A picture or other medium counts as `media_tokens`.
    """

    chars_per_token: float = 4
    media_tokens: int = 800

    def __post_init__(self) -> None:
        if not self.chars_per_token > 0:
            raise ValueError(f"chars_per_token must be above 0, got {self.chars_per_token!r}")

    def __call__(self, messages: Sequence[Message], options: Mapping[str, Any], /) -> int:
        """Return the tokens of the messages and of the options that the model reads."""
        characters = media = 0
        for name in _PROMPT_OPTIONS:
            if (value := options.get(name)) is not None:
                characters += _json_length(value)
        pending: list[Any] = list(messages)
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                characters += len(item)
            elif isinstance(item, (list, tuple)):
                pending.extend(item)
            elif (members := fields(item)) is None:
                continue
            elif _is_medium(members):
                media += 1
            else:
                if not _JSON.isdisjoint(members):
                    characters += sum(
                        _json_length(members[key]) for key in _JSON if members.get(key) is not None
                    )
                pending.extend(value for key, value in members.items() if key not in _UNREAD)
        return math.ceil(characters / self.chars_per_token) + media * self.media_tokens


def _is_medium(members: Mapping[str, Any]) -> bool:
    kind = members.get("type")
    if isinstance(kind, str) and kind in _MEDIA_TYPES:
        return True
    return not _MEDIA.isdisjoint(members) and any(members.get(key) is not None for key in _MEDIA)


def _json_length(value: object) -> int:
    return len(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )


Check: TypeAlias = Callable[[Sequence[Message]], str | None]
"""Function that returns the fault of the messages, or None."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def is_list(messages: object) -> bool:
    """Return whether the type is that of a list of messages; a string or a single message
    is not.
    """
    return isinstance(messages, Sequence) and not isinstance(messages, (str, bytes))


@dataclass(frozen=True, slots=True)
class ChatRules:
    """The rules of OpenAI's chat completions, and the stricter ones of many local chat
    templates.
    """

    alternate_roles: bool = False
    """User and assistant messages must alternate, system messages aside; the first must be the
    user's."""
    user_first: bool = False
    """The first message after the system messages must be the user's."""

    def __call__(self, messages: Sequence[Message], /) -> str | None:
        """Return the first fault of the list, with its index, or None."""
        if not is_list(messages):
            return f"'messages' must be an array, got {type(messages).__name__}"
        if not messages:
            return "'messages' must contain at least one message"
        return self._shapes(messages) or _pairs(messages) or self._order(messages)

    def _shapes(self, messages: Sequence[Message]) -> str | None:
        for index, message in enumerate(messages):
            read = fields(message)
            if read is None:
                return f"messages[{index}] must be an object, got {type(message).__name__}"
            role = read.get("role")
            if role not in _ROLES:
                return f"messages[{index}] has the unknown role {role!r}"
            if fault := _content_fault(read):
                return f"messages[{index}] (role {role}) {fault}"
        return None

    def _order(self, messages: Sequence[Message]) -> str | None:
        if not (self.alternate_roles or self.user_first):
            return None
        previous: object = None
        for index, message in enumerate(messages):
            role = _member(message, "role")
            if role in {"system", "developer"}:
                continue
            if previous is None and role != "user":
                return f"messages[{index}]: the first message must be the user's, got {role}"
            if self.alternate_roles and role == previous and role in {"user", "assistant"}:
                return f"messages[{index}]: roles must alternate, got {role} after {role}"
            previous = role
        return None if previous else "there must be a user message"


def _content_fault(read: Mapping[str, Any]) -> str | None:
    content = read.get("content")
    calls = read.get("tool_calls")
    speaks = bool(calls or read.get("function_call") or read.get("refusal") or read.get("audio"))
    if calls is not None and not calls and read.get("role") == "assistant":
        return "has an empty array of tool_calls"
    if content is None:
        return None if speaks and read.get("role") == "assistant" else "has no content"
    if not isinstance(content, (str, list, tuple)):
        return f"has content of type {type(content).__name__}"
    return None


def _member(message: Message, name: str) -> object:
    read = fields(message)
    return None if read is None else read.get(name)


def _pairs(messages: Sequence[Message]) -> str | None:
    """Return the first call without a result right after it, or result without such a call; ids may
    be reused.
    """
    waiting: list[Any] = []
    asked = -1
    legacy: object = None
    for index, message in enumerate([*messages, None]):  # At the end none may be waiting.
        read = fields(message) or {}
        role = read.get("role")
        if role == "tool":
            call = read.get("tool_call_id")
            if call not in waiting:
                return (
                    f"messages[{index}]: the tool result {call!r} answers no call of the "
                    f"preceding message"
                )
            waiting.remove(call)
            continue
        if role == "function":
            if legacy is None or read.get("name") != legacy:
                return (
                    f"messages[{index}]: the function result {read.get('name')!r} answers no "
                    f"preceding call"
                )
            legacy = None
            continue
        if waiting:
            return f"messages[{asked}]: no tool result follows for the tool call {waiting[0]!r}"
        legacy = None
        if role == "assistant":
            asked = index
            waiting = [_member(call, "id") for call in read.get("tool_calls") or ()]
            if len(set(map(repr, waiting))) != len(waiting):
                return f"messages[{index}]: two of its tool calls have the same id"
            call = read.get("function_call")
            legacy = None if call is None else _member(call, "name")
    return None
