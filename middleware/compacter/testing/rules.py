"""Size of a request in tokens, and the rules by which a provider accepts its list of messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compacter.messages.fields import field, members
from compacter.messages.format import Message

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
# Types of blocks that the provider does not count by their text.
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

    Counts contents, names and arguments of calls, results, reasoning and tool schemas. A picture
    or other medium of OpenAI's or Anthropic's API counts as `media_tokens`.
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
            elif field(item, "type") in _MEDIA_TYPES:
                media += 1
            elif isinstance(read := item if type(item) is dict else members(item), dict):
                if not _JSON.isdisjoint(read):
                    characters += sum(
                        _json_length(read[key]) for key in _JSON if read.get(key) is not None
                    )
                pending.extend(value for key, value in read.items() if key not in _UNREAD)
        return math.ceil(characters / self.chars_per_token) + media * self.media_tokens


def _json_length(value: object) -> int:
    return len(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )


Check: TypeAlias = Callable[[Sequence[Message]], str | None]
"""Function that returns the fault of the messages, or None."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


def is_list(messages: object) -> bool:
    """Return whether the type is that of a list of messages; a string or a single message
    is not.
    """
    return isinstance(messages, Sequence) and not isinstance(messages, (str, bytes))


def chat_fault(messages: Sequence[Message], /) -> str | None:
    """Return the first fault of a list by the rules of OpenAI's chat completions, with its index,
    or None.
    """
    if not is_list(messages):
        return f"'messages' must be an array, got {type(messages).__name__}"
    if not messages:
        return "'messages' must contain at least one message"
    for index, message in enumerate(messages):
        read = message if isinstance(message, Mapping) else members(message)
        if not isinstance(read, Mapping):
            return f"messages[{index}] must be an object, got {type(message).__name__}"
        role = read.get("role")
        if role not in _ROLES:
            return f"messages[{index}] has the unknown role {role!r}"
        if fault := _content_fault(read):
            return f"messages[{index}] (role {role}) {fault}"
    return _pairs(messages)


def _content_fault(read: Mapping[str, Any]) -> str | None:
    content = read.get("content")
    calls = read.get("tool_calls")
    speaks = bool(calls or read.get("refusal") or read.get("audio"))
    if calls is not None and not calls and read.get("role") == "assistant":
        return "has an empty array of tool_calls"
    if content is None:
        return None if speaks and read.get("role") == "assistant" else "has no content"
    if not isinstance(content, (str, list, tuple)):
        return f"has content of type {type(content).__name__}"
    return None


def _pairs(messages: Sequence[Message]) -> str | None:
    """Return the first call without a result right after it, or result without such a call; ids may
    be reused.
    """
    waiting: list[Any] = []
    caller = -1
    for index, message in enumerate([*messages, None]):  # At the end no call may wait.
        if field(message, "role") == "tool":
            call = field(message, "tool_call_id")
            if call not in waiting:
                return (
                    f"messages[{index}]: the tool result {call!r} answers no call of the "
                    "preceding message"
                )
            waiting.remove(call)
            continue
        if waiting:
            return f"messages[{caller}]: no tool result follows for the tool call {waiting[0]!r}"
        caller = index
        waiting = [field(call, "id") for call in field(message, "tool_calls") or ()]
        if len(set(map(repr, waiting))) != len(waiting):
            return f"messages[{index}]: two of its tool calls have the same id"
    return None
