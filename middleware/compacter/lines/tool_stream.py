"""Streams in which a model calls ``recall``: the reply that chunks add up to, and how the chunks of
the next reply continue those before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from compacter.lines.tool import is_call
from compacter.messages.fields import Json, dig, field, first, json_text, listed, replaced, word

_PARTS = "candidates.0.content.parts"
# Where a chunk has its calls, among other things.
_CALLS = ("choices.0.delta.tool_calls", "content_block", "item", _PARTS)
# Members of a delta that are not pieces of a text.
_WHOLE = frozenset({"id", "type", "role", "index", "name"})
# Events with which a reply begins.
_BEGINNING = ("message_start", "response.created", "response.in_progress", "response.queued")
_DONE = "response.output_item.done"


def has_call(chunk: Json) -> bool:
    """Return whether a chunk begins a call that the program has to answer."""
    return any(map(is_call, listed(first(chunk, _CALLS))))


def reply_of(chunks: Sequence[Json], wire_format: str) -> Json:
    """Return the reply that the chunks of a whole stream add up to."""
    if wire_format == "responses":
        return {
            "output": [field(chunk, "item") for chunk in chunks if word(chunk, "type") == _DONE]
        }
    if wire_format == "gemini":
        parts = [part for chunk in chunks for part in listed(dig(chunk, _PARTS))]
        # An empty text ends many streams, and no request may have one.
        filled = [part for part in parts if json_text(part) not in ('{"text": ""}', "{}")]
        return {"candidates": [{"content": {"role": "model", "parts": filled}}]}
    whole: dict[str, Json] = {"role": "assistant"}
    for chunk in chunks:
        _add(whole, _delta(chunk))
    blocks = listed(whole.get("tool_calls") or whole.get("content"))
    for block in blocks if wire_format == "anthropic" or "tool_calls" in whole else ():
        block.pop("index", None)
        if arguments := block.pop("partial_json", ""):
            with suppress(ValueError):  # The reply was cut off.
                block["input"] = json.loads(arguments)
    return {"message": {"content": None, **whole}, "content": blocks}


def _delta(chunk: Json) -> dict[str, Json]:
    """Return what a chunk adds to the message; one of Anthropic's adds to a block."""
    found = first(chunk, ("choices.0.delta", "content_block", "delta"))
    delta: dict[str, Json] = json.loads(json_text(found) or "{}")
    index = field(chunk, "index")
    if index is None:
        return delta if field(chunk, "choices") else {}
    if field(chunk, "content_block") is None:
        delta.pop("type", None)
        delta.pop("citation", None)  # It is of use to readers only.
    return {"content": [{**delta, "index": index}]}


def _add(whole: dict[str, Json], delta: Mapping[str, Json]) -> None:
    """Add a delta to what came before: texts are continued, and so are objects in a list whose
    index and id are the same.
    """
    for name, value in delta.items():
        match whole.get(name), value:
            case dict() as old, dict():
                _add(old, value)
            case list() as old, list():
                for item in value:
                    _add_item(old, item)
            case str() as old, str() if name not in _WHOLE:
                whole[name] = old + value
            case old, _ if value or not old:
                whole[name] = value


def _add_item(items: list[Json], item: Json) -> None:
    """Add an object to a list, or to the one in it that it continues."""
    key = field(item, "id")
    for one in items if isinstance(item, dict) else ():
        if field(one, "index") == field(item, "index") and (not key or key == field(one, "id")):
            _add(one, item)
            return
    items.append(item)


def text_beside(chunk: Json) -> Json:
    """Return a copy of a chunk without its calls; ``None`` if it has no text beside them."""
    delta = dig(chunk, "choices.0.delta")
    if field(delta, "content"):
        delta = replaced(delta, tool_calls=None)
        choice = replaced(dig(chunk, "choices.0"), delta=delta, finish_reason=None)
        return replaced(chunk, choices=[choice])
    parts = [part for part in listed(dig(chunk, _PARTS)) if field(part, "text")]
    if not parts:
        return None
    content = replaced(dig(chunk, "candidates.0.content"), parts=parts)
    candidate = replaced(dig(chunk, "candidates.0"), content=content, finish_reason=None)
    return replaced(chunk, candidates=[candidate])


class Seam:
    """Makes one reply of several: what the caller has read is not begun again, and what follows has
    numbers of its own.
    """

    def __init__(self) -> None:
        self._is_later = False
        # Number of blocks or items before this reply, and up to here.
        self._start = self._end = 0
        self._first: Json = None
        self._sequence = 0
        self._items: list[Json] = []

    def begin(self) -> None:
        """Begin with the next reply."""
        self._is_later = True
        self._start = self._end

    def fit(self, chunk: Json) -> Json:
        """Return a chunk as the caller gets it; ``None`` if it begins another reply."""
        kind = word(chunk, "type")
        if self._is_later and kind in _BEGINNING:
            return None
        self._first = self._first or chunk
        if kind == _DONE:
            self._items.append(field(chunk, "item"))
        updates: dict[str, Json] = {}
        for name in ("index", "output_index"):
            index = field(chunk, name)
            if type(index) is int:
                updates[name] = index + self._start
                self._end = max(self._end, updates[name] + 1)
        if kind.startswith("response."):
            self._sequence += 1
            updates["sequence_number"] = (
                self._sequence + (field(self._first, "sequence_number") or 0) - 1
            )
            if field(chunk, "response") is not None:
                updates["response"] = replaced(field(chunk, "response"), output=self._items)
        if field(chunk, "choices") is not None:
            choices = [_without_role(choice) for choice in field(chunk, "choices")]
            updates = {"id": field(self._first, "id"), "choices": choices}
        return replaced(chunk, **updates) if self._is_later and updates else chunk


def _without_role(choice: Json) -> Json:
    delta = field(choice, "delta")
    return replaced(choice, delta=replaced(delta, role=None)) if field(delta, "role") else choice
