"""The rules of local chat templates, which are stricter than those of OpenAI's chat completions."""

from __future__ import annotations

from typing import Any

from compacter.testing import chat_fault


def strict_roles(messages: Any, *, alternate: bool = True) -> str | None:
    """Return the first fault of a list in which the user speaks first; with ``alternate``, user and
    assistant take turns too. System messages may stand anywhere.
    """
    fault = chat_fault(messages)
    if fault:
        return fault
    previous: object = None
    for index, message in enumerate(messages):
        role = message["role"]
        if role in {"system", "developer"}:
            continue
        if previous is None and role != "user":
            return f"messages[{index}]: the first message must be the user's, got {role}"
        if alternate and role == previous and role in {"user", "assistant"}:
            return f"messages[{index}]: roles must alternate, got {role} after {role}"
        previous = role
    return None if previous else "there must be a user message"
