"""Parts of messages, steps of messages that must stay together, and weights of media, in every
format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeAlias

from compacter.messages.fields import Json, dig, first, json_text, members, text_of


class Kind(IntEnum):
    """Kind of a message, independent of its format."""

    SYSTEM = 0
    """Instructions; never compacted."""
    USER = 1
    """A genuine user message; it may also carry tool results."""
    ASSISTANT = 2
    RESULT = 3
    """Contains only tool results."""
    OTHER = 4
    """An item without a speaker, such as a reasoning item."""
    UNKNOWN = 5
    """Not a message of its format; never compacted."""
    INSERTED = 6
    """Filler inserted by compacter, where roles must alternate."""
    COMPACTED = 7
    """Contains a compaction by the provider; messages before the newest one are not in the model's
    context."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A tool call without its result, or a result without its call."""

    index: int
    """Index of the message."""
    call_id: str
    what: str
    """``"orphan result"`` or ``"unanswered call"``."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Outline of a history; kinds and sizes are parallel lists with one element per message."""

    kinds: list[Kind]
    sizes: list[int]
    steps: list[int]
    """Indexes at which a step begins, ascending. A step ends where the next one begins."""
    broken: tuple[Broken, ...]
    """Unpaired calls and results in order, except the calls of an open last step."""
    open: int | None
    """Index at which the last step begins, if some of its calls have no result yet."""


Outline: TypeAlias = tuple[Kind, int, Sequence[str], Sequence[str]]
"""Outline of a message: kind, data size in characters, ids of its calls, ids of its results."""


Speaker = Literal["system", "user", "assistant", "tool"]
Voice = Literal["user", "assistant"]
"""Role of a message that compacter writes."""
PartKind = Literal["text", "call", "answer", "result", "media", "reasoning", "compaction"]


# Not frozen, as making one would take five times as long; but never changed.
@dataclass(slots=True, unsafe_hash=True)
class Part:
    """One part of a message: a text, a tool call, the beginning of its result (``answer``), a part
    of the result, a medium, reasoning, or a compaction by the provider.
    """

    role: Speaker
    """Speaker; ``"tool"`` for everything inside a tool result."""
    kind: PartKind
    text: str
    """A text, the arguments of a call as JSON, the output of a result, or the placeholder of a
    medium.

    Empty for reasoning and compactions, of which only the size counts.
    """
    name: str = ""
    """Name of the tool, for a call and, if the format states it, for a result."""
    index: int = 0
    """Index of the message in the caller's list."""
    size: int = 0
    """Data size in characters; a medium's weight (see ``media_weight``)."""
    call_id: str | None = None
    """Id by which a call is paired with its result; ``None`` if it needs no partner."""


# Not frozen, as making one would take five times as long; but never changed.
@dataclass(slots=True, unsafe_hash=True)
class Place:
    """Place of the parts of one message: its speaker and its index. Its methods make the parts."""

    role: Speaker
    """Speaker; ``"tool"`` inside a tool's result, where each text is a part of the result."""
    index: int
    name: str = ""
    """Name of the tool, or of the speaker, for the parts made here."""
    call_id: str | None = None
    """Id of the call whose result this is."""

    def text(self, text: str, size: int | None = None) -> Part:
        """Return a part for a text, whose size is its length unless stated."""
        kind: PartKind = "result" if self.role == "tool" else "text"
        size = len(text) if size is None else size
        return Part(self.role, kind, text, self.name, self.index, size, self.call_id)

    def data(self, data: Json) -> Part:
        """Return a part that shows data of unknown structure as JSON. Encrypted data is not shown,
        but its size counts, because the provider decrypts it for the model.
        """
        data = members(data)
        keys = (
            [key for key in data if str(key).startswith("encrypted_")] if type(data) is dict else ()
        )
        size = sum(weigh_sealed(data.pop(key)) for key in keys)
        text = json_text(data)
        return self.text(text, size + len(text))

    def medium(self, kind: str, block: Json) -> Part:
        """Return a part for a medium of any format: a placeholder of type and size, without path or
        content. ``kind`` is its type, or the member that it stands in.
        """

        def at(*names: str) -> Json:
            paths = (f"{holder}{name}" for holder in (f"{kind}.", "source.", "") for name in names)
            return first(block, paths)

        mime = next((mime for word, mime in _MIME.items() if word in kind), _UNKNOWN)
        form = str(at("format", "output_format") or "")
        if form:
            family = "text" if form in _TEXTS else mime.partition("/")[0]
            mime = form if "/" in form else f"{family}/{form}"
        mime = str(at("media_type", "mime_type") or mime)
        data = at("data", "bytes", "file_data", "url", "image_url", "result") or dig(block, kind)
        text = text_of(at("text", "content") or (data if at("type") == "text" else "")) or ""
        if text and not mime.startswith("text/"):
            mime = "text/plain"
        elif isinstance(data, str) and data.startswith("data:"):
            head, _, data = data.removeprefix("data:").partition(",")
            mime = head.partition(";")[0] or _UNKNOWN
        # Base64 has no colon; an address has one after its scheme.
        is_address = isinstance(data, str) and ":" in data[:16]
        size = len(text) or (0 if is_address else weigh_sealed(data))
        shown = f"[{mime}, {size:,} bytes]" if size else f"[{mime}]"
        weight = IMAGE_LOW_DETAIL if at("detail") == "low" else media_weight(mime, size)
        return Part(self.role, "media", shown, self.name, self.index, weight)


class MessageParts(NamedTuple):
    """The parts of one message."""

    message: Any
    """The message itself. As long as this reference exists, no other message has its ``id``."""
    every: tuple[Part, ...]
    """All parts, reasoning and empty results included."""
    readable: tuple[Part, ...]
    """Those that a summarizer reads."""


