"""Session files of coding agents, read as the messages that the model would be sent next.

Messages that the agent itself has compacted, and branches that were left, are left out. Lines of a
kind that is not known here are skipped, and named in ``Session.skipped``. Such files are only read:
their forms change from month to month, so none is ever written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from compacter.messages.format import Message, get_format

Line = dict[str, Any]

_RECOGNISED = 20
"""Lines that are looked at to recognise the agent: some write a few of no message first."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session of an agent."""

    agent: str
    """Name of the agent, such as ``Codex``."""
    wire_format: str
    messages: list[Message] = field(repr=False)
    id: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Kinds of lines that are not known, and how many there are of each."""


def from_lines(values: Sequence[Any]) -> Session | None:
    """Return the session in these lines, or ``None`` if they are not from a known agent."""
    lines = [value for value in values if isinstance(value, dict)]
    for line in lines[:_RECOGNISED]:
        for is_sign, read in _AGENTS:
            if is_sign(line):
                return read(lines)
    return None


def _skipped(kinds: Iterable[object]) -> Mapping[str, int]:
    """Return how many lines there are of each kind; a kind that is no text counts as none."""
    return Counter(kind if isinstance(kind, str) and kind else "no type" for kind in kinds)


def _kind(line: Line) -> str:
    kind = line.get("type")
    return kind if isinstance(kind, str) else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _dict(value: object) -> Line:
    return value if isinstance(value, dict) else {}


def _blocks(content: object) -> list[Any]:
    """Return the content of a message as a list of blocks."""
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _call(key: object, name: object, arguments: object) -> Line:
    function = {"name": name, "arguments": json.dumps(arguments or {})}
    return {"id": key, "type": "function", "function": function}


# -- Claude Code -----------------------------------------------------------------------------------

_CLAUDE_SILENT = _words(
    "agent-color agent-name agent-setting ai-title attachment attribution-snapshot "
    "content-replacement custom-title file-history-snapshot last-prompt mode "
    "permission-mode pr-link progress queue-operation summary system tag worktree-state"
)
"""Types of Claude Code's lines that hold no message of the conversation."""


def _is_claude_code(line: Line) -> bool:
    return "sessionId" in line or ("parentUuid" in line and "uuid" in line)


def _claude_code(lines: list[Line]) -> Session:
    """JSONL, a line a content block, linked by ``uuid`` and ``parentUuid``:
    https://docs.claude.com/en/docs/claude-code/sdk/sdk-sessions.
    """
    left = _find_left_branches(lines)
    start = max((index for index, line in enumerate(lines) if _is_boundary(line)), default=0)
    messages: list[Message] = []
    answer: object = None
    """Id of the answer that the newest messages belong to: its blocks come one a line."""
    at = -1
    for index, line in enumerate(lines):
        role = _kind(line)
        message = line.get("message")
        if index < start or index in left or not _is_spoken(line) or line.get("isApiErrorMessage"):
            continue
        content = _dict(message).get("content")
        if role == "assistant":
            key = _dict(message).get("id")
            if key and key == answer:
                messages[at]["content"] = [*_blocks(messages[at]["content"]), *_blocks(content)]
                continue
            answer = key
            at = len(messages)
        elif not _has_only_results(content):
            answer = None
        messages.append({"role": role, "content": content})
    identity = next((str(line["sessionId"]) for line in lines if line.get("sessionId")), "")
    unknown = (
        line.get("type")
        for line in lines
        if not (_is_spoken(line) or line.get("isSidechain") or _kind(line) in _CLAUDE_SILENT)
    )
    return Session("Claude Code", "anthropic", messages, identity, _skipped(unknown))


def _is_spoken(line: Line) -> bool:
    has_role = _kind(line) in ("user", "assistant") and isinstance(line.get("message"), dict)
    return has_role and not line.get("isSidechain")


def _is_boundary(line: Line) -> bool:
    return line.get("subtype") == "compact_boundary" or bool(line.get("isCompactSummary"))


def _has_only_results(content: object) -> bool:
    return isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _find_left_branches(lines: list[Line]) -> set[int]:
    """Return the indexes of lines in abandoned branches: a later message of the user has the same
    parent.
    """
    asked = {
        index: line["parentUuid"]
        for index, line in enumerate(lines)
        if _kind(line) == "user"
        and _is_spoken(line)
        and isinstance(line.get("parentUuid"), str)
        and not _has_only_results(line["message"].get("content"))
    }
    newest = {parent: index for index, parent in asked.items()}
    left: set[int] = set()
    gone: set[str] = set()
    for index, line in enumerate(lines):
        is_older = index in asked and newest[asked[index]] > index
        if is_older or str(line.get("parentUuid")) in gone:
            left.add(index)
            gone.add(str(line.get("uuid", "")))
    return left


