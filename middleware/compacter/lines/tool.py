"""The tool ``recall(query)``: how each format defines it, and writes its calls and results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from compacter.messages.fields import Json, dig, field, first, listed, word
from compacter.messages.format import FormatName, Message

NAME = "recall"
_ABOUT = (
    "Search everything said earlier in this conversation, also what is no longer shown. Returns "
    "the passages that bear on the query, each with its speaker. Use the words, names and numbers "
    "that the passage may hold."
)
_SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "Search words or a question."}},
    "required": ["query"],
}
NOTHING = "Nothing said earlier bears on this. Try other words that were used in it."
NO_QUERY = 'No query. Call recall with {"query": "search words"}.'

# Paths in calls of any format; a call may be passed with the block around it.
_CALLS = ("function_call", "toolUse", "")
_NAMES = ("function.name", "name")
_IDS = ("call_id", "toolUseId", "id")
_ARGUMENTS = ("function.arguments", "arguments", "input", "args")


def definition(wire_format: FormatName) -> dict[str, Json]:
    """Return the entry of the list of tools."""
    about = {"name": NAME, "description": _ABOUT}
    function = {**about, "parameters": _SCHEMA}
    definitions: Mapping[FormatName, dict[str, Json]] = {
        "openai": {"type": "function", "function": function},
        "responses": {"type": "function", **function},
        "anthropic": {**about, "input_schema": _SCHEMA},
        "gemini": {"function_declarations": [function]},
        "bedrock": {"toolSpec": {**about, "inputSchema": {"json": _SCHEMA}}},
    }
    return definitions[wire_format]


def name_of(tool: Json) -> Json:
    """Return the name of the tool in a call or a definition."""
    return first(first(tool, _CALLS), _NAMES)


def names_of(tools: Sequence[Json]) -> list[Json]:
    """Return the names of the tools in a request; one of Gemini's may declare several functions."""
    each = (listed(dig(tool, "function_declarations")) or (tool,) for tool in tools)
    return [name_of(tool) or getattr(tool, "__name__", None) for some in each for tool in some]


def query_of(call: Json) -> str:
    """Return the query of a call; empty without one."""
    arguments = first(first(call, _CALLS), _ARGUMENTS)
    if isinstance(arguments, str):
        with suppress(ValueError):  # The call then has no query.
            arguments = json.loads(arguments)
    query: Any = arguments.get("query") if isinstance(arguments, Mapping) else None
    return query.strip() if isinstance(query, str) else ""


def result(call: Json, text: str, wire_format: FormatName) -> dict[str, Json]:
    """Return the message with the result of a call."""
    key: Json = first(first(call, _CALLS), _IDS)
    kind = "custom_tool_call" if word(call, "type") == "custom_tool_call" else "function_call"
    # Gemini's ids are optional, and the API refuses one that the call does not have.
    key_of_gemini = {"id": key} if key else {}
    response = {**key_of_gemini, "name": name_of(call), "response": {"result": text}}
    returned = {"toolUseId": key, "content": [{"text": text}]}
    block = {"type": "tool_result", "tool_use_id": key, "content": text}
    messages: Mapping[FormatName, dict[str, Json]] = {
        "openai": {"role": "tool", "tool_call_id": key, "content": text},
        "responses": {"type": f"{kind}_output", "call_id": key, "output": text},
        "anthropic": {"role": "user", "content": [block]},
        "gemini": {"role": "user", "parts": [{"function_response": response}]},
        "bedrock": {"role": "user", "content": [{"toolResult": returned}]},
    }
    return messages[wire_format]


def results(
    calls: Sequence[Json], texts: Sequence[str], wire_format: FormatName
) -> list[dict[str, Json]]:
    """Return the messages with the results of all calls of one reply; one message in the formats of
    Anthropic and Gemini.
    """
    each = [result(*pair, wire_format) for pair in zip(calls, texts, strict=True)]
    body = {"anthropic": "content", "gemini": "parts"}.get(wire_format)
    if body is None:
        return each
    return [{"role": "user", body: [part for one in each for part in one[body]]}]


# Where a reply has its calls, among other things.
_REPLIES: Mapping[str, Sequence[str]] = {
    "openai": ("choices.0.message.tool_calls", "message.tool_calls"),
    "anthropic": ("content",),
    "responses": ("output",),
    "gemini": ("candidates.0.content.parts",),
}


def is_call(part: Json) -> bool:
    """Return whether a part of a reply is a call that the program has to answer. Those that a
    provider carries out itself have no ``call_id``.
    """
    kind = word(part, "type")
    return (
        kind in ("tool_use", "function", "custom")
        or bool(dig(part, "function_call") or field(part, "function"))
        or (kind.endswith("_call") and bool(field(part, "call_id")))
    )


def calls_of(reply: object, wire_format: str) -> tuple[Sequence[Message], Sequence[Json]]:
    """Return the messages of a reply, as a program adds them to its history, and the calls of tools
    in it.
    """
    parts = listed(first(reply, _REPLIES[wire_format]))
    calls = [part for part in parts if is_call(part)]
    if wire_format == "anthropic":
        return ({"role": "assistant", "content": parts},), calls
    if wire_format == "responses":
        return parts, calls
    message = first(reply, ("choices.0.message", "message", "candidates.0.content"))
    return (message,), calls
