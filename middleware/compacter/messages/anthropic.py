"""The Messages wire format of Anthropic, whichever cloud serves it.

Source of the rules: Anthropic's API reference, "Messages". A ``tool_result`` block must stand in the user
message right after the assistant message that holds its ``tool_use`` block; tools that Anthropic runs itself
(``server_tool_use``, ``mcp_tool_use``) have their result in the assistant's own message, or in its
continuation after ``pause_turn``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from compacter.messages import media
from compacter.messages.fields import Json, characters, field, json_text, listed, plain, replaced, unmarked
from compacter.messages.parts import (
    Piece,
    call,
    entries,
    only_text,
    reading,
    reasoning,
    result,
    spoken,
    tool_names,
    words,
)
from compacter.messages.steps import Kind, Outline, Reading, outline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compacter.messages.format import Edit, Message, WireName
    from compacter.messages.parts import Entry, Speaker


_KINDS = {
    "user": Kind.USER,
    "assistant": Kind.ASSISTANT,
    "system": Kind.SYSTEM,
    "developer": Kind.SYSTEM,
}
_SPEAKERS: dict[Kind, Speaker] = {Kind.USER: "user", Kind.SYSTEM: "system"}
_MEDIA = frozenset({"image", "document", "container_upload"})
_EDITABLE_RESULTS = frozenset({"tool_result", "mcp_tool_result"})
"""Results whose content is free text. Those of server tools are records that Anthropic reads back."""


class AnthropicWire:
    """See :class:`compacter.history.wire.Wire`."""

    name: WireName = "anthropic"
    alternates = True

    def outline(self, messages: Sequence[Message]) -> Outline:
        """Kinds, sizes and steps."""
        return outline(map(_read, messages))

    def size(self, message: Message) -> int:
        """Data size of one message in characters."""
        return _read(message).size

    def speaker(self, message: Message) -> str:
        """Whose turn the message takes."""
        role = field(message, "role")
        return "system" if role == "developer" else str(role)

    def entries(self, message: Message, index: int) -> Iterator[Entry]:
        """What a summarizer reads of it."""
        return entries(_SPEAKERS.get(_kind(message), "assistant"), _pieces(message), index)

    def plain_text(self, message: Message) -> str | None:
        """The words of a user message that holds nothing but text, else ``None``."""
        return only_text(_pieces(message)) if field(message, "role") == "user" else None

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """A new plain text message; never a blank one, which the API refuses."""
        return {"role": role, "content": spoken(text)}

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Which tools' results a message carries."""
        return tool_names(map(_pieces, messages))

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """A copy with edited texts and results; the message itself if nothing changed."""
        content = field(message, "content")
        if isinstance(content, str):
            text = edit("text", content, "")
            return message if text == content else replaced(message, content=spoken(text))
        blocks = listed(content)
        edited = [_rewrite(block, edit) for block in blocks]
        if all(new is old for new, old in zip(edited, blocks, strict=True)):
            return message
        return replaced(message, content=edited)

    def content(self, message: Message) -> Json:
        """The message as JSON-like data without marks; a lone text block is the same as a string."""
        data = unmarked(plain(message))
        if isinstance(data, dict) and isinstance(data.get("content"), str):
            data["content"] = [{"type": "text", "text": data["content"]}]
        return data

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Json]]:
        """A ready prompt and ``{"system": text}``, as ``messages.create`` takes them."""
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        said = [dict(message) for message in messages if message["role"] != "system"]
        return said, {"system": system} if system else {}


def _kind(message: Message) -> Kind:
    role = field(message, "role")
    return _KINDS.get(role, Kind.OTHER) if isinstance(role, str) else Kind.OTHER


def _read(message: Message) -> Reading:
    content = field(message, "content")
    if isinstance(content, str):
        return Reading(_kind(message), len(content))
    return reading(_kind(message), _pieces(message))


