"""Sessions of opencode: the JSON of ``opencode export``, which ``opencode import`` accepts.

The form of messages and their parts: https://opencode.ai/docs/cli/#export
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from compacter.messages.format import Message
from compacter.tools.cli.sessions.lines import Line, Session, skipped
from compacter.tools.cli.terminal import json_text

_STAMP = re.compile("msg_([0-9a-f]{12})")

_PARTS = (
    "agent",
    "compaction",
    "file",
    "patch",
    "reasoning",
    "retry",
    "snapshot",
    "step-finish",
    "step-start",
    "subtask",
    "text",
    "tool",
)
"""Types of parts; of most, the model is sent nothing."""


def read(data: object) -> Session | None:
    """Return the session in an ``opencode export``, or ``None`` if the data is something else."""
    if not isinstance(data, dict) or not _is_opencode(data.get("messages")):
        return None
    stored = data["messages"]
    start = _opencode_start(stored)
    messages: list[Message] = []
    where: dict[int, int] = {}
    for index, each in enumerate(stored[start:], start):
        for message in _opencode_messages(each):
            messages.append(message)
            where[id(message)] = index
    info = _dict(data.get("info"))

    def write(new: Sequence[Message]) -> str:
        said: list[Any] = []
        places: list[int | None] = []
        following = stored[-1]
        for message in reversed(new):
            place = where.get(id(message))
            changed = _place_of(message, stored) if place is None else None
            index = changed if place is None else place
            if index is None:
                said.append(_opencode_line(message, following, stored))
            elif not places or index != places[-1]:
                said.append(stored[index])
            if changed is not None:
                said[-1] = _change(said[-1], message)
            places.append(index)
            following = said[-1]
        return json_text({**data, "messages": said[::-1]}, indent=2) + "\n"

    unknown = skipped(
        f"part of type {part.get('type')}"
        for each in stored
        for part in each["parts"]
        if part.get("type") not in _PARTS
    )
    return Session("opencode", "openai", messages, write, str(info.get("id", "")), unknown)


def _is_opencode(stored: object) -> bool:
    """Return whether these are messages as opencode stores them."""
    return (
        isinstance(stored, list)
        and bool(stored)
        and all(
            isinstance(each, dict)
            and isinstance(each.get("info"), dict)
            and isinstance(each.get("parts"), list)
            and all(isinstance(part, dict) for part in each["parts"])
            for each in stored
        )
    )


def _opencode_start(stored: list[Line]) -> int:
    """Return where the model's context begins: at the newest compaction request that was answered
    by a summary.
    """
    start = 0
    for index, (asked, answer) in enumerate(pairwise(stored)):
        if any(part.get("type") == "compaction" for part in asked["parts"]) and answer["info"].get(
            "summary"
        ):
            start = index
    return start


def _opencode_messages(stored: Line) -> list[Message]:
    """Return the messages that the model is sent for a stored one: the message, and the results of
    its tool calls.
    """
    role = stored["info"].get("role")
    parts = stored["parts"]
    texts = [
        str(part.get("text", ""))
        for part in parts
        if part.get("type") == "text" and not part.get("ignored")
    ]
    texts += [f"[file {part.get('filename', '')}]" for part in parts if part.get("type") == "file"]
    if role == "user":
        if any(part.get("type") == "compaction" for part in parts):
            texts.append("What did we do so far?")
        return [{"role": "user", "content": "\n".join(texts)}] if texts else []
    calls = []
    results = []
    for part in parts:
        if part.get("type") != "tool":
            continue
        state = _dict(part.get("state"))
        function = {"name": part.get("tool"), "arguments": json.dumps(state.get("input") or {})}
        calls.append({"id": part.get("callID"), "type": "function", "function": function})
        output = (
            state.get("output")
            if state.get("status") == "completed"
            else state.get("error") or "[interrupted]"
        )
        if _dict(state.get("time")).get("compacted"):
            output = "[Old tool result content cleared]"
        results.append(
            {
                "role": "tool",
                "tool_call_id": part.get("callID"),
                "name": part.get("tool"),
                "content": str(output),
            }
        )
    if not texts and not calls:
        return []
    answer: Line = {"role": "assistant", "content": "\n".join(texts) or None}
    return [answer | ({"tool_calls": calls} if calls else {}), *results]


def _dict(value: object) -> Line:
    return value if isinstance(value, dict) else {}


def _place_of(message: Message, stored: list[Line]) -> int | None:
    """Return which stored message holds the tool calls of a message that was made shorter, or the
    call of a result that was; ``None`` if it is not about calls.
    """
    keys = {str(call.get("id")) for call in message.get("tool_calls") or ()}
    if message.get("role") == "tool":
        keys = {str(message.get("tool_call_id"))}
    for index, each in enumerate(stored):
        if keys & {str(part.get("callID")) for part in each["parts"] if part.get("type") == "tool"}:
            return index
    return None


def _change(each: Line, message: Message) -> Line:
    """Return a stored message with the text, or the result of a call, that ``message`` has."""
    text = message.get("content") or ""
    parts: list[Line] = []
    if message["role"] == "tool":
        for part in each["parts"]:
            is_call = part.get("type") == "tool"
            if is_call and str(part.get("callID")) == str(message["tool_call_id"]):
                state = _dict(part.get("state"))
                key = "output" if state.get("status") == "completed" else "error"
                parts.append({**part, "state": {**state, key: text}})
            else:
                parts.append(part)
        return {**each, "parts": parts}
    for part in each["parts"]:
        if part.get("type") != "text" or part.get("ignored"):
            parts.append(part)
        elif text:
            parts.append({**part, "text": text})
            text = ""
    return {**each, "parts": parts}


def _opencode_line(message: Message, following: Line, stored: list[Line]) -> Line:
    """Return the stored form of a new message; its time and id sort it before ``following``."""
    like = next(
        (each["info"] for each in stored if each["info"].get("role") == message["role"]),
        following["info"],
    )
    stamp = _STAMP.match(str(following["info"].get("id")))
    before = f"{int(stamp[1], 16) - 1:012x}" if stamp else uuid.uuid4().hex[:12]
    key = f"{before}{uuid.uuid4().hex[:14]}"
    own = {
        "id": f"msg_{key}",
        "time": {"created": _dict(following["info"].get("time")).get("created")},
    }
    info = {name: value for name, value in like.items() if name not in ("summary", "error")} | own
    part = {
        "id": f"prt_{key}",
        "sessionID": like.get("sessionID"),
        "messageID": own["id"],
        "type": "text",
    }
    return {
        "info": {**info, "role": message["role"]},
        "parts": [{**part, "text": message.get("content") or ""}],
    }
