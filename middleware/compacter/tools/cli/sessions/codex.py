"""Sessions of Codex: JSONL ("rollout"), items of the Responses API.

https://github.com/openai/codex (``codex-rs/protocol``). Since September 2025 each item is the
``payload`` of a line with a ``timestamp`` and a ``type``. Before that, the first line was the
session's ``id``, ``timestamp`` and ``instructions``, and each item a line by itself, between lines
of ``{"record_type": "state"}``; such files are read, and written again in their own form.
"""

from __future__ import annotations

from compacter.messages.format import Message, get_format
from compacter.tools.cli.sessions.lines import Form, Line, Session, linked, skipped

_LINES = frozenset({"session_meta", "response_item", "turn_context", "event_msg"})
"""Types that only Codex writes."""

_NO_MESSAGES = frozenset({"ghost_snapshot", "other"})
"""Types of items that Codex does not send to the model."""


def is_sign(line: Line) -> bool:
    """Return whether only Codex writes such a line."""
    return ("payload" in line and _kind(line) in _LINES) or _is_state(line) or _is_header(line)


def read(lines: list[Line]) -> Session:
    """Return the session in these lines."""
    messages: list[Message] = []
    sources: list[list[int]] = []
    unknown: list[object] = []
    for index, line in enumerate(lines):
        item = _item(line)
        if item is not None:
            if _kind(item) not in _NO_MESSAGES:
                messages.append(item)
                sources.append([index])
        elif _kind(line) == "compacted" and isinstance(line.get("payload"), dict):
            messages = _history_after(messages, line["payload"])
            sources = [[] for _ in messages]
        elif _kind(line) not in _LINES and not _is_state(line) and not _is_header(line):
            unknown.append(line.get("type"))
    has_envelopes = any("payload" in line for line in lines)
    made = _line if has_envelopes else _bare_line
    first = lines[0]  # Also where it is not known: it names the session.
    form = Form(
        "Codex",
        "responses",
        keeps=lambda line: _keeps(line) or (line is first and _item(line) is None),
        made=made,
    )
    dropped = {index for index, line in enumerate(lines) if _kind(line) == "compacted"}
    return linked(form, lines, messages, sources, dropped, skipped(unknown))


def _kind(line: Line) -> str:
    kind = line.get("type")
    return kind if isinstance(kind, str) else ""


def _is_state(line: Line) -> bool:
    return "record_type" in line and "type" not in line


def _is_header(line: Line) -> bool:
    """Return whether this is the first line of a file from before September 2025."""
    return (
        "type" not in line
        and "role" not in line
        and isinstance(line.get("id"), str)
        and "timestamp" in line
        and ("instructions" in line or "git" in line)
    )


def _item(line: Line) -> Message | None:
    """Return the item of the Responses API in a line, or ``None`` if it has none."""
    payload = line.get("payload")
    if isinstance(payload, dict):
        return payload if line.get("type") == "response_item" else None
    kind = _kind(line)
    is_item = kind in ("message", "reasoning") or kind.endswith(("_call", "_output"))
    return line if is_item or kind in _NO_MESSAGES else None


def _history_after(messages: list[Message], compaction: Line) -> list[Message]:
    """Return the messages that the model is sent after Codex' own compaction."""
    replacement = compaction.get("replacement_history")
    if isinstance(replacement, list):
        return list(replacement)
    asked = [each for each in messages if each.get("role") == "user"]
    return [*asked, get_format("responses").say("user", str(compaction.get("message", "")))]


def _keeps(line: Line) -> bool:
    return line.get("type") in ("session_meta", "turn_context") or _is_header(line)


def _line(message: Message, like: Line) -> Line:
    payload = _bare_line(message, like)
    return {"timestamp": like.get("timestamp"), "type": "response_item", "payload": payload}


def _bare_line(message: Message, like: Line) -> Line:
    payload = {"type": "message", **message}
    if isinstance(payload.get("content"), str):  # The API accepts a string, but Codex ignores it.
        kind = "output_text" if payload.get("role") == "assistant" else "input_text"
        payload["content"] = [{"type": kind, "text": payload["content"]}]
    return payload