def _pieces(message: Message) -> Iterator[Piece]:
    for block in listed(field(message, "content")):
        kind = field(block, "type")
        if isinstance(block, str):
            yield words(block)
        elif kind == "text":
            yield words(str(field(block, "text") or ""))
        elif kind == "thinking":
            # Where the thinking itself is left out, it is sealed in the signature.
            text, signature = field(block, "thinking"), field(block, "signature")
            yield reasoning(len(text) if text else media.sealed(signature))
        elif kind == "redacted_thinking":
            yield reasoning(media.sealed(field(block, "data")))
        elif kind in _MEDIA:
            yield _medium(block)
        elif isinstance(kind, str) and kind.endswith("tool_use"):
            arguments = field(block, "input")
            yield call(str(field(block, "name") or ""), arguments, str(field(block, "id") or ""))
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            yield from _result(block)
        else:
            yield words(_other_text(block))


def _result(block: Message) -> Iterator[Piece]:
    content = field(block, "content")
    # The id goes with a piece of its own: the output may be empty, or nothing but an image.
    yield result("", str(field(block, "tool_use_id") or ""))
    for part in listed(content):
        if field(part, "type") in _MEDIA:
            yield _medium(part)._replace(nested=True)
        elif isinstance(part, str):
            yield result(part, None)
        elif field(part, "type") == "text":
            yield result(str(field(part, "text") or ""), None)
        else:
            yield result(_other_text(part), None)._replace(size=_other_size(part))


def _other_text(block: Message) -> str:
    """The text of a search result, or a block that only its tool knows as JSON, without what is sealed."""
    inner = field(block, "content")
    if field(block, "type") == "search_result":
        texts = [str(field(part, "text") or "") for part in listed(inner)]
        return "\n".join(filter(None, (str(field(block, "title") or ""), *texts)))
    data = plain(block)
    return json_text(_unsealed(data) if isinstance(data, dict) else data)


def _unsealed(data: Json) -> Json:
    if isinstance(data, dict):
        return {key: _unsealed(value) for key, value in data.items() if not key.startswith("encrypted_")}
    return [_unsealed(value) for value in data] if isinstance(data, list) else data


def _other_size(block: Message) -> int:
    """Size of such a block, what is sealed included: Anthropic decrypts it and the model reads it."""
    data = plain(block)
    sealed = [value for key, value in data.items() if key.startswith("encrypted_")] if isinstance(data, dict) else []
    return characters(_unsealed(data)) + sum(map(media.sealed, sealed))


def _medium(block: Message) -> Piece:
    source = field(block, "source")
    kind, data = field(source, "type"), field(source, "data")
    mime = str(field(source, "media_type") or ("application/pdf" if field(block, "type") == "document" else "image/*"))
    if field(block, "type") == "container_upload":
        mime = "application/octet-stream"
    if kind == "text" and isinstance(data, str):
        return Piece("media", media.placeholder(mime, bytes_=len(data)), len(data))
    if kind == "content":
        parts = listed(field(source, "content"))
        size = sum(_part_size(part) for part in parts)
        return Piece("media", media.placeholder("text/plain", bytes_=size), size)
    raw = data if isinstance(data, (str, bytes)) else None
    return Piece("media", media.placeholder(mime, raw), media.weight(mime, media.decoded_size(raw) if raw else None))


def _part_size(part: Message) -> int:
    return _medium(part).size if field(part, "type") in _MEDIA else characters(field(part, "text") or part)


def _rewrite(block: Message, edit: Edit) -> Message:
    kind = field(block, "type")
    if isinstance(block, str) or kind == "text":
        old = block if isinstance(block, str) else str(field(block, "text") or "")
        new = edit("text", old, "")
        if new == old:
            return block
        return spoken(new) if isinstance(block, str) else replaced(block, text=spoken(new))
    if kind in _EDITABLE_RESULTS:
        content = field(block, "content")
        old = "".join(part if isinstance(part, str) else str(field(part, "text") or "") for part in listed(content))
        new = edit("result", old, "")
        return block if new == old else replaced(block, content=new)
    return block


ANTHROPIC = AnthropicWire()
