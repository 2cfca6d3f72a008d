"""Reading a message, a dict or an SDK object, as plain fields.

Written apart from `compacter.history` on purpose: a scripted model that shared the reader of the code it is
meant to test would share its mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compacter.messages.format import Message


def fields(message: Message) -> Mapping[str, Any] | None:
    """Return the fields of a message or block; None for what has no fields."""
    if isinstance(message, Mapping):
        return message
    dump = getattr(message, "model_dump", None)
    if callable(dump):
        dumped = dump()
        return dumped if isinstance(dumped, Mapping) else None
    members = getattr(message, "__dict__", None)
    return members if isinstance(members, dict) else None
