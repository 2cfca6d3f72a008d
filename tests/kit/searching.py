"""A model that calls the tool ``recall``, in four wire formats, with whole replies and streams."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any

import pytest

from compacter import Compacter, Quotes
from compacter.testing import ProviderError, token_limit_error

FACT = "The spare valve is in cabinet K-7, behind the compressor."
TALK = [
    {"role": role, "content": f"Hall {n}: the pump ran for {n * 7} hours. " * 4}
    for n in range(40)
    for role in ("user", "assistant")
][:-1]
TALK[9] = {"role": "assistant", "content": FACT}
FORMATS = ("openai", "anthropic", "responses", "gemini")
QUERY = {"query": "spare valve"}
MESSAGES = {"responses": "input", "gemini": "contents"}
"""The argument of each format that has another name than ``messages``."""
_FUNCTION = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
WEATHER: dict[str, Any] = {
    "openai": {"type": "function", "function": _FUNCTION},
    "anthropic": {"name": "weather", "input_schema": {"type": "object"}},
    "responses": {"type": "function", **_FUNCTION},
    "gemini": {"function_declarations": [_FUNCTION]},
}


def talk(wire: str) -> list[dict[str, Any]]:
    """The conversation, in a format."""
    if wire != "gemini":
        return TALK
    roles = {"user": "user", "assistant": "model"}
    return [
        {"role": roles[message["role"]], "parts": [{"text": message["content"]}]}
        for message in TALK
    ]


def names(request: dict[str, Any]) -> list[str]:
    """The names of a request's tools."""
    tools = request.get("tools") or (request.get("config") or {}).get("tools") or ()
    flat: list[Any] = []
    for tool in tools:
        declared = tool.get("function_declarations") or tool.get("functionDeclarations")
        flat += declared or [tool.get("function", tool)]
    return [each["name"] for each in flat]


def _call(wire: str, at: int, name: str) -> dict[str, Any]:
    if wire == "openai":
        function = {"name": name, "arguments": json.dumps(QUERY)}
        return {"id": f"c{at}", "type": "function", "function": function}
    if wire == "anthropic":
        return {"type": "tool_use", "id": f"c{at}", "name": name, "input": QUERY}
    if wire == "responses":
        found = {"name": name, "arguments": json.dumps(QUERY)}
        return {
            "type": "function_call",
            "id": f"i{at}",
            "call_id": f"c{at}",
            "status": "completed",
            **found,
        }
    return {"function_call": {"id": f"c{at}", "name": name, "args": QUERY}}


def _said(text: str, at: int = 0) -> dict[str, Any]:
    """A message of the Responses API."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": f"m{at}",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _response(output: list[Any], status: str = "completed") -> dict[str, Any]:
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def reply(wire: str, *calls: str, text: str = "", tokens: int = 50) -> dict[str, Any]:
    """A reply that calls tools of these names, or answers."""
    text = text or ("" if calls else "K-7.")
    made = [_call(wire, at, name) for at, name in enumerate(calls)]
    if wire == "openai":
        message = {"role": "assistant", "content": text or None}
        choice = {"message": {**message, **({"tool_calls": made} if made else {})}}
        usage = {"prompt_tokens": tokens}
        return {
            "id": "r",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
    if wire == "anthropic":
        blocks = [{"type": "text", "text": text}] if text else []
        return {
            "id": "r",
            "type": "message",
            "model": "m",
            "role": "assistant",
            "content": [*blocks, *made],
            "usage": {"input_tokens": tokens},
        }
    if wire == "responses":
        usage = {"input_tokens": tokens}
        return {**_response([*([_said(text)] if text else []), *made]), "usage": usage}
    parts = [*([{"text": text}] if text else []), *made]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}}],
        "usage_metadata": {"prompt_token_count": tokens},
    }


def events(wire: str, *calls: str, text: str = "", number: int = 0) -> list[dict[str, Any]]:
    """The chunks of a stream, as that format's provider sends them. Calls come in two pieces."""
    pieces = [f"{piece} " for piece in text.split()]
    make = {"openai": _openai, "anthropic": _anthropic, "responses": _responses, "gemini": _gemini}
    return make[wire](pieces, [_call(wire, at, name) for at, name in enumerate(calls)], number)


