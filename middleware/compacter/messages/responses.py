"""The Responses wire format of OpenAI: a list of items instead of messages.

Source of the rules: OpenAI's API reference for responses, "input", and its guide on reasoning. Each call is
an item with a ``call_id``, and so is its output, which may come after other items. A reasoning item must be
followed by the items it was made with, and those must keep it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from compacter.messages import media
from compacter.messages.fields import Json, characters, field, json_text, listed, plain, replaced, unmarked
from compacter.messages.parts import Piece, call, entries, only_text, reading, reasoning, result, tool_names, words
from compacter.messages.steps import Broken, Kind, Outline, Reading

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
_TYPES = {
    "reasoning": Kind.OTHER,
    "item_reference": Kind.OTHER,
    "mcp_list_tools": Kind.OTHER,
    # What OpenAI made of the past stands for it from here on, and so does a late list of tools: never folded.
    "compaction": Kind.SYSTEM,
    "compaction_summary": Kind.SYSTEM,
    "additional_tools": Kind.SYSTEM,
    "mcp_approval_request": Kind.ASSISTANT,
    "mcp_approval_response": Kind.RESULT,
    "program": Kind.ASSISTANT,
}
_SPEAKERS: dict[Kind, Speaker] = {Kind.USER: "user", Kind.SYSTEM: "system", Kind.RESULT: "tool"}
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_MEDIA = frozenset({"input_image", "input_file", "input_audio", "computer_screenshot", "image"})
_ARGUMENTS = ("arguments", "input", "action", "actions", "operation", "code", "queries")
_OUTPUTS = ("output", "outputs", "results", "tools", "error")


class ResponsesWire:
    """See :class:`compacter.history.wire.Wire`.

    A caller's plain string is one user message: wrap it (``say``) before asking here.
    """

    name: WireName = "responses"
    alternates = False

    def outline(self, messages: Sequence[Message]) -> Outline:
        """Kinds, sizes and steps; a step spans from a call to its output, from reasoning to its items."""
        return _outline(messages, [_read(item) for item in messages])

    def size(self, message: Message) -> int:
        """Data size of one item in characters."""
        return _read(message).size

    def speaker(self, message: Message) -> str:
        """Whose item it is."""
        return _SPEAKERS.get(_kind(message), "assistant")

    def entries(self, message: Message, index: int) -> Iterator[Entry]:
        """What a summarizer reads of it."""
        return entries(_SPEAKERS.get(_kind(message), "assistant"), _pieces(message), index)

    def plain_text(self, message: Message) -> str | None:
        """The words of a user message that holds nothing but text, else ``None``."""
        return only_text(_pieces(message)) if _kind(message) is Kind.USER else None

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """A new plain text message."""
        return {"type": "message", "role": role, "content": text}

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Which tools' results a message carries."""
        return tool_names(map(_pieces, messages))

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """A copy with edited texts and outputs; the item itself if nothing changed."""
        if _type(message) == "message":
            return _rewrite_message(message, edit)
        output = field(message, "output")
        if not isinstance(output, (str, list, tuple)) or _type(message) == "shell_call_output":
            return message
        old = "".join(_part_text(part) for part in listed(output))
        new = edit("result", old, str(field(message, "name") or ""))
        return message if new == old else replaced(message, output=new)

    def content(self, message: Message) -> Json:
        """The item as JSON-like data without marks; an item without a type is a message."""
        data = unmarked(plain(message))
        if isinstance(data, dict) and "type" not in data:
            data["type"] = "message"
        return data

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Json]]:
        """A ready prompt and ``{"instructions": text}``, as ``responses.create`` takes them."""
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        said = [{"type": "message", **message} for message in messages if message["role"] != "system"]
        return said, {"instructions": system} if system else {}


def _type(item: Message) -> str:
    return str(field(item, "type") or ("message" if field(item, "role") else ""))


