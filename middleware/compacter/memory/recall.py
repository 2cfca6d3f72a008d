"""Finding the compacted view of a history that is sent again, and keeping a new one."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from compacter.memory.base import Memory
from compacter.memory.digest import chain, encoded, is_system, lead, lookup_keys
from compacter.memory.layout import Layout, laid_out, record_of, view_of
from compacter.memory.record import Record
from compacter.messages.fields import Json
from compacter.messages.format import Message, Wire

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
