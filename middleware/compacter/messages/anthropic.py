"""The Messages message format of Anthropic, on any cloud.

Source of the rules: Anthropic's API reference, "Messages". A ``tool_result`` block must stand in
the user message right after the assistant message that holds its ``tool_use`` block; tools that
Anthropic runs itself (``server_tool_use``, ``mcp_tool_use``) have their result in the assistant's
own message, or in its continuation after ``pause_turn``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from compacter.messages.fields import (
    Json,
    characters,
    faithful,
    field,
    json_text,
    listed,
    plain,
    text_field,
    word,
)
from compacter.messages.format import Edit, Message, MessageFormat
from compacter.messages.parts import Part, Speaker, Voice, as_results, spoken, weigh_sealed

_MEDIA = frozenset({"image", "document", "container_upload"})
# Results that are one free text.
_EDITABLE_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
# End of the types of Anthropic's own code execution, and the fields of its results with free text.
# What a search or a fetch has found is left as it is: it is encrypted, or later citations refer to
# places in it.
_RAN = "code_execution_tool_result"
_OUTPUTS = ("stdout", "stderr", "content")
# Keys of data made by a tool's caller, of which nothing is left out in a digest.
_OWN = frozenset({"input"})


class AnthropicFormat(MessageFormat):
    """Messages of blocks: calls are ``tool_use`` blocks, results are ``tool_result`` blocks of a
    user message.
    """

    name = "anthropic"
    system_option = "system"
    alternates = True
    telling = (
        *("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"),
        *("document", "compaction", "search_result", "container_upload"),
    )
    plain = MessageFormat.roles

    def _parts(self, message: Message, role: Speaker, index: int) -> Iterator[Part]:
        return self._blocks(field(message, "content"), role, index)

    def _blocks(self, content: Json, role: Speaker, index: int) -> Iterator[Part]:
        for block in listed(content):
            kind = word(block, "type")
            if isinstance(block, str):
                yield Part.of_text(role, block, index)
            elif kind == "text":
                yield Part.of_text(role, text_field(block, "text"), index)
            elif kind == "thinking":
                # If the thinking itself is omitted, the signature contains it in encrypted form.
                text = field(block, "thinking")
                signature = field(block, "signature")
                yield Part.of_reasoning(role, len(text) if text else weigh_sealed(signature), index)
            elif kind == "redacted_thinking":
                yield Part.of_reasoning(role, weigh_sealed(field(block, "data")), index)
            elif kind == "compaction":
                sealed = weigh_sealed(field(block, "encrypted_content"))
                yield Part.of_reasoning(role, len(text_field(block, "content")) or sealed, index)
            elif kind in _MEDIA:
                yield Part.of_medium(role, kind or "", block, index)
            elif isinstance(kind, str) and kind.endswith("tool_use"):
                yield Part.of_call(
                    text_field(block, "name"), field(block, "input"), text_field(block, "id"), index
                )
            elif isinstance(kind, str) and kind.endswith("tool_result"):
                # The id has a part of its own, as the output may be empty or only an image.
                yield Part.of_result("", text_field(block, "tool_use_id"), index)
                yield from as_results(self._blocks(field(block, "content"), "tool", index))
            else:
                text, size = _other(block)
                yield Part(role, "text", text, "", index, size)

    def say(self, role: Voice, text: str) -> Message:
        """Return a new plain text message, which is never blank, as the API refuses that."""
        return {"role": role, "content": spoken(text)}

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        kind = word(block, "type")
        if isinstance(block, str) or kind == "text":
            return self._reword(
                block, block if isinstance(block, str) else text_field(block, "text"), edit
            )
        if kind in _EDITABLE_RESULTS:
            return self._with_result(block, "content", edit)
        if kind is not None and kind.endswith(_RAN):
            return self._within(block, "content", partial(self._with_outputs, edit=edit))
        return block

    def _with_outputs(self, ran: Message, edit: Edit) -> Message:
        for name in _OUTPUTS:
            ran = self._with_result(ran, name, edit)
        return ran

    def _content(self, message: Message) -> Json:
        """Return the message as data without cache marks; a single text block is the same as a
        string.
        """
        data = faithful(message, _OWN)
        blocks = field(data, "content")
        if isinstance(blocks, list) and len(blocks) == 1 and isinstance(blocks[0], dict):
            text = blocks[0].get("text")
            if isinstance(text, str) and blocks[0] == {"type": "text", "text": text}:
                data["content"] = text
        return data

    def compacted(self, message: Message) -> str | None:
        """Return the summary in the newest ``compaction`` block. A block without content is a
        failed compaction.
        """
        content = field(message, "content")
        for block in reversed(content if isinstance(content, (list, tuple)) else ()):
            if word(block, "type") == "compaction" and (
                field(block, "content") or field(block, "encrypted_content")
            ):
                return text_field(block, "content")
        return None


def _other(block: Message) -> tuple[str, int]:
    """Return text and size of a search result, or of a block of unknown structure, as JSON.

    What is sealed is not shown, and counts: Anthropic decrypts it and the model reads it.
    """
    if word(block, "type") == "search_result":
        texts = [text_field(part, "text") for part in listed(field(block, "content"))]
        text = "\n".join(filter(None, (text_field(block, "title"), *texts)))
        return text, len(text)
    data = plain(block)
    if not isinstance(data, dict):
        return json_text(data), characters(data)
    sealed = [data.pop(key) for key in list(data) if key.startswith("encrypted_")]
    return json_text(data), characters(data) + sum(map(weigh_sealed, sealed))


ANTHROPIC = AnthropicFormat()
