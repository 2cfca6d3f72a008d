"""The chat-completions wire format: OpenAI, litellm, and the many servers that speak it.

Source of the rules: OpenAI's API reference for chat completions, "messages". A tool message must follow the assistant
message whose ``tool_calls`` holds its ``tool_call_id``; ``function_call`` with role ``function`` is the form before 2023-11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from compacter.history import media
from compacter.history.entry import Entry, Speaker
from compacter.history.fields import characters, field, plain
from compacter.history.message import Message
from compacter.history.outline import Kind, Outline, Reading, outline
from compacter.history.wire import Edit, WireName

_KINDS = {
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "tool": Kind.RESULT,
    "function": Kind.RESULT,
    "system": Kind.SYSTEM,
    "developer": Kind.SYSTEM,
}
_SPEAKERS: dict[Kind, Speaker] = {
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.RESULT: "tool",
    Kind.SYSTEM: "system",
    Kind.OTHER: "assistant",
}
_MARKS = frozenset({"cache_control"})


class OpenAIWire:
    """See :class:`compacter.history.wire.Wire`."""

    name: WireName = "openai"
    alternates = False

    def outline(self, messages: Sequence[Message]) -> Outline:
        return outline([_read(message) for message in messages])

    def size(self, message: Message) -> int:
        return _read(message)[1]

    def speaker(self, message: Message) -> str:
        role = field(message, "role")
        return "system" if role == "developer" else str(role)

    def entries(self, message: Message, index: int) -> Iterator[Entry]:
        kind = _KINDS.get(field(message, "role"), Kind.OTHER)
        speaker = _SPEAKERS[kind]
        name = str(field(message, "name") or "")
        for part in _parts(field(message, "content")):
            text = _part_text(part)
            if text is None:
                yield Entry(speaker, "media", _placeholder(part), name, index)
            elif text:
                yield Entry(speaker, "result" if kind is Kind.RESULT else "text", text, name, index)
        refusal = field(message, "refusal")
        if isinstance(refusal, str) and refusal:
            yield Entry(speaker, "text", refusal, name, index)
        for function in _functions(message):
            yield Entry("assistant", "call", _as_text(field(function, "arguments")), str(field(function, "name") or ""), index)

    def plain_text(self, message: Message) -> str | None:
        if field(message, "role") != "user":
            return None
        texts = [_part_text(part) for part in _parts(field(message, "content"))]
        return None if None in texts else "".join(text or "" for text in texts)

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        return {"role": role, "content": text}

    def rewrite(self, message: Message, edit: Edit) -> Message:
        kind = _KINDS.get(field(message, "role"), Kind.OTHER)
        what: Literal["text", "result"] = "result" if kind is Kind.RESULT else "text"
        name = str(field(message, "name") or "")
        content = field(message, "content")
        parts = list(_parts(content))
        texts = [_part_text(part) for part in parts]
        new: Any = content
        if kind is Kind.RESULT or isinstance(content, str):
            whole = "".join(text for text in texts if text is not None)
            edited = edit(what, whole, name)
            if edited != whole:
                new = edited
        else:
            edits = [text if text is None else edit(what, text, name) for text in texts]
            if edits != texts:
                new = [part if text is None else {"type": "text", "text": text} for part, text in zip(parts, edits, strict=True)]
        if new is content:
            return message
        copy = dict(message) if isinstance(message, Mapping) else plain(message)
        copy["content"] = new
        return copy

    def content(self, message: Message) -> Any:
        return _without_marks(plain(message))

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Any]]:
        return [dict(message) for message in messages], {}


def _read(message: Message) -> Reading | tuple[Kind, int, tuple[str, ...], tuple[str, ...]]:
    if type(message) is dict:
        get = message.get
        role = get("role")
        content = get("content")
        # The common case, kept short: this runs once a message on histories of 100,000 messages.
        if type(content) is str and len(message) == 2 and role in ("user", "assistant"):  # noqa: PLR2004, PLR6201
            return (Kind.USER if role == "user" else Kind.ASSISTANT, len(content), (), ())
    else:
        role, content = field(message, "role"), field(message, "content")
    kind = _KINDS.get(role, Kind.OTHER) if isinstance(role, str) else Kind.OTHER
    size = len(content) if type(content) is str else sum(map(_part_size, _parts(content)))
    if kind is Kind.RESULT:
        name = field(message, "name")
        answered = "function:" + str(name or "") if role == "function" else str(field(message, "tool_call_id") or "")
        return kind, size, (), (answered,)
    if kind is not Kind.ASSISTANT:
        return kind, size, (), ()
    calls: list[str] = []
    for call in field(message, "tool_calls") or ():
        function = field(call, "function") or field(call, "custom") or {}
        size += len(str(field(function, "name") or "")) + _argument_size(function)
        calls.append(str(field(call, "id") or ""))
    legacy = field(message, "function_call")
    if legacy:
        size += len(str(field(legacy, "name") or "")) + _argument_size(legacy)
        calls.append("function:" + str(field(legacy, "name") or ""))
    for extra in ("refusal", "reasoning_content", "reasoning"):
        value = field(message, extra)
        if isinstance(value, str):
            size += len(value)
    return kind, size, tuple(calls), ()


def _functions(message: Message) -> Iterator[Any]:
    for call in field(message, "tool_calls") or ():
        yield field(call, "function") or field(call, "custom") or {}
    legacy = field(message, "function_call")
    if legacy:
        yield legacy


def _arguments(function: Any) -> Any:
    arguments = field(function, "arguments")
    return field(function, "input") if arguments is None else arguments


def _argument_size(function: Any) -> int:
    arguments = _arguments(function)
    return len(arguments) if isinstance(arguments, str) else characters(arguments)


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    import json

    return json.dumps(plain(value), ensure_ascii=False)


def _parts(content: Any) -> Sequence[Any]:
    if content is None:
        return ()
    return content if isinstance(content, (list, tuple)) else (content,)


def _part_text(part: Any) -> str | None:
    """Text of a content part; ``""`` for reasoning, ``None`` for a medium."""
    if isinstance(part, str):
        return part
    kind = field(part, "type")
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return ""
    for name in ("text", "refusal", "input_text", "output_text"):
        text = field(part, name)
        if isinstance(text, str):
            return text
    if kind in ("image_url", "input_audio", "file", "image", "video_url", "audio_url", "input_image", "document"):
        return None
    return _as_text(part)


def _medium(part: Any) -> tuple[str, str | None, str | None]:
    """MIME type, base64 text where there is any, and OpenAI's ``detail``."""
    kind = field(part, "type")
    if kind == "input_audio":
        audio = field(part, "input_audio")
        return f"audio/{field(audio, 'format') or 'wav'}", field(audio, "data"), None
    if kind in ("file", "document"):
        file = field(part, "file") or field(part, "source")
        data = field(file, "file_data") or field(file, "data")
        found = media.data_url(data) if isinstance(data, str) else None
        return found[0] if found else str(field(file, "format") or "application/pdf"), found[1] if found else data, None
    picture = field(part, str(kind)) if isinstance(kind, str) else None
    url = picture if isinstance(picture, str) else field(picture, "url")
    found = media.data_url(url) if isinstance(url, str) else None
    mime = found[0] if found else {"video_url": "video/mp4", "audio_url": "audio/mpeg"}.get(str(kind), "image/*")
    return mime, found[1] if found else None, field(picture, "detail")


def _part_size(part: Any) -> int:
    text = _part_text(part)
    if text is None:
        mime, data, detail = _medium(part)
        return media.weight(mime, media.decoded_size(data) if data else None, detail=detail)
    if not text:
        return len(str(field(part, "thinking") or field(part, "reasoning") or ""))
    return len(text)


def _placeholder(part: Any) -> str:
    mime, data, _ = _medium(part)
    return media.placeholder(mime, data)


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in value.items() if key not in _MARKS}
    if isinstance(value, list):
        return [_without_marks(inner) for inner in value]
    return value


OPENAI = OpenAIWire()
