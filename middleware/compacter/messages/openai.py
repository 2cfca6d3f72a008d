"""The chat-completions wire format: OpenAI, litellm, and the many servers that speak it.

Source of the rules: OpenAI's API reference for chat completions, "messages". A tool message must follow the
assistant message whose ``tool_calls`` holds its ``tool_call_id``; ``function_call`` with role ``function`` is
the form before 2023-11.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from compacter.messages import media
from compacter.messages.fields import Json, characters, field, json_text, listed, plain, replaced, unmarked
from compacter.messages.parts import Entry, Piece, Speaker, tool_names
from compacter.messages.steps import Kind, Outline, Reading, outline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compacter.messages.format import Edit, Message, WireName


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
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_MEDIA = frozenset({"image_url", "input_audio", "file", "image", "video_url", "audio_url", "input_image", "document"})


class OpenAIWire:
    """See :class:`compacter.history.wire.Wire`."""

    name: WireName = "openai"
    alternates = False

    def outline(self, messages: Sequence[Message]) -> Outline:
        """Kinds, sizes and steps."""
        return outline(map(_read, messages))

    def size(self, message: Message) -> int:
        """Data size of one message in characters."""
        return _read(message)[1]

    def speaker(self, message: Message) -> str:
        """Whose turn the message takes."""
        role = field(message, "role")
        return "system" if role == "developer" else str(role)

    def entries(self, message: Message, index: int) -> Iterator[Entry]:
        """What a summarizer reads of it."""
        kind = _kind(message)
        speaker = _SPEAKERS[kind]
        name = str(field(message, "name") or "")
        for part in listed(field(message, "content")):
            text = _part_text(part)
            if text is None:
                yield Entry(speaker, "media", _placeholder(part), name, index)
            elif text:
                yield Entry(speaker, "result" if kind is Kind.RESULT else "text", text, name, index)
        for text in (field(message, "refusal"), field(field(message, "audio"), "transcript")):
            if isinstance(text, str) and text:
                yield Entry(speaker, "text", text, name, index)
        for function in _functions(message):
            arguments = json_text(_arguments(function))
            yield Entry("assistant", "call", arguments, str(field(function, "name") or ""), index)

    def plain_text(self, message: Message) -> str | None:
        """The words of a user message that holds nothing but text, else ``None``."""
        if field(message, "role") != "user":
            return None
        texts = [_part_text(part) for part in listed(field(message, "content"))]
        return None if None in texts else "".join(text or "" for text in texts)

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """A new plain text message."""
        return {"role": role, "content": text}

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Which tools' results a message carries."""
        return tool_names(map(_pairs, messages))

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """A copy with edited texts and results; the message itself if nothing changed."""
        name = str(field(message, "name") or "")
        content = field(message, "content")
        if _kind(message) is Kind.RESULT:
            whole = "".join(_part_text(part) or "" for part in listed(content))
            edited = edit("result", whole, name)
            return message if edited == whole else replaced(message, content=edited)
        if isinstance(content, str):
            edited = edit("text", content, name)
            return message if edited == content else replaced(message, content=edited)
        parts = listed(content)
        rewritten = [_rewrite_part(part, edit, name) for part in parts]
        if all(new is old for new, old in zip(rewritten, parts, strict=True)):
            return message
        return replaced(message, content=rewritten)

    def content(self, message: Message) -> Json:
        """The message as JSON-like data without marks and empty fields."""
        if type(message) is dict and len(message) == 2 and type(message.get("content")) is str:
            return message
        data = unmarked(plain(message))
        if not isinstance(data, dict):
            return data
        # SDK objects carry empty lists (annotations, tool calls) where a dict has no such field.
        return {key: value for key, value in data.items() if value not in ([], {})}

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Json]]:
        """A ready prompt is in this wire format already; there are no extra call options."""
        return [dict(message) for message in messages], {}


def _kind(message: Message) -> Kind:
    role = field(message, "role")
    return _KINDS.get(role, Kind.OTHER) if isinstance(role, str) else Kind.OTHER


def _rewrite_part(part: Message, edit: Edit, name: str) -> Message:
    old = _part_text(part)
    if not old:
        return part
    new = edit("text", old, name)
    if new == old:
        return part
    if isinstance(part, str):
        return new
    # A part whose text is not in ``text`` becomes a plain text part.
    return replaced(part, text=new) if field(part, "text") == old else {"type": "text", "text": new}


