"""Finding the longest stored prefix of a history, and laying out what stands for it."""

from __future__ import annotations

import copy
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter

from pydantic import BaseModel

from compacter.compaction.check import kept_and_discarded
from compacter.memory.base import Memory, Steps, base_memory
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

_LONG = 2_048
"""Characters from which a text is compared by its hash instead of being kept."""

_SHORT = 400
"""Bytes that a message with a role and a text takes beside the text, and its digest."""


class View(list[Message]):
    """A view of a history, and the record that it follows from."""

    record = ""
    """The ``id`` of that record."""
    window: int | None = None
    """The model's window in tokens as that record knows it."""


class Matcher:
    """A memory as calls use it: by conversation instead of by key. Thread-safe.

    ``alternate`` is the option ``alternate_roles``: whether user and assistant must take turns; ``None`` where the
    message format decides. ``on_unencodable`` is called, once, with the reason why a message is neither found nor kept.

    ``view`` and ``remember`` are steps, for ``pump`` or ``apump``. They raise what the memory raises, and nothing else.
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
        """What this history was recognised by when it was sent last, and the index behind what it had then.

        ``None`` and 0 where not all of that is there as it was.
        """
        try:
            record = self.memory.attached(f"opening:{conversation_digest(OPENAI, messages)}")
            known = self.memory.attached(f"recognised:{record}")
            if isinstance(known, Recognised):
                first = _History(known.form, messages).first
                middle = first + len(known.prefix)
                end = middle + len(known.rest)
                # Comparing structures runs in C: nothing that was seen before is encoded again.
                if known.prefix == messages[first:middle] and known.rest == messages[middle:end]:
                    return known, end
        except Exception:  # noqa: BLE001, S110 - somebody else's class: what it raises is told where it is looked up
            pass
        return None, 0

    def view(
        self,
        scope: str,
        form: MessageFormat,
        messages: Sequence[Message],
        seen: Recognised | None = None,
        *,
        awaited: bool = False,
    ) -> Steps[View | None]:
        """The messages with their longest remembered prefix compacted, or ``None``.

        Args:
            scope: Part of each record's key.
            form: The messages' format.
            messages: The history.
            seen: What ``seen`` has just said that it is recognised by.
            awaited: Whether the memory is one that is awaited.
        """
        if not messages or self.memory.empty():
            return None
        try:
            history = _History(form, messages)
            keys = lookup_keys(scope, form, messages, history.first)
        except Exception as error:  # noqa: BLE001 - somebody else's class, or more nesting than Python's stack
            self._unencodable(error)
            return None
        find: Callable[[Sequence[str]], object] = self.memory.afind if awaited else self.memory.find
        found: Sequence[object] = (yield find(keys)) if keys else ()
        records = [record for record in found if isinstance(record, Record) and record.key in keys and record.sound()]
        # Of two with one boundary, the one that folded more was made when the other's view overflowed.
        records.sort(key=lambda record: (-record.boundary, -record.folded))
        for record in records:
            try:
                known = self._recognised(record, history, seen)
                if known is not None:
                    view = _view(known, history, form.alternates if self._alternate is None else self._alternate)
                    if view is not None:
                        view.record, view.window = record.id, record.window or None
                        return view
            except Exception as error:  # noqa: BLE001 - as above; another record may be of what comes before it
                self._unencodable(error)
        return None

    def remember(
        self,
        scope: str,
        form: MessageFormat,
        before: Sequence[Message],
        after: Sequence[Message],
        window: int | None = None,
        *,
        awaited: bool = False,
    ) -> Steps[str]:
        """Keep ``after``, made of messages of ``before`` and new ones, as the view of ``before``.

        ``window`` is the model's, in tokens, where it is known; ``awaited`` as for ``view``. Returns the ``id`` of the
        record; empty where there can be none.
        """
        try:
            history = _History(form, before)
            record = _record_of(scope, history, after, window or 0)
            if record is not None:
                self._lay_out(record, history)
        except Exception as error:  # noqa: BLE001 - as above
            self._unencodable(error)
            return ""
        if record is None:
            return ""
        save: Callable[[Record], object] = self.memory.asave if awaited else self.memory.save
        try:
            yield save(record)
        except Unencodable as error:
            self._unencodable(error)
        return record.id

    def _unencodable(self, error: Exception) -> None:
        tell, self._on_unencodable = self._on_unencodable, None
        if tell is not None:
            tell(str(error) if isinstance(error, Unencodable) else type(error).__name__)

    def _recognised(self, record: Record, history: _History, seen: Recognised | None) -> Recognised | None:
        """What is known of this history as one that the record matches; ``None`` when the record is not of it."""
        form, messages, name = history.form, history.messages, f"recognised:{record.id}"
        known = self.memory.attached(name)
        if seen is not None and seen.record == record:
            known = seen
        elif (
            isinstance(known, Recognised)
            and known.record == record
            and known.prefix == list(islice(messages, history.first, history.first + len(known.prefix)))
        ):
            end = history.first + len(known.prefix)
            if known.rest != list(islice(messages, end, end + len(known.rest))):
                known = replace(known, rest=[], rest_size=0)
        else:
            # The last message alone tells most histories apart.
            folded = history.folded(record)
            if not folded or prefix_digest(form, folded[-1:]) != record.last:
                return None
            if prefix_digest(form, folded) != record.digest:
                return None
            known = self._lay_out(record, history)
        # What is behind the boundary is kept too, for the next call, where all of it takes at most half of the memory.
        most = self.memory.max_bytes // 2
        if known.size * len(messages) > most * len(known.prefix):
            return known
        new, size = _comparables(islice(messages, history.first + len(known.prefix) + len(known.rest), None))
        size += known.rest_size
        if (new or known is not seen) and known.size + size <= most:
            known = replace(known, rest=known.rest + new, rest_size=size)
            self.memory.attach(name, known, known.size + size)
            self.memory.attach(f"opening:{conversation_digest(OPENAI, messages)}", record.id, _SHORT)
        return known

    def _lay_out(self, record: Record, history: _History) -> Recognised:
        """Lay the record's view out over a history that it matches, and keep what recognises this history quickly."""
        form, messages, first, body = history.form, history.messages, history.first, history.body
        end = body[record.boundary - 1] + 1
        # Where each stands: behind the system messages before an index, at it, after it, and last of all.
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
                placed.append(((body[at - 1] if at else first - 1, 2 + literal.behind_system), literal))
        placed.sort(key=itemgetter(0))
        later = (body[position] for position in record.kept if position > record.folded_user)
        user_stays = record.folded_user < 0 or any(form.read(messages[index])[0] is Kind.USER for index in later)
        prefix, size = _comparables(islice(messages, first, end))
        size += footprint(record)
        known = Recognised(record, form, prefix, tuple(item for _, item in placed), user_stays, size)
        self.memory.attach(f"recognised:{record.id}", known, size)
        return known


