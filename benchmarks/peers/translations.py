"""OpenAI's messages as Strands and Semantic Kernel have them, and back. Never timed."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]


# -- Strands: the blocks of Bedrock's Converse -----------------------------------------------------


def blocks(message: Message) -> Message:
    """One of OpenAI's messages as Strands has it."""
    if message["role"] == "tool":
        result = {
            "toolUseId": message["tool_call_id"],
            "status": "success",
            "content": [{"text": message["content"]}],
        }
        return {"role": "user", "content": [{"toolResult": result}]}
    uses = [
        {
            "toolUse": {
                "toolUseId": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            }
        }
        for call in message.get("tool_calls") or ()
    ]
    text = [{"text": message["content"]}] if message.get("content") else []
    return {"role": message["role"], "content": [*text, *uses]}


def from_blocks(message: Message) -> list[Message]:
    """One of Strands' messages as OpenAI has it: several where it holds several results."""
    results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
    found: list[Message] = [
        {"role": "tool", "tool_call_id": one["toolUseId"], "content": one["content"][0]["text"]}
        for one in results
    ]
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    text = "".join(block.get("text", "") for block in message["content"])
    if not (text or uses):
        return found
    read: Message = {"role": message["role"], "content": text}
    if uses:
        read["tool_calls"] = [
            {
                "id": one["toolUseId"],
                "type": "function",
                "function": {"name": one["name"], "arguments": json.dumps(one["input"])},
            }
            for one in uses
        ]
    return [*found, read]


# -- Semantic Kernel -------------------------------------------------------------------------------


def content(message: Message) -> Any:
    """One of OpenAI's messages as Semantic Kernel has it."""
    from semantic_kernel.contents import (  # type: ignore[import-not-found]
        ChatMessageContent,
        FunctionCallContent,
        FunctionResultContent,
        TextContent,
    )

    if message["role"] == "tool":
        items = [
            FunctionResultContent(
                id=message["tool_call_id"], name="stock", result=message["content"]
            )
        ]
    else:
        items = [TextContent(text=message["content"])] if message.get("content") else []
        items += [
            FunctionCallContent(
                id=call["id"],
                name=call["function"]["name"],
                arguments=call["function"]["arguments"],
            )
            for call in message.get("tool_calls") or ()
        ]
    return ChatMessageContent(role=message["role"], items=items)


def from_content(message: Any) -> list[Message]:
    """One of Semantic Kernel's messages as OpenAI has it."""
    if message.role == "tool":
        return [
            {"role": "tool", "tool_call_id": item.id, "content": str(item.result)}
            for item in message.items
        ]
    # Not ``to_dict`` alone: it drops the words beside a call.
    return [
        {
            **message.to_dict(),
            "content": "".join(getattr(item, "text", None) or "" for item in message.items),
        }
    ]
