"""Find the longest remembered prefix of a history, and build the view of it."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from operator import itemgetter

from compacter.compaction.change import Change
from compacter.io import IO, SYNC
from compacter.memory.comparable import SHORT, comparables
from compacter.memory.protocol import Memory, base_memory
from compacter.memory.record import (
    LONGEST_OPENING,
    Record,
    StoredMessage,
    conversation_digest,
    footprint,
    lookup_keys,
    prefix_digest,
    record_key,
)
from compacter.messages.fields import Json, Unencodable
from compacter.messages.format import Message, MessageFormat
from compacter.messages.openai import OPENAI
from compacter.messages.parts import Kind


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

    ``view`` and ``remember`` are coroutines over ``io``: with ``ASYNC`` they await the asynchronous
    methods of the memory, and with ``large`` they compute in a thread. They raise only the memory's
    own exceptions.
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

    def seen(self, messages: list[Message]) -> tuple[Recognised | None, int]:
        """Return the entry that recognised this history when it was last sent, and the number of
        messages it had then.

        Returns ``None`` and 0 if any of these messages is missing or has changed.
        """
        try:
            record = self.memory.attached(f"opening:{conversation_digest(OPENAI, messages)}")
            known = self.memory.attached(f"recognised:{record}")
            if not isinstance(known, Recognised):
                return None, 0
            first = _History(known.form, messages).first
            middle = first + len(known.prefix)
            end = middle + len(known.rest)
            # Comparing structures runs in C, and no message is encoded twice.
            same = known.prefix == messages[first:middle] and known.rest == messages[middle:end]
        except Exception:  # noqa: BLE001 - a foreign class: ``view`` reports its exception
            return None, 0
        return (known, end) if same else (None, 0)

    async def view(
        self,
        scope: str,
        form: MessageFormat,
        messages: Sequence[Message],
        seen: Recognised | None = None,
        *,
        io: IO = SYNC,
        large: bool = False,
    ) -> View | None:
        """Return the messages with their longest remembered prefix compacted, or ``None``.

        Args:
            scope: Part of each record's key.
            form: Format of the messages.
            messages: The history.
            seen: Entry just returned by ``seen``.
            io: How to use the memory.
            large: Whether the history is so large that an event loop must not wait for it.
        """
        if not messages or self.memory.empty():
            return None
        look = partial(self._keys, scope, form, messages)
        history, keys = await io.thread(look) if large else look()
        if history is None or not keys:
            return None
        records = await (
            self.memory.afind(keys) if io.asynchronous else io.call(self.memory.find, keys)
        )
        build = partial(self._longest_view, history, keys, records, seen)
        return await io.thread(build) if large else build()

    def _keys(
        self, scope: str, form: MessageFormat, messages: Sequence[Message]
    ) -> tuple[_History | None, list[str]]:
        try:
            history = _History(form, messages)
            return history, lookup_keys(scope, form, messages, history.first)
        except Exception as error:  # noqa: BLE001 - a foreign class, or nesting deeper than Python's stack
            self._unencodable(error)
            return None, []

    def _longest_view(
        self,
        history: _History,
        keys: Sequence[str],
        given: Sequence[object],
        seen: Recognised | None,
    ) -> View | None:
        """Return the view of the record that covers most messages, of those that match."""
        alternate = history.form.alternates if self._alternate is None else self._alternate
        records = [
            record
            for record in given
            if isinstance(record, Record) and record.key in keys and record.sound()
        ]
        # Of two records with the same boundary, the one that compacted more was made when the
        # other's view overflowed.
        records.sort(key=lambda record: (-record.boundary, -record.folded))
        for record in records:
            try:
                known = self._recognise_record(record, history, seen)
                view = None if known is None else _view(known, history, alternate)
                if view is not None:
                    view.record = record.id
                    view.window = record.window or None
                    return view
            except Exception as error:  # noqa: BLE001 - as above; another record may cover fewer messages
                self._unencodable(error)
        return None

    async def remember(
        self,
        scope: str,
        form: MessageFormat,
        before: Sequence[Message],
        after: Sequence[Message],
        window: int | None = None,
        origins: Sequence[int | None] | None = None,
        *,
        io: IO = SYNC,
        large: bool = False,
    ) -> str:
        """Save ``after``, which consists of messages of ``before`` and new ones, as the view of
        ``before``.

        ``window`` is the model's context window in tokens, if known; ``origins`` the index in
        ``before`` of each message of ``after``, if known; ``io`` and ``large`` as for ``view``.
        Returns the ``id`` of the record; empty if none can be made.
        """

        def make() -> Record | None:
            try:
                history = _History(form, before)
                made = _record_of(scope, history, after, window or 0, origins)
                if made is not None:
                    self._lay_out(made, history)
            except Exception as error:  # noqa: BLE001 - as above
                self._unencodable(error)
                return None
            return made

        record = await io.thread(make) if large else make()
        if record is None:
            return ""
        try:
            await (
                self.memory.asave(record) if io.asynchronous else io.call(self.memory.save, record)
            )
        except Unencodable as error:
            self._unencodable(error)
        return record.id

    def _unencodable(self, error: Exception) -> None:
        tell = self._on_unencodable
        self._on_unencodable = None
        if tell is not None:
            tell(str(error) if isinstance(error, Unencodable) else type(error).__name__)

    def _recognise_record(
        self, record: Record, history: _History, seen: Recognised | None
    ) -> Recognised | None:
        """Return the entry for this history if the record matches it, else ``None``."""
        form = history.form
        messages = history.messages
        name = f"recognised:{record.id}"
        known = self.memory.attached(name)
        if seen is not None and seen.record == record:
            known = seen
        elif (
            isinstance(known, Recognised)
            and known.record == record
            and known.prefix
            == list(islice(messages, history.first, history.first + len(known.prefix)))
        ):
            end = history.first + len(known.prefix)
            if known.rest != list(islice(messages, end, end + len(known.rest))):
                known = replace(known, rest=[], rest_size=0)
        else:
            # The last message alone distinguishes most histories.
            folded = history.folded(record)
            if not folded or prefix_digest(form, folded[-1:]) != record.last:
                return None
            if prefix_digest(form, folded) != record.digest:
                return None
            known = self._lay_out(record, history)
        # The messages after the boundary are kept for the next call too, if all take at most half
        # of the memory.
        most = self.memory.max_bytes // 2
        if known.size * len(messages) > most * len(known.prefix):
            return known
        new, size = comparables(
            islice(messages, history.first + len(known.prefix) + len(known.rest), None)
        )
        size += known.rest_size
        if (new or known is not seen) and known.size + size <= most:
            known = replace(known, rest=known.rest + new, rest_size=size)
            self.memory.attach(name, known, known.size + size)
            self.memory.attach(f"opening:{conversation_digest(OPENAI, messages)}", record.id, SHORT)
        return known

    def _lay_out(self, record: Record, history: _History) -> Recognised:
        """Return the entry for a history that the record matches, and attach it to the memory for
        later calls.
        """
        form = history.form
        messages = history.messages
        first = history.first
        body = history.body
        end = body[record.boundary - 1] + 1
        # Sort key: an index, and the place there (after the system messages before it, at it, after
        # it, last).
        placed: list[tuple[tuple[int, int], int | StoredMessage]] = [
            ((body[at], 1), body[at] - first) for at in record.kept
        ]
        if end - first > record.boundary:
            systems = set(range(first, end)).difference(body)
            placed.extend(((index, 1), index - first) for index in systems)
        for literal in record.literals:
            at = literal.position
            if literal.behind_system and at < record.boundary:
                placed.append(((body[at], 0), literal))
            else:
                placed.append(
                    ((body[at - 1] if at else first - 1, 2 + literal.behind_system), literal)
                )
        placed.sort(key=itemgetter(0))
        later = (body[position] for position in record.kept if position > record.folded_user)
        user_stays = record.folded_user < 0 or any(
            form.read(messages[index])[0] is Kind.USER for index in later
        )
        prefix, size = comparables(islice(messages, first, end))
        size += footprint(record)
        known = Recognised(
            record, form, prefix, tuple(item for _, item in placed), user_stays, size
        )
        self.memory.attach(f"recognised:{record.id}", known, size)
        return known


class _History:
    """A history, as passed by the caller."""

    def __init__(self, form: MessageFormat, messages: Sequence[Message]) -> None:
        self.form = form
        self.messages = messages
        said = (
            index for index, message in enumerate(messages) if form.speaker(message) != "system"
        )
        self.first = next(said, len(messages))
        """Number of its leading system messages."""
        self._body: Sequence[int] | None = None

    @property
    def body(self) -> Sequence[int]:
        """Indexes of the messages that are not system messages; positions of a record are positions
        in it.
        """
        if self._body is None:
            systems = set(self.form.systems(self.messages))
            every = range(self.first, len(self.messages))
            self._body = (
                every
                if len(systems) == self.first
                else [index for index in every if index not in systems]
            )
        return self._body

    def folded(self, record: Record) -> list[Message]:
        """Return the messages that the record compacts; an empty list if this history is too short
        for it.
        """
        if len(self.body) < record.boundary:
            return []
        kept = set(record.kept)
        head = map(self.messages.__getitem__, self.body[: record.boundary])
        return (
            [message for position, message in enumerate(head) if position not in kept]
            if kept
            else list(head)
        )


def _record_of(
    scope: str,
    history: _History,
    after: Sequence[Message],
    window: int,
    origins: Sequence[int | None] | None = None,
) -> Record | None:
    """Return the record that turns a history into ``after``; ``None`` if nothing was compacted.

    The inserted messages are copied, as the wrapped function may change its arguments. Raises
    ``Unencodable`` if a compacted or inserted message cannot be encoded.
    """
    form = history.form
    before = history.messages
    body = history.body
    if origins is None:
        origins = Change.of(before, after).origins
    places = dict(zip(body, range(len(body)), strict=True))
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
    folded = [before[body[position]] for position in gone]
    return Record(
        key=record_key(scope, form, [before[index] for index in body[:LONGEST_OPENING]], gone),
        boundary=boundary,
        kept=tuple(sorted(position for position in kept if position < boundary)),
        literals=tuple(literals),
        digest=prefix_digest(form, folded),
        last=prefix_digest(form, folded[-1:]),
        folded_user=next(
            (place for place in reversed(gone) if form.read(before[body[place]])[0] is Kind.USER),
            -1,
        ),
        window=window,
    )


@dataclass(frozen=True, slots=True)
class Recognised:
    """Entry for a history that a record matched, so that it need not be encoded again, with the
    parts of its view.

    Messages are counted from the end of the leading system messages.
    """

    record: Record
    form: MessageFormat
    prefix: list[Json]
    """Comparable copies of the messages up to the record's boundary; the view has those after it
    verbatim."""
    items: tuple[int | StoredMessage, ...]
    """Replacement of the prefix: each item is the number of a message that stays verbatim, or an
    inserted message."""
    user_stays: bool
    """Whether the last genuine user message of the prefix, if there is one, stays verbatim."""
    size: int
    """Size of the entry in bytes, without ``rest``."""
    rest: list[Json] = field(default_factory=list)
    """Comparable copies of the messages after the boundary when the history was last sent."""
    rest_size: int = 0
    """Size of ``rest`` in bytes."""


def _view(known: Recognised, history: _History, alternate: bool) -> View | None:  # noqa: FBT001 - not public
    """Return the view of this history.

    Returns ``None`` if the messages after the boundary do not fit: summary and filler were made for
    the message that followed them then, and a fork may continue with another role, or end there.
    """
    form = history.form
    messages = history.messages
    first = history.first
    end = first + len(known.prefix)
    rest = (messages[index] for index in range(len(messages) - 1, end - 1, -1))
    if not known.user_stays and not any(form.read(message)[0] is Kind.USER for message in rest):
        return None
    head = [
        messages[first + item] if isinstance(item, int) else copy.deepcopy(item.message)
        for item in known.items
    ]
    speakers = (role for message in reversed(head) if (role := form.speaker(message)) != "system")
    ends_with = next(speakers, "")
    ended_with = form.speaker(messages[end - 1])
    roles = (form.speaker(messages[index]) for index in range(end, len(messages)))
    following = next((role for role in roles if role != "system"), None)
    if following is None and ends_with == "assistant" != ended_with:
        return None
    if alternate and following == ends_with != ended_with and following in ("user", "assistant"):
        return None
    return View([*messages[:first], *head, *messages[end:]])