class _History:
    """One history as it was sent."""

    def __init__(self, form: MessageFormat, messages: Sequence[Message]) -> None:
        self.form = form
        self.messages = messages
        said = (index for index, message in enumerate(messages) if form.speaker(message) != "system")
        self.first = next(said, len(messages))
        """Where its leading system messages end."""
        self._body: Sequence[int] | None = None

    @property
    def body(self) -> Sequence[int]:
        """The indexes of the messages that are not system messages: positions of a record count these."""
        if self._body is None:
            systems = set(self.form.systems(self.messages))
            every = range(self.first, len(self.messages))
            self._body = every if len(systems) == self.first else [index for index in every if index not in systems]
        return self._body

    def folded(self, record: Record) -> list[Message]:
        """The messages that the record would fold; none where this history is too short for it."""
        if len(self.body) < record.boundary:
            return []
        kept, head = set(record.kept), map(self.messages.__getitem__, self.body[: record.boundary])
        return [message for position, message in enumerate(head) if position not in kept] if kept else list(head)


def _record_of(scope: str, history: _History, after: Sequence[Message], window: int) -> Record | None:
    """The record that makes ``after`` of a history; ``None`` when nothing was folded.

    The messages that were put in are copied: the function they are sent with may change its own. Raises
    ``Unencodable`` where something that was folded or put in cannot be encoded.
    """
    form, before, body = history.form, history.messages, history.body
    origins, _ = kept_and_discarded(before, after)
    places = dict(zip(body, range(len(body)), strict=True))
    kept = {places[origin] for origin in origins if origin in places}
    gone = [position for position in range(len(body)) if position not in kept]
    if not gone:
        return None
    boundary = gone[-1] + 1
    literals: list[StoredMessage] = []
    position, behind_system = 0, False
    for origin, message in zip(origins, after, strict=True):
        if origin is None:
            form.content(message)
            literals.append(StoredMessage(position, copy.deepcopy(message), behind_system))
            boundary = max(boundary, min(position + behind_system, len(body)))
        elif origin in places:
            position, behind_system = places[origin] + 1, False
        elif origin >= history.first:
            position, behind_system = max(position, bisect_left(body, origin)), True
    folded = [before[body[position]] for position in gone]
    return Record(
        key=record_key(scope, form, [before[index] for index in body[:LONGEST_OPENING]], gone),
        boundary=boundary,
        kept=tuple(sorted(position for position in kept if position < boundary)),
        literals=tuple(literals),
        digest=prefix_digest(form, folded),
        last=prefix_digest(form, folded[-1:]),
        folded_user=next((place for place in reversed(gone) if form.read(before[body[place]])[0] is Kind.USER), -1),
        window=window,
    )


