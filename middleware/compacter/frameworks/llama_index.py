"""LlamaIndex: any LLM
(https://developers.llamaindex.ai/python/framework/module_guides/models/llms/).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compacter.frameworks.own_types import (
    Adapter,
    back,
    completion,
    each,
    mixed,
    separate_media,
    tool_call,
)
from compacter.messages.fields import json_text, members
from compacter.messages.replies import usage_of


def _read(message: Any) -> Mapping[str, Any]:
    """Read a ``ChatMessage``, with tool calls in blocks, or in ``additional_kwargs`` in OpenAI's
    form.
    """
    extra = message.additional_kwargs
    found: dict[str, Any] = {"role": message.role.value, "content": message.content or ""}
    calls = [
        tool_call(block.tool_call_id, block.tool_name, json_text(block.tool_kwargs))
        for block in message.blocks
        if block.block_type == "tool_call"
    ] or [members(call) for call in extra.get("tool_calls") or ()]
    media = [
        block
        for block in message.blocks
        if block.block_type in {"image", "audio", "video", "document"}
    ]
    found["content"] = mixed([found["content"], *media], _data)
    if calls:
        found["tool_calls"] = calls
    if extra.get("tool_call_id"):
        found |= {"role": "tool", "tool_call_id": extra["tool_call_id"]}
    return found


def _data(block: Any) -> dict[str, Any]:
    """Return the fields of a block, with a URL as text. A path stays an object, so that the message
    is not remembered: its file may change.
    """
    return {name: str(value) if name == "url" else value for name, value in vars(block).items()}


def _write(message: Mapping[str, Any]) -> Any:
    from llama_index.core.llms import ChatMessage, TextBlock

    content = separate_media(message.get("content"))
    texts = [content] if isinstance(content, str) else content
    blocks = [TextBlock(text=part) if isinstance(part, str) else part for part in texts]
    extra = {name: message[name] for name in ("tool_calls", "tool_call_id") if message.get(name)}
    return ChatMessage(role=message["role"], blocks=blocks, additional_kwargs=extra)


def _answer(response: Any) -> Any:
    return completion(
        response.message.content or "", usage_of(response.raw) if response.raw else (0, 0)
    )


def _quiet(response: Any) -> bool:
    message = response.message
    return not (
        response.delta or message.content or message.additional_kwargs or len(message.blocks) > 1
    )


_ADAPTER = Adapter(
    methods={"chat": "chat", "achat": "achat", "stream_chat": "chat", "astream_chat": "achat"},
    read=each(_read),
    write=back(_write),
    answer=_answer,
    quiet=_quiet,
)


def adapter_of(kind: type[Any]) -> Adapter:
    """Return the adapter of a class of LLMs, for agents, chat engines and query engines."""
    # ``OpenAIResponses`` passes options on unchanged, and its API has another name for this one.
    responses = any(ancestor.__name__ == "OpenAIResponses" for ancestor in kind.__mro__)
    return replace(_ADAPTER, output_param="max_output_tokens") if responses else _ADAPTER
