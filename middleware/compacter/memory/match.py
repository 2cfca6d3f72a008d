"""Finding the longest stored prefix of a history, and laying out what stands for it."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from compacter.compaction.check import kept_and_discarded
from compacter.memory.base import Memory, base_memory
from compacter.memory.compare import comparable
from compacter.memory.digest import Sent, chain, is_system, is_user, lookup_keys, message_digest, record_key
from compacter.memory.record import Record, StoredMessage, footprint
from compacter.messages.fields import Json, Unencodable
from compacter.messages.format import Message, MessageFormat

_RECOGNISED = "recognised:"
"""Begins the keys of what ``Matcher`` attaches to a memory."""


def record_of(scope: str, history: Sent, after: Sequence[Message]) -> Record | None:
    """The record that makes ``after`` of a history; ``None`` when nothing was folded.

    The messages that were put in are copied: the function they are sent with may change its own. Raises
    ``Unencodable`` where something that was folded or put in cannot be encoded.
    """
    form, before, body = history.form, history.messages, history.body
    origins, _ = kept_and_discarded(before, after)
    places = {index: position for position, index in enumerate(body)}
    kept = {places[origin] for origin in origins if origin in places}
    gone = [position for position in range(len(body)) if position not in kept]
    if not gone:
        return None
    literals = _literals(form, origins, after, body, places, history.first)
    boundary = gone[-1] + 1
    for literal in literals:
        boundary = max(boundary, min(literal.position + literal.behind_system, len(body)))
    parts = [history.digest(body[position]) for position in gone]
    return Record(
        key=record_key(scope, form, [before[index] for index in body], gone),
        boundary=boundary,
        kept=tuple(sorted(position for position in kept if position < boundary)),
        literals=tuple(literals),
        digest=chain(parts),
        last=chain(parts[-1:]),
        folded_user=next((place for place in reversed(gone) if is_user(form, before[body[place]])), -1),
    )


def _literals(
    form: MessageFormat,
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
            message_digest(form, message)
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


def laid_out(record: Record, form: MessageFormat, messages: Sequence[Message], first: int) -> Layout:
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
        if is_system(form, message):
            items.append(offset)
            continue
        items.extend(slots.get((position, True), ()))
        if position in kept:
            items.append(offset)
            user_stays = user_stays or (position > record.folded_user and is_user(form, message))
        position += 1
        items.extend(slots.get((position, False), ()))
        if position >= record.boundary:
            break
    items.extend(slots.get((position, True), ()))
    return Layout(tuple(items), offset + 1, user_stays)


def view_of(
    layout: Layout, form: MessageFormat, messages: Sequence[Message], first: int, *, alternate: bool
) -> list[Message] | None:
    """The view of these messages.

    ``None`` where what follows the boundary does not go with what was put before it.
    """
    end = first + layout.length
    if not (layout.user_stays or _any_user(form, messages, end)):
        return None
    if not _joins(layout, form, messages, first, alternate=alternate):
        return None
    view = list(messages[:first])
    view.extend(
        messages[first + item] if isinstance(item, int) else copy.deepcopy(item.message) for item in layout.items
    )
    view.extend(messages[end:])
    return view


def _any_user(form: MessageFormat, messages: Sequence[Message], start: int) -> bool:
    return any(is_user(form, messages[index]) for index in range(len(messages) - 1, start - 1, -1))


def _joins(layout: Layout, form: MessageFormat, messages: Sequence[Message], first: int, *, alternate: bool) -> bool:
    """Whether head and rest of the view may stand beside each other.

    Summary and filler were made for the message that followed them then. A fork may go on with another role,
    or end there.
    """
    end = first + layout.length
    ends_with = next(
        (
            role
            for item in reversed(layout.items)
            if (role := form.speaker(messages[first + item] if isinstance(item, int) else item.message)) != "system"
        ),
        "",
    )
    ended_with = form.speaker(messages[end - 1])
    following = next(
        (role for index in range(end, len(messages)) if (role := form.speaker(messages[index])) != "system"),
        None,
    )
    if following is None:
        return ends_with != "assistant" or ended_with == "assistant"
    return not (alternate and following == ends_with != ended_with and following in ("user", "assistant"))


class View(list[Message]):
    """A view of a history, and the record that it follows from."""

    record = ""
    """The ``id`` of that record."""


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

    def view(self, scope: str, form: MessageFormat, messages: Sequence[Message]) -> View | None:
        """The messages with their longest remembered prefix compacted, or ``None``."""
        history = self._history(scope, form, messages)
        return self._chosen(history, self.memory.find(history.keys)) if history else None

    async def aview(self, scope: str, form: MessageFormat, messages: Sequence[Message]) -> View | None:
        """As ``view``, awaited."""
        history = self._history(scope, form, messages)
        return self._chosen(history, await self.memory.afind(history.keys)) if history else None

    def remember(self, scope: str, form: MessageFormat, before: Sequence[Message], after: Sequence[Message]) -> str:
        """Keep ``after``, made of messages of ``before`` and new ones, as the view of ``before``.

        Returns the ``id`` of the record; empty where there can be none.
        """
        record = self._record(scope, form, before, after)
        if record is not None:
            try:
                self.memory.save(record)
            except Unencodable as error:
                self._unencodable(error)
        return "" if record is None else record.id

    async def aremember(
        self, scope: str, form: MessageFormat, before: Sequence[Message], after: Sequence[Message]
    ) -> str:
        """As ``remember``, awaited."""
        record = self._record(scope, form, before, after)
        if record is not None:
            try:
                await self.memory.asave(record)
            except Unencodable as error:
                self._unencodable(error)
        return "" if record is None else record.id

    def _history(self, scope: str, form: MessageFormat, messages: Sequence[Message]) -> Sent | None:
        if not messages or self.nothing_known():
            return None
        try:
            history = Sent(form, messages)
            history.keys = lookup_keys(scope, form, messages, history.first)
        except Exception as error:  # noqa: BLE001 - somebody else's class, or more nesting than Python's stack
            self._unencodable(error)
            return None
        return history if history.keys else None

    def _chosen(self, history: Sent, found: Sequence[object]) -> View | None:
        records = [
            record for record in found if isinstance(record, Record) and record.key in history.keys and record.sound()
        ]
        # Of two with one boundary, the one that folded more was made when the other's view overflowed.
        records.sort(key=lambda record: (-record.boundary, -record.folded))
        form = history.form
        alternate = form.alternates if self._alternate is None else self._alternate
        for record in records:
            try:
                layout = self._layout(record, history)
                if layout is not None:
                    laid = view_of(layout, form, history.messages, history.first, alternate=alternate)
                    if laid is not None:
                        view = View(laid)
                        view.record = record.id
                        return view
            except Exception as error:  # noqa: BLE001 - as above; another record may be of what comes before it
                self._unencodable(error)
        return None

    def _record(
        self, scope: str, form: MessageFormat, before: Sequence[Message], after: Sequence[Message]
    ) -> Record | None:
        try:
            history = Sent(form, before)
            record = record_of(scope, history, after)
            if record is not None:
                self._keep(record, laid_out(record, form, before, history.first), history)
        except Exception as error:  # noqa: BLE001 - as above
            self._unencodable(error)
            return None
        return record

    def _unencodable(self, error: Exception) -> None:
        tell, self._on_unencodable = self._on_unencodable, None
        if tell is not None:
            tell(str(error) if isinstance(error, Unencodable) else type(error).__name__)

    def _layout(self, record: Record, history: Sent) -> Layout | None:
        """How the record's view lies over this history; ``None`` when the record is not of it."""
        if len(history.messages) - history.first < record.boundary:
            return None
        known = self.memory.attached(_RECOGNISED + record.id)
        if not isinstance(known, _Recognised):
            if not history.matches(record):
                return None
            layout = laid_out(record, history.form, history.messages, history.first)
            self._keep(record, layout, history)
            return layout
        match = _compared(known, record, history)
        if match is None:
            return None
        if match == "same" and (known.record is record or known.record == record):
            return known.layout
        layout = laid_out(record, history.form, history.messages, history.first)
        if match != "verbatim":
            self._keep(record, layout, history)
        return layout

    def _keep(self, record: Record, layout: Layout, history: Sent) -> None:
        """Keep what recognises this history without encoding it once more."""
        form, first = history.form, history.first
        verbatim = frozenset(item for item in layout.items if isinstance(item, int))
        prefix: list[Json] = []
        digests: list[bytes | None] = []
        for offset, message in enumerate(islice(history.messages, first, first + layout.length)):
            prefix.append(comparable(message))
            if offset not in verbatim:
                digests.append(history.digest(first + offset))
            else:
                digests.append(None if is_system(form, message) else b"")
        size = record.size + footprint(prefix) + footprint(digests)
        self.memory.attach(_RECOGNISED + record.id, _Recognised(record, layout, prefix, digests), size)


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


def _compared(known: _Recognised, record: Record, history: Sent) -> Literal["same", "verbatim", "shifted"] | None:
    """Whether what was folded is what it was when it was recognised, and what else has changed up to the boundary.

    ``None`` when something folded has changed; ``"verbatim"`` when only messages have that stand verbatim,
    ``"shifted"`` when system messages came or went.
    """
    first, form = history.first, history.form
    now = list(islice(history.messages, first, first + len(known.prefix)))
    # Comparing structures runs in C: nothing that was seen before is encoded again.
    if known.prefix == now:
        return "same"
    changed = False
    for offset, new in enumerate(now):
        if known.prefix[offset] == new:
            continue
        digest = known.digests[offset]
        if is_system(form, new) != (digest is None):
            return "shifted" if history.matches(record) else None
        if not digest:
            changed = True
        elif history.digest(first + offset) != digest:
            return None
        elif type(new) is dict:
            # Only marks have moved; the next comparison is a plain one again.
            known.prefix[offset] = comparable(new)
    if len(now) < len(known.prefix):
        return None
    return "verbatim" if changed else "same"
