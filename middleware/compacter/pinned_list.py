"""A mutable sequence of messages, some of which are pinned: the list of a ``History``."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any, overload

from compacter.errors import ConfigurationError
from compacter.locks import Lock
from compacter.messages.format import Message

_NOT_MESSAGES = (bool, int, float, complex, bytes, bytearray, list, tuple, set, frozenset, type)
CHANGES = Lock()
"""Held during each change of a history, so that messages and pins are always consistent. Shared by
all histories."""


class PinnedList(MutableSequence[Message]):
    """Messages and their pins, which stay together in every change."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._messages: list[Message] = check_each(messages)
        self._pins = (
            list(messages.pins)
            if isinstance(messages, PinnedList)
            else ([False] * len(self._messages))
        )
        self._version = 0

    @property
    def messages(self) -> list[Message]:
        """The messages as a new list, for ``json.dumps`` for instance."""
        return list(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PinnedList):
            return self._messages == other._messages and self._pins == other._pins
        return self._messages == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._messages[index]

    @overload
    def __setitem__(self, index: int, value: Message) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Message]) -> None: ...
    def __setitem__(self, index: int | slice, value: Any) -> None:
        """Replace messages. A single replacement keeps the pin; those of a slice are not pinned."""
        value = check_each(value) if isinstance(index, slice) else check_each([value])[0]
        with CHANGES:
            messages = list(self._messages)
            pins = list(self._pins)
            if isinstance(index, slice):
                pins[index] = [False] * len(value)
            messages[index] = value
            self._set(messages, pins)

    def __delitem__(self, index: int | slice) -> None:
        with CHANGES:
            messages = list(self._messages)
            pins = list(self._pins)
            del messages[index], pins[index]
            self._set(messages, pins)

    def reverse(self) -> None:
        """Reverse in place; pins stay with their messages."""
        with CHANGES:
            self._set(self._messages[::-1], self._pins[::-1])

    def insert(self, index: int, value: Message, *, pinned: bool = False) -> None:
        """Insert a message before ``index``.

        Args:
            index: Position, as for ``list.insert``.
            value: The message.
            pinned: Whether every compaction keeps it verbatim.
        """
        check_each([value])
        with CHANGES:
            self._messages.insert(index, value)
            self._pins.insert(index, bool(pinned))
            self._version += 1

    def pin(self, index: int) -> None:
        """Pin the message at ``index``: every compaction keeps it verbatim. Raises
        ``IndexError``.
        """
        self._set_pin(index, pinned=True)

    def unpin(self, index: int) -> None:
        """Remove the pin of the message at ``index``. Raises ``IndexError``."""
        self._set_pin(index, pinned=False)

    def _set_pin(self, index: int, *, pinned: bool) -> None:
        with CHANGES:
            if not -len(self._pins) <= index < len(self._pins):
                raise IndexError(f"there is no message {index}: the history has {len(self)}")
            self._pins[index] = pinned
            self._version += 1

    @property
    def pins(self) -> tuple[bool, ...]:
        """For each message, whether it is pinned."""
        return tuple(self._pins)

    def pinned_ids(self) -> frozenset[int]:
        """Return the ``id`` of each pinned message object."""
        with CHANGES:
            return frozenset(
                id(message)
                for message, pinned in zip(self._messages, self._pins, strict=True)
                if pinned
            )

    @property
    def version(self) -> int:
        """Number of changes so far; a compaction of an older version is never installed."""
        return self._version

    def _set(self, messages: list[Message], pins: list[bool]) -> None:
        with CHANGES:
            self._messages = messages
            self._pins = pins
            self._version += 1


def check_each(messages: Iterable[Message]) -> list[Message]:
    """Return a list of the messages. Raises ``ConfigurationError`` if one certainly is not a
    message.
    """
    held = list(messages)
    for index, message in enumerate(held):
        if message is None or isinstance(message, _NOT_MESSAGES):
            raise ConfigurationError(
                f"messages[{index}] is not a message but {type(message).__name__}. A message is "
                f"a dict such as "
                '{"role": "user", "content": "..."}, or an object of a provider\'s SDK'
            )
    return held
