"""Parts: what a message is made of, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from compacter.messages.fields import Json, characters, json_text
from compacter.messages.steps import Kind, Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


Speaker = Literal["system", "user", "assistant", "tool"]
PartKind = Literal["text", "call", "result", "media", "summary"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece of one message as text.

    ``text`` holds the words of a text, the arguments (JSON text) of a call, the output of a result, the placeholder
    of a medium, or the prose of a prior summary. Reasoning is never made into an entry.
    """

    role: Speaker
    kind: PartKind
    text: str
    name: str = ""
    """The tool's name, for a call and (where the wire format tells it) for a result."""
    index: int = 0
    """Position of the message in the caller's list."""


class Piece(NamedTuple):
    """One block of a message, or one part of a tool result."""

    what: Literal["text", "call", "result", "media", "reasoning"]
    value: Json
    """The text; for a call and a result also JSON-like data; for a medium its placeholder."""
    size: int
    """Data size in characters; a medium's weight."""
    name: str = ""
    """The tool's name, where the wire format tells it."""
    call_id: str | None = None
    """What the call or result is paired by; ``None`` where it needs no partner."""
    nested: bool = False
    """Whether it stands inside a tool result."""


def words(text: str) -> Piece:
    """Plain text."""
    return Piece("text", text, len(text))


def reasoning(size: int) -> Piece:
    """Reasoning: weighed, never shown."""
    return Piece("reasoning", "", size)


def call(name: str, arguments: Json, call_id: str | None) -> Piece:
    """A tool call."""
    return Piece("call", arguments, len(name) + characters(arguments), name, call_id)


def result(output: Json, call_id: str | None, name: str = "") -> Piece:
    """A tool's output, or one part of it."""
    return Piece("result", output, characters(output), name, call_id, nested=True)


def reading(role: Kind, pieces: Iterable[Piece]) -> Reading:
    """Kind, size, calls and results. Pairs that are complete inside the message are nobody else's business.

    A user's message is a genuine one unless it holds tool results and nothing else.
    """
    size, calls, results, genuine = 0, list[str](), list[str](), False
    for piece in pieces:
        size += piece.size
        genuine = genuine or not piece.nested
        if piece.call_id is None:
            continue
        if piece.what == "call":
            calls.append(piece.call_id)
        elif piece.call_id in calls:
            calls.remove(piece.call_id)
        else:
            results.append(piece.call_id)
    kind = Kind.RESULT if role is Kind.USER and results and not genuine else role
    return Reading(kind, size, tuple(calls), tuple(results))


def entries(speaker: Speaker, pieces: Iterable[Piece], index: int) -> Iterator[Entry]:
    """What a summarizer gets to see of the pieces; empty ones are left out, a call never is."""
    for piece in pieces:
        if piece.what == "reasoning":
            continue
        text = json_text(piece.value)
        if piece.what == "call":
            yield Entry("assistant", "call", text, piece.name, index)
        elif text:
            yield Entry("tool" if piece.nested else speaker, piece.what, text, piece.name, index)


def tool_names(messages: Iterable[Iterable[Piece]]) -> dict[int, tuple[str, ...]]:
    """Index of each message with results, and the tools whose they are; by position, as ids are reused."""
    called: dict[str, str] = {}
    found: dict[int, tuple[str, ...]] = {}
    for index, pieces in enumerate(messages):
        names: list[str] = []
        for piece in pieces:
            if piece.call_id is not None and piece.what == "call":
                called[piece.call_id] = piece.name
            elif piece.call_id is not None:
                names.append(piece.name or called.get(piece.call_id, ""))
        if names:
            found[index] = tuple(names)
    return found


def only_text(pieces: Iterable[Piece]) -> str | None:
    """The text of pieces that are all text, else ``None``."""
    texts: list[str] = []
    for piece in pieces:
        if piece.what != "text" or not isinstance(piece.value, str):
            return None
        texts.append(piece.value)
    return "".join(texts)


def spoken(text: str) -> str:
    """``text``, or a mark where it is blank: Anthropic, Bedrock and Gemini refuse a blank text block."""
    return text if text.strip() else "(empty)"
