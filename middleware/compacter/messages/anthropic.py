"""The Messages message format of Anthropic, on any cloud.

Source of the rules: Anthropic's API reference, "Messages". A ``tool_result`` block must stand in
the user message right after the assistant message that holds its ``tool_use`` block; tools that
Anthropic runs itself (``server_tool_use``, ``mcp_tool_use``) have their result in the assistant's
own message, or in its continuation after ``pause_turn``.
"""

from __future__ import annotations

from compacter.messages.blocks import COMPACTION, MEDIUM, Row
from compacter.messages.format import MessageFormat

_ID = ("tool_use_id",)
_RESULT = Row("result", ("content",), call_id=_ID, edits=("content",))


class AnthropicFormat(MessageFormat):
    """Messages of blocks: calls are ``tool_use`` blocks, results are ``tool_result`` blocks of a
    user message.
    """

    name = "anthropic"
    system_option = "system"
    alternates = True
    plain = MessageFormat.roles
    own = frozenset({"input"})
    table = {  # noqa: RUF012 - ClassVar in the base class
        "text": Row("text", ("text",), edits=("text",)),
        # If the thinking itself is omitted, the signature contains it in encrypted form.
        "thinking": Row("reasoning", ("thinking",), sealed=("signature",)),
        "redacted_thinking": Row("reasoning", (), sealed=("data",)),
        "compaction": COMPACTION,
        "search_result": Row("text", ("title", "content")),
        "image": MEDIUM,
        "document": MEDIUM,
        "container_upload": MEDIUM,
        "tool_result": _RESULT,
        "mcp_tool_result": _RESULT,
    }
    endings = {  # noqa: RUF012
        "tool_use": Row("call", ("input",), ("name",), ("id",)),
        "code_execution_tool_result": Row(
            "result",
            ("content",),
            call_id=_ID,
            edits=("content.stdout", "content.stderr", "content.content"),
        ),
        # Results of a search or a fetch are not edited: they are encrypted, or later citations
        # refer to places in them.
        "tool_result": Row("result", ("content",), call_id=_ID),
    }
    telling = (
        *("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"),
        *("compaction", "search_result", "container_upload"),
    )


ANTHROPIC = AnthropicFormat()
