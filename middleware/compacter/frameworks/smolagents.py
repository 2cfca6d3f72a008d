"""smolagents: any model (https://huggingface.co/docs/smolagents/reference/models)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compacter.frameworks.own_types import Adapter, Mirror, back, completion, tool_call
from compacter.messages.fields import field


def _read(messages: Sequence[Any]) -> list[Mirror]:
    """Read messages. An agent's memory has calls and results by role without ids: a result follows
    its call.
    """
    found: list[Mirror] = []
    call = ""
    for number, message in enumerate(messages):
        role = str(getattr(field(message, "role"), "value", field(message, "role")))
        content = field(message, "content") or ""
        read: dict[str, Any] = {"role": role, "content": content}
        if role == "tool-call":
            call = f"call_{number}"
            read = {
                "role": "assistant",
                "content": None,
                "tool_calls": [tool_call(call, "tool", _text(content))],
            }
        elif role == "tool-response" and call:
            read = {"role": "tool", "tool_call_id": call, "content": content}
            call = ""
        elif role == "tool-response":
            read["role"] = "user"
        found.append(Mirror(read, message))
    return found


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(field(part, "text") or "") for part in content)


def _write(messages: Iterable[Any]) -> list[Any]:
    """Write messages with list content, as smolagents joins neighbours of the same role."""
    found = _own(messages)
    for number in range(1, len(found)):
        content = field(found[number], "content")
        if isinstance(content, str) and field(found[number], "role") == field(
            found[number - 1], "role"
        ):
            parts = [{"type": "text", "text": content}]
            message = found[number]
            found[number] = (
                {**message, "content": parts}
                if isinstance(message, dict)
                else replace(message, content=parts)
            )
    return found


def _make_message(message: Mapping[str, Any]) -> Any:
    from smolagents.models import ChatMessage, MessageRole

    roles = {"tool": MessageRole.TOOL_RESPONSE}
    content = message.get("content") or ""
    if message.get("tool_calls"):
        role = MessageRole.TOOL_CALL
        content = message["tool_calls"][0]["function"]["arguments"]
    else:
        role = roles.get(message["role"]) or MessageRole(message["role"])
    return ChatMessage(
        role, [{"type": "text", "text": content}] if isinstance(content, str) else content
    )


_own = back(_make_message)


def _answer(message: Any) -> Any:
    usage = message.token_usage
    content = message.content
    text = content if isinstance(content, str) or content is None else _text(content)
    return completion(text or "", (usage.input_tokens, usage.output_tokens) if usage else (0, 0))


ADAPTER = Adapter(
    methods={"generate": "generate", "generate_stream": "generate"},
    read=_read,
    write=_write,
    answer=_answer,
    server=lambda model: str(
        getattr(model, "api_base", None)
        or (getattr(model, "client_kwargs", None) or {}).get("base_url", "")
    ),
    positional=("self", "messages", "stop_sequences"),
    left_out=frozenset({"tools_to_call_from"}),
    quiet=lambda delta: not (delta.content or delta.tool_calls),
)
"""Adapter of models, for agents."""
