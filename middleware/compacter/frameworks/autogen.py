"""AutoGen: any chat completion client (https://microsoft.github.io/autogen/stable/)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)

from compacter.frameworks.own_types import (
    Adapter,
    Mirror,
    Piece,
    back,
    calls_of,
    completion,
    mixed,
    separate_media,
    tool_call,
)


def _read(messages: Sequence[Any]) -> list[Mirror]:
    found: list[Mirror] = []
    for message in messages:
        if isinstance(message, FunctionExecutionResultMessage):
            found += [
                Mirror(
                    {
                        "role": "tool",
                        "tool_call_id": one.call_id,
                        "name": one.name,
                        "content": one.content,
                        "is_error": one.is_error,
                    },
                    Piece(message, one, len(message.content)),
                )
                for one in message.content
            ]
        elif isinstance(message, AssistantMessage):
            found.append(Mirror(_assistant(message), message))
        elif isinstance(message, SystemMessage):
            found.append(Mirror({"role": "system", "content": message.content}, message))
        else:
            content = mixed(message.content, _pixels)
            found.append(
                Mirror({"role": "user", "content": content, "source": message.source}, message)
            )
    return found


def _pixels(picture: Image) -> list[Any]:
    image = picture.image
    return [image.mode, image.size, sha256(image.tobytes()).digest()]


def _assistant(message: AssistantMessage) -> dict[str, Any]:
    found = {"role": "assistant", "source": message.source}
    if isinstance(message.content, str):
        return {**found, "content": message.content, "thought": message.thought}
    calls = [tool_call(call.id, call.name, call.arguments) for call in message.content]
    return {**found, "content": message.thought, "tool_calls": calls}


def _make_message(message: Mapping[str, Any]) -> Any:
    role = message["role"]
    content = separate_media(message.get("content"))
    if role == "system":
        return SystemMessage(content=content)
    if role == "user":
        return UserMessage(content=content, source=message.get("source", "user"))
    if role == "tool":
        result = FunctionExecutionResult(
            call_id=message["tool_call_id"],
            name=str(message.get("name")),
            content=content,
            is_error=message.get("is_error"),
        )
        return FunctionExecutionResultMessage(content=[result])
    calls = [
        FunctionCall(id=identity, name=name, arguments=arguments)
        for identity, name, arguments in calls_of(message)
    ]
    thought = content or None if calls else message.get("thought")
    return AssistantMessage(
        content=calls or content, thought=thought, source=message.get("source", "assistant")
    )


def _answer(result: Any) -> Any:
    usage = (result.usage.prompt_tokens, result.usage.completion_tokens)
    return completion(result.content if isinstance(result.content, str) else "", usage)


def _model(client: Any) -> str | None:
    name = getattr(client, "_create_args", {}).get("model")
    return name if isinstance(name, str) else None


def _server(client: Any) -> str:
    return str(getattr(getattr(client, "_client", None), "base_url", ""))


ADAPTER = Adapter(
    methods={"create": "create", "create_stream": "create"},
    read=_read,
    write=back(_make_message, lambda _, parts: FunctionExecutionResultMessage(content=parts)),
    answer=_answer,
    model=_model,
    server=_server,
    left_out=frozenset({"json_output", "extra_create_args"}),
    output_param=None,
    quiet=lambda chunk: chunk == "",
)
"""Adapter of chat completion clients, for agents and teams."""
