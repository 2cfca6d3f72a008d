"""A mutable sequence of messages, some of which are pinned: the list of a ``History``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from typing import Any, overload

from compacter.errors import ConfigurationError
from compacter.locks import Lock
from compacter.messages.format import Message

_NOT_MESSAGES = (
    type(None),
    int,
    float,
    complex,
    bytes,
    bytearray,
    list,
    tuple,
    set,
    frozenset,
    type,
)
CHANGES = Lock()
"""Held during each change of a history, so that none is lost. Shared by all histories."""


class PinnedList(MutableSequence[Message]):
    """Messages and their pins, which stay together in every change."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._items = with_pins(messages)
        self._version = 0

    @property
    def messages(self) -> list[Message]:
        """The messages as a new list, for ``json.dumps`` for instance."""
        return [message for message, _ in self._items]

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PinnedList):
            return self._items == other._items
        return self.messages == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.messages[index] if isinstance(index, slice) else self._items[index][0]

    @overload
    def __setitem__(self, index: int, value: Message) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Message]) -> None: ...
    def __setitem__(self, index: int | slice, value: Any) -> None:
        """Replace messages. A single replacement keeps the pin; those of a slice are not pinned."""
        items: Any = with_pins(value if isinstance(index, slice) else [value])
        with CHANGES:
            if not isinstance(index, slice):
                items = (value, self._items[index][1])
            self._items[index] = items
            self._version += 1

    def __delitem__(self, index: int | slice) -> None:
        with CHANGES:
            del self._items[index]
            self._version += 1

    def reverse(self) -> None:
        """Reverse in place; pins stay with their messages."""
        with CHANGES:
            self._items.reverse()
            self._version += 1

    def insert(self, index: int, value: Message, *, pinned: bool = False) -> None:
        """Insert a message before ``index``.

        Args:
            index: Position, as for ``list.insert``.
            value: The message.
            pinned: Whether every compaction keeps it verbatim.
        """
        check_messages([value])
        with CHANGES:
            self._items.insert(index, (value, bool(pinned)))
            self._version += 1

    def pin(self, index: int, *, pinned: bool = True) -> None:
        """Pin the message at ``index``: every compaction keeps it verbatim. Raises
        ``IndexError``.

        Args:
            index: Position of the message.
            pinned: Whether it is pinned from now on.
        """
        with CHANGES:
            if not -len(self) <= index < len(self):
                raise IndexError(f"there is no message {index}: the history has {len(self)}")
            self._items[index] = (self._items[index][0], pinned)
            self._version += 1

    def unpin(self, index: int) -> None:
        """Remove the pin of the message at ``index``. Raises ``IndexError``."""
        self.pin(index, pinned=False)

    @property
    def pins(self) -> tuple[bool, ...]:
        """For each message, whether it is pinned."""
        return tuple(pinned for _, pinned in self._items)

    def pinned_ids(self) -> frozenset[int]:
        """Return the ``id`` of each pinned message object."""
        with CHANGES:
            return frozenset(id(message) for message, pinned in self._items if pinned)

    @property
    def version(self) -> int:
        """Number of changes so far; a compaction of an older version is never installed."""
        return self._version

    def _set(self, messages: Iterable[Message], pins: Iterable[bool]) -> None:
        with CHANGES:
            self._items = list(zip(messages, pins, strict=True))
            self._version += 1


def with_pins(messages: Iterable[Message]) -> list[tuple[Message, bool]]:
    """Return the messages with their pins; those of a plain list are not pinned."""
    if isinstance(messages, PinnedList):
        return list(messages._items)  # noqa: SLF001 - of this module
    return [(message, False) for message in check_messages(messages, Iterable)]


def check_messages(messages: Any, of: type[Any] = Sequence) -> list[Message]:  # noqa: ANN401 - checked here
    """Return a list of the messages. Raises ``ConfigurationError`` if it is none, or one certainly
    is not a message.
    """
    if isinstance(messages, (str, bytes, bytearray, Mapping)) or not isinstance(messages, of):
        raise ConfigurationError(
            f"messages takes a list of messages, not {type(messages).__name__}"
        )
    held: list[Message] = list(messages)
    for index, message in enumerate(held):
        if isinstance(message, _NOT_MESSAGES):
            raise ConfigurationError(
                f"messages[{index}] is not a message but {message!r}. A message is a dict such "
                'as {"role": "user", "content": "..."}, or an object of a provider\'s SDK'
            )
    return held