# -- Codex -----------------------------------------------------------------------------------------

_CODEX_LINES = frozenset({"session_meta", "response_item", "turn_context", "event_msg"})
"""Types that only Codex writes."""
_NO_MESSAGES = frozenset({"ghost_snapshot", "other"})
"""Types of items that Codex does not send to the model."""


def _is_codex(line: Line) -> bool:
    return "payload" in line and _kind(line) in _CODEX_LINES


def _codex(lines: list[Line]) -> Session:
    """JSONL ("rollout"), items of the Responses API: https://github.com/openai/codex
    (``codex-rs/protocol``), each the ``payload`` of a line.
    """
    messages: list[Message] = []
    unknown: list[object] = []
    for line in lines:
        kind = _kind(line)
        payload = line.get("payload")
        if kind == "compacted" and isinstance(payload, dict):
            messages = _history_after(messages, payload)
        elif kind == "response_item" and isinstance(payload, dict) and _kind(payload):
            messages.append(payload)
        elif kind not in _CODEX_LINES:
            unknown.append(line.get("type"))
    sent = [each for each in messages if _kind(each) not in _NO_MESSAGES]
    header = _dict(lines[0].get("payload"))
    return Session("Codex", "responses", sent, str(header.get("id", "")), _skipped(unknown))


def _history_after(messages: list[Message], compaction: Line) -> list[Message]:
    """Return the messages that the model is sent after Codex' own compaction."""
    replacement = compaction.get("replacement_history")
    if isinstance(replacement, list):
        return [each for each in replacement if isinstance(each, dict)]
    asked = [each for each in messages if each.get("role") == "user"]
    return [*asked, get_format("responses").say("user", str(compaction.get("message", "")))]


# -- pi --------------------------------------------------------------------------------------------

_PI_SILENT = _words(
    "session model_change thinking_level_change session_info custom label leaf message "
    "custom_message compaction branch_summary"
)
"""Types of pi's lines, but for messages of unknown roles."""


def _is_pi(line: Line) -> bool:
    return _kind(line) == "session" and "id" in line


def _pi(lines: list[Line]) -> Session:
    """JSONL, linked by ``id`` and ``parentId``:
    https://github.com/badlogic/pi-mono/blob/main/packages/coding-agent/docs/session.md.
    """
    path = _pi_path([line for line in lines if _kind(line) != "session"])
    newest = max((at for at, line in enumerate(path) if _kind(line) == "compaction"), default=None)
    if newest is not None:
        first = path[newest].get("firstKeptEntryId")
        named = (at for at, line in enumerate(path[:newest]) if first and line.get("id") == first)
        # Summaries of older compactions are part of the newest one.
        kept = path[next(named, newest) :]
        path = [path[newest], *(line for line in kept if _kind(line) != "compaction")]
    messages = [message for line in path for message in _pi_message(line)]
    unknown = [line.get("type") for line in lines if _kind(line) not in _PI_SILENT]
    unknown += [
        f"message of role {_dict(line.get('message')).get('role')}"
        for line in lines
        if _kind(line) == "message" and str(_dict(line.get("message")).get("role")) not in _PI_ROLES
    ]
    header = next((line for line in lines if _kind(line) == "session"), {})
    return Session("pi", "openai", messages, str(header.get("id", "")), _skipped(unknown))


def _pi_path(entries: list[Line]) -> list[Line]:
    """Return the entries from the root to the newest one; all of them where not all are linked."""
    if not all("parentId" in line for line in entries):
        return entries
    places = {str(line.get("id")): at for at, line in enumerate(entries)}
    path: list[Line] = []
    at: int | None = len(entries) - 1
    while at is not None and at >= 0:
        path.append(entries[at])
        before = places.get(str(entries[at]["parentId"]))
        at = before if before is not None and before < at else None
    return path[::-1]


_PI_ROLES = _words(
    "user assistant toolResult custom hookMessage bashExecution branchSummary compactionSummary"
)


