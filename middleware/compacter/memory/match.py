"""Finding the longest stored prefix of a history, and laying out what stands for it."""

from __future__ import annotations

import copy
import json
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Literal

from compacter.compaction.check import kept_and_discarded
from compacter.memory.base import Memory
from compacter.memory.record import Record, StoredMessage
from compacter.messages.fields import Json
from compacter.messages.format import Message, Wire
from compacter.messages.steps import Kind

_STARTS = 4
"""How many places a lookup tries as the beginning of what was folded: pinned messages may stand before it."""
_RUN = 4
"""Messages that the beginning is known by, where as many were folded in a row: first messages repeat."""
_CLIP = 8_192
"""Characters of a text that count for the beginning; a lookup must not encode a book each time."""
_LOOK_AT = 64
"""Messages among which the beginning is looked for."""


def encoded(wire: Wire, message: Message) -> bytes:
    """The content of one message; no encoding is the beginning of another one."""
    return _bytes(wire.content(message))


def chain(parts: Iterable[bytes], start: str = "") -> str:
    """Digest of encoded messages, in order."""
    digest = blake2b(start.encode("utf-8", "surrogatepass"), digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def chain_digest(scope: str, wire: Wire, messages: Sequence[Message]) -> str:
    """Digest of the content of these messages, in order, for calls of this scope."""
    return chain((encoded(wire, message) for message in messages), scope)


def conversation_digest(wire: Wire, messages: Sequence[Message]) -> str:
    """What names a conversation in events: a digest of its first message that is no system message."""
    first = lead(wire, messages)
    return chain([_opening(wire, messages[first])])[:16] if first < len(messages) else ""


def is_system(wire: Wire, message: Message) -> bool:
    """Whether a message stands outside what is folded and counted."""
    return wire.speaker(message) == "system"


def lead(wire: Wire, messages: Sequence[Message]) -> int:
    """How many system messages a history begins with."""
    for index, message in enumerate(messages):
        if not is_system(wire, message):
            return index
    return len(messages)


def lookup_keys(scope: str, wire: Wire, messages: Sequence[Message], first: int) -> list[str]:
    """The keys under which records of this history may be.

    ``first`` is where its leading system messages end.
    """
    window = islice(messages, first, first + _LOOK_AT)
    spoken = (message for message in window if not is_system(wire, message))
    openings = [_opening(wire, message) for message in islice(spoken, _STARTS + _RUN - 1)]
    keys: dict[str, None] = {}
    for start in range(min(_STARTS, len(openings))):
        keys[chain(openings[start : start + 1], scope)] = None
        if start + _RUN <= len(openings):
            keys[chain(openings[start : start + _RUN], scope)] = None
    return list(keys)


def record_key(scope: str, wire: Wire, body: Sequence[Message], folded: Sequence[int]) -> str:
    """The key of a record: one of the lookup keys of every history that it matches.

    ``body`` is the history without system messages, ``folded`` the positions in it that were folded,
    ascending.
    """
    start = folded[0]
    if start >= _STARTS:
        return chain([_opening(wire, body[0])], scope)
    run = _RUN if folded[_RUN - 1 : _RUN] == [start + _RUN - 1] else 1
    return chain((_opening(wire, message) for message in body[start : start + run]), scope)


def _opening(wire: Wire, message: Message) -> bytes:
    return _bytes(_clipped(wire.content(message)))


def _clipped(value: Json) -> Json:
    if isinstance(value, str):
        return value if len(value) <= _CLIP else [len(value), value[:_CLIP]]
    if isinstance(value, dict):
        return {key: _clipped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_clipped(inner) for inner in value]
    return value


def _bytes(content: Json) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Layout:
    """The view of everything up to a record's boundary.

    Offsets count from the end of the leading system messages.
    """

    items: tuple[int | StoredMessage, ...]
    """In order: the offset of a message that stands verbatim, or a message that is put in."""
    length: int
    """Where the verbatim rest begins."""
    user_stays: bool
    """Whether the last genuine user message up to there, if there is one, stands verbatim."""


def record_of(scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> Record | None:
    """The record that makes ``after`` of ``before``; ``None`` when nothing was folded.

    The messages that were put in are copied: the function they are sent with may change its own.
    """
    origins, _ = kept_and_discarded(before, after)
    body = [index for index, message in enumerate(before) if not is_system(wire, message)]
    places = {index: position for position, index in enumerate(body)}
    kept = {places[origin] for origin in origins if origin in places}
    gone = [position for position in range(len(body)) if position not in kept]
    if not gone:
        return None
    literals = _literals(origins, after, body, places, lead(wire, before))
    boundary = gone[-1] + 1
    for literal in literals:
        boundary = max(boundary, min(literal.position + literal.behind_system, len(body)))
    spoken = [before[index] for index in body]
    parts = [encoded(wire, spoken[position]) for position in gone]
    return Record(
        key=record_key(scope, wire, spoken, gone),
        boundary=boundary,
        kept=tuple(sorted(position for position in kept if position < boundary)),
        literals=tuple(literals),
        digest=chain(parts),
        last=chain(parts[-1:]),
        folded_user=next((place for place in reversed(gone) if is_user(wire, spoken[place])), -1),
    )


def _literals(
    origins: Sequence[int | None],
    after: Sequence[Message],
    body: Sequence[int],
    places: dict[int, int],
    first: int,
) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    position, behind = 0, False
    for origin, message in zip(origins, after, strict=True):
        if origin is None:
            found.append(StoredMessage(position, copy.deepcopy(message), behind))
        elif origin in places:
            position, behind = places[origin] + 1, False
        elif origin >= first:
            position, behind = max(position, bisect_left(body, origin)), True
    return found


def laid_out(record: Record, wire: Wire, messages: Sequence[Message], first: int) -> Layout:
    """The layout for a history that the record matches.

    ``first`` is where its leading system messages end.
    """
    kept = set(record.kept)
    slots: dict[tuple[int, bool], list[StoredMessage]] = {}
    for literal in record.literals:
        slots.setdefault((literal.position, literal.behind_system), []).append(literal)
    items: list[int | StoredMessage] = list(slots.get((0, False), ()))
    user_stays = record.folded_user < 0
    position = offset = 0
    for offset, message in enumerate(islice(messages, first, None)):
        if is_system(wire, message):
            items.append(offset)
            continue
        items.extend(slots.get((position, True), ()))
        if position in kept:
            items.append(offset)
            user_stays = user_stays or (position > record.folded_user and is_user(wire, message))
        position += 1
        items.extend(slots.get((position, False), ()))
        if position >= record.boundary:
            break
    items.extend(slots.get((position, True), ()))
    return Layout(tuple(items), offset + 1, user_stays)


def view_of(
    layout: Layout, wire: Wire, messages: Sequence[Message], first: int, *, alternate: bool
) -> list[Message] | None:
    """The view of these messages.

    ``None`` where what follows the boundary does not go with what was put before it.
    """
    end = first + layout.length
    if not (layout.user_stays or _any_user(wire, messages, end)):
        return None
    if not _joins(layout, wire, messages, first, alternate=alternate):
        return None
    view = list(messages[:first])
    view.extend(
        messages[first + item] if isinstance(item, int) else copy.deepcopy(item.message) for item in layout.items
    )
    view.extend(messages[end:])
    return view


def is_user(wire: Wire, message: Message) -> bool:
    """Whether it is a genuine user message."""
    return wire.outline([message]).kinds[0] is Kind.USER


def _any_user(wire: Wire, messages: Sequence[Message], start: int) -> bool:
    return any(is_user(wire, messages[index]) for index in range(len(messages) - 1, start - 1, -1))


def _joins(layout: Layout, wire: Wire, messages: Sequence[Message], first: int, *, alternate: bool) -> bool:
    """Whether head and rest of the view may stand beside each other.

    Summary and filler were made for the message that followed them then. A fork may go on with another role,
    or end there.
    """
    end = first + layout.length
    ends_with = next(
        (
            role
            for item in reversed(layout.items)
            if (role := wire.speaker(messages[first + item] if isinstance(item, int) else item.message)) != "system"
        ),
        "",
    )
    ended_with = wire.speaker(messages[end - 1])
    following = next(
        (role for index in range(end, len(messages)) if (role := wire.speaker(messages[index])) != "system"),
        None,
    )
    if following is None:
        return ends_with != "assistant" or ended_with == "assistant"
    return not (alternate and following == ends_with != ended_with and following in ("user", "assistant"))


_SEEN_BYTES = 64 << 20
_SEEN_ENTRIES = 1_000
_PER_MESSAGE = 400
"""Bytes that the structure of one copied message takes, roughly."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A history that was recognised once, so that it need not be encoded again."""

    record: Record
    layout: Layout
    prefix: list[Json]
    """Copies of its messages up to the boundary, behind the leading system messages."""
    verbatim: frozenset[int]
    """Offsets of those that the record does not fold: whatever they say, it matches."""
    size: int


class Recall:
    """Memory as the calls use it: by conversation instead of by key. Thread-safe.

    ``alternate`` is the option ``alternate_roles``: whether user and assistant must take turns; ``None``
    where the wire format decides.
    """

    def __init__(self, memory: Memory, *, alternate: bool | None = None) -> None:
        self.memory = memory
        self._alternate = alternate
        self._count = getattr(memory, "__len__", None)
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._bytes = 0
        self._most_bytes: int = getattr(memory, "max_bytes", _SEEN_BYTES)
        self._most_entries: int = getattr(memory, "max_entries", _SEEN_ENTRIES)
        self._lock = threading.Lock()

    def nothing_known(self) -> bool:
        """Whether there is no record at all; False where a memory cannot tell without a look."""
        if self._count is None or self._count():
            return False
        if self._seen:
            with self._lock:
                self._seen.clear()
                self._bytes = 0
        return True

    def view(self, scope: str, wire: Wire, messages: Sequence[Message]) -> list[Message] | None:
        """The messages with their longest remembered prefix compacted, or ``None``.

        Raises what the memory raises.
        """
        if not messages or self.nothing_known():
            return None
        sent = _Sent(wire, messages)
        if sent.first == len(messages):
            return None
        keys = lookup_keys(scope, wire, messages, sent.first)
        found: Sequence[object] = self.memory.find(keys)
        records = [record for record in found if isinstance(record, Record) and record.sound()]
        # Of two with one boundary, the one that folded more was made when the other's view overflowed.
        records.sort(key=lambda record: (-record.boundary, -record.folded))
        alternate = wire.alternates if self._alternate is None else self._alternate
        for record in records:
            layout = self._layout(record, sent)
            if layout is not None:
                view = view_of(layout, wire, messages, sent.first, alternate=alternate)
                if view is not None:
                    return view
        return None

    def remember(self, scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> None:
        """Keep ``after``, made of messages of ``before`` and new ones, as the view of ``before``."""
        record = record_of(scope, wire, before, after)
        if record is not None:
            self.memory.save(record)
            sent = _Sent(wire, before)
            self._see(record, laid_out(record, wire, before, sent.first), sent)

    def _layout(self, record: Record, sent: _Sent) -> Layout | None:
        """How the record's view lies over this history; ``None`` when the record is not of it."""
        if len(sent.messages) - sent.first < record.boundary:
            return None
        with self._lock:
            seen = self._seen.get(record.id)
            if seen is not None:
                self._seen.move_to_end(record.id)
        if seen is None:
            if not sent.matches(record):
                return None
            layout = laid_out(record, sent.wire, sent.messages, sent.first)
            self._see(record, layout, sent)
            return layout
        match = _compared(seen, sent)
        if match is None:
            return None
        if match == "same" and (seen.record is record or seen.record == record):
            return seen.layout
        layout = laid_out(record, sent.wire, sent.messages, sent.first)
        if match != "verbatim":
            self._see(record, layout, sent)
        return layout

    def _see(self, record: Record, layout: Layout, sent: _Sent) -> None:
        messages = list(islice(sent.messages, sent.first, sent.first + layout.length))
        size = sum(map(sent.wire.size, messages)) + _PER_MESSAGE * len(messages)
        if size > self._most_bytes:
            return
        try:
            prefix = [_frozen(message) for message in messages]
        except Exception:  # noqa: BLE001 - an SDK's object that cannot be copied: it is encoded each time instead
            return
        verbatim = frozenset(item for item in layout.items if isinstance(item, int))
        with self._lock:
            old = self._seen.pop(record.id, None)
            self._bytes += size - (old.size if old else 0)
            self._seen[record.id] = _Seen(record, layout, prefix, verbatim, size)
            while self._bytes > self._most_bytes or len(self._seen) > self._most_entries:
                _, dropped = self._seen.popitem(last=False)
                self._bytes -= dropped.size


class _Sent:
    """One history as it was sent; each message is encoded once, however many records are tried."""

    def __init__(self, wire: Wire, messages: Sequence[Message]) -> None:
        self.wire = wire
        self.messages = messages
        self.first = lead(wire, messages)
        self._body: list[Message] | None = None
        self._encoded: dict[int, bytes] = {}

    @property
    def body(self) -> list[Message]:
        """The messages that are no system messages."""
        if self._body is None:
            self._body = [message for message in self.messages if not is_system(self.wire, message)]
        return self._body

    def matches(self, record: Record) -> bool:
        """Whether the record folded what this history holds in its place."""
        if len(self.body) < record.boundary:
            return False
        kept = set(record.kept)
        folded = [position for position in range(record.boundary) if position not in kept]
        if not folded or chain([self._part(folded[-1])]) != record.last:
            return False
        return chain(map(self._part, folded)) == record.digest

    def _part(self, position: int) -> bytes:
        found = self._encoded.get(position)
        if found is None:
            found = self._encoded[position] = encoded(self.wire, self.body[position])
        return found


def _compared(seen: _Seen, sent: _Sent) -> Literal["same", "verbatim", "shifted"] | None:
    """Whether what was folded is what it was when it was seen, and what else has changed up to the boundary.

    ``None`` when something folded has changed; ``"verbatim"`` when only messages have that stand verbatim,
    ``"shifted"`` when system messages came or went.
    """
    now = list(islice(sent.messages, sent.first, sent.first + len(seen.prefix)))
    # Comparing copied structures runs in C: nothing that was seen before is encoded again.
    if now == seen.prefix:
        return "same"
    wire, changed = sent.wire, False
    for offset, (new, old) in enumerate(zip(now, seen.prefix, strict=False)):
        if new == old:
            continue
        if is_system(wire, new) != is_system(wire, old):
            return "shifted" if sent.matches(seen.record) else None
        if offset in seen.verbatim:
            changed = True
        elif wire.content(new) != wire.content(old):
            return None
        elif type(new) is dict:
            # Only marks have moved; the next comparison is a plain one again.
            seen.prefix[offset] = _frozen(new)
    if len(now) < len(seen.prefix):
        return None
    return "verbatim" if changed else "same"


def _frozen(value: Json) -> Json:
    """A copy of a message's structure, by which an edit in place is noticed; strings are shared."""
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_frozen(inner) for inner in value]
    if value is None or isinstance(value, (str, int, float, bool, bytes)):
        return value
    return copy.deepcopy(value)
