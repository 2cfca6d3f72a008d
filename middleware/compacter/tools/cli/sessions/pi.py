"""Sessions of pi: JSONL, linked by ``id`` and ``parentId``.

https://github.com/badlogic/pi-mono/blob/main/packages/coding-agent/docs/session.md. Files of its
first form (no ``version``, entries in order without links) and of its second (a role by another
name) are migrated as they are read, as pi does it, and written in the third.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

from compacter.messages.format import Message
from compacter.tools.cli.sessions.lines import Form, Line, Session, blocks, linked, skipped

# The newest version of the format, in which sessions are written.
_VERSION = 3
_LINKED = 2
"""First version with ``id`` and ``parentId``."""

_SETTINGS = ("session", "model_change", "thinking_level_change", "session_info")
_SILENT = frozenset({*_SETTINGS, "custom", "label", "leaf"})
"""Types of lines that hold no message of the conversation."""

_MESSAGES = frozenset({"message", "custom_message", "compaction", "branch_summary"})
_ROLES = frozenset(
    {
        "user",
        "assistant",
        "toolResult",
        "custom",
        "bashExecution",
        "branchSummary",
        "compactionSummary",
    }
)


def is_sign(line: Line) -> bool:
    """Return whether only pi writes such a line."""
    return line.get("type") == "session" and "id" in line


def read(lines: list[Line]) -> Session:
    """Return the session in these lines."""
    lines = _migrate(lines)
    path = _path(lines)
    compaction = next((at for at in reversed(path) if lines[at].get("type") == "compaction"), None)
    if compaction is not None:
        first = lines[compaction].get("firstKeptEntryId")
        before = path.index(compaction)
        kept = next(
            (place for place in range(before) if lines[path[place]].get("id") == first), before
        )
        # Summaries of older compactions are part of the newest one.
        others = [at for at in path[kept:] if lines[at].get("type") != "compaction"]
        path = [compaction, *others]
    messages: list[Message] = []
    sources: list[list[int]] = []
    for index in path:
        message = _message(lines[index])
        if message is not None:
            messages.append(message)
            sources.append([] if lines[index].get("type") == "compaction" else [index])
    form = Form(
        "pi",
        "openai",
        keeps=lambda line: line.get("type") in _SETTINGS,
        made=_line,
        key="id",
        parent="parentId",
    )
    dropped = (
        set(range(len(lines)))
        - set(path)
        - {at for at, line in enumerate(lines) if form.keeps(line)}
    )
    dropped |= {at for at, line in enumerate(lines) if line.get("type") == "compaction"}
    return linked(form, lines, messages, sources, dropped, skipped(_unknown(lines)))


# -- migration -------------------------------------------------------------------------------------


def _migrate(lines: list[Line]) -> list[Line]:
    """Return the lines in the present form."""
    stated = next((line.get("version") for line in lines if line.get("type") == "session"), None)
    version = stated if isinstance(stated, int) else 1
    if not _has_links(lines, version):
        lines = _with_links(lines)
    if version < _VERSION:
        lines = [_rename(line) for line in lines]
    names = _make_names(lines)
    return [_with_names(line, names) for line in lines]


def _has_links(lines: list[Line], version: int) -> bool:
    """Return whether the entries are linked: all of them in the first form, where only a part was
    linked by another program than pi; any of them in a later one.
    """
    links = ["parentId" in line for line in lines if line.get("type") != "session"]
    return any(links) if version >= _LINKED else bool(links) and all(links)


def _with_links(lines: list[Line]) -> list[Line]:
    """Return the lines, each entry linked to the one before it."""
    names = _make_names(lines)
    taken: set[str] = set()
    ids: list[str] = []
    for line in lines:
        stated = line.get("id")
        is_good = isinstance(stated, str) and bool(stated) and stated not in taken
        ids.append(str(stated) if is_good else next(names))
        taken.add(ids[-1])
    made: list[Line] = []
    before: str | None = None
    for line, key in zip(lines, ids, strict=True):
        if line.get("type") == "session":
            made.append(line)
            continue
        entry = {**line, "id": key, "parentId": before}
        if line.get("type") == "compaction" and "firstKeptEntryIndex" in line:
            index = entry.pop("firstKeptEntryIndex")
            kept = _first_entry(lines, index)
            if kept is not None:
                entry["firstKeptEntryId"] = ids[kept]
        made.append(entry)
        before = key
    return made


def _with_names(line: Line, names: Iterator[str]) -> Line:
    """Return an entry with an id and a parent, so that a line can be put before it."""
    if line.get("type") == "session" or (isinstance(line.get("id"), str) and "parentId" in line):
        return line
    key = line["id"] if isinstance(line.get("id"), str) else next(names)
    return {**line, "id": key, "parentId": line.get("parentId")}


def _first_entry(lines: list[Line], index: object) -> int | None:
    """Return the first entry from this index on, which counts all lines, also the header."""
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        return None
    later = range(index, len(lines))
    return next((at for at in later if lines[at].get("type") != "session"), None)


def _make_names(lines: list[Line]) -> Iterator[str]:
    """Yield ids as pi's, of eight hexadecimal digits, that no line has."""
    taken = {str(line.get("id")) for line in lines}
    number = 0
    while True:
        number += 1
        name = f"{number:08x}"
        if name not in taken:
            yield name


