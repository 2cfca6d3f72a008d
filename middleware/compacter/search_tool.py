"""A tool with which a model looks up what was said earlier, for a program's own list of tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from sys import maxsize
from typing import Any, NamedTuple

from compacter.by_hand import check_messages
from compacter.errors import ConfigurationError, whole_number
from compacter.history import History
from compacter.messages.fields import Json, first
from compacter.messages.format import FormatName, Message, get_format
from compacter.recall.frame import line_of

_NAME = "recall"
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
_NOTHING = "Nothing said earlier bears on this. Try other words that were used in it."
_NO_QUERY = 'No query. Call recall with {"query": "search words"}.'

# Where calls hold what, whichever the format: a call may be given with the block around it.
_CALLS = ("function_call", "toolUse", "")
_NAMES = ("function.name", "name")
_IDS = ("call_id", "toolUseId", "id")
_ARGUMENTS = ("function.arguments", "arguments", "input", "args")


def _answers(key: Json, text: str) -> Mapping[FormatName, dict[str, Json]]:
    """Return the message with the result of a call, in each format."""
    # Gemini's ids are optional, and one that a call does not have is refused.
    key_of_gemini = {"id": key} if key else {}
    response = {**key_of_gemini, "name": _NAME, "response": {"result": text}}
    result = {"toolUseId": key, "content": [{"text": text}]}
    block = {"type": "tool_result", "tool_use_id": key, "content": text}
    return {
        "openai": {"role": "tool", "tool_call_id": key, "content": text},
        "responses": {"type": "function_call_output", "call_id": key, "output": text},
        "anthropic": {"role": "user", "content": [block]},
        "gemini": {"role": "user", "parts": [{"function_response": response}]},
        "bedrock": {"role": "user", "content": [{"toolResult": result}]},
    }


class RecallTool(NamedTuple):
    """A tool ``recall(query)`` in the form of one provider."""

    definition: dict[str, Json]
    """Entry of the list of tools: of ``tools=`` (OpenAI, Anthropic), of ``config["tools"]``
    (Gemini), of ``toolConfig["tools"]`` (Bedrock)."""
    answer: Callable[[Json], Json]
    """Answers a call: takes the model's call (a dict or an SDK object) and returns the message with
    its result. Takes a query, and returns the text of the result. A call without a query gets a
    result that says so."""


def recall_tool(
    messages_or_history: Sequence[Message] | History,
    wire_format: FormatName = "openai",
    *,
    limit: int = 5,
) -> RecallTool:
    """Return a tool with which a model searches the whole conversation, compacted or not.

    Args:
        messages_or_history: The list in which the program keeps all messages, or a ``History``. It
            is searched as it is at each call.
        wire_format: Format of the definition and the results: ``"openai"``, ``"responses"``,
            ``"anthropic"``, ``"gemini"`` or ``"bedrock"``.
        limit: Largest number of passages in a result.

    Raises:
        ConfigurationError: An argument is invalid; by ``answer``: a call is of another tool.
    """
    get_format(wire_format)
    check_messages(messages_or_history)
    whole_number("limit", limit, least=1, of="passages")
    about = {"name": _NAME, "description": _ABOUT}
    function = {**about, "parameters": _SCHEMA}
    definitions: Mapping[FormatName, dict[str, Json]] = {
        "openai": {"type": "function", "function": function},
        "responses": {"type": "function", **function},
        "anthropic": {**about, "input_schema": _SCHEMA},
        "gemini": {"function_declarations": [function]},
        "bedrock": {"toolSpec": {**about, "inputSchema": {"json": _SCHEMA}}},
    }
    look_up = partial(_look_up, messages_or_history, wire_format, limit)
    return RecallTool(definitions[wire_format], partial(_answer, look_up, wire_format))


def _answer(look_up: Callable[[str], str], wire_format: FormatName, call: Json) -> Json:
    """Return the result of a query or of a call."""
    if isinstance(call, str):
        return look_up(call)
    inner = first(call, _CALLS)
    name = first(inner, _NAMES)
    if name != _NAME:
        raise ConfigurationError(
            f"answer takes a call of the tool {_NAME!r}, not of {name!r}; look at the name first"
        )
    arguments = first(inner, _ARGUMENTS)
    if isinstance(arguments, str):
        with suppress(ValueError):  # Then it has no query.
            arguments = json.loads(arguments)
    query: Any = arguments.get("query") if isinstance(arguments, Mapping) else None
    is_query = isinstance(query, str) and bool(query.strip())
    text = look_up(query) if is_query else _NO_QUERY
    return _answers(first(inner, _IDS), text)[wire_format]


def _look_up(
    messages: Sequence[Message] | History, wire_format: str, limit: int, query: str
) -> str:
    """Return the passages that bear on a query, each with its speaker."""
    from compacter.compacter import Compacter

    # What the model has just been asked, and what it has looked up before, need no quoting.
    if isinstance(messages, History):
        passages = messages.search(query, maxsize)
    else:
        search = Compacter(memory=None).search
        passages = search(messages, query, maxsize, wire_format=wire_format)
    asked = _newest_question(messages, wire_format)
    earlier = [part for part in passages if part.name != _NAME and part.text not in asked]
    return "".join(map(line_of, earlier[:limit])).strip() or _NOTHING


def _newest_question(messages: Sequence[Message], wire_format: str) -> str:
    """Return the text of the newest message of the user; empty if it is the first of all."""
    texts = map(get_format(wire_format).plain_text, reversed(list(messages)[1:]))
    return next(filter(None, texts), "")
