"""Find the longest remembered prefix of a history, and build the view of it."""

from __future__ import annotations

import copy
import marshal
from bisect import bisect_left
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile
from typing import Any, TypeVar

from pydantic import BaseModel

from compacter.compaction.check import origins_of
from compacter.memory.protocol import Memory, base_memory
from compacter.memory.record import (
    PLAIN,
    Record,
    lookup_keys,
    openings,
    prefix_digest,
    record_key,
)
from compacter.messages.fields import Json, Unencodable
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Kind
from compacter.runtime.io import IO, SYNC

T = TypeVar("T")
# Records whose last match is known; others are compared by their digests.
_MOST_MATCHES = 1_000


class View(list[Message]):
    """A history in the form in which it is sent: a list of messages that has a summary in place of
    the compacted ones. It knows the record that it was built from.
    """

    record = ""
    """``id`` of that record."""
    source: Record
    """That record."""
    window: int | None = None
    """Context window of the model in tokens, from that record."""
    spent: Sequence[float] = ()
    """Sums that the conversation had spent by then, from that record."""
    bound = 0
    """Number of its messages whose thinking is older than the view."""


class Matcher:
    """Wrapper of a memory that looks up conversations instead of keys. Thread-safe.

    ``alternate`` is the option ``alternate_roles``: whether user and assistant must take turns;
    ``None``: the message format decides. A message that cannot be encoded is neither found nor
    kept, which is logged.

    ``view`` and ``remember`` are coroutines over ``io``: with ``ASYNC`` they run in a thread if the
    memory may block, or with ``large``. They raise only the memory's own exceptions.
    """

    def __init__(self, memory: Memory, *, alternate: bool | None = None) -> None:
        self.memory = base_memory(memory)
        self._alternate = alternate

    async def view(
        self,
        scope: str,
        form: MessageFormat,
        messages: Sequence[Message],
        first: Sequence[bytes] | None = None,
        *,
        io: IO = SYNC,
        large: bool = False,
    ) -> View | None:
        """Return the messages with their longest remembered prefix compacted, or ``None``.

        Args:
            scope: Part of each record's key.
            form: Format of the messages.
            messages: The history.
            first: Their ``openings``, if they were read before.
            io: How to use the memory.
            large: Whether the history is so large that an event loop must not wait for it.
        """
        if not messages or self.memory.empty():
            return None
        find = partial(self._find, scope, form, messages, first)
        return await self._use(find, io, large=large)

    async def remember(
        self,
        scope: str,
        form: MessageFormat,
        before: Sequence[Message],
        after: Sequence[Message],
        window: int | None = None,
        spent: tuple[float, ...] = (),
        *,
        io: IO = SYNC,
        large: bool = False,
    ) -> Record | None:
        """Save that ``after`` is the compacted form of ``before``, and return the record; ``None``
        if it cannot be saved.

        ``window`` is the model's context window in tokens, if known, ``spent`` what the
        conversation has spent; ``io`` and ``large`` are those of ``view``.
        """

        def save() -> Record | None:
            record = None
            with self._reading():
                history = _History(form, before)
                record = history.record(scope, after, window)
                if record is not None:
                    record = replace(record, spent=spent)
                    self._note_match(record, history.compacted(record))
            if record is not None:
                with self._reading(Unencodable):
                    self.memory.save(record)
            return record

        return await self._use(save, io, large=large)

    async def forget(self, record: Record, *, io: IO = SYNC) -> None:
        """Replace this record by one that matches no history."""
        self.memory.matches.pop(record.id, None)
        await self._use(partial(self.memory.save, replace(record, last="")), io)

    async def _use(self, action: Callable[[], T], io: IO, *, large: bool = False) -> T:
        return await io.thread(action) if large or self.memory.blocking else action()

    def _find(
        self,
        scope: str,
        form: MessageFormat,
        messages: Sequence[Message],
        first: Sequence[bytes] | None,
    ) -> View | None:
        """Return the view of the record that covers most messages, of those that match."""
        keys: Sequence[str] = ()
        with self._reading():
            keys = lookup_keys(scope, openings(form, messages) if first is None else first)
        # A user's own memory may return anything.
        answer: Sequence[Any] = self.memory.find(keys)
        records = [each for each in answer if isinstance(each, Record) and each.key in keys]
        # If two records have one boundary, the one that compacts more was made when the other's
        # view overflowed.
        records.sort(key=lambda record: (record.boundary, -len(record.kept)), reverse=True)
        for record in records:
            with self._reading():
                view = self._view(record, _History(form, messages))
                if view is not None:
                    return view
        return None

    def _view(self, record: Record, history: _History) -> View | None:
        """Return the view of a history if it begins with the messages that the record compacts.

        Messages that the record matched before are compared by a hash, so that none is encoded
        again.
        """
        if not record.last:
            return None  # It was forgotten, perhaps by another process.
        form = history.form
        compacted = history.compacted(record)
        last_match = self.memory.matches.get(record.id)
        if last_match is None or last_match != _hash(compacted):
            # The last message alone distinguishes most histories.
            if not compacted or prefix_digest(form, compacted[-1:]) != record.last:
                return None
            if prefix_digest(form, compacted) != record.digest:
                return None
            self._note_match(record, compacted)
        alternate = form.alternates if self._alternate is None else self._alternate
        return history.view(record, alternate=alternate)

    def _note_match(self, record: Record, compacted: Sequence[Message]) -> None:
        matches = self.memory.matches
        if len(matches) >= _MOST_MATCHES:
            matches.clear()
        matches[record.id] = _hash(compacted)

    @contextmanager
    def _reading(self, kind: type[Exception] = Exception) -> Generator[None]:
        """Log an exception of the block, which reads messages, and continue after the block. An
        object of another library may raise any exception, and deep nesting raises
        ``RecursionError``.
        """
        try:
            yield
        except kind as error:
            reason = str(error) if isinstance(error, Unencodable) else type(error).__name__
            said = f"not remembered: {reason}"
            self.memory.write_log("debug", "compacter.not_remembered", said, {"reason": reason})


