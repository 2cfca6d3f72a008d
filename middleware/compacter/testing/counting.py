"""How long a request is, in tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from compacter.messages.format import Message
from compacter.testing.reading import fields

Count: TypeAlias = Callable[[Sequence[Message], Mapping[str, Any]], int]
"""Tokens of a request: its messages and the other arguments of the call (``tools``, ``system``, ...)."""

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
# Members that hold a medium, whichever the wire format.
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
    }
    | {"document"}
)
_MEDIA_TYPES = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "document", "file", "input_file"}
)
# Members that may hold JSON as an object, and go to the model as JSON text.
_JSON = frozenset({"arguments", "input", "args"})
_UNREAD = _SILENT | _JSON
# Arguments of a call that are part of the prompt.
_PROMPT_OPTIONS = ("tools", "functions", "system", "instructions")


@dataclass(frozen=True, slots=True)
class CharacterCount:
    """Tokens as characters divided by `chars_per_token`, rounded up once per request.

    A medium has a fixed price. Counts the text of every wire format: contents, names and arguments of
    calls, results, reasoning, tool schemas.
    """

    chars_per_token: float = 4
    media_tokens: int = 800

    def __post_init__(self) -> None:
        """Refuse a ratio that no text can have."""
        if not self.chars_per_token > 0:
            raise ValueError(f"chars_per_token must be above 0, got {self.chars_per_token!r}")

    def __call__(self, messages: Sequence[Message], options: Mapping[str, Any], /) -> int:
        """Return the tokens of the messages and of what else in `options` the model reads."""
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
                characters += sum(_json_length(members[key]) for key in _JSON if members.get(key) is not None)
                pending.extend(value for key, value in members.items() if key not in _UNREAD)
        return math.ceil(characters / self.chars_per_token) + media * self.media_tokens


def _is_medium(members: Mapping[str, Any]) -> bool:
    kind = members.get("type")
    return (isinstance(kind, str) and kind in _MEDIA_TYPES) or any(members.get(key) is not None for key in _MEDIA)


def _json_length(value: object) -> int:
    return len(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
