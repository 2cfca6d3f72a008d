"""The Converse message format of Amazon Bedrock.

Source of the rules: the API reference of Bedrock Runtime, "Converse". The one key of a block says
what it is; a ``toolResult`` must stand in the user message right after the assistant message that
holds its ``toolUse``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from compacter.messages.fields import Json, faithful, field, listed, replaced, text_field
from compacter.messages.format import Edit, Message, MessageFormat
from compacter.messages.parts import Kind, Part, Speaker, spoken, weigh_sealed

_MEDIA = ("image", "document", "video", "audio")
_OTHER_FORMATS = {
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}
# Keys of data made by a tool or its caller, of which nothing is left out in a digest.
_OWN = frozenset({"input", "json"})


class BedrockFormat(MessageFormat):
    """Messages of blocks with one key each: ``text``, ``toolUse``, ``toolResult`` and others."""

    name = "bedrock"
    output_option = ""
    text_type = ""
    alternates = True
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
                for inner in listed(field(answer, "content")):
                    part = _part(inner, "tool", index)
                    yield replace(part, kind="result") if part.kind == "text" else part
            elif field(block, "cachePoint") is None:
                yield _part(block, role, index)

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """Return a new plain text message, which is never blank, as the API refuses that."""
        return {"role": role, "content": [{"text": spoken(text)}]}

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        text = block if isinstance(block, str) else field(block, "text")
        if isinstance(text, str):
            return self._reword(block, text, edit)
        answer = field(block, "toolResult")
        if answer is None:
            return block
        old = _answer_text(field(answer, "content"))
        new = edit("result", old, "")
        return (
            block
            if new == old
            else replaced(block, toolResult=replaced(answer, content=[{"text": spoken(new)}]))
        )

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

    def prompt(
        self, messages: Sequence[Mapping[str, str]]
    ) -> tuple[list[Message], dict[str, Json]]:
        """Return the messages of a prompt and ``{"system": [blocks]}``, as ``converse``
        takes them.
        """
        system = [
            {"text": message["content"]} for message in messages if message["role"] == "system"
        ]
        said, _ = super().prompt(messages)
        return said, {"system": system} if system else {}


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
            return _medium(kind, medium, role, index)
    value = field(block, "json")
    return Part.of_data(role, block if value is None else value, index)


def _medium(kind: str, medium: Message, role: Speaker, index: int) -> Part:
    form = text_field(medium, "format")
    source = field(medium, "source")
    mime = (
        _OTHER_FORMATS.get(form, f"application/{form or 'pdf'}")
        if kind == "document"
        else f"{kind}/{form or '*'}"
    )
    text = field(source, "text")
    if (parts := field(source, "content")) is not None:
        text = "".join(text_field(part, "text") for part in listed(parts))
    return Part.of_medium(
        role,
        mime,
        field(source, "bytes"),
        index,
        characters=len(text) if isinstance(text, str) else None,
    )


def _answer_text(content: Json) -> str:
    parts = (_part(block, "tool", 0) for block in listed(content))
    return "".join(part.text for part in parts if part.kind == "text")


BEDROCK = BedrockFormat()
