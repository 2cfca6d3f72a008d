"""Session files of coding agents: read the messages that the model would be sent next, and write
them again.

Claude Code  JSONL, a line a content block, linked by ``uuid`` and ``parentUuid``:
             https://docs.claude.com/en/docs/claude-code/sdk/sdk-sessions
Codex        JSONL ("rollout"), items of the Responses API: https://github.com/openai/codex
(``codex-rs/protocol``) pi           JSONL, linked by ``id`` and ``parentId``:
             https://github.com/badlogic/pi-mono/blob/main/packages/coding-agent/docs/session.md

Those of opencode, a single JSON document, are read in ``opencode``. Messages that the agent itself
has compacted, and abandoned branches, are left out. A written file keeps the lines of unchanged
messages, and repairs the links between lines.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compacter.messages.format import Message, get_format
from compacter.tools.cli.terminal import json_text

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    """One session of an agent."""

    agent: str
    """Name of the agent, such as ``Codex``."""
    wire_format: str
    messages: list[Message] = field(repr=False)
    write: Callable[[Sequence[Message]], str] = field(repr=False)
    """Returns the session's file with these messages. Those that are identical objects keep their
    lines."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class _Form:
    """Form of an agent's lines, and of the links between them."""

    agent: str
    wire_format: str
    keeps: Callable[[Line], bool]
    """Returns whether a line without a message always stays: a header does, an event of a removed
    turn does not."""
    made: Callable[[Message, Line], Line]
    """Returns a line for a new message, with the common members of an existing line."""
    key: str = ""
    parent: str = ""
    """Names of the members with a line's own id and its parent's; empty if lines are not linked."""


def from_lines(values: Sequence[Any]) -> Session | None:
    """Return the session in these lines, or ``None`` if they are not from a known agent."""
    lines = [value for value in values if isinstance(value, dict)]
    for line in lines[:20]:
        if line.get("type") == "session" and "id" in line:
            return _pi(lines)
        if "payload" in line and line.get("type") in (
            "session_meta",
            "response_item",
            "turn_context",
            "event_msg",
        ):
            return _codex(lines)
        if "sessionId" in line or ("parentUuid" in line and "uuid" in line):
            return _claude_code(lines)
    return None


# -- Claude Code -----------------------------------------------------------------------------------


def _claude_code(lines: list[Line]) -> Session:
    left = _left_branches(lines)
    start = max((index for index, line in enumerate(lines) if _claude_boundary(line)), default=-1)
    messages: list[Message] = []
    sources: list[list[int]] = []
    answer = -1  # Index of the assistant's message whose blocks are being joined, one a line.
    for index, line in enumerate(lines):
        message = line.get("message")
        if (
            index < start
            or not isinstance(message, dict)
            or index in left
            or line.get("isApiErrorMessage")
        ):
            continue
        if line.get("isSidechain") or line.get("type") not in ("user", "assistant"):
            continue
        role = line["type"]
        content = message.get("content")
        if role == "assistant":
            if answer >= 0 and message.get("id") and messages[answer].get("id") == message["id"]:
                joined = [*_blocks(messages[answer]["content"]), *_blocks(content)]
                messages[answer] = {**messages[answer], "content": joined}
                sources[answer].append(index)
                continue
            answer = len(messages)
            kept = {"role": role, "content": content}
            messages.append(kept | ({"id": message["id"]} if message.get("id") else {}))
        else:
            if not _only_results(content):
                answer = -1
            messages.append({"role": role, "content": content})
        sources.append([index])
    form = _Form(
        "Claude Code",
        "anthropic",
        keeps=lambda line: "uuid" not in line,
        made=_claude_line,
        key="uuid",
        parent="parentUuid",
    )
    # The id is only for joining blocks; the API does not accept it.
    plain = [{"role": each["role"], "content": each["content"]} for each in messages]
    return _linked(form, lines, plain, sources, left)


def _claude_boundary(line: Line) -> bool:
    return line.get("subtype") == "compact_boundary" or bool(line.get("isCompactSummary"))