class _History:
    """The messages that the caller passed, and the places of those that are not system messages."""

    def __init__(self, form: MessageFormat, messages: Sequence[Message]) -> None:
        self.form = form
        self.messages = messages
        self.systems = form.systems(messages)
        """Indexes of the system messages."""
        self.body = sorted(set(range(len(messages))).difference(self.systems))
        """Indexes of all others; positions of a record are positions in it."""
        self.first = self.body[0] if self.body else 0
        """Number of its leading system messages."""

    def compacted(self, record: Record) -> list[Message]:
        """Return the messages that the record compacts; an empty list if this history is too short
        for it.
        """
        if len(self.body) < record.boundary:
            return []
        kept = set(record.kept)
        head = enumerate(self.body[: record.boundary])
        return [self.messages[index] for position, index in head if position not in kept]

    def record(self, scope: str, after: Sequence[Message], window: int | None) -> Record | None:
        """Return the record that turns this history into ``after``; ``None`` if that compacts
        nothing.

        The inserted messages are copied, as the wrapped function may change its arguments. Raises
        ``Unencodable`` if a compacted or inserted message cannot be encoded.
        """
        form = self.form
        pairs = zip(reversed(self.messages), reversed(after), strict=False)
        unchanged = len([*takewhile(lambda pair: pair[0] is pair[1], pairs)])
        boundary = bisect_left(self.body, len(self.messages) - unchanged)
        head = self._items(after, len(after) - unchanged)
        kept = {item for item in head if isinstance(item, int)}
        gone = [position for position in range(boundary) if position not in kept]
        if not gone:
            return None
        spoken = [self.messages[index] for index in self.body[:boundary]]
        compacted = [spoken[position] for position in gone]
        users = (place for place in reversed(gone) if form.read(spoken[place])[0] is Kind.USER)
        return Record(
            key=record_key(scope, form, spoken, gone),
            boundary=boundary,
            view=tuple(head),
            digest=prefix_digest(form, compacted),
            last=prefix_digest(form, compacted[-1:]),
            compacted_user=next(users, -1),
            window=window,
            thinking=len(self.body),
        )

    def _items(self, after: Sequence[Message], count: int) -> list[int | Message | None]:
        """Return the first ``count`` messages of ``after`` as a record has them."""
        places = {index: position for position, index in enumerate(self.body)}
        items: list[int | Message | None] = []
        for origin, message in zip(origins_of(self.messages, after)[:count], after, strict=False):
            if origin is None:
                self.form.content(message)
                items.append(copy.deepcopy(message))
            elif origin >= self.first:
                items.append(places.get(origin))
        return items

    def view(self, record: Record, *, alternate: bool) -> View | None:
        """Return the view of this history, which the record matches.

        Returns ``None`` if the messages after the boundary do not fit: summary and filler were made
        for the message that followed them then, and a fork may continue with another role, or end
        there.
        """
        form = self.form
        body = self.body
        end = body[record.boundary] if record.boundary < len(body) else len(self.messages)
        rest = self.messages[end:]
        later = (self.messages[body[at]] for at in record.kept if at > record.compacted_user)
        kinds = (form.read(message)[0] for message in (*reversed(rest), *later))
        if record.compacted_user >= 0 and Kind.USER not in kinds:
            return None
        head = self._head(record, end)
        ends_with = self._speaker(reversed(head))
        if ends_with != form.speaker(self.messages[body[record.boundary - 1]]):
            following = self._speaker(rest)
            if alternate and following == ends_with:
                return None
            if not following and ends_with == "assistant":
                return None
        view = View([*self.messages[: self.first], *head, *rest])
        view.record = record.id
        view.source = record
        view.window = record.window
        view.spent = record.spent
        if any(map(form.blocks_before, head)):
            return view  # Thinking behind a provider's own compaction is valid with it.
        newer = body[max(record.thinking, record.boundary) :]
        view.bound = len(view) - (len(self.messages) - newer[0] if newer else 0)
        return view

    def _speaker(self, messages: Iterable[Message]) -> str:
        """Return the speaker of the first message that is not a system message."""
        speakers = map(self.form.speaker, messages)
        return next((speaker for speaker in speakers if speaker != "system"), "")

    def _head(self, record: Record, end: int) -> list[Message]:
        """Return the view of the messages between the leading system messages and ``end``. Their
        system messages stay in their order, each in the place of one that was there.
        """
        places = (index for index in self.systems if self.first <= index < end)
        systems = iter([self.messages[index] for index in places])
        head: list[Message] = []
        for item in record.view:
            if item is None:
                head.extend(islice(systems, 1))
            elif isinstance(item, int):
                head.append(self.messages[self.body[item]])
            else:
                head.append(copy.deepcopy(item))
        return [*head, *systems]


def _hash(messages: Iterable[Message]) -> int:
    """Return Python's hash of messages, keyed to this process: equal for equal contents alone.

    Python caches the hash of a text in the text, so that plain messages cost next to nothing.
    """
    return hash(tuple(map(_hashable, messages)))


def _hashable(value: Json) -> Hashable:
    """Return an object that is equal only to those of values with equal digests.

    Unlike Python's comparison it distinguishes values like 1 and ``True``.
    """
    kind = type(value)
    if kind is dict and len(value) == 2:
        role = value.get("role")
        text = value.get("content")
        if type(role) is str and type(text) is str:
            return role, text
    try:
        return marshal.dumps(value, PLAIN)
    except ValueError:  # It contains an object of a class.
        if isinstance(value, BaseModel):
            value = [value.__dict__, value.__pydantic_extra__]
        elif kind is dict:
            value = [*value, *value.values()]
        elif kind is not list:
            return object()
        return kind, *map(_hashable, value)
