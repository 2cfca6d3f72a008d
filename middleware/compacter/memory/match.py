"""Find the longest remembered prefix of a history, and build the view of it."""

from __future__ import annotations

import copy
import marshal
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from pydantic import BaseModel

from compacter.compaction.conversation import origins_of
from compacter.memory.protocol import Memory, base_memory
from compacter.memory.record import (
    LONGEST_OPENING,
    PLAIN,
    Record,
    StoredMessage,
    lookup_keys,
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
    """A view of a history, and the record that it was built from."""

    record = ""
    """``id`` of that record."""
    window: int | None = None
    """Context window of the model in tokens, from that record."""


class Matcher:
    """Wrapper of a memory that looks up conversations instead of keys. Thread-safe.

    ``alternate`` is the option ``alternate_roles``: whether user and assistant must take turns;
    ``None``: the message format decides. ``on_unencodable`` is called once, with the reason why a
    message is neither found nor kept.

    ``view`` and ``remember`` are coroutines over ``io``: with ``ASYNC`` they run in a thread if the
    memory may block, or with ``large``. They raise only the memory's own exceptions.
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

    async def view(
        self,
        scope: str,
        form: MessageFormat,
        messages: Sequence[Message],
        *,
        io: IO = SYNC,
        large: bool = False,
    ) -> View | None:
        """Return the messages with their longest remembered prefix compacted, or ``None``.

        Args:
            scope: Part of each record's key.
            form: Format of the messages.
            messages: The history.
            io: How to use the memory.
            large: Whether the history is so large that an event loop must not wait for it.
        """
        if not messages or self.memory.empty():
            return None
        find = partial(self._find, scope, form, messages)
        return await io.thread(find) if large or self.memory.blocking else find()

    async def remember(
        self,
        scope: str,
        form: MessageFormat,
        before: Sequence[Message],
        after: Sequence[Message],
        window: int | None = None,
        *,
        io: IO = SYNC,
        large: bool = False,
    ) -> Record | None:
        """Save ``after``, which consists of messages of ``before`` and new ones, as the view of
        ``before``.

        ``window`` is the model's context window in tokens, if known; ``io`` and ``large`` are as
        for ``view``.
        Returns the record; ``None`` if none can be made.
        """

        def save() -> Record | None:
            made = self._read(lambda: _record_of(scope, _Prefix(form, before), after, window or 0))
            if made is None:
                return None
            record, folded = made
            self._note_match(record, folded)
            try:
                self.memory.save(record)
            except Unencodable as error:
                self._report(error)
            return record

        return await io.thread(save) if large or self.memory.blocking else save()

    async def forget(self, record: Record, *, io: IO = SYNC) -> None:
        """Save a record that matches no history in place of this one."""
        self.memory.matches.pop(record.id, None)
        save = partial(self.memory.save, replace(record, last=""))
        await io.thread(save) if self.memory.blocking else save()

    def _find(self, scope: str, form: MessageFormat, messages: Sequence[Message]) -> View | None:
        """Return the view of the record that covers most messages, of those that match."""
        keys = self._read(partial(lookup_keys, scope, form, messages)) or ()
        # What a memory of the user's own returns may be anything.
        answer: Sequence[Any] = self.memory.find(keys)
        records = [each for each in answer if isinstance(each, Record) and each.key in keys]
        history = self._read(partial(_Prefix, form, messages)) if records else None
        if history is None:
            return None
        # Of two records with the same boundary, the one that compacted more was made when the
        # other's view overflowed.
        records.sort(key=lambda record: (record.boundary, -len(record.kept)), reverse=True)
        alternate = form.alternates if self._alternate is None else self._alternate
        for record in records:
            if self._read(partial(self._matches, record, history)):
                view = self._read(partial(_view, record, history, alternate))
                if view is not None:
                    return view
        return None

    def _matches(self, record: Record, history: _Prefix) -> bool:
        """Return whether a record compacts what this history begins with.

        What it matched before is compared by a hash, so that no message is encoded again.
        """
        form = history.form
        folded = history.folded(record)
        last_match = self.memory.matches.get(record.id)
        if last_match is not None and last_match == _hash(folded):
            return True
        # The last message alone distinguishes most histories.
        is_match = (
            bool(folded)
            and prefix_digest(form, folded[-1:]) == record.last
            and prefix_digest(form, folded) == record.digest
        )
        if is_match:
            self._note_match(record, folded)
        return is_match

    def _note_match(self, record: Record, folded: Sequence[Message]) -> None:
        matches = self.memory.matches
        if len(matches) >= _MOST_MATCHES:
            matches.clear()
        matches[record.id] = _hash(folded)

    def _read(self, action: Callable[[], T]) -> T | None:
        """Return the result of reading messages; ``None`` if one cannot be encoded."""
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - a foreign class, or nesting deeper than Python's stack
            self._report(error)
            return None

    def _report(self, error: Exception) -> None:
        report = self._on_unencodable
        self._on_unencodable = None
        if report is not None:
            report(str(error) if isinstance(error, Unencodable) else type(error).__name__)


class _Prefix:
    """The messages of a history, as the caller passed them, and which of them count."""

    def __init__(self, form: MessageFormat, messages: Sequence[Message]) -> None:
        self.form = form
        self.messages = messages
        systems = form.systems(messages)
        self.body: Sequence[int] = range(len(systems), len(messages))
        """Indexes of the messages that are not system messages; positions of a record are positions
        in it."""
        # Whether the last system message stands behind another one.
        if systems[-1:] > [len(systems) - 1]:
            self.body = sorted(set(range(len(messages))).difference(systems))
        self.first = next(iter(self.body), 0)
        """Number of its leading system messages."""

    def folded(self, record: Record) -> list[Message]:
        """Return the messages that the record compacts; an empty list if this history is too short
        for it.
        """
        if len(self.body) < record.boundary:
            return []
        kept = set(record.kept)
        head = enumerate(self.body[: record.boundary])
        return [self.messages[index] for position, index in head if position not in kept]


def _record_of(
    scope: str,
    history: _Prefix,
    after: Sequence[Message],
    window: int,
) -> tuple[Record, list[Message]] | None:
    """Return the record that turns a history into ``after``, and the messages that it compacts;
    ``None`` if there are none.

    The inserted messages are copied, as the wrapped function may change its arguments. Raises
    ``Unencodable`` if a compacted or inserted message cannot be encoded.
    """
    form = history.form
    body = history.body
    spoken = [history.messages[index] for index in body]
    origins = origins_of(history.messages, after)
    places = {index: position for position, index in enumerate(body)}
    kept = {places[origin] for origin in origins if origin in places}
    gone = [position for position in range(len(body)) if position not in kept]
    if not gone:
        return None
    boundary = gone[-1] + 1
    literals: list[StoredMessage] = []
    position = 0
    behind_system = False
    for origin, message in zip(origins, after, strict=True):
        if origin is None:
            form.content(message)
            literals.append(StoredMessage(position, copy.deepcopy(message), behind_system))
            boundary = max(boundary, min(position + behind_system, len(body)))
        elif origin in places:
            position = places[origin] + 1
            behind_system = False
        elif origin >= history.first:
            position = max(position, bisect_left(body, origin))
            behind_system = True
    folded = [spoken[position] for position in gone]
    record = Record(
        key=record_key(scope, form, spoken[:LONGEST_OPENING], gone),
        boundary=boundary,
        kept=tuple(sorted(position for position in kept if position < boundary)),
        literals=tuple(literals),
        digest=prefix_digest(form, folded),
        last=prefix_digest(form, folded[-1:]),
        folded_user=next(
            (place for place in reversed(gone) if form.read(spoken[place])[0] is Kind.USER),
            -1,
        ),
        window=window,
    )
    return record, folded


def _view(record: Record, history: _Prefix, alternate: bool) -> View | None:  # noqa: FBT001 - not public
    """Return the view of a history that a record matches.

    Returns ``None`` if the messages after the boundary do not fit: summary and filler were made for
    the message that followed them then, and a fork may continue with another role, or end there.
    """
    form = history.form
    messages = history.messages
    body = history.body
    end = body[record.boundary - 1] + 1
    rest = messages[end:]
    later = (messages[body[at]] for at in record.kept if at > record.folded_user)
    kinds = (form.read(message)[0] for message in (*reversed(rest), *later))
    if record.folded_user >= 0 and Kind.USER not in kinds:
        return None

    def speaker(several: Iterable[Message]) -> str:
        roles = map(form.speaker, several)
        return next((role for role in roles if role != "system"), "")

    head = _head(record, history, end)
    ends_with = speaker(reversed(head))
    ended_with = form.speaker(messages[end - 1])
    following = speaker(rest)
    if not following and ends_with == "assistant" != ended_with:
        return None
    if alternate and following == ends_with != ended_with and following in ("user", "assistant"):
        return None
    view = View([*messages[: history.first], *head, *rest])
    view.record = record.id
    view.window = record.window or None
    return view


def _head(record: Record, history: _Prefix, end: int) -> list[Message]:
    """Return the view of the messages between the leading system messages and ``end``: those that
    stay, system messages among them, and the inserted ones.
    """
    messages = history.messages
    body = history.body
    first = history.first
    stays = {body[at] for at in record.kept}
    if end - first > record.boundary:
        stays.update(set(range(first, end)).difference(body))
    # Sort key: an index, and the place there (after the system messages before it, at it, after it,
    # last).
    placed = [((index, 1), messages[index]) for index in stays]
    for literal in record.literals:
        at = literal.position
        if literal.behind_system and at < record.boundary:
            place = body[at], 0
        else:
            place = body[at - 1] if at else first - 1, 2 + literal.behind_system
        placed.append((place, copy.deepcopy(literal.message)))
    placed.sort(key=itemgetter(0))
    return [message for _, message in placed]


def _hash(messages: Iterable[Message]) -> int:
    """Return Python's hash of messages, keyed to this process: equal for equal contents alone.

    Python caches the hash of a text in the text, so that plain messages cost next to nothing.
    """
    return hash(tuple(map(_hashable, messages)))


def _hashable(value: Json) -> Hashable:
    """Return an object that equals only those of values with the same digest.

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
    except ValueError:  # It holds an object of a class.
        if isinstance(value, BaseModel):
            value = [value.__dict__, value.__pydantic_extra__]
        elif kind is dict:
            value = [*value, *value.values()]
        elif kind is not list:
            return object()
        return kind, *map(_hashable, value)
