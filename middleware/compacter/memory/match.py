"""Finding the longest stored prefix of a history, and laying out what stands for it.

A record is found by a key (where the folded messages begin) and recognised by digests of what was folded. System
messages stay verbatim and may change with every call, so they are in neither.
"""

from __future__ import annotations

import copy
import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Literal
from uuid import uuid4

from pydantic import BaseModel

from compacter.compaction.check import kept_and_discarded
from compacter.memory.base import Memory, base_memory
from compacter.memory.record import Record, StoredMessage, footprint
from compacter.messages.fields import Json, Unencodable
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

# -- digests -----------------------------------------------------------------------------------------------------------


def message_digest(wire: Wire, message: Message, *, clipped: bool = False) -> bytes:
    """Digest of the content of one message; of the beginnings of its texts only when ``clipped``.

    Raises ``Unencodable``, and nothing else, for a message that cannot be told apart from every other one.
    """
    try:
        content = wire.content(message)
        text = json.dumps(_clipped(content) if clipped else content, ensure_ascii=False, sort_keys=True)
    except Unencodable:
        raise
    except Exception as error:  # whatever somebody else's class does when it is read
        raise Unencodable(f"{type(message).__name__} cannot be encoded: {type(error).__name__}") from error
    return _digest(text.encode("utf-8", "surrogatepass"))


def chain(parts: Iterable[bytes], scope: str = "") -> str:
    """Digest of message digests, in order, for calls of this scope."""
    return _digest(b"".join((_digest(scope.encode("utf-8", "surrogatepass")), *parts))).hex()


def flight_key(scope: str, wire: Wire, messages: Sequence[Message]) -> str:
    """Names the compaction of these messages among those under way; unique for what cannot be encoded."""
    try:
        return chain([message_digest(wire, message) for message in messages], scope)
    except Unencodable:
        return uuid4().hex


def conversation_digest(wire: Wire, messages: Sequence[Message]) -> str:
    """What names a conversation in events: a digest of its first message that is no system message.

    Empty where there is none, and for one that cannot be encoded.
    """
    first = lead(wire, messages)
    if first == len(messages):
        return ""
    try:
        return chain([message_digest(wire, messages[first], clipped=True)])[:16]
    except Unencodable:
        return ""


def is_system(wire: Wire, message: Message) -> bool:
    """Whether a message stands outside what is folded and counted."""
    return wire.speaker(message) == "system"


def is_user(wire: Wire, message: Message) -> bool:
    """Whether it is a genuine user message."""
    return wire.outline([message]).kinds[0] is Kind.USER


def lead(wire: Wire, messages: Sequence[Message]) -> int:
    """How many system messages a history begins with."""
    for index, message in enumerate(messages):
        if not is_system(wire, message):
            return index
    return len(messages)


def lookup_keys(scope: str, wire: Wire, messages: Sequence[Message], first: int) -> list[str]:
    """The keys under which records of this history may be.

    ``first`` is where its leading system messages end. Messages that cannot be encoded begin nothing.
    """
    window = islice(messages, first, first + _LOOK_AT)
    spoken = [message for message in window if not is_system(wire, message)]
    openings: list[bytes] = []
    for message in islice(spoken, _STARTS + _RUN - 1):
        try:
            openings.append(message_digest(wire, message, clipped=True))
        except Unencodable:
            openings.append(b"")
    keys: dict[str, None] = {}
    for start in range(min(_STARTS, len(openings))):
        for run in (1, _RUN):
            parts = openings[start : start + run]
            if len(parts) == run and all(parts):
                keys[chain(parts, scope)] = None
    return list(keys)


