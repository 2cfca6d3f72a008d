"""Sessions of opencode: the JSON of ``opencode export``, or the folder of a session below ``storage/message``.

The form of messages and their parts: https://opencode.ai/docs/cli/#export
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from compacter.cli.sessions import Line, Session
from compacter.cli.terminal import json_text
from compacter.messages.format import Message


def read(data: object) -> Session | None:
    """The session in an ``opencode export``, or ``None`` where this is none."""
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
        done: set[int] = set()
        for message in new:
            index = where.get(id(message))
            if index is None:
                said.append(_opencode_line(message, stored[-1]["info"]))
            elif index not in done:
                done.add(index)
                said.append(stored[index])
        return json_text({**data, "messages": said}, indent=2) + "\n"

    return Session("opencode", "openai", messages, write, str(info.get("id", "")))


def _is_opencode(stored: object) -> bool:
    """Whether these are messages as opencode stores them."""
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
    """Where the model's context begins: at the newest request for a compaction that was answered by a summary."""
    start = 0
    for index, (asked, answer) in enumerate(pairwise(stored)):
        if any(part.get("type") == "compaction" for part in asked["parts"]) and answer["info"].get("summary"):
            start = index
    return start


def _opencode_messages(stored: Line) -> list[Message]:
    """What the model is sent for one stored message: itself, and the results of the tools that it called."""
    role, parts = stored["info"].get("role"), stored["parts"]
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text" and not part.get("ignored")]
    texts += [f"[file {part.get('filename', '')}]" for part in parts if part.get("type") == "file"]
    if role == "user":
        if any(part.get("type") == "compaction" for part in parts):
            texts.append("What did we do so far?")
        return [{"role": "user", "content": "\n".join(texts)}] if texts else []
    calls, results = [], []
    for part in parts:
        if part.get("type") != "tool":
            continue
        state = _dict(part.get("state"))
        function = {"name": part.get("tool"), "arguments": json.dumps(state.get("input") or {})}
        calls.append({"id": part.get("callID"), "type": "function", "function": function})
        output = state.get("output") if state.get("status") == "completed" else state.get("error") or "[interrupted]"
        if _dict(state.get("time")).get("compacted"):
            output = "[Old tool result content cleared]"
        results.append(
            {"role": "tool", "tool_call_id": part.get("callID"), "name": part.get("tool"), "content": str(output)}
        )
    if not texts and not calls:
        return []
    answer: Line = {"role": "assistant", "content": "\n".join(texts) or None}
    return [answer | ({"tool_calls": calls} if calls else {}), *results]


def _dict(value: object) -> Line:
    return value if isinstance(value, dict) else {}


def _opencode_line(message: Message, like: Line) -> Line:
    key = f"msg_{uuid.uuid4().hex[:24]}"
    common = {"id": key, "sessionID": like.get("sessionID")}
    text = {"id": f"prt_{key[4:]}", "sessionID": like.get("sessionID"), "messageID": key, "type": "text"}
    info = {**common, "role": message["role"], "time": like.get("time")}
    return {"info": info, "parts": [{**text, "text": message.get("content") or ""}]}


def read_folder(folder: Path) -> Session | None:
    """The session in a folder ``storage/message/<session>``, whose parts lie in ``storage/part/<message>``."""
    stored = []
    for file in sorted(folder.glob("msg_*.json")):
        info = json.loads(file.read_text(encoding="utf-8"))
        parts = sorted((folder.parent.parent / "part" / file.stem).glob("*.json"))
        stored.append({"info": info, "parts": [json.loads(part.read_text(encoding="utf-8")) for part in parts]})
    return read({"info": {"id": folder.name}, "messages": stored}) if stored else None