def _blocks(content: object) -> list[Any]:
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _only_results(content: object) -> bool:
    return isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _left_branches(lines: list[Line]) -> set[int]:
    """Return the indexes of lines in abandoned branches: a later message of the user has the same
    parent.
    """
    newest: dict[str, int] = {}
    for index, line in enumerate(lines):
        message = line.get("message")
        if (
            line.get("type") == "user"
            and isinstance(message, dict)
            and isinstance(line.get("parentUuid"), str)
        ):
            if line.get("isSidechain") or _only_results(message.get("content")):
                continue
            newest[line["parentUuid"]] = index
    left: set[int] = set()
    gone: set[str] = set()
    for index, line in enumerate(lines):
        parent = line.get("parentUuid")
        message = line.get("message")
        said = (
            line.get("type") == "user"
            and isinstance(message, dict)
            and not _only_results(message.get("content"))
        )
        again = (
            said
            and not line.get("isSidechain")
            and isinstance(parent, str)
            and newest.get(parent, index) > index
        )
        if again or (isinstance(parent, str) and parent in gone):
            left.add(index)
            gone.add(str(line.get("uuid")))
    return left


def _claude_line(message: Message, like: Line) -> Line:
    common: Line = {
        key: like[key]
        for key in ("sessionId", "version", "cwd", "gitBranch", "userType")
        if key in like
    }
    if message["role"] == "assistant":  # Claude Code expects a list of blocks.
        message = {
            "id": f"msg_{uuid.uuid4().hex}",
            **message,
            "content": _blocks(message["content"]),
        }
    return {
        "parentUuid": None,
        "isSidechain": False,
        **common,
        "type": message["role"],
        "message": message,
        "uuid": str(uuid.uuid4()),
        "timestamp": like.get("timestamp"),
    }


# -- Codex -----------------------------------------------------------------------------------------


def _codex(lines: list[Line]) -> Session:
    messages: list[Message] = []
    sources: list[list[int]] = []
    for index, line in enumerate(lines):
        payload = line.get("payload")
        if not isinstance(payload, dict):
            continue
        if line.get("type") == "response_item" and payload.get("type") not in (
            "ghost_snapshot",
            "other",
        ):
            messages.append(payload)
            sources.append([index])
        elif line.get("type") == "compacted":
            replacement = payload.get("replacement_history")
            if not isinstance(replacement, list):
                said = [each for each in messages if each.get("role") == "user"]
                replacement = [
                    *said,
                    get_format("responses").say("user", str(payload.get("message", ""))),
                ]
            messages = list(replacement)
            sources = [[] for _ in messages]
    form = _Form(
        "Codex",
        "responses",
        keeps=lambda line: line.get("type") in ("session_meta", "turn_context"),
        made=_codex_line,
    )
    dropped = {index for index, line in enumerate(lines) if line.get("type") == "compacted"}
    return _linked(form, lines, messages, sources, dropped)


def _codex_line(message: Message, like: Line) -> Line:
    payload = {"type": "message", **message}
    if isinstance(payload.get("content"), str):  # The API accepts a string, but Codex ignores it.
        kind = "output_text" if payload.get("role") == "assistant" else "input_text"
        payload["content"] = [{"type": kind, "text": payload["content"]}]
    return {"timestamp": like.get("timestamp"), "type": "response_item", "payload": payload}


# -- pi --------------------------------------------------------------------------------------------


def _pi(lines: list[Line]) -> Session:
    path = _pi_path(lines)
    compaction = next((at for at in reversed(path) if lines[at].get("type") == "compaction"), None)
    if compaction is not None:
        first = lines[compaction].get("firstKeptEntryId")
        kept = next(
            (place for place, at in enumerate(path) if lines[at].get("id") == first),
            path.index(compaction),
        )
        path = [compaction, *(at for at in path[kept:] if at != compaction)]
    messages: list[Message] = []
    sources: list[list[int]] = []
    for index in path:
        message = _pi_message(lines[index])
        if message is not None:
            messages.append(message)
            sources.append([] if lines[index].get("type") == "compaction" else [index])
    settings = ("session", "model_change", "thinking_level_change", "session_info")
    form = _Form(
        "pi",
        "openai",
        keeps=lambda line: line.get("type") in settings,
        made=_pi_line,
        key="id",
        parent="parentId",
    )
    dropped = (
        set(range(len(lines)))
        - set(path)
        - {at for at, line in enumerate(lines) if form.keeps(line)}
    )
    dropped |= {at for at, line in enumerate(lines) if line.get("type") == "compaction"}
    return _linked(form, lines, messages, sources, dropped)


def _pi_path(lines: list[Line]) -> list[int]:
    """Return the indexes of the lines from the root to the newest entry; of all entries if they are
    not linked.
    """
    entries = [at for at, line in enumerate(lines) if line.get("type") != "session"]
    if not any("parentId" in lines[at] for at in entries):
        return entries
    places = {str(lines[at].get("id")): at for at in entries}
    path: list[int] = []
    at: int | None = entries[-1] if entries else None
    while at is not None and at not in path[-1:]:
        path.append(at)
        parent = lines[at].get("parentId")
        before = places.get(str(parent)) if parent is not None else None
        at = before if before is not None and before < at else None
    return path[::-1]


