"""OpenAI's messages in the four other wire formats, and what each provider refuses of a list: its
pairing rules.

Written from the providers' references, apart from compacter's own rules: who is judged does not
judge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from base import Message

Messages = list[dict[str, Any]]


def _calls(message: Message) -> Iterable[tuple[str, str, str]]:
    for call in message.get("tool_calls") or ():
        yield call["id"], call["function"]["name"], call["function"]["arguments"]


def _merged(messages: Iterable[tuple[str, list[Any]]], name: str) -> Messages:
    """Neighbours of one role as one message: results of parallel calls come together."""
    found: Messages = []
    for role, parts in messages:
        if found and found[-1]["role"] == role:
            found[-1][name] += parts
        elif parts:
            found.append({"role": role, name: parts})
    return found


def anthropic(messages: list[Message]) -> Messages:
    """https://docs.anthropic.com/en/api/messages: the system prompt is an argument of its own."""

    def parts(message: Message) -> list[Any]:
        if message["role"] == "tool":
            return [
                {
                    "type": "tool_result",
                    "tool_use_id": message["tool_call_id"],
                    "content": message["content"],
                }
            ]
        text = [{"type": "text", "text": message["content"]}] if message.get("content") else []
        uses = [
            {"type": "tool_use", "id": i, "name": n, "input": json.loads(a)}
            for i, n, a in _calls(message)
        ]
        return text + uses

    told = [message for message in messages if message["role"] != "system"]
    return _merged(((one["role"].replace("tool", "user"), parts(one)) for one in told), "content")


def bedrock(messages: list[Message]) -> Messages:
    """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, and roles
    must take turns.
    """

    def parts(message: Message) -> list[Any]:
        if message["role"] == "tool":
            content = [{"text": message["content"]}]
            return [
                {
                    "toolResult": {
                        "toolUseId": message["tool_call_id"],
                        "status": "success",
                        "content": content,
                    }
                }
            ]
        text = [{"text": message["content"]}] if message.get("content") else []
        return text + [
            {"toolUse": {"toolUseId": i, "name": n, "input": json.loads(a)}}
            for i, n, a in _calls(message)
        ]

    told = [message for message in messages if message["role"] != "system"]
    return _merged(((one["role"].replace("tool", "user"), parts(one)) for one in told), "content")


def gemini(messages: list[Message]) -> Messages:
    """https://ai.google.dev/gemini-api/docs/function-calling: calls and results have names, and no
    ids.
    """

    def parts(message: Message) -> list[Any]:
        if message["role"] == "tool":
            return [
                {"functionResponse": {"name": "stock", "response": {"result": message["content"]}}}
            ]
        text = [{"text": message["content"]}] if message.get("content") else []
        return text + [
            {"functionCall": {"name": n, "args": json.loads(a)}} for _, n, a in _calls(message)
        ]

    roles = {"assistant": "model", "tool": "user"}
    told = [message for message in messages if message["role"] != "system"]
    return _merged(((roles.get(one["role"], "user"), parts(one)) for one in told), "parts")


def responses(messages: list[Message]) -> Messages:
    """https://platform.openai.com/docs/api-reference/responses: calls and results are items of
    their own.
    """
    found: Messages = []
    for message in messages:
        if message["role"] == "tool":
            found.append(
                {
                    "type": "function_call_output",
                    "call_id": message["tool_call_id"],
                    "output": message["content"],
                }
            )
            continue
        if message.get("content"):
            found.append({"role": message["role"], "content": message["content"]})
        found += [
            {"type": "function_call", "call_id": i, "name": n, "arguments": a}
            for i, n, a in _calls(message)
        ]
    return found


# -- what is refused -------------------------------------------------------------------------------


def _blocks(
    asks: Callable[[Any], Any], answers: Callable[[Any], Any], name: str, *, alternate: bool = False
) -> Callable[[Messages], str | None]:
    """The user's message is first, and the message after calls answers all of them and no others.

    Anthropic and Gemini take neighbours of one role for one message, Bedrock refuses them.
    """

    def told(message: Message) -> list[Any]:
        content = message[name]
        return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)

    def rules(messages: Messages) -> str | None:
        waiting: list[Any] = []
        merged = _merged(((message["role"], told(message)) for message in messages), name)
        if alternate and len(merged) < len(messages):
            return "two messages of one role in a row"
        for number, message in enumerate(merged):
            if not number and message["role"] != "user":
                return "the first message is not the user's"
            parts = message[name]
            if not parts:
                return f"{number}: it is empty"
            answered = sorted(key for part in parts if (key := answers(part)) is not None)
            if answered != sorted(waiting):
                return f"{number}: results {answered} for the calls {waiting}"
            waiting = [key for part in parts if (key := asks(part)) is not None]
        return f"calls without results: {waiting}" if waiting else None

    return rules


def _items(messages: Messages) -> str | None:
    """Each result has its call before it, and each call its result."""
    waiting: list[str] = []
    for number, item in enumerate(messages):
        if item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                return f"{number}: no call {item['call_id']}"
            waiting.remove(item["call_id"])
    return f"calls without results: {waiting}" if waiting else None


FORMATS: dict[str, tuple[Callable[[list[Message]], Messages], Callable[[Messages], str | None]]] = {
    "anthropic": (
        anthropic,
        _blocks(
            lambda part: part["id"] if part["type"] == "tool_use" else None,
            lambda part: part["tool_use_id"] if part["type"] == "tool_result" else None,
            "content",
        ),
    ),
    "responses": (responses, _items),
    "gemini": (
        gemini,
        _blocks(
            lambda part: part["functionCall"]["name"] if "functionCall" in part else None,
            lambda part: part["functionResponse"]["name"] if "functionResponse" in part else None,
            "parts",
        ),
    ),
    "bedrock": (
        bedrock,
        _blocks(
            lambda part: part["toolUse"]["toolUseId"] if "toolUse" in part else None,
            lambda part: part["toolResult"]["toolUseId"] if "toolResult" in part else None,
            "content",
            alternate=True,
        ),
    ),
}
"""Name -> how a list is written, and what is wrong with one."""