def _pi_message(line: Line) -> list[Message]:
    """Return the message of a line, or nothing where it has none."""
    said = _dict(line.get("message"))
    role = said.get("role") if _kind(line) == "message" else _kind(line)
    text = _pi_text(said.get("content"))
    match role:
        case "compaction" | "branch_summary":
            return [{"role": "user", "content": str(line.get("summary", ""))}]
        case "branchSummary" | "compactionSummary":
            return [{"role": "user", "content": str(said.get("summary", ""))}]
        case "custom_message":
            return [{"role": "user", "content": _pi_text(line.get("content"))}]
        case "user" | "custom" | "hookMessage":
            return [{"role": "user", "content": text}]
        case "bashExecution" if not said.get("excludeFromContext"):
            ran = f"Ran `{said.get('command', '')}`\n{said.get('output', '')}"
            return [{"role": "user", "content": ran}]
        case "toolResult":
            result = {"role": "tool", "tool_call_id": said.get("toolCallId"), "content": text}
            return [result | ({"name": said["toolName"]} if said.get("toolName") else {})]
        case "assistant":
            calls = [
                _call(block.get("id"), block.get("name"), block.get("arguments"))
                for block in map(_dict, _blocks(said.get("content")))
                if block.get("type") == "toolCall"
            ]
            answer: Line = {"role": "assistant", "content": text or None}
            return [answer | ({"tool_calls": calls} if calls else {})]
    return []


def _pi_text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        "[image]" if block.get("type") == "image" else str(block.get("text", ""))
        for block in map(_dict, content if isinstance(content, list) else ())
        if block.get("type") in ("text", "image")
    )


# -- opencode --------------------------------------------------------------------------------------

_PARTS = _words(
    "agent compaction file patch reasoning retry snapshot step-finish step-start subtask text tool"
)
"""Types of parts; of most, the model is sent nothing."""


def from_export(data: object) -> Session | None:
    """Return the session in an ``opencode export`` (https://opencode.ai/docs/cli/#export), or
    ``None`` if the data is something else.
    """
    stored = _dict(data).get("messages")
    if not isinstance(data, dict) or not isinstance(stored, list) or not stored:
        return None
    for each in stored:
        parts = _dict(each).get("parts")
        if not isinstance(_dict(each).get("info"), dict) or not isinstance(parts, list):
            return None
        if not all(isinstance(part, dict) for part in parts):
            return None
    start = 0
    for index, (asked, answer) in enumerate(pairwise(stored)):
        if answer["info"].get("summary") and any(map(_is_compaction, asked["parts"])):
            start = index
    messages = [message for each in stored[start:] for message in _opencode_messages(each)]
    unknown = (
        f"part of type {part.get('type')}"
        for each in stored
        for part in each["parts"]
        if _kind(part) not in _PARTS
    )
    identity = str(_dict(data.get("info")).get("id", ""))
    return Session("opencode", "openai", messages, identity, _skipped(unknown))


def _is_compaction(part: Line) -> bool:
    return part.get("type") == "compaction"


def _opencode_messages(stored: Line) -> list[Message]:
    """Return the messages that the model is sent for a stored one: the message, and the results of
    its tool calls.
    """
    parts = stored["parts"]
    texts = [
        str(part.get("text", ""))
        for part in parts
        if part.get("type") == "text" and not part.get("ignored")
    ]
    texts += [f"[file {part.get('filename', '')}]" for part in parts if part.get("type") == "file"]
    if stored["info"].get("role") == "user":
        texts += ["What did we do so far?"] * any(map(_is_compaction, parts))
        return [{"role": "user", "content": "\n".join(texts)}] if texts else []
    tools = [part for part in parts if part.get("type") == "tool"]
    if not texts and not tools:
        return []
    answer: Line = {"role": "assistant", "content": "\n".join(texts) or None}
    if tools:
        answer["tool_calls"] = [
            _call(part.get("callID"), part.get("tool"), _dict(part.get("state")).get("input"))
            for part in tools
        ]
    return [answer, *map(_opencode_result, tools)]


def _opencode_result(part: Line) -> Message:
    state = _dict(part.get("state"))
    output = state.get("error") or "[interrupted]"
    if _dict(state.get("time")).get("compacted"):
        output = "[Old tool result content cleared]"
    elif state.get("status") == "completed":
        output = state.get("output")
    key = part.get("callID")
    return {"role": "tool", "tool_call_id": key, "name": part.get("tool"), "content": str(output)}


_AGENTS: tuple[tuple[Callable[[Line], bool], Callable[[list[Line]], Session]], ...] = (
    (_is_pi, _pi),
    (_is_codex, _codex),
    (_is_claude_code, _claude_code),
)
