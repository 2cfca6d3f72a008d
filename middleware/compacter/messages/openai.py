"""The chat-completions message format of OpenAI, litellm, and many other servers.

Source of the rules: OpenAI's API reference for chat completions, "messages". A tool message must
follow the assistant message whose ``tool_calls`` holds its ``tool_call_id``; ``function_call`` with
role ``function`` is the form before 2023-11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from compacter.messages.fields import (
    Json,
    faithful,
    field,
    json_text,
    listed,
    replaced,
    text_field,
    word,
)
from compacter.messages.format import Edit, Message, MessageFormat
from compacter.messages.parts import Kind, Outline, Part, Speaker, Voice

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_MEDIA = frozenset(
    {
        "image_url",
        "input_audio",
        "file",
        "image",
        "video_url",
        "audio_url",
        "input_image",
        "document",
    }
)


# Keys of data made by a tool's caller, of which nothing is left out in a digest.
_OWN = frozenset({"arguments", "input"})
_ASSISTANT = Kind.ASSISTANT
_RESULT = Kind.RESULT


class OpenAIFormat(MessageFormat):
    """Chat completions: ``content`` is text or parts, calls are in ``tool_calls``, results have the
    role ``tool``.
    """

    name = "openai"
    plain = MessageFormat.roles
    # A ``ClassVar`` in the base class.
    roles = {**plain, "tool": Kind.RESULT, "function": Kind.RESULT}  # noqa: RUF012

    def read(self, message: Message) -> Outline:
        """Return the outline of a message; calls and results in their common forms are read without
        making parts.
        """
        try:
            if type(message) is dict:
                role = message["role"]
                content = message["content"]
                if role == "tool" and type(content) is str is type(
                    called := message["tool_call_id"]
                ):
                    return _RESULT, len(content), (), (called,)
                if role == "assistant" and len(message) == 3:
                    return _read_calls(message["tool_calls"], content)
        except Exception:  # noqa: BLE001, S110 - not of a common form
            pass
        return super().read(message)

    def _parts(self, message: Message, role: Speaker, index: int) -> Iterator[Part]:
        name = text_field(message, "name")
        said: Literal["text", "result"] = "result" if role == "tool" else "text"
        if role == "tool":
            # The id has a part of its own, as the output may be empty or only an image.
            yield Part(role, "result", "", name, index, 0, _result_id(message))
        for part in listed(field(message, "content")):
            text = _part_text(part)
            if text is None:
                yield Part.of_medium(role, text_field(part, "type"), part, index, name=name)
            elif text:
                yield Part(role, said, text, name, index, len(text))
            else:
                thought = field(part, "thinking") or field(part, "reasoning") or ""
                yield Part.of_reasoning(role, len(str(thought)), index)
        if role != "assistant":
            return
        for text in (field(message, "refusal"), field(field(message, "audio"), "transcript")):
            if isinstance(text, str):
                yield Part(role, "text", text, name, index, len(text))
        thoughts = field(message, "reasoning_content") or field(message, "reasoning")
        size = len(thoughts) if isinstance(thoughts, str) else 0
        yield Part.of_reasoning(role, size + len(self.compacted(message) or ""), index)
        for call in field(message, "tool_calls") or ():
            function = field(call, "function") or field(call, "custom")
            yield Part.of_call(
                text_field(function, "name"), _arguments(function), text_field(call, "id"), index
            )
        legacy = field(message, "function_call")
        if legacy:
            made = text_field(legacy, "name")
            yield Part.of_call(made, _arguments(legacy), f"function:{made}", index)

    def say(self, role: Voice, text: str) -> Message:
        """Return a new plain text message."""
        return {"role": role, "content": text}

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """Return a copy with edited texts and results; the message itself if nothing changed."""
        if self.kind(message) is not Kind.RESULT:
            return super().rewrite(message, edit)
        return self._with_result(message, "content", edit, text_field(message, "name"))

    def _text_of(self, part: Message) -> str:
        return _part_text(part) or ""

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        old = _part_text(block)
        if not old:
            return block
        new = edit("text", old, "")
        if new == old:
            return block
        if isinstance(block, str):
            return new
        # A part with its text elsewhere than in ``text`` becomes a plain text part.
        return (
            replaced(block, text=new)
            if field(block, "text") == old
            else {"type": "text", "text": new}
        )

    def _content(self, message: Message) -> Json:
        """Return the message as data without cache marks and empty fields. The common form is
        returned unchanged.
        """
        if type(message) is dict and len(message) == 2:
            role = message.get("role")
            text = message.get("content")
            if type(role) is str and type(text) is str and role[:1] != "\0" != text[:1]:
                return {"content": text, "role": role}
        data = faithful(message, _OWN)
        if not isinstance(data, dict):
            return data
        # SDK objects have empty lists (annotations, tool calls) for fields that a dict omits.
        return {key: value for key, value in data.items() if value not in ([], {})}

    def prompt(
        self, messages: Sequence[Mapping[str, str]]
    ) -> tuple[list[Message], dict[str, Json]]:
        """Return the prompt as it is, without extra call options."""
        return [dict(message) for message in messages], {}

    def compacted(self, message: Message) -> str | None:
        """Return the summary in the newest ``compaction`` block of Anthropic, which litellm keeps
        in another field.
        """
        if type(message) is dict and "provider_specific_fields" not in message:
            return None
        blocks = field(field(message, "provider_specific_fields"), "compaction_blocks")
        found = [
            block
            for block in listed(blocks)
            if field(block, "content") or field(block, "encrypted_content")
        ]
        return text_field(found[-1], "content") if found else None


def _read_calls(calls: Json, content: Json) -> Outline:
    """Return the outline of tool calls with or without a text. Raises for any but the
    common form.
    """
    if type(calls) is not list or not (content is None or type(content) is str):
        raise TypeError
    size = len(content or "")
    ids: list[str] = []
    for call in calls:
        function = call["function"]
        name = function["name"]
        arguments = function["arguments"]
        called = call["id"]
        if not (type(name) is str is type(arguments) is type(called)):
            raise TypeError
        size += len(name) + len(arguments)
        ids.append(called)
    return _ASSISTANT, size, ids, ()


def _result_id(message: Message) -> str:
    if word(message, "role") == "function":
        return "function:" + text_field(message, "name")
    return text_field(message, "tool_call_id")


def _arguments(function: Message) -> Json:
    arguments = field(function, "arguments")
    return field(function, "input") if arguments is None else arguments


def _part_text(part: Message) -> str | None:
    """Return the text of a content part; ``""`` for reasoning, ``None`` for a medium."""
    if isinstance(part, str):
        return part
    kind = word(part, "type")
    if kind in _THOUGHTS:
        return ""
    for name in ("text", "refusal", "input_text", "output_text"):
        text = field(part, name)
        if isinstance(text, str):
            return text
    if kind in _MEDIA:
        return None
    return json_text(part)


OPENAI = OpenAIFormat()
