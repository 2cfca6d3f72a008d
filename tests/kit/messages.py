"""Anthropic's messages for the scripted server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.kit.protocol import Protocol

from compacter.testing.server import Body, Event


class Messages(Protocol):
    """Anthropic's messages: https://docs.anthropic.com/en/api/messages."""

    _REASONS: Mapping[str, str] = {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
    }

    def read(self, body: Body) -> Body:
        messages: list[Body] = []
        if body.get("system"):
            messages.append({"role": "system", "content": body["system"]})
        for message in body["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            messages.extend(self._messages(message["role"], blocks))
        return {
            **{name: body[name] for name in body if name not in {"system", "messages"}},
            "messages": messages,
            "stream_options": {"include_usage": True},
        }

    def _messages(self, role: str, blocks: list[Body]) -> Iterator[Body]:
        """Yield messages in the order of the blocks: results after other blocks are invalid, as at
        the provider.
        """
        rest: list[Body] = []
        calls: list[Body] = []
        for block in blocks:
            if block.get("type") == "tool_use":
                calls.append(as_call(block["id"], block["name"], json.dumps(block["input"])))
            elif block.get("type") != "tool_result":
                rest.append(block)
            else:
                if rest:
                    yield {"role": role, "content": rest}
                    rest = []
                yield {
                    "role": "tool",
                    "tool_call_id": block["tool_use_id"],
                    "content": block.get("content") or "",
                }
        if calls:
            yield {"role": role, "content": rest or None, "tool_calls": calls}
        elif rest or not blocks:
            yield {"role": role, "content": rest}

    def whole(self, body: Body, completion: Body) -> Body:
        choice = completion["choices"][0]
        message = choice["message"]
        text = message.get("content") or message.get("refusal")
        content: list[Body] = [{"type": "text", "text": text}] if text else []
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = json.loads(function["arguments"] or "{}")
            content.append(
                {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}
            )
        return {
            **self._start(body),
            "content": content,
            "stop_reason": self._REASONS.get(choice["finish_reason"], "end_turn"),
            "usage": self._usage(completion.get("usage")),
        }

    def _start(self, body: Body) -> Body:
        return {
            "id": f"msg_{next(self.numbers)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    def _usage(self, usage: Mapping[str, Any] | None) -> Body:
        known = usage or {}
        return {
            "input_tokens": known.get("prompt_tokens", 0),
            "output_tokens": known.get("completion_tokens", 0),
        }

    def events(self, body: Body, chunks: Iterable[Body]) -> Iterator[Event]:
        return ((data["type"], data) for data in self._events(body, chunks))

    def _events(self, body: Body, chunks: Iterable[Body]) -> Iterator[Body]:
        yield {"type": "message_start", "message": self._start(body)}
        index = -1
        opened = ""
        reason = "end_turn"
        usage = None
        for chunk in chunks:
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                reason = self._REASONS.get(choice["finish_reason"] or "", reason)
                for kind, block, delta in self._blocks(choice["delta"]):
                    if kind != opened:
                        if opened:
                            yield {"type": "content_block_stop", "index": index}
                        index = index + 1
                        opened = kind
                        yield {
                            "type": "content_block_start",
                            "index": index,
                            "content_block": block,
                        }
                    yield {"type": "content_block_delta", "index": index, "delta": delta}
        if opened:
            yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": self._usage(usage)}
        yield {"type": "message_stop"}

    def _blocks(self, delta: Body) -> Iterator[tuple[str, Body, Body]]:
        """Yield for each piece the key of its block, the empty block, and the piece."""
        if text := delta.get("content") or delta.get("refusal"):
            yield "text", {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        for call in delta.get("tool_calls") or ():
            function = call["function"]
            block = {
                "type": "tool_use",
                "id": call.get("id"),
                "name": function.get("name"),
                "input": {},
            }
            piece = {"type": "input_json_delta", "partial_json": function["arguments"]}
            yield f"tool {call['index']}", block, piece

    def error(self, message: str, kind: str | None, code: object) -> Body:
        return {"type": "error", "error": {"type": kind, "message": message}}

    def failed(self, body: Body, error: Body) -> Iterator[Event]:
        yield "error", error


def as_call(identity: str, name: str, arguments: str) -> Body:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
