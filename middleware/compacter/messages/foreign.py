"""Objects of frameworks, told apart from the messages of the providers' SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from compacter.messages.fields import Json, word

# Packages whose objects are messages of one of the formats; lists may mix them with dicts.
_SDKS = (
    "openai.",
    "litellm.",
    "anthropic.",
    "google.genai.",
    "google.ai.",
    "google.generativeai.",
    "google.cloud.",
    "vertexai.",
    "proto.",
    "mistralai.",
    "groq.",
    "together.",
    "cohere.",
    "ollama.",
    "xai_sdk.",
    "cerebras.",
)
# The fields that an object of an unknown class may have to be read as a provider's message.
_FIELDS = frozenset(
    {
        "role",
        "content",
        "parts",
        "name",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "refusal",
        "audio",
        "annotations",
        "reasoning_content",
        "reasoning",
        "thinking_blocks",
        "provider_specific_fields",
        "id",
        "type",
        "status",
        "phase",
        "call_id",
        "arguments",
        "output",
        "summary",
        "encrypted_content",
    }
)


@cache
def roles() -> frozenset[str]:
    """Return the roles of all formats."""
    # Imported only now, as the formats import this file.
    from compacter.messages.format import FORMATS, get_format

    return frozenset(role for name in FORMATS for role in get_format(name).roles)


def foreign(message: Json) -> bool:
    """Return whether an object may be a message of a framework, and not of a provider's SDK."""
    if isinstance(message, Mapping):
        return False
    kind = type(message)
    if any(f"{ancestor.__module__}.".startswith(_SDKS) for ancestor in kind.__mro__):
        return False
    try:
        names = {
            *getattr(message, "__dict__", ()),
            *(getattr(message, "__pydantic_extra__", None) or ()),
        }
    except Exception:  # noqa: BLE001 - a foreign class may raise anything
        return True
    for ancestor in kind.__mro__:
        slots = vars(ancestor).get("__slots__", ())
        names.update((slots,) if isinstance(slots, str) else slots)
    names -= {
        "__dict__",
        "__weakref__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    }
    known = (
        word(message, "role") in roles()
        if "role" in names
        else "type" in names and "content" not in names
    )
    return not (known and names <= _FIELDS)