def record_key(scope: str, wire: Wire, body: Sequence[Message], folded: Sequence[int]) -> str:
    """The key of a record: one of the lookup keys of every history that it matches.

    ``body`` is the history without system messages, ``folded`` the positions in it that were folded, ascending.
    Raises ``Unencodable``.
    """
    start, run = folded[0], 1
    if start >= _STARTS:
        start = 0
    elif folded[_RUN - 1 : _RUN] == [start + _RUN - 1]:
        run = _RUN
    return chain([message_digest(wire, message, clipped=True) for message in body[start : start + run]], scope)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _clipped(value: Json) -> Json:
    if isinstance(value, str):
        return value if len(value) <= _CLIP else [len(value), value[:_CLIP]]
    if isinstance(value, dict):
        return {key: _clipped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_clipped(inner) for inner in value]
    return value


# -- what a record holds, and the view that it stands for ----------------------------------------------------------


def record_of(scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> Record | None:
    """The record that makes ``after`` of ``before``; ``None`` when nothing was folded.

    The messages that were put in are copied: the function they are sent with may change its own. Raises
    ``Unencodable`` where something that was folded or put in cannot be encoded.
    """
    origins, _ = kept_and_discarded(before, after)
    body = [index for index, message in enumerate(before) if not is_system(wire, message)]
    places = {index: position for position, index in enumerate(body)}
    kept = {places[origin] for origin in origins if origin in places}
    gone = [position for position in range(len(body)) if position not in kept]
    if not gone:
        return None
    literals = _literals(wire, origins, after, body, places, lead(wire, before))
    boundary = gone[-1] + 1
    for literal in literals:
        boundary = max(boundary, min(literal.position + literal.behind_system, len(body)))
    spoken = [before[index] for index in body]
    parts = [message_digest(wire, spoken[position]) for position in gone]
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
    wire: Wire,
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
            message_digest(wire, message)
            found.append(StoredMessage(position, copy.deepcopy(message), behind))
        elif origin in places:
            position, behind = places[origin] + 1, False
        elif origin >= first:
            position, behind = max(position, bisect_left(body, origin)), True
    return found


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


# -- looking up ---------------------------------------------------------------------------------------------------


class Matcher:
    """A memory as calls use it: by conversation instead of by key. Thread-safe.

    ``alternate`` is the option ``alternate_roles``: whether user and assistant must take turns; ``None`` where the
    message format decides. ``on_unencodable`` is called, once, with the reason why a message is neither found nor kept.

    ``view`` and ``remember`` raise what the memory raises, and nothing else; ``aview`` and ``aremember`` are for a
    memory with ``asynchronous`` set.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        alternate: bool | None = None,
        on_unencodable: Callable[[str], object] | None = None,
    ) -> None:
        self.memory = base_memory(memory)
        self._alternate = alternate
        self._on_unencodable = on_unencodable
        self.nothing_known = self.memory.empty
        """Whether a call need not look: there is certainly no record."""

    def view(self, scope: str, wire: Wire, messages: Sequence[Message]) -> list[Message] | None:
        """The messages with their longest remembered prefix compacted, or ``None``."""
        history = self._history(scope, wire, messages)
        return self._chosen(history, self.memory.find(history.keys)) if history else None

    async def aview(self, scope: str, wire: Wire, messages: Sequence[Message]) -> list[Message] | None:
        """As ``view``, awaited."""
        history = self._history(scope, wire, messages)
        return self._chosen(history, await self.memory.afind(history.keys)) if history else None

    def remember(self, scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> None:
        """Keep ``after``, made of messages of ``before`` and new ones, as the view of ``before``."""
        record = self._record(scope, wire, before, after)
        if record is not None:
            try:
                self.memory.save(record)
            except Unencodable as error:
                self._unencodable(error)

    async def aremember(self, scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> None:
        """As ``remember``, awaited."""
        record = self._record(scope, wire, before, after)
        if record is not None:
            try:
                await self.memory.asave(record)
            except Unencodable as error:
                self._unencodable(error)

    def _history(self, scope: str, wire: Wire, messages: Sequence[Message]) -> _History | None:
        if not messages or self.nothing_known():
            return None
        try:
            history = _History(wire, messages)
            history.keys = lookup_keys(scope, wire, messages, history.first)
        except Exception as error:  # noqa: BLE001 - somebody else's class, or more nesting than Python's stack
            self._unencodable(error)
            return None
        return history if history.keys else None

    def _chosen(self, history: _History, found: Sequence[object]) -> list[Message] | None:
        records = [
            record for record in found if isinstance(record, Record) and record.key in history.keys and record.sound()
        ]
        # Of two with one boundary, the one that folded more was made when the other's view overflowed.
        records.sort(key=lambda record: (-record.boundary, -record.folded))
        wire = history.wire
        alternate = wire.alternates if self._alternate is None else self._alternate
        for record in records:
            try:
                layout = self._layout(record, history)
                if layout is not None:
                    view = view_of(layout, wire, history.messages, history.first, alternate=alternate)
                    if view is not None:
                        return view
            except Exception as error:  # noqa: BLE001 - as above; another record may be of what comes before it
                self._unencodable(error)
        return None

    def _record(self, scope: str, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> Record | None:
        try:
            record = record_of(scope, wire, before, after)
            if record is not None:
                history = _History(wire, before)
                self._keep(record, laid_out(record, wire, before, history.first), history)
        except Exception as error:  # noqa: BLE001 - as above
            self._unencodable(error)
            return None
        return record

    def _unencodable(self, error: Exception) -> None:
        tell, self._on_unencodable = self._on_unencodable, None
        if tell is not None:
            tell(str(error) if isinstance(error, Unencodable) else type(error).__name__)

    def _layout(self, record: Record, history: _History) -> Layout | None:
        """How the record's view lies over this history; ``None`` when the record is not of it."""
        if len(history.messages) - history.first < record.boundary:
            return None
        known = self.memory.attached(_RECOGNISED + record.id)
        if not isinstance(known, _Recognised):
            if not history.matches(record):
                return None
            layout = laid_out(record, history.wire, history.messages, history.first)
            self._keep(record, layout, history)
            return layout
        match = _compared(known, record, history)
        if match is None:
            return None
        if match == "same" and (known.record is record or known.record == record):
            return known.layout
        layout = laid_out(record, history.wire, history.messages, history.first)
        if match != "verbatim":
            self._keep(record, layout, history)
        return layout

    def _keep(self, record: Record, layout: Layout, history: _History) -> None:
        """Keep what recognises this history without encoding it once more."""
        wire, first = history.wire, history.first
        verbatim = frozenset(item for item in layout.items if isinstance(item, int))
        prefix: list[Json] = []
        digests: list[bytes | None] = []
        for offset, message in enumerate(islice(history.messages, first, first + layout.length)):
            prefix.append(_comparable(message))
            if offset not in verbatim:
                digests.append(history.digest(first + offset))
            else:
                digests.append(None if is_system(wire, message) else b"")
        size = record.size + footprint(prefix) + footprint(digests)
        self.memory.attach(_RECOGNISED + record.id, _Recognised(record, layout, prefix, digests), size)


class _History:
    """One history as it was sent; each message is encoded once, however many records are tried."""

    def __init__(self, wire: Wire, messages: Sequence[Message]) -> None:
        self.wire = wire
        self.messages = messages
        self.first = lead(wire, messages)
        self.keys: list[str] = []
        self._body: list[int] | None = None
        self._digests: dict[int, bytes] = {}

    def matches(self, record: Record) -> bool:
        """Whether the record folded what this history holds in its place."""
        if self._body is None:
            self._body = [index for index, message in enumerate(self.messages) if not is_system(self.wire, message)]
        body = self._body
        if len(body) < record.boundary:
            return False
        kept = set(record.kept)
        folded = [body[position] for position in range(record.boundary) if position not in kept]
        if chain([self.digest(folded[-1])]) != record.last:
            return False
        return chain(map(self.digest, folded)) == record.digest

    def digest(self, index: int) -> bytes:
        """Digest of the message at this index."""
        found = self._digests.get(index)
        if found is None:
            found = self._digests[index] = message_digest(self.wire, self.messages[index])
        return found


# -- recognising what was seen before -----------------------------------------------------------------------------

_RECOGNISED = "recognised:"
_LONG = 2_048
"""Characters from which a text is compared by its hash instead of being kept."""


@dataclass(frozen=True, slots=True)
class _Recognised:
    """A history that was recognised once, so that it need not be encoded again."""

    record: Record
    layout: Layout
    prefix: list[Json]
    """Its messages up to the boundary, behind the leading system messages, as what they can be compared with."""
    digests: list[bytes | None]
    """Of the same. Empty for those that the record does not fold (whatever they say, it matches), ``None`` for a system
    message."""


def _compared(known: _Recognised, record: Record, history: _History) -> Literal["same", "verbatim", "shifted"] | None:
    """Whether what was folded is what it was when it was recognised, and what else has changed up to the boundary.

    ``None`` when something folded has changed; ``"verbatim"`` when only messages have that stand verbatim,
    ``"shifted"`` when system messages came or went.
    """
    first, wire = history.first, history.wire
    now = list(islice(history.messages, first, first + len(known.prefix)))
    # Comparing structures runs in C: nothing that was seen before is encoded again.
    if known.prefix == now:
        return "same"
    changed = False
    for offset, new in enumerate(now):
        if known.prefix[offset] == new:
            continue
        digest = known.digests[offset]
        if is_system(wire, new) != (digest is None):
            return "shifted" if history.matches(record) else None
        if not digest:
            changed = True
        elif history.digest(first + offset) != digest:
            return None
        elif type(new) is dict:
            # Only marks have moved; the next comparison is a plain one again.
            known.prefix[offset] = _comparable(new)
    if len(now) < len(known.prefix):
        return None
    return "verbatim" if changed else "same"


def _comparable(message: Message) -> Json:
    """What equals this message as long as it stays as it is, and equals nothing that has another digest."""
    try:
        return _frozen(message)
    except Exception:  # noqa: BLE001 - as in ``message_digest``
        return _DIFFERENT


def _frozen(value: Json) -> Json:
    kind = type(value)
    if kind is str or kind is bytes:
        return value if len(value) < _LONG else _Long(value)
    if value is None:
        return None
    if kind is dict:
        # As keys, 1 and True would be the same too.
        return {key: _frozen(inner) for key, inner in value.items()} if all(map(_is_text, value)) else _DIFFERENT
    if kind is list:
        return [_frozen(inner) for inner in value]
    if kind is tuple:
        return tuple(_frozen(inner) for inner in value)
    if kind in (bool, int, float):
        return _Number(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, BaseModel):
        return _Model(value)
    return _DIFFERENT


def _is_text(key: object) -> bool:
    return type(key) is str


class _Long:
    """Stands for a long text, by its length and its hash.

    Python makes the hash with a key of the process and keeps it in the text, so that comparing costs next to nothing.
    """

    __slots__ = ("_hash", "_kind", "_length")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: str | bytes) -> None:
        self._kind, self._length, self._hash = type(value), len(value), hash(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and len(other) == self._length and hash(other) == self._hash

    def __sizeof__(self) -> int:
        return 128


class _Number:
    """Stands for a number: to Python ``True == 1 == 1.0`` and ``0.0 == -0.0``."""

    __slots__ = ("_kind", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float) -> None:
        self._kind, self._value = type(value), value

    def __eq__(self, other: object) -> bool:
        if type(other) is not self._kind:
            return False
        return other == self._value and (self._kind is not float or repr(other) == repr(self._value))

    def __sizeof__(self) -> int:
        return 80


class _Model:
    """Stands for a pydantic model, by its class and its fields."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, model: BaseModel) -> None:
        self._kind = type(model)
        self._fields = _frozen(model.__dict__)
        self._extra = _frozen(model.__pydantic_extra__)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and self._fields == other.__dict__ and self._extra == other.__pydantic_extra__


class _Different:
    """Stands for what has to be encoded to be compared."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


_DIFFERENT = _Different()
