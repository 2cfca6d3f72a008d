"""Streams in which a model calls ``recall``: the reply that chunks add up to, and how the chunks
of the next reply continue those of the last one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from compacter.lines.tool import is_call
from compacter.messages.fields import Json, dig, field, json_text, listed, replaced, word

# Where a chunk has its calls, among other things.
_CHUNKS = {
    "openai": "choices.0.delta.tool_calls",
    "anthropic": "content_block",
    "responses": "item",
    "gemini": "candidates.0.content.parts",
}
# Members of a delta that are not pieces of a text.
_WHOLE = frozenset({"id", "type", "role", "index", "name"})
# Events with which a reply begins.
_BEGINNING = frozenset(
    {"message_start", "response.created", "response.in_progress", "response.queued"}
)


def has_call(chunk: Json, wire_format: str) -> bool:
    """Return whether a chunk begins a call that the program has to answer."""
    return any(map(is_call, listed(dig(chunk, _CHUNKS[wire_format]))))


def reply_of(chunks: Sequence[Json], wire_format: str) -> Json:
    """Return the reply that the chunks of a whole stream add up to."""
    if wire_format == "responses":
        done = (chunk for chunk in chunks if word(chunk, "type") == "response.output_item.done")
        return {"output": [field(chunk, "item") for chunk in done]}
    if wire_format == "gemini":
        parts = [part for chunk in chunks for part in listed(dig(chunk, _CHUNKS["gemini"]))]
        # An empty text ends many streams, and no request may have one.
        filled = [part for part in parts if json_text(part) not in ('{"text": ""}', "{}")]
        return {"candidates": [{"content": {"role": "model", "parts": filled}}]}
    if wire_format == "anthropic":
        return {"content": _blocks(chunks)}
    message: dict[str, Json] = {"role": "assistant", "content": None}
    for chunk in chunks:
        _add(message, _plain(dig(chunk, "choices.0.delta")))
    for call in listed(message.get("tool_calls")):
        call.pop("index", None)
    return {"choices": [{"message": message}]}


def _blocks(chunks: Sequence[Json]) -> list[dict[str, Json]]:
    """Return the content of Anthropic's reply."""
    blocks: dict[int, dict[str, Json]] = {}
    for chunk in chunks:
        if field(chunk, "content_block") is not None:
            blocks[field(chunk, "index")] = _plain(field(chunk, "content_block"))
        elif word(chunk, "type") == "content_block_delta":
            delta = _plain(field(chunk, "delta"))
            # A citation is of use to readers only.
            kept = {name: delta[name] for name in delta if name not in ("type", "citation")}
            _add(blocks.setdefault(field(chunk, "index"), {}), kept)
    for block in blocks.values():
        if arguments := block.pop("partial_json", ""):
            with suppress(ValueError):  # The reply was cut off.
                block["input"] = json.loads(arguments)
    return [*blocks.values()]


def _plain(thing: Json) -> dict[str, Json]:
    """Return a copy of an object, of dicts, lists and texts alone."""
    plain: dict[str, Json] = json.loads(json_text(thing) or "{}")
    return plain


def _add(whole: dict[str, Json], delta: Mapping[str, Json]) -> None:
    """Add a delta to what came before: texts and lists are continued, and so are those objects in a
    list whose index and id are the same.
    """
    for name, value in delta.items():
        old = whole.get(name)
        if value is None:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            _add(old, value)
        elif isinstance(value, list):
            items = whole[name] = old or []
            for item in value:
                same = next((one for one in items if _is_continued(one, item)), None)
                if same is None:
                    items.append(item)
                else:
                    _add(same, item)
        elif isinstance(value, str) and isinstance(old, str) and name not in _WHOLE:
            whole[name] = old + value
        elif value or not old:
            whole[name] = value


def _is_continued(one: Json, item: Json) -> bool:
    """Return whether an object of a list is continued by another one of a later chunk."""
    is_same = field(one, "index") == field(item, "index") and isinstance(one, dict)
    return is_same and field(item, "id") in (None, "", field(one, "id"))


def text_beside(chunk: Json) -> Json:
    """Return a copy of a chunk without its calls; ``None`` if it has no text beside them."""
    for choice in listed(field(chunk, "choices")):
        delta = field(choice, "delta")
        if field(delta, "content"):
            delta = replaced(delta, tool_calls=None)
            return replaced(chunk, choices=[replaced(choice, delta=delta, finish_reason=None)])
    for candidate in listed(field(chunk, "candidates")):
        content = field(candidate, "content")
        parts = [part for part in listed(field(content, "parts")) if field(part, "text")]
        if parts:
            content = replaced(content, parts=parts)
            candidate = replaced(candidate, content=content, finish_reason=None)
            return replaced(chunk, candidates=[candidate])
    return None


class Seam:
    """Makes one reply of several: what the caller has read is not begun again, and what follows has
    numbers of its own.
    """

    def __init__(self, wire_format: str) -> None:
        self._index = "output_index" if wire_format == "responses" else "index"
        self._is_later = False
        # Number of blocks or items before this reply, and up to here.
        self._start = self._end = 0
        self._id: Json = None
        self._sequence: Json = None
        # Items of earlier replies, and of this one.
        self._items: list[Json] = []
        self._made: list[Json] = []

    def begin(self) -> None:
        """Begin with the next reply."""
        self._is_later = True
        self._start = self._end
        self._items += self._made
        self._made = []

    def fit(self, chunk: Json) -> Json:
        """Return a chunk as the caller gets it; ``None`` if it begins another reply."""
        kind = word(chunk, "type")
        if self._is_later and kind in _BEGINNING:
            return None
        updates: dict[str, Json] = {}
        index = field(chunk, self._index)
        if type(index) is int:
            updates[self._index] = index + self._start
            self._end = max(self._end, index + self._start + 1)
        if kind == "response.output_item.done":
            self._made.append(field(chunk, "item"))
        sequence = field(chunk, "sequence_number")
        if type(sequence) is int:
            self._sequence = self._sequence + 1 if self._is_later else sequence
            updates["sequence_number"] = self._sequence
        response = field(chunk, "response")
        if response is not None:
            output = [*self._items, *listed(field(response, "output"))]
            updates["response"] = replaced(response, output=output)
        choices = listed(field(chunk, "choices"))
        if choices or self._id:
            self._id = self._id or field(chunk, "id")
            updates.update(id=self._id, choices=[*map(_without_role, choices)])
        return replaced(chunk, **updates) if self._is_later and updates else chunk


def _without_role(choice: Json) -> Json:
    delta = field(choice, "delta")
    if not field(delta, "role"):
        return choice
    return replaced(choice, delta=replaced(delta, role=None))