def _kind(item: Message) -> Kind:
    what = _type(item)
    if what == "message":
        role = field(item, "role")
        return _KINDS.get(role, Kind.OTHER) if isinstance(role, str) else Kind.OTHER
    if what in _TYPES:
        return _TYPES[what]
    if what.endswith("_output"):
        return Kind.RESULT
    return Kind.ASSISTANT if what.endswith("_call") else Kind.OTHER


def _read(item: Message) -> Reading:
    return reading(_kind(item), _pieces(item))


def _pieces(item: Message) -> Iterator[Piece]:
    what = _type(item)
    if what == "message":
        yield from map(_part, listed(field(item, "content")))
    elif what in ("reasoning", "compaction", "compaction_summary"):
        texts = (*listed(field(item, "summary")), *listed(field(item, "content")))
        yield reasoning(sum(map(len, map(_part_text, texts))) + media.sealed(field(item, "encrypted_content")))
    elif what == "mcp_approval_request":
        yield call(str(field(item, "name") or ""), field(item, "arguments"), str(field(item, "id") or ""))
    elif what == "mcp_approval_response":
        approved = "approved" if field(item, "approve") else "refused"
        yield result(approved, str(field(item, "approval_request_id") or ""))
    elif what.endswith("_output"):
        # The id goes with a piece of its own: the output may be empty, or nothing but an image.
        # The output of a local shell names its call in ``id``.
        yield result("", str(field(item, "call_id") or field(item, "id") or ""))
        yield from _output(field(item, "output"))
    elif what.endswith("_call") or what == "program":
        yield from _call(item, what)
    elif what not in ("item_reference", "mcp_list_tools", "additional_tools"):
        yield words(json_text(item))
    else:
        yield reasoning(characters(field(item, "tools")) + len(str(field(item, "id") or "")))


def _call(item: Message, what: str) -> Iterator[Piece]:
    """A call; one that OpenAI ran itself has no ``call_id`` and carries what came of it."""
    found = (field(item, name) for name in _ARGUMENTS)
    arguments = next((value for value in found if value is not None), None)
    call_id = field(item, "call_id")
    name = str(field(item, "name") or what.removesuffix("_call"))
    yield call(name, arguments, str(call_id) if call_id else None)
    if call_id:
        return
    picture = field(item, "result")
    if isinstance(picture, str) and what == "image_generation_call":
        mime = f"image/{field(item, 'output_format') or 'png'}"
        weight = media.weight(mime, media.decoded_size(picture))
        yield Piece("media", media.placeholder(mime, picture), weight)
    for output in _OUTPUTS:
        yield from _output(field(item, output))


def _output(output: Json) -> Iterator[Piece]:
    for part in listed(output):
        piece = _part(part)
        yield piece._replace(what="result" if piece.what == "text" else piece.what, nested=True)


def _part(part: Message) -> Piece:
    if isinstance(part, str) or field(part, "type") in _TEXTS or field(part, "type") == "refusal":
        return words(_part_text(part))
    if field(part, "type") in _MEDIA:
        return _medium(part)
    data = plain(part)
    return Piece("text", data, characters(data))


def _part_text(part: Message) -> str:
    if isinstance(part, str):
        return part
    return str(field(part, "refusal" if field(part, "type") == "refusal" else "text") or "")


def _medium(part: Message) -> Piece:
    mime, data = (
        {"input_file": "application/pdf", "input_audio": "audio/wav"}.get(field(part, "type"), "image/*"),
        None,
    )
    if field(part, "type") == "input_audio":
        audio = field(part, "input_audio")
        mime, data = f"audio/{field(audio, 'format') or 'wav'}", field(audio, "data")
    for name in ("image_url", "file_data", "url"):
        url = field(part, name)
        found = media.data_url(url) if isinstance(url, str) else None
        if found:
            mime, data = found
        elif name == "file_data" and isinstance(url, str):
            data = url
    weight = media.weight(mime, media.decoded_size(data) if data else None, detail=field(part, "detail"))
    return Piece("media", media.placeholder(mime, data), weight)


