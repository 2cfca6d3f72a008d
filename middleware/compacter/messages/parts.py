"""Parts and steps: what a message is made of, and which messages must stay together, whatever their format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from compacter.messages import media
from compacter.messages.fields import Json, characters, json_text


class Kind(IntEnum):
    """What a message is to a compaction, whatever its provider calls it."""

    SYSTEM = 0
    """Instructions; never folded."""
    USER = 1
    """A genuine user message; it may also carry tool results."""
    ASSISTANT = 2
    RESULT = 3
    """Carries tool results and nothing else."""
    OTHER = 4
    """An item without a speaker, such as a reasoning item."""
    UNKNOWN = 5
    """Not a message of its format; never folded."""
    INSERTED = 6
    """Put in by compacter where turns must alternate; no user said it."""
    COMPACTED = 7
    """Carries a compaction that the provider made; what stands before the newest is not in the model's context."""


@dataclass(frozen=True, slots=True)
class Broken:
    """One half of a tool pair without the other half."""

    index: int
    """Position of the message."""
    call_id: str
    what: str
    """``"orphan result"`` or ``"unanswered call"``."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A history in short: kinds and sizes are parallel lists, one element a message."""

    kinds: list[Kind]
    sizes: list[int]
    steps: list[int]
    """Indexes at which a step begins, ascending. A step ends where the next one begins."""
    broken: tuple[Broken, ...]
    """Half pairs, in order; the calls of an open last step are not among them."""
    open: int | None
    """Where the last step begins, if its calls are still waiting for results."""


Outline: TypeAlias = tuple[Kind, int, Sequence[str], Sequence[str]]
"""One message in short: kind, data size in characters, the ids it calls with, the ids it answers."""


def left(counts: dict[str, int]) -> list[str]:
    """The ids of the calls that are left, each as often as it is."""
    return [call_id for call_id, count in counts.items() for _ in range(count)]


Speaker = Literal["system", "user", "assistant", "tool"]
PartKind = Literal["text", "call", "result", "media", "reasoning"]


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of one message: a text, a tool call, (part of) a tool's result, a medium, or reasoning."""

    role: Speaker
    """Who says it; ``"tool"`` for everything inside a tool's result."""
    kind: PartKind
    text: str
    """The words of a text, the arguments (JSON text) of a call, the output of a result, the placeholder of a medium.

    Empty for reasoning, which is weighed and never shown.
    """
    name: str = ""
    """The tool's name, for a call and (where the format states it) for a result."""
    index: int = 0
    """Position of the message in the caller's list."""
    size: int = 0
    """Data size in characters; a medium's weight (see ``media``)."""
    call_id: str | None = None
    """What a call or its result is paired by; ``None`` where it needs no partner."""

    @classmethod
    def of_text(cls, role: Speaker, text: str, index: int) -> Part:
        """Plain text."""
        return cls(role, "text", text, "", index, len(text))

    @classmethod
    def of_data(cls, role: Speaker, data: Json, index: int) -> Part:
        """Data that only its maker knows, shown as JSON."""
        return cls(role, "text", json_text(data), "", index, characters(data))

    @classmethod
    def of_reasoning(cls, role: Speaker, size: int, index: int) -> Part:
        """Reasoning: weighed, never shown."""
        return cls(role, "reasoning", "", "", index, size)

    @classmethod
    def of_call(cls, name: str, arguments: Json, call_id: str | None, index: int) -> Part:
        """A tool call."""
        return cls("assistant", "call", json_text(arguments), name, index, len(name) + characters(arguments), call_id)

    @classmethod
    def of_result(cls, output: Json, call_id: str | None, index: int, name: str = "") -> Part:
        """A tool's output, or one part of it."""
        return cls("tool", "result", json_text(output), name, index, characters(output), call_id)

    @classmethod
    def of_medium(
        cls,
        role: Speaker,
        mime: str,
        data: Json,
        index: int,
        *,
        name: str = "",
        detail: Json = None,
        characters: int | None = None,
    ) -> Part:
        """A medium: ``data`` is its bytes, base64 text or address. ``characters`` is the size of one that is a text."""
        if isinstance(data, str) and (found := media.data_url(data)) is not None:
            mime, data = found
        if not isinstance(data, (str, bytes, bytearray)) or not data or (isinstance(data, str) and ":" in data[:16]):
            data = None  # What lies elsewhere has an address such as https://...
        size = characters
        if size is None:
            size = media.weight(mime, None if data is None else media.decoded_size(data), detail=detail)
        return cls(role, "media", media.placeholder(mime, data, bytes_=characters), name, index, size)


def outlined(role: Kind, parts: Iterable[Part]) -> Outline:
    """A message of these parts in short. Pairs that are complete inside the message are not returned.

    A user's message is a genuine one unless it holds tool results and nothing else.
    """
    size, calls, results, genuine = 0, dict[str, int](), list[str](), False
    for part in parts:
        size += part.size
        genuine = genuine or part.role != "tool"
        if part.call_id is None:
            continue
        if part.kind == "call":
            calls[part.call_id] = calls.get(part.call_id, 0) + 1
        elif calls.get(part.call_id):
            calls[part.call_id] -= 1
        else:
            results.append(part.call_id)
    kind = Kind.RESULT if role is Kind.USER and results and not genuine else role
    return kind, size, tuple(left(calls)), tuple(results)


_SPEAKING = (Kind.USER, Kind.ASSISTANT, Kind.INSERTED, Kind.COMPACTED)


def paired(  # noqa: C901 - one decision a line
    messages: Sequence[Any], read: Callable[[Any], Outline], plain: Mapping[str, Kind], filler: str
) -> Steps:
    """A whole history in short: each call is paired with its results by position.

    Ids are no key: real transcripts reuse them. A result belongs to the batch of calls just before it; the
    batch ends with the next user or assistant message that answers none of it. A result that answers nothing
    is a step of its own, unless calls are still waiting: then their results may follow it.

    A message of a role in ``plain`` and a text, and of nothing else, needs no ``read``, but for the ``filler``.
    """
    kinds, sizes, steps, broken = list[Kind](), list[int](), list[int](), list[Broken]()
    waiting: dict[str, int] = {}
    caller = 0
    for index, message in enumerate(messages):
        try:
            if plain and not waiting and type(message) is dict and len(message) == 2:
                text, kind = message["content"], plain[message["role"]]
                if type(text) is str and text != filler:
                    kinds.append(kind)
                    sizes.append(len(text))
                    steps.append(index)
                    continue
        except (LookupError, TypeError):
            pass  # Not of this common form.
        kind, size, calls, results = read(message)
        kinds.append(kind)
        sizes.append(size)
        answers = False
        for result in results:
            count = waiting.pop(result, 0)
            if not count:
                broken.append(Broken(index, result, "orphan result"))
                continue
            answers = True
            if count > 1:
                waiting[result] = count - 1
        if not answers and (not waiting or kind in _SPEAKING):
            steps.append(index)
        elif not calls:
            continue
        if waiting:
            broken.extend(Broken(caller, call, "unanswered call") for call in left(waiting))
            waiting.clear()
        for call in calls:
            waiting[call] = waiting.get(call, 0) + 1
        caller = index
    broken.sort(key=lambda half: half.index)
    return Steps(kinds, sizes, steps, tuple(broken), steps[-1] if waiting else None)


def spoken(text: str) -> str:
    """``text``, or a mark where it is blank: Anthropic, Bedrock and Gemini refuse a blank text block."""
    return text if text.strip() else "(empty)"
