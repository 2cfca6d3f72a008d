"""The Converse message format of Amazon Bedrock.

Source of the rules: the API reference of Bedrock Runtime, "Converse". The one key of a block is its
type; a ``toolResult`` must stand in the user message right after the assistant message that holds
its ``toolUse``.
"""

from __future__ import annotations

from compacter.messages.blocks import MEDIUM, TEXT, Row
from compacter.messages.format import MessageFormat


class BedrockFormat(MessageFormat):
    """Messages of blocks with one key each: ``text``, ``toolUse``, ``toolResult`` and others."""

    name = "bedrock"
    output_option = ""
    system_option = "system"
    text_type = ""
    alternates = True
    own = frozenset({"input", "json"})
    table = {  # noqa: RUF012 - ClassVar in the base class
        "text": TEXT,
        "toolUse": Row("call", ("input",), ("name",), ("toolUseId",)),
        "toolResult": Row("result", ("content",), call_id=("toolUseId",), edits=("content",)),
        "reasoningContent": Row(
            "reasoning",
            ("reasoningText.text",),
            sealed=("reasoningText.signature", "redactedContent"),
        ),
        "guardContent": Row("nested"),
        "citationsContent": Row("text", ("content",)),
        "image": MEDIUM,
        "document": MEDIUM,
        "video": MEDIUM,
        "audio": MEDIUM,
        # Data of a result, which may be edited as one text.
        "json": Row("text", (), edits=("",)),
        "cachePoint": Row("nested", ()),
    }
    telling = ("toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent")


BEDROCK = BedrockFormat()