def tools_of(messages: Iterable[MessageParts]) -> dict[int, set[str]]:
    """Return, for each message that has results of tools, the names of these tools, by the index of
    the message. If a name is unknown, it is empty.
    """
    called: dict[str | None, str] = {}
    tools: defaultdict[int, set[str]] = defaultdict(set)
    for index, read in enumerate(messages):
        for part in read.every:
            if part.kind == "call":
                called[part.call_id] = part.name
            elif part.role == "tool":
                tools[index].add(part.name or called.get(part.call_id, ""))
    return tools


_SPEAKING = (Kind.USER, Kind.ASSISTANT, Kind.INSERTED, Kind.COMPACTED)
STORED = "\0stored"
"""Id of a call that is only referred to: a result without another call may be its result."""


def pair_calls(
    outlines: Sequence[Outline], reach: list[int] | None = None, final: int = 0
) -> Steps:
    """Return the steps of a history, in which each call is paired with its results by position.

    Ids are not unique: real transcripts reuse them. A result belongs to the latest call with its id
    that has no result yet. That call is one of the batch just before it, and the batch ends with
    the next user or assistant message without one of its results.

    With ``reach`` results may come later than that. It has the index of the last message that must
    stay together with each, apart from results; from ``final`` on, calls may still be unanswered.
    """
    is_late = reach is not None
    reach = list(range(len(outlines))) if reach is None else reach
    waiting: dict[str, list[int]] = {}
    broken: list[Broken] = []
    for index, (kind, _, calls, results) in enumerate(outlines):
        if not (calls or results or waiting):
            continue  # By far the most common.
        answers = False
        for result in results:
            places = waiting.get(result)
            if places:
                # Use the latest call: an earlier one of the same id has its result by then.
                place = places.pop()
                reach[place] = max(reach[place], index)
                answers = True
            elif waiting.get(STORED):
                reach[waiting[STORED][-1]] = index
            else:
                broken.append(Broken(index, result, "orphan result"))
        if waiting and not is_late and (calls or (kind in _SPEAKING and not answers)):
            broken += _unanswered(waiting)
            waiting.clear()
        elif kind is Kind.USER:
            waiting.pop(STORED, None)
        for call in calls:
            waiting.setdefault(call, []).append(index)
    unanswered = _unanswered(waiting)
    broken += [half for half in unanswered if half.index < final]
    broken.sort(key=lambda half: half.index)
    opened = min((half.index for half in unanswered if half.index >= final), default=None)
    if opened is not None:
        reach[opened] = len(outlines) - 1
    steps = _beginnings(reach)
    return Steps(
        kinds=[outline[0] for outline in outlines],
        sizes=[outline[1] for outline in outlines],
        steps=steps,
        broken=tuple(broken),
        open=None if opened is None else steps[-1],
    )


def _beginnings(reach: Sequence[int]) -> list[int]:
    """Return the indexes at which a step begins: after all messages that reach further than
    themselves.
    """
    furthest = accumulate(reach, max, initial=-1)
    return [index for index, far in zip(range(len(reach)), furthest, strict=False) if index > far]


def _unanswered(waiting: Mapping[str, Sequence[int]]) -> list[Broken]:
    return [
        Broken(index, call, "unanswered call")
        for call, places in waiting.items()
        for index in places
        if call != STORED
    ]


def spoken(text: str) -> str:
    """Return ``text``, or a placeholder if it is blank: Anthropic, Bedrock and Gemini refuse blank
    text blocks.
    """
    return text if text.strip() else "(empty)"


# -- media -----------------------------------------------------------------------------------------
#
# Providers charge for media by pixels, seconds or pages, not by the length of their base64 text.
# The weights are estimates, with four characters per token:
#
# * an image: 1,000 tokens (OpenAI's high-detail images run from 765 to about 1,500, Anthropic's up
#   to 1,600); 85 tokens where ``detail`` is ``"low"`` (OpenAI's documented price);
# * audio and video: 25 tokens a second of 16 kB (audio 32, video about 260 at Gemini);
# * a document: 1,600 tokens for 60 kB, which are about a page (Anthropic: 1,500 to 3,000);
# * encrypted reasoning (encrypted content, a signature): one character per byte of the decoded
#   base64 text.

IMAGE = 4_000
"""Weight of an image, and of a medium of an unknown kind."""
IMAGE_LOW_DETAIL = 340
# By kind: bytes for one character of weight, and the weight where only an address is known.
_WEIGHTS = {
    "audio": (160, 3_000),
    "video": (160, 3_000),
    "application": (9, 12_800),
    "text": (1, IMAGE),
}
# MIME type of a medium that states none, by a word in its type.
_MIME = {
    "audio": "audio/*",
    "video": "video/*",
    "image": "image/*",
    "screenshot": "image/*",
    "document": "application/pdf",
    "file": "application/pdf",
}
_UNKNOWN = "application/octet-stream"
_TEXTS = ("txt", "md", "csv", "html")
"""Bedrock's formats of documents that are texts."""


def media_weight(mime: str, size: int = 0) -> int:
    """Return the weight of a medium of this MIME type, in characters; ``size`` are its decoded
    bytes, 0 if unknown.
    """
    bytes_of_one, unknown = _WEIGHTS.get(mime.partition("/")[0].lower(), (0, IMAGE))
    return -(-size // bytes_of_one) if size and bytes_of_one else unknown


def weigh_sealed(data: object) -> int:
    """Return the size of base64 text when decoded, or of bytes; 0 for anything else."""
    if not isinstance(data, (str, bytes, bytearray)):
        return 0
    # Base64 writes three bytes as four characters; padding does not matter for an estimate.
    return len(data) * 3 // 4 if isinstance(data, str) else len(data)