def _pi_message(line: Line) -> Message | None:
    kind = line.get("type")
    if kind in ("compaction", "branch_summary"):
        return {"role": "user", "content": str(line.get("summary", ""))}
    if kind == "custom_message":
        return {"role": "user", "content": _pi_text(line.get("content"))}
    said = line.get("message")
    if kind != "message" or not isinstance(said, dict):
        return None
    role = said.get("role")
    content = said.get("content")
    if role in ("user", "custom"):
        return {"role": "user", "content": _pi_text(content)}
    if role == "toolResult":
        answer = {
            "role": "tool",
            "tool_call_id": said.get("toolCallId"),
            "content": _pi_text(content),
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
        for block in _blocks(content)
        if isinstance(block, dict) and block.get("type") == "toolCall"
    ]
    text = _pi_text(content)
    return {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})


def _pi_text(content: object) -> str:
    if isinstance(content, str):
        return content
    pieces = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text":
            pieces.append(str(block.get("text", "")))
        elif isinstance(block, dict) and block.get("type") == "image":
            pieces.append("[image]")
    return "\n".join(pieces)


def _pi_line(message: Message, like: Line) -> Line:
    role = message["role"]
    text = message.get("content") or ""
    blocks: list[Line] = [{"type": "text", "text": text}] if text else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = json.loads(function["arguments"])
        blocks.append(
            {"type": "toolCall", "id": call["id"], "name": function["name"], "arguments": arguments}
        )
    said: Line = {"role": role, "content": blocks}
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


# -- what JSONL sessions have in common ------------------------------------------------------------


def _linked(
    form: _Form,
    lines: list[Line],
    messages: list[Message],
    sources: list[list[int]],
    left: Iterable[int],
) -> Session:
    gone = set(left)
    taken = {index for several in sources for index in several}
    where = {id(message): several for message, several in zip(messages, sources, strict=True)}
    identity = next(
        (str(line[key]) for line in lines for key in ("sessionId",) if line.get(key)), ""
    )
    if not identity:
        headers = (line.get("payload") if "payload" in line else line for line in lines[:1])
        identity = next(
            (str(header.get("id", "")) for header in headers if isinstance(header, dict)), ""
        )

    def write(new: Sequence[Message]) -> str:
        kept = [where.get(id(message), []) for message in new]
        places = {index for several in kept for index in several}
        like = lines[min(places, default=len(lines) - 1)]
        placed = [(index, 1, lines[index]) for index in places]
        follows_kept = False
        for index, line in enumerate(lines):
            if index in taken:
                # Events after a removed message would have nothing to refer to.
                follows_kept = index in places
            elif index not in gone and (follows_kept or form.keeps(line)):
                placed.append((index, 1, line))
        # A new message goes right before the next one that has a line.
        made: list[tuple[int, int, Line]] = []
        following = len(lines)
        for message, several in zip(reversed(new), reversed(kept), strict=True):
            if several:
                following = min(several)
            else:
                made.append((following, 0, form.made(message, like)))
        ordered = sorted([*made[::-1], *placed], key=lambda each: each[:2])
        return "".join(
            _jsonl(
                _relinked([line for _, _, line in ordered], form, {id(line) for *_, line in made})
            )
        )

    return Session(form.agent, form.wire_format, messages, write, identity)


def _relinked(lines: list[Line], form: _Form, new: set[int]) -> list[Line]:
    """Return the lines with existing parents: the line before if the parent was removed, or a new
    line after it.
    """
    if not form.key:
        return lines
    known: set[str] = set()
    behind: dict[object, str] = {}
    """Id of a line -> id of the new line between it and the lines that followed it."""
    before: str | None = None
    mended: list[Line] = []
    for line in lines:
        key = line.get(form.key)
        parent = line.get(form.parent)
        if not isinstance(key, str) or form.parent not in line:
            mended.append(line)
            continue
        while isinstance(parent, (str, type(None))) and parent in behind:
            parent = behind[parent]
        if id(line) in new:
            parent = before
            behind[before] = key
        stays = isinstance(parent, str) and parent in known
        mended.append(
            line
            if stays and parent == line[form.parent]
            else {**line, form.parent: parent if stays else before}
        )
        known.add(key)
        before = key
    return mended


def _jsonl(lines: Iterable[Line]) -> Iterable[str]:
    return (json_text(line) + "\n" for line in lines)
