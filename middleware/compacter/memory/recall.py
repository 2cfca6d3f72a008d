"""Finding the compacted view of a history that is sent again, and keeping a new one."""

from __future__ import annotations

import copy
import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from compacter.history.message import Message
from compacter.history.outline import Kind
from compacter.history.validate import kept_and_discarded
from compacter.history.wire import Wire
from compacter.memory.base import Memory
from compacter.memory.record import Record

_ANCHORS = 4
"""How many of the first messages a lookup tries: the first folded one need not be the first of all."""
_ANCHOR_TEXT = 8_192
"""Characters of a message that its anchor is made of."""
_SEEN_BYTES = 64 << 20
_PER_MESSAGE = 400
"""Bytes that the structure of one copied message takes, roughly."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A history that was recognised: its messages up to the boundary after the leading system messages, copied."""

    prefix: list[Any]
    layout: tuple[int | tuple[Message], ...]
    """The view: an index into ``prefix``, or a message that was put in."""
    size: int


class Recall:
    """Memory as the calls use it: by conversation instead of by key. Thread-safe."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._bytes = 0
        self._most = getattr(memory, "max_bytes", _SEEN_BYTES)
        self._lock = threading.Lock()

    def nothing_known(self) -> bool:
        """Whether there is no record at all; False where a memory cannot tell without a look."""
        count = getattr(self.memory, "__len__", None)
        return count is not None and count() == 0

    def view(self, scope: str, wire: Wire, messages: Sequence[Message]) -> list[Message] | None:
        """The messages with their longest remembered prefix compacted, or ``None``. Raises what the memory raises."""
        if not messages or self.nothing_known():
            return None
        lead = _lead(wire, messages)
        keys = list(dict.fromkeys(_key(scope, wire, message) for message in _anchors(wire, messages, lead)))
        records = sorted(self.memory.find(keys), key=lambda record: -record.boundary)
        for record in records:
            view = self._view(record, wire, messages, lead)
            if view is not None:
                return view
        return None

    def remember(self, scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> None:
        """Keep ``after``, made of messages of ``before`` and new ones, as the view of ``before``."""
        record = _record(scope, wire, before, after)
        if record is not None:
            self.memory.save(record)
            self._see(record, wire, before, _lead(wire, before))

    def _view(
        self, record: Record, wire: Wire, messages: Sequence[Message], lead: int
    ) -> list[Message] | None:
        if len(messages) - lead < record.boundary:
            return None
        seen = self._seen.get(record.id)
        if seen is None:
            if not _matches(record, wire, messages):
                return None
            seen = self._see(record, wire, messages, lead)
            layout, length = seen.layout, len(seen.prefix)
        else:
            length = len(seen.prefix)
            layout = seen.layout
            # Comparing copied structures runs in C: nothing that was seen before is encoded again.
            if list(messages[lead : lead + length]) != seen.prefix:
                if not _same_content(record, wire, messages, lead, seen.prefix):
                    return None
                layout, length = _layout(record, wire, messages, lead)
        if not record.user_kept and not _user_after(wire, messages, lead + length):
            return None
        view = list(messages[:lead])
        view.extend(
            messages[lead + item] if isinstance(item, int) else copy.deepcopy(item[0]) for item in layout
        )
        view.extend(messages[lead + length :])
        return view

    def _see(self, record: Record, wire: Wire, messages: Sequence[Message], lead: int) -> _Seen:
        layout, length = _layout(record, wire, messages, lead)
        prefix = [_frozen(message) for message in messages[lead : lead + length]]
        size = sum(wire.size(message) for message in messages[lead : lead + length]) + _PER_MESSAGE * length
        seen = _Seen(prefix, layout, size)
        with self._lock:
            old = self._seen.pop(record.id, None)
            self._bytes += size - (old.size if old else 0)
            self._seen[record.id] = seen
            while self._bytes > self._most and len(self._seen) > 1:
                _, dropped = self._seen.popitem(last=False)
                self._bytes -= dropped.size
        return seen


def chain_digest(scope: str, wire: Wire, messages: Sequence[Message]) -> str:
    """Digest of the content of these messages, in order."""
    chain = blake2b(scope.encode(), digest_size=16)
    for message in messages:
        chain.update(_encoded(wire, message))
    return chain.hexdigest()


def conversation_digest(wire: Wire, messages: Sequence[Message]) -> str:
    """What names a conversation in events: a digest of its first message that is no system message."""
    lead = _lead(wire, messages)
    return _key("", wire, messages[lead])[:16] if lead < len(messages) else ""


def _encoded(wire: Wire, message: Message) -> bytes:
    return json.dumps(wire.content(message), ensure_ascii=False, sort_keys=True, default=str).encode(
        "utf-8", "surrogatepass"
    )


def _key(scope: str, wire: Wire, message: Message) -> str:
    text = _encoded(wire, message)
    return blake2b(f"{scope}\0{len(text)}\0".encode() + text[:_ANCHOR_TEXT], digest_size=16).hexdigest()


def _system(wire: Wire, message: Message) -> bool:
    return wire.speaker(message) == "system"


def _lead(wire: Wire, messages: Sequence[Message]) -> int:
    lead = 0
    while lead < len(messages) and _system(wire, messages[lead]):
        lead += 1
    return lead


def _anchors(wire: Wire, messages: Sequence[Message], lead: int) -> list[Message]:
    found: list[Message] = []
    for message in messages[lead : lead + 4 * _ANCHORS]:
        if len(found) == _ANCHORS:
            break
        if not _system(wire, message):
            found.append(message)
    return found


def _record(scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> Record | None:
    origins, _ = kept_and_discarded(before, after)
    places: dict[int, int] = {}
    body = [index for index, message in enumerate(before) if not _system(wire, message)]
    for position, index in enumerate(body):
        places[index] = position
    kept = {places[origin] for origin in origins if origin in places}
    literals: list[tuple[int, Message]] = []
    at = 0
    for origin, message in zip(origins, after, strict=True):
        if origin is None:
            literals.append((at, message))
        elif origin in places:
            at = places[origin] + 1
    gone = [position for position in range(len(body)) if position not in kept]
    if not gone:
        return None
    boundary = max(gone[-1] + 1, *(position for position, _ in literals), 0) if literals else gone[-1] + 1
    anchor = gone[0] if gone[0] < _ANCHORS else 0
    last_user = next((p for p in range(boundary - 1, -1, -1) if _is_user(wire, before[body[p]])), None)
    return Record(
        key=_key(scope, wire, before[body[anchor]]),
        boundary=boundary,
        kept=tuple(sorted(position for position in kept if position < boundary)),
        literals=tuple(literals),
        digest=chain_digest("", wire, [before[body[position]] for position in gone]),
        user_kept=last_user is None or last_user in kept,
    )


def _matches(record: Record, wire: Wire, messages: Sequence[Message]) -> bool:
    kept = set(record.kept)
    folded: list[Message] = []
    position = 0
    for message in messages:
        if position >= record.boundary:
            break
        if _system(wire, message):
            continue
        if position not in kept:
            folded.append(message)
        position += 1
    return position == record.boundary and chain_digest("", wire, folded) == record.digest


def _same_content(
    record: Record, wire: Wire, messages: Sequence[Message], lead: int, prefix: Sequence[Any]
) -> bool:
    """Message by message, for what a plain comparison does not forgive: moved marks, changed system or kept messages."""
    kept = set(record.kept)
    known = iter([message for message in prefix if not _system(wire, message)])
    position = 0
    for message in messages[lead:]:
        if position >= record.boundary:
            break
        if _system(wire, message):
            continue
        old = next(known)
        if position not in kept and message != old and wire.content(message) != wire.content(old):
            return False
        position += 1
    return position == record.boundary


def _layout(
    record: Record, wire: Wire, messages: Sequence[Message], lead: int
) -> tuple[tuple[int | tuple[Message], ...], int]:
    """The view of everything up to the boundary, as offsets behind the leading system messages; and where that ends."""
    kept = set(record.kept)
    put_in: dict[int, list[Message]] = {}
    for position, message in record.literals:
        put_in.setdefault(position, []).append(message)
    layout: list[int | tuple[Message]] = [(message,) for message in put_in.get(0, ())]
    position = offset = 0
    for offset, message in enumerate(messages[lead:]):
        if _system(wire, message):
            layout.append(offset)
            continue
        if position in kept:
            layout.append(offset)
        position += 1
        layout.extend((literal,) for literal in put_in.get(position, ()))
        if position >= record.boundary:
            break
    return tuple(layout), offset + 1


def _is_user(wire: Wire, message: Message) -> bool:
    return wire.outline([message]).kinds[0] is Kind.USER


def _user_after(wire: Wire, messages: Sequence[Message], start: int) -> bool:
    return any(_is_user(wire, messages[index]) for index in range(len(messages) - 1, start - 1, -1))


def _frozen(value: Any) -> Any:
    """A copy of a message's structure; strings are shared, so it costs little and an edit in place is noticed."""
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_frozen(inner) for inner in value]
    if value is None or isinstance(value, (str, int, float, bool, bytes)):
        return value
    return copy.deepcopy(value)
