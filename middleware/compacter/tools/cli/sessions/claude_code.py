"""Sessions of Claude Code: JSONL, a line a content block, linked by ``uuid`` and ``parentUuid``.

https://docs.claude.com/en/docs/claude-code/sdk/sdk-sessions
"""

from __future__ import annotations

import uuid

from compacter.messages.format import Message
from compacter.tools.cli.sessions.lines import Form, Line, Session, blocks, linked, skipped

_SILENT = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "attachment",
        "attribution-snapshot",
        "content-replacement",
        "custom-title",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "summary",
        "system",
        "tag",
        "worktree-state",
    }
)
"""Types of lines that hold no message of the conversation."""


def is_sign(line: Line) -> bool:
    """Return whether only Claude Code writes such a line."""
    return "sessionId" in line or ("parentUuid" in line and "uuid" in line)


def read(lines: list[Line]) -> Session:
    """Return the session in these lines."""
    left = _find_left_branches(lines)
    start = max((index for index, line in enumerate(lines) if _is_boundary(line)), default=-1)
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
                joined = [*blocks(messages[answer]["content"]), *blocks(content)]
                messages[answer] = {**messages[answer], "content": joined}
                sources[answer].append(index)
                continue
            answer = len(messages)
            kept = {"role": role, "content": content}
            messages.append(kept | ({"id": message["id"]} if message.get("id") else {}))
        else:
            if not _has_only_results(content):
                answer = -1
            messages.append({"role": role, "content": content})
        sources.append([index])
    form = Form(
        "Claude Code",
        "anthropic",
        keeps=lambda line: "uuid" not in line,
        made=_line,
        key="uuid",
        parent="parentUuid",
    )
    # The id is only for joining blocks; the API does not accept it.
    plain = [{"role": each["role"], "content": each["content"]} for each in messages]
    unknown = skipped(
        line.get("type") for line in lines if not _is_known(line) and not line.get("isSidechain")
    )
    return linked(form, lines, plain, sources, left, unknown)


def _is_known(line: Line) -> bool:
    kind = line.get("type")
    if kind in ("user", "assistant"):
        return isinstance(line.get("message"), dict)
    return isinstance(kind, str) and kind in _SILENT


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
    newest: dict[str, int] = {}
    for index, line in enumerate(lines):
        message = line.get("message")
        if (
            line.get("type") == "user"
            and isinstance(message, dict)
            and isinstance(line.get("parentUuid"), str)
        ):
            if line.get("isSidechain") or _has_only_results(message.get("content")):
                continue
            newest[line["parentUuid"]] = index
    left: set[int] = set()
    gone: set[str] = set()
    for index, line in enumerate(lines):
        parent = line.get("parentUuid")
        message = line.get("message")
        is_users = (
            line.get("type") == "user"
            and isinstance(message, dict)
            and not _has_only_results(message.get("content"))
        )
        is_older = (
            is_users
            and not line.get("isSidechain")
            and isinstance(parent, str)
            and newest.get(parent, index) > index
        )
        if is_older or (isinstance(parent, str) and parent in gone):
            left.add(index)
            gone.add(str(line.get("uuid")))
    return left


def _line(message: Message, like: Line) -> Line:
    common: Line = {
        key: like[key]
        for key in ("sessionId", "version", "cwd", "gitBranch", "userType")
        if key in like
    }
    if message["role"] == "assistant":  # Claude Code expects a list of blocks.
        message = {
            "id": f"msg_{uuid.uuid4().hex}",
            **message,
            "content": blocks(message["content"]),
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
