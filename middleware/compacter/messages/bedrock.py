"""The Converse wire format of Amazon Bedrock.

Source of the rules: the API reference of Bedrock Runtime, "Converse". Blocks are told apart by their one key;
a ``toolResult`` must stand in the user message right after the assistant message that holds its ``toolUse``.
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


_KINDS = {"user": Kind.USER, "assistant": Kind.ASSISTANT, "system": Kind.SYSTEM}
_SPEAKERS: dict[Kind, Speaker] = {Kind.USER: "user", Kind.SYSTEM: "system"}
_MEDIA = ("image", "document", "video", "audio")
_OTHER_FORMATS = {
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}


class BedrockWire:
    """See :class:`compacter.history.wire.Wire`."""

    name: WireName = "bedrock"
    alternates = True

    def outline(self, messages: Sequence[Message]) -> Outline:
        """Kinds, sizes and steps."""
        return outline(map(_read, messages))

    def size(self, message: Message) -> int:
        """Data size of one message in characters."""
        return _read(message).size

    def speaker(self, message: Message) -> str:
        """Whose turn the message takes."""
        return str(field(message, "role"))

    def entries(self, message: Message, index: int) -> Iterator[Entry]:
        """What a summarizer reads of it."""
        return entries(_SPEAKERS.get(_kind(message), "assistant"), _pieces(message), index)

    def plain_text(self, message: Message) -> str | None:
        """The words of a user message that holds nothing but text, else ``None``."""
        return only_text(_pieces(message)) if field(message, "role") == "user" else None

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """A new plain text message; never a blank one, which the API refuses."""
        return {"role": role, "content": [{"text": spoken(text)}]}

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Which tools' results a message carries."""
        return tool_names(map(_pieces, messages))

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """A copy with edited texts and results; the message itself if nothing changed."""
        blocks = listed(field(message, "content"))
        edited = [_rewrite(block, edit) for block in blocks]
        if all(new is old for new, old in zip(edited, blocks, strict=True)):
            return message
        return replaced(message, content=edited)

    def content(self, message: Message) -> Json:
        """The message as JSON-like data without cache points."""
        data = unmarked(plain(message))
        blocks = field(data, "content")
        if isinstance(blocks, list):
            data["content"] = [block for block in blocks if field(block, "cachePoint") is None]
        return data

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Json]]:
        """A ready prompt and ``{"system": [blocks]}``, as ``converse`` takes them."""
        system = [{"text": message["content"]} for message in messages if message["role"] == "system"]
        said = [
            {"role": message["role"], "content": [{"text": message["content"]}]}
            for message in messages
            if message["role"] != "system"
        ]
        return said, {"system": system} if system else {}


def _kind(message: Message) -> Kind:
    role = field(message, "role")
    return _KINDS.get(role, Kind.OTHER) if isinstance(role, str) else Kind.OTHER


def _read(message: Message) -> Reading:
    return reading(_kind(message), _pieces(message))


def _pieces(message: Message) -> Iterator[Piece]:
    for block in listed(field(message, "content")):
        text = block if isinstance(block, str) else field(block, "text")
        if isinstance(text, str):
            yield words(text)
        elif (use := field(block, "toolUse")) is not None:
            yield call(str(field(use, "name") or ""), field(use, "input"), str(field(use, "toolUseId") or ""))
        elif (answer := field(block, "toolResult")) is not None:
            # The id goes with a piece of its own: the output may be empty, or nothing but an image.
            yield result("", str(field(answer, "toolUseId") or ""))
            for part in listed(field(answer, "content")):
                piece = _part(part)
                yield piece._replace(what="result" if piece.what == "text" else piece.what, nested=True)
        elif field(block, "cachePoint") is None:
            yield _part(block)


def _part(block: Message) -> Piece:
    """A block that may stand in a message and, most of them, in a tool result."""
    text = field(block, "text")
    if isinstance(text, str):
        return words(text)
    if (thought := field(block, "reasoningContent")) is not None:
        spelt = field(thought, "reasoningText")
        size = len(str(field(spelt, "text") or "")) or media.sealed(field(spelt, "signature"))
        return reasoning(size + media.sealed(field(thought, "redactedContent")))
    if (guarded := field(block, "guardContent")) is not None:
        inner = field(guarded, "text")
        return _part(guarded) if inner is None else words(str(field(inner, "text") or ""))
    if (cited := field(block, "citationsContent")) is not None:
        return words("".join(str(field(part, "text") or "") for part in listed(field(cited, "content"))))
    for kind in _MEDIA:
        medium = field(block, kind)
        if medium is not None:
            return _medium(kind, medium)
    value = field(block, "json")
    data = plain(block) if value is None else value
    return Piece("text", data, characters(data))


def _medium(kind: str, medium: Message) -> Piece:
    form, source = str(field(medium, "format") or ""), field(medium, "source")
    mime = _OTHER_FORMATS.get(form, f"application/{form or 'pdf'}") if kind == "document" else f"{kind}/{form or '*'}"
    text = field(source, "text")
    if text is None and (parts := field(source, "content")) is not None:
        text = "".join(str(field(part, "text") or "") for part in listed(parts))
    if isinstance(text, str):
        return Piece("media", media.placeholder(mime, bytes_=len(text)), len(text))
    data = field(source, "bytes")
    raw = bytes(data) if isinstance(data, (bytes, bytearray)) else None
    return Piece("media", media.placeholder(mime, raw), media.weight(mime, len(raw) if raw else None))


def _rewrite(block: Message, edit: Edit) -> Message:
    text = field(block, "text")
    if isinstance(text, str):
        new = edit("text", text, "")
        return block if new == text else replaced(block, text=spoken(new))
    answer = field(block, "toolResult")
    if answer is None:
        return block
    old = _answer_text(field(answer, "content"))
    new = edit("result", old, "")
    return block if new == old else replaced(block, toolResult=replaced(answer, content=[{"text": spoken(new)}]))


def _answer_text(content: Json) -> str:
    pieces = map(_part, listed(content))
    return "".join(json_text(piece.value) for piece in pieces if piece.what == "text")


BEDROCK = BedrockWire()
