"""OpenAI's responses for the scripted server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.kit.messages import as_call
from tests.kit.protocol import Protocol

from compacter.testing.server import Body, Event


class Responses(Protocol):
    """OpenAI's responses: https://platform.openai.com/docs/api-reference/responses."""

    def read(self, body: Body) -> Body:
        items = body["input"]
        messages: list[Body] = []
        for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            kind = item.get("type", "message")
            if kind == "message":
                messages.append({"role": item["role"], "content": item["content"]})
            elif kind == "function_call":
                call = as_call(item["call_id"], item["name"], item["arguments"])
                if messages and messages[-1].get("tool_calls"):
                    messages[-1]["tool_calls"].append(call)
                else:
                    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            elif kind == "function_call_output":
                messages.append(
                    {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
                )
        return {
            **{name: body[name] for name in body if name != "input"},
            "messages": messages,
            "stream_options": {"include_usage": True},
        }

    def whole(self, body: Body, completion: Body) -> Body:
        choice = completion["choices"][0]
        message = choice["message"]
        text = message.get("content") or message.get("refusal")
        items = [self._message(text)] if text else []
        items += [self._function(call) for call in message.get("tool_calls") or ()]
        return self._end_stream(
            self._start(body), items, choice["finish_reason"], completion.get("usage")
        )

    def _message(self, text: str) -> Body:
        part = {"type": "output_text", "text": text, "annotations": []}
        shared = {
            "id": f"msg_{next(self.numbers)}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
        }
        return {**shared, "content": [part]}

    def _function(self, call: Body) -> Body:
        shared = {"id": f"fc_{next(self.numbers)}", "type": "function_call", "status": "completed"}
        return {**shared, "call_id": call["id"], **call["function"]}

    def _start(self, body: Body) -> Body:
        return {
            "id": f"resp_{next(self.numbers)}",
            "object": "response",
            "created_at": 0,
            "model": body["model"],
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "status": "in_progress",
            "error": None,
        }

    def _end_stream(
        self, start: Body, items: list[Body], reason: str | None, usage: Mapping[str, Any] | None
    ) -> Body:
        cut = reason == "length"
        known = usage or {}
        read = known.get("prompt_tokens", 0)
        written = known.get("completion_tokens", 0)
        return {
            **start,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": items,
            "usage": {
                "input_tokens": read,
                "output_tokens": written,
                "total_tokens": read + written,
                "input_tokens_details": known.get("prompt_tokens_details") or {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    def events(self, body: Body, chunks: Iterable[Body]) -> Iterator[Event]:
        for number, data in enumerate(self._events(body, chunks)):
            yield data["type"], {**data, "sequence_number": number}

    def _events(self, body: Body, chunks: Iterable[Body]) -> Iterator[Body]:
        start = self._start(body)
        yield {"type": "response.created", "response": start}
        items: list[Body] = []
        reason = None
        usage = None
        for chunk in chunks:
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                reason = choice["finish_reason"] or reason
                delta = choice["delta"]
                if text := delta.get("content") or delta.get("refusal"):
                    yield from self._text(items, text)
                for call in delta.get("tool_calls") or ():
                    yield from self._arguments(items, call)
        for index, item in enumerate(items):
            yield from self._close_item(index, item)
        ended = self._end_stream(start, items, reason, usage)
        yield {"type": f"response.{ended['status']}", "response": ended}

    def _text(self, items: list[Body], text: str) -> Iterator[Body]:
        if not items:
            items.append(self._message(""))
            opened = {**items[0], "content": [], "status": "in_progress"}
            yield {"type": "response.output_item.added", "output_index": 0, "item": opened}
            part = dict(items[0]["content"][0])
            yield {
                "type": "response.content_part.added",
                **self._place(0, items[0]),
                "content_index": 0,
                "part": part,
            }
        items[0]["content"][0]["text"] += text
        place = {**self._place(0, items[0]), "content_index": 0}
        yield {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}

    def _arguments(self, items: list[Body], call: Body) -> Iterator[Body]:
        if "id" in call:
            items.append(self._function(call))
            opened = {**items[-1], "status": "in_progress"}
            yield {
                "type": "response.output_item.added",
                "output_index": len(items) - 1,
                "item": opened,
            }
        elif piece := call["function"]["arguments"]:
            items[-1]["arguments"] += piece
            place = self._place(len(items) - 1, items[-1])
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}

    def _close_item(self, index: int, item: Body) -> Iterator[Body]:
        place = self._place(index, item)
        if item["type"] == "function_call":
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield {"type": "response.function_call_arguments.done", **place, **done}
        else:
            part = item["content"][0]
            text = {"text": part["text"], "logprobs": []}
            yield {"type": "response.output_text.done", **place, "content_index": 0, **text}
            yield {"type": "response.content_part.done", **place, "content_index": 0, "part": part}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}

    def _place(self, index: int, item: Body) -> Body:
        return {"item_id": item["id"], "output_index": index}

    def failed(self, body: Body, error: Body) -> Iterator[Event]:
        start = self._start(body)
        reason = {"code": error["error"]["code"], "message": error["error"]["message"]}
        for number, (kind, response) in enumerate(
            (
                ("response.created", start),
                ("response.failed", {**start, "status": "failed", "error": reason}),
            )
        ):
            yield kind, {"type": kind, "response": response, "sequence_number": number}