def _read(message: Message) -> Reading | tuple[Kind, int, tuple[str, ...], tuple[str, ...]]:
    # Kept short where it can be: this runs once a message on histories of 100,000 messages.
    get = message.get if type(message) is dict else partial(field, message)
    role, content = get("role"), get("content")
    kind = _KINDS.get(role, Kind.OTHER) if type(role) is str else Kind.OTHER
    if type(content) is str:
        size = len(content)
        if type(message) is dict and len(message) == 2 and kind is not Kind.RESULT:
            return kind, size, (), ()
    else:
        size = sum(map(_part_size, listed(content))) if content else 0
    if kind is Kind.RESULT:
        name = "function:" + str(get("name") or "") if role == "function" else str(get("tool_call_id") or "")
        return kind, size, (), (name,)
    if kind is not Kind.ASSISTANT:
        return kind, size, (), ()
    calls: list[str] = []
    for call in get("tool_calls") or ():
        function = field(call, "function") or field(call, "custom") or {}
        size += len(str(field(function, "name") or "")) + _argument_size(function)
        calls.append(str(field(call, "id") or ""))
    if calls and type(message) is dict and len(message) == 3 and "content" in message:  # role, content, tool_calls
        return kind, size, tuple(calls), ()
    legacy = get("function_call")
    if legacy:
        size += len(str(field(legacy, "name") or "")) + _argument_size(legacy)
        calls.append("function:" + str(field(legacy, "name") or ""))
    refusal, thoughts, spoken = get("refusal"), get("reasoning_content") or get("reasoning"), get("audio")
    size += len(refusal) if isinstance(refusal, str) else 0
    size += len(thoughts) if isinstance(thoughts, str) else 0
    size += len(str(field(spoken, "transcript") or "")) if spoken else 0
    return kind, size, tuple(calls), ()


def _pairs(message: Message) -> Iterator[Piece]:
    """Names and ids of calls and results, as :func:`tool_names` takes them."""
    _, _, calls, results = _read(message)
    for function, call_id in zip(_functions(message), calls, strict=False):
        yield Piece("call", "", 0, str(field(function, "name") or ""), call_id)
    for call_id in results:
        yield Piece("result", "", 0, str(field(message, "name") or ""), call_id)


def _functions(message: Message) -> Iterator[Message]:
    for call in field(message, "tool_calls") or ():
        yield field(call, "function") or field(call, "custom") or {}
    legacy = field(message, "function_call")
    if legacy:
        yield legacy


def _arguments(function: Message) -> Json:
    arguments = field(function, "arguments")
    return field(function, "input") if arguments is None else arguments


def _argument_size(function: Message) -> int:
    arguments = _arguments(function)
    return len(arguments) if isinstance(arguments, str) else characters(arguments)


def _part_text(part: Message) -> str | None:
    """Text of a content part; ``""`` for reasoning, ``None`` for a medium."""
    if isinstance(part, str):
        return part
    kind = field(part, "type")
    if kind in _THOUGHTS:
        return ""
    for name in ("text", "refusal", "input_text", "output_text"):
        text = field(part, name)
        if isinstance(text, str):
            return text
    if kind in _MEDIA:
        return None
    return json_text(part)


def _medium(part: Message) -> tuple[str, str | None, str | None]:
    """MIME type, base64 text where there is any, and OpenAI's ``detail``."""
    kind = field(part, "type")
    if kind == "input_audio":
        audio = field(part, "input_audio")
        return f"audio/{field(audio, 'format') or 'wav'}", field(audio, "data"), None
    if kind in ("file", "document"):
        file = field(part, "file") or field(part, "source")
        data = field(file, "file_data") or field(file, "data")
        found = media.data_url(data) if isinstance(data, str) else None
        return (
            found[0] if found else str(field(file, "format") or "application/pdf"),
            found[1] if found else data,
            None,
        )
    picture = field(part, str(kind)) if isinstance(kind, str) else None
    url = picture if isinstance(picture, str) else field(picture, "url")
    found = media.data_url(url) if isinstance(url, str) else None
    mime = found[0] if found else {"video_url": "video/mp4", "audio_url": "audio/mpeg"}.get(str(kind), "image/*")
    return mime, found[1] if found else None, field(picture, "detail")


def _part_size(part: Message) -> int:
    text = _part_text(part)
    if text is None:
        mime, data, detail = _medium(part)
        return media.weight(mime, media.decoded_size(data) if data else None, detail=detail)
    if not text:
        return len(str(field(part, "thinking") or field(part, "reasoning") or ""))
    return len(text)


def _placeholder(part: Message) -> str:
    mime, data, _ = _medium(part)
    return media.placeholder(mime, data)


OPENAI = OpenAIWire()
