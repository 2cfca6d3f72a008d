"""The Converse message format of Amazon Bedrock.

Source of the rules: the API reference of Bedrock Runtime, "Converse". The one key of a block says
what it is; a ``toolResult`` must stand in the user message right after the assistant message that
holds its ``toolUse``.
"""

from __future__ import annotations

from collections.abc import Iterator

from compacter.messages.fields import Json, faithful, field, listed, replaced, text_field
from compacter.messages.format import Edit, Message, MessageFormat
from compacter.messages.parts import Kind, Part, Speaker, Voice, as_results, spoken, weigh_sealed

_MEDIA = ("image", "document", "video", "audio")
# Keys of data made by a tool or its caller, of which nothing is left out in a digest.
_OWN = frozenset({"input", "json"})


class BedrockFormat(MessageFormat):
    """Messages of blocks with one key each: ``text``, ``toolUse``, ``toolResult`` and others."""

    name = "bedrock"
    output_option = ""
    system_option = "system"
    text_type = ""
    alternates = True
    telling = ("toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent")
    # A ``ClassVar`` in the base class.
    roles = {"user": Kind.USER, "assistant": Kind.ASSISTANT, "system": Kind.SYSTEM}  # noqa: RUF012

    def _parts(self, message: Message, role: Speaker, index: int) -> Iterator[Part]:
        for block in listed(field(message, "content")):
            if (use := field(block, "toolUse")) is not None:
                yield Part.of_call(
                    text_field(use, "name"),
                    field(use, "input"),
                    text_field(use, "toolUseId"),
                    index,
                )
            elif (answer := field(block, "toolResult")) is not None:
                # The id has a part of its own, as the output may be empty or only an image.
                yield Part.of_result("", text_field(answer, "toolUseId"), index)
                inner = listed(field(answer, "content"))
                yield from as_results(_part(each, "tool", index) for each in inner)
            elif field(block, "cachePoint") is None:
                yield _part(block, role, index)

    def say(self, role: Voice, text: str) -> Message:
        """Return a new plain text message, which is never blank, as the API refuses that."""
        return {"role": role, "content": _said(text)}

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        text = block if isinstance(block, str) else field(block, "text")
        if isinstance(text, str):
            return self._reword(block, text, edit)
        answer = field(block, "toolResult")
        if answer is None:
            return block
        edited = self._with_result(answer, "content", edit, made=_said)
        return block if edited is answer else replaced(block, toolResult=edited)

    def _text_of(self, part: Message) -> str:
        read = _part(part, "tool", 0)
        return read.text if read.kind == "text" else ""

    def _content(self, message: Message) -> Json:
        """Return the message as data without cache points."""
        data = faithful(message, _OWN)
        blocks = field(data, "content")
        if isinstance(blocks, list):
            data["content"] = [
                block
                for block in blocks
                if not isinstance(block, dict) or set(block) != {"cachePoint"}
            ]
        return data

    def _system(self, text: str) -> Json:
        return _said(text)


def _part(block: Message, role: Speaker, index: int) -> Part:
    """Return the part for a block of a message or a tool result."""
    text = field(block, "text")
    if isinstance(text, str):
        return Part.of_text(role, text, index)
    if (thought := field(block, "reasoningContent")) is not None:
        spelt = field(thought, "reasoningText")
        size = len(text_field(spelt, "text")) or weigh_sealed(field(spelt, "signature"))
        return Part.of_reasoning(
            role, size + weigh_sealed(field(thought, "redactedContent")), index
        )
    if (guarded := field(block, "guardContent")) is not None:
        inner = field(guarded, "text")
        return (
            _part(guarded, role, index)
            if inner is None
            else Part.of_text(role, text_field(inner, "text"), index)
        )
    if (cited := field(block, "citationsContent")) is not None:
        cites = listed(field(cited, "content"))
        return Part.of_text(role, "".join(text_field(part, "text") for part in cites), index)
    for kind in _MEDIA:
        medium = field(block, kind)
        if medium is not None:
            return Part.of_medium(role, kind, medium, index)
    value = field(block, "json")
    return Part.of_data(role, block if value is None else value, index)


def _said(text: str) -> list[Message]:
    return [{"text": spoken(text)}]


BEDROCK = BedrockFormat()