@dataclass(frozen=True, slots=True)
class Recognised:
    """A history that was recognised once, so that it need not be encoded again, and what its view is made of.

    Messages are counted from the end of the leading system messages.
    """

    record: Record
    form: MessageFormat
    prefix: list[Json]
    """The messages up to the record's boundary, as what they can be compared with. The rest stands verbatim."""
    items: tuple[int | StoredMessage, ...]
    """What stands for the prefix: the number of a message that stays verbatim, or a message that is put in."""
    user_stays: bool
    """Whether the last genuine user message of the prefix, if there is one, stays verbatim."""
    size: int
    """Bytes that all this takes, but for the rest."""
    rest: list[Json] = field(default_factory=list)
    """The messages behind the boundary when the history was sent last, as what they can be compared with."""
    rest_size: int = 0
    """Bytes that these take."""


def _view(known: Recognised, history: _History, alternate: bool) -> View | None:  # noqa: FBT001 - not public
    """The view of this history.

    ``None`` where what follows the boundary does not go with what was put before it: summary and filler were made for
    the message that followed them then. A fork may go on with another role, or end there.
    """
    form, messages, first = history.form, history.messages, history.first
    end = first + len(known.prefix)
    rest = (messages[index] for index in range(len(messages) - 1, end - 1, -1))
    if not known.user_stays and not any(form.read(message)[0] is Kind.USER for message in rest):
        return None
    head = [messages[first + item] if isinstance(item, int) else copy.deepcopy(item.message) for item in known.items]
    speakers = (role for message in reversed(head) if (role := form.speaker(message)) != "system")
    ends_with, ended_with = next(speakers, ""), form.speaker(messages[end - 1])
    roles = (form.speaker(messages[index]) for index in range(end, len(messages)))
    following = next((role for role in roles if role != "system"), None)
    if following is None and ends_with == "assistant" != ended_with:
        return None
    if alternate and following == ends_with != ended_with and following in ("user", "assistant"):
        return None
    return View([*messages[:first], *head, *messages[end:]])


def _comparables(messages: Iterable[Message]) -> tuple[list[Json], int]:
    """What these messages can be compared with, and how many bytes that takes."""
    found: list[Json] = []
    size = 0
    for message in messages:
        text = message.get("content") if type(message) is dict and len(message) == 2 else None
        if type(text) is str and len(text) < _LONG and type(message.get("role")) is str:
            found.append(message.copy())
            size += _SHORT + sys.getsizeof(text)
        else:
            found.append(_comparable(message))
            size += footprint(found[-1])
    return found, size


_DIFFERENT = object()
"""Stands for what has to be encoded to be compared: no message equals it."""


def _comparable(value: Json) -> Json:
    """What equals this value as long as it stays as it is, at the speed of C, and nothing that has another digest.

    A copy of its structure, to be compared from the left: ``_comparable(message) == message``. It shares the short
    texts with the message and keeps none of the long ones, and it tells apart what is equal to Python alone.
    """
    kind = type(value)
    if kind is str or kind is bytes:
        return value if len(value) < _LONG else _Long(value)
    if value is None:
        return None
    if kind is dict:
        # As keys, 1 and True would be the same too.
        return (
            {key: _comparable(inner) for key, inner in value.items()} if set(map(type, value)) <= {str} else _DIFFERENT
        )
    if kind is list:
        return [_comparable(inner) for inner in value]
    if kind is tuple:
        return tuple(_comparable(inner) for inner in value)
    if kind in (bool, int, float):
        return _Number(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, BaseModel):
        return _Model(value)
    return _DIFFERENT


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
        self._fields = _comparable(model.__dict__)
        self._extra = _comparable(model.__pydantic_extra__)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and self._fields == other.__dict__ and self._extra == other.__pydantic_extra__