def _rewrite_message(message: Message, edit: Edit) -> Message:
    content = field(message, "content")
    if isinstance(content, str):
        text = edit("text", content, "")
        return message if text == content else replaced(message, content=text)
    parts = listed(content)
    edited = [_rewrite_part(part, edit) for part in parts]
    if all(new is old for new, old in zip(edited, parts, strict=True)):
        return message
    return replaced(message, content=edited)


def _rewrite_part(part: Message, edit: Edit) -> Message:
    if field(part, "type") not in _TEXTS:
        return part
    old = _part_text(part)
    new = edit("text", old, "")
    if new == old:
        return part
    # Annotations point into the old text by position.
    return replaced(part, text=new, annotations=[]) if field(part, "annotations") else replaced(part, text=new)


def _outline(items: Sequence[Message], readings: Sequence[Reading]) -> Outline:
    """Steps as the union of spans; linear, however the spans overlap."""
    reach = list(range(len(readings)))  # Index of the last item that must stay together with this one.
    waiting, broken = _join_calls(items, readings, reach)
    _join_reasoning(items, readings, reach)
    final = _final_run(readings)
    opened = min((index for index, _ in waiting if index in final), default=None)
    if opened is not None:
        reach[opened] = len(readings) - 1
    broken.extend(Broken(index, called, "unanswered call") for index, called in waiting if index not in final)
    broken.sort(key=lambda half: half.index)
    steps = _steps(reach)
    kinds, sizes = [read.kind for read in readings], [read.size for read in readings]
    return Outline(kinds, sizes, steps, tuple(broken), None if opened is None else steps[-1])


def _join_calls(
    items: Sequence[Message], readings: Sequence[Reading], reach: list[int]
) -> tuple[list[tuple[int, str]], list[Broken]]:
    """Tie each call to its output: the latest call of that id that has none. Returns who is left over."""
    orphans: list[Broken] = []
    waiting: dict[str, list[int]] = {}
    referred: int | None = None
    for index, (kind, _, calls, results) in enumerate(readings):
        if kind is Kind.USER:
            referred = None
        elif _type(items[index]) == "item_reference":
            referred = index
        for answered in results:
            if waiting.get(answered):
                reach[waiting[answered].pop()] = index
            elif referred is not None:
                # The call may be the item that OpenAI keeps and the reference stands for.
                reach[referred] = index
            else:
                orphans.append(Broken(index, answered, "orphan result"))
        for called in calls:
            waiting.setdefault(called, []).append(index)
    return [(index, called) for called, places in waiting.items() for index in places], orphans


def _join_reasoning(items: Sequence[Message], readings: Sequence[Reading], reach: list[int]) -> None:
    """Tie reasoning to what the model made right after it.

    A response's items follow each other; only a user, an output or an instruction stands between two
    responses. A reference may stand for reasoning.
    """
    end = len(items)
    for index in range(len(items) - 1, -1, -1):
        if readings[index].kind not in (Kind.ASSISTANT, Kind.OTHER):
            end = index
        elif _type(items[index]) in ("reasoning", "item_reference"):
            reach[index] = max(reach[index], end - 1)


def _final_run(readings: Sequence[Reading]) -> range:
    """The items of the last response, if nothing but outputs follows it: its calls may still be waiting."""
    stop = len(readings)
    while stop and readings[stop - 1].kind in (Kind.RESULT, Kind.SYSTEM):
        stop -= 1
    start = stop
    while start and readings[start - 1].kind in (Kind.ASSISTANT, Kind.OTHER):
        start -= 1
    return range(start, stop)


def _steps(reach: Sequence[int]) -> list[int]:
    """Where steps begin: wherever nothing earlier reaches."""
    steps: list[int] = []
    furthest = -1
    for index, far in enumerate(reach):
        if index > furthest:
            steps.append(index)
        furthest = max(furthest, far)
    return steps


RESPONSES = ResponsesWire()