def _rename(line: Line) -> Line:
    """Return a line with the third form's names."""
    if line.get("type") == "session":
        return {**line, "version": _VERSION}
    message = line.get("message")
    if isinstance(message, dict) and message.get("role") == "hookMessage":
        return {**line, "message": {**message, "role": "custom"}}
    return line


# -- reading ---------------------------------------------------------------------------------------


def _unknown(lines: list[Line]) -> Iterator[object]:
    """Yield the names of what is skipped: types of lines, and roles of messages."""
    for line in lines:
        kind = line.get("type")
        message = line.get("message")
        if not isinstance(kind, str) or kind not in _MESSAGES | _SILENT:
            yield kind
        elif kind == "message" and isinstance(message, dict):
            role = message.get("role")
            if not isinstance(role, str) or role not in _ROLES:
                yield f"message of role {role}"
        elif kind == "message":
            yield kind


def _path(lines: list[Line]) -> list[int]:
    """Return the indexes of the lines from the root to the newest entry."""
    entries = [at for at, line in enumerate(lines) if line.get("type") != "session"]
    places = {str(lines[at].get("id")): at for at in entries}
    path: list[int] = []
    at: int | None = entries[-1] if entries else None
    while at is not None and at not in path[-1:]:
        path.append(at)
        parent = lines[at].get("parentId")
        before = places.get(str(parent)) if parent is not None else None
        at = before if before is not None and before < at else None
    return path[::-1]


def _message(line: Line) -> Message | None:
    kind = line.get("type")
    if kind in ("compaction", "branch_summary"):
        return {"role": "user", "content": str(line.get("summary", ""))}
    if kind == "custom_message":
        return {"role": "user", "content": _text(line.get("content"))}
    said = line.get("message")
    if kind != "message" or not isinstance(said, dict):
        return None
    role = said.get("role")
    content = said.get("content")
    if role in ("user", "custom"):
        return {"role": "user", "content": _text(content)}
    if role == "toolResult":
        answer = {
            "role": "tool",
            "tool_call_id": said.get("toolCallId"),
            "content": _text(content),
        }
        return answer | ({"name": said["toolName"]} if said.get("toolName") else {})
    if role == "bashExecution" and not said.get("excludeFromContext"):
        return {
            "role": "user",
            "content": (f"Ran `{said.get('command', '')}`\n{said.get('output', '')}"),
        }
    if role in ("branchSummary", "compactionSummary"):
        return {"role": "user", "content": str(said.get("summary", ""))}
    if role != "assistant":
        return None
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {
                "name": block.get("name"),
                "arguments": json.dumps(block.get("arguments") or {}),
            },
        }
        for block in blocks(content)
        if isinstance(block, dict) and block.get("type") == "toolCall"
    ]
    text = _text(content)
    return {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    pieces = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text":
            pieces.append(str(block.get("text", "")))
        elif isinstance(block, dict) and block.get("type") == "image":
            pieces.append("[image]")
    return "\n".join(pieces)


# -- writing ---------------------------------------------------------------------------------------


def _line(message: Message, like: Line) -> Line:
    role = message["role"]
    text = message.get("content") or ""
    content: list[Line] = [{"type": "text", "text": text}] if text else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = json.loads(function["arguments"])
        content.append(
            {"type": "toolCall", "id": call["id"], "name": function["name"], "arguments": arguments}
        )
    said: Line = {"role": role, "content": content}
    if role == "tool":
        said |= {"role": "toolResult", "toolCallId": message["tool_call_id"], "isError": False}
        said["toolName"] = message.get("name", "")
    entry = {
        "type": "message",
        "id": uuid.uuid4().hex[:8],
        "parentId": None,
        "timestamp": like.get("timestamp"),
    }
    return {**entry, "message": said}