def _openai(pieces: list[str], calls: list[Any], number: int) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces]
    for at, call in enumerate(calls):
        function = call["function"]
        begun = {**call, "index": at, "function": {**function, "arguments": ""}}
        halves = function["arguments"][:5], function["arguments"][5:]
        deltas.append({"tool_calls": [begun]})
        for half in halves:
            deltas.append({"tool_calls": [{"index": at, "function": {"arguments": half}}]})
    shape = {"id": f"r{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**shape, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    reason = "tool_calls" if calls else "stop"
    return [*chunks, {**shape, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]


def _anthropic(pieces: list[str], calls: list[Any], number: int) -> list[dict[str, Any]]:
    usage = {"input_tokens": 50, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": f"r{number}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "usage": usage,
    }
    made: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if pieces:
        thought = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": "Hm"},
            {"type": "signature_delta", "signature": "sealed"},
        ]
        blocks.append((thought, deltas))
        said = [{"type": "text_delta", "text": piece} for piece in pieces]
        blocks.append(({"type": "text", "text": ""}, said))
    for call in calls:
        text = json.dumps(call["input"])
        halves = [
            {"type": "input_json_delta", "partial_json": half} for half in ("", text[:5], text[5:])
        ]
        blocks.append(({**call, "input": {}}, halves))
    for at, (block, deltas) in enumerate(blocks):
        made.append({"type": "content_block_start", "index": at, "content_block": block})
        made += [{"type": "content_block_delta", "index": at, "delta": each} for each in deltas]
        made.append({"type": "content_block_stop", "index": at})
    reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    made.append({"type": "message_delta", "delta": reason, "usage": {"output_tokens": 9}})
    return [*made, {"type": "message_stop"}]


def _responses(pieces: list[str], calls: list[Any], number: int) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response([], "in_progress")},
        {"type": "response.in_progress", "response": _response([], "in_progress")},
    ]
    output: list[dict[str, Any]] = []
    if pieces:
        item = _said("".join(pieces), number)
        at = {"output_index": 0, "item_id": item["id"], "content_index": 0}
        begun = {**item, "content": [], "status": "in_progress"}
        empty = {"type": "output_text", "text": "", "annotations": []}
        made.append({"type": "response.output_item.added", "output_index": 0, "item": begun})
        made.append({"type": "response.content_part.added", **at, "part": empty})
        made += [
            {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
            for piece in pieces
        ]
        made.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        output.append(item)
    for call in calls:
        at = {"output_index": len(output)}
        begun = {**call, "arguments": "", "status": "in_progress"}
        made.append({"type": "response.output_item.added", **at, "item": begun})
        delta = {"item_id": call["id"], "delta": call["arguments"]}
        made.append({"type": "response.function_call_arguments.delta", **at, **delta})
        made.append({"type": "response.output_item.done", **at, "item": call})
        output.append(call)
    made.append({"type": "response.completed", "response": _response(output)})
    return [{**event, "sequence_number": at} for at, event in enumerate(made)]


def _gemini(pieces: list[str], calls: list[Any], number: int) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": piece} for piece in pieces]
    parts += [{**calls[0], "thought_signature": "c2VhbGVk"}, *calls[1:]] if calls else []
    last = {"candidates": [{"content": {"role": "model", "parts": []}, "finish_reason": "STOP"}]}
    return [
        *({"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts),
        {**last, "response_id": f"r{number}"},
    ]


class Model:
    """Replies in turn once a request fits; notes the requests that did. A list is a stream."""

    def __init__(self, *replies: Any, most: int = 6_000) -> None:
        self.replies = list(replies)
        self.most = most
        self.requests: list[dict[str, Any]] = []

    def completion(self, messages: list[Any], **options: Any) -> Any:
        size = sum(len(json.dumps(message)) for message in messages)
        if size > self.most:
            raise token_limit_error(limit=self.most // 4, input_tokens=size // 4)
        self.requests.append({"messages": messages, **options})
        return self.replies.pop(0)

    async def acompletion(self, messages: list[Any], **options: Any) -> Any:
        return self.completion(messages, **options)

    def streaming(self, messages: list[Any], **options: Any) -> Iterator[Any]:
        return iter(self.completion(messages, **options))

    async def astreaming(self, messages: list[Any], **options: Any) -> AsyncIterator[Any]:
        return _passed_on(self.completion(messages, **options))


async def _passed_on(chunks: list[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk


def server_of(httpx: Any, wire: str, model: Model) -> Any:
    """A transport that answers with server-sent events for a list, else with JSON."""

    def answer(request: Any) -> Any:
        body = json.loads(request.content)
        messages = body.pop(MESSAGES.get(wire, "messages"))
        try:
            found = model.completion(messages, **body)
        except ProviderError as error:  # The refusal, as the provider writes it.
            message = f"prompt is too long: {error}"
            return httpx.Response(400, json={"error": {"message": message, "code": 400}})
        found = _camel(found) if wire == "gemini" else found
        if not isinstance(found, list):
            return httpx.Response(200, json=found)
        lines = [
            (f"event: {chunk['type']}\n" if "type" in chunk else "")
            + f"data: {json.dumps(chunk)}\n\n"
            for chunk in found
        ]
        kind = {"content-type": "text/event-stream"}
        return httpx.Response(200, text="".join(lines), headers=kind)

    return httpx.MockTransport(answer)


def _camel(value: Any) -> Any:
    """A value of Gemini's API, with its keys as they are sent."""
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("_(.)", lambda found: found[1].upper(), name): _camel(each)
        for name, each in value.items()
    }


def client_of(wire: str, model: Model, *, asynchronous: bool = False) -> Any:
    """A client of the vendor's SDK whose server is the model."""
    if wire == "gemini":
        genai = pytest.importorskip("google.genai")
        transport = server_of(import_module("httpx"), wire, model)
        arguments = {"transport": transport}
        options = {"client_args": arguments, "async_client_args": arguments}
        return genai.Client(api_key="k", http_options=options)
    sdk = pytest.importorskip("anthropic" if wire == "anthropic" else "openai")
    # One SDK has an HTTP library of its own.
    library = next(kind.__module__ for kind in sdk.DefaultHttpxClient.__mro__[1:])
    own: Any = import_module(library.split(".")[0])
    prefix = "Async" if asynchronous else ""
    name = "Anthropic" if wire == "anthropic" else "OpenAI"
    http = getattr(own, f"{prefix}Client")(transport=server_of(own, wire, model))
    return getattr(sdk, prefix + name)(api_key="k", http_client=http, max_retries=0)


def compacter(on_event: Any = str, **quotes: Any) -> Compacter:
    """A compacter with the tool."""
    return Compacter(
        summarizer=lambda messages: "They spoke of the pump hours of each hall.",
        recall=Quotes(**{"tool": True, **quotes}),
        on_event=on_event,
    )
