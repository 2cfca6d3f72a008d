"""What a memory has to do, and the limits and claims that several share."""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from compacter.errors import ConfigurationError
from compacter.memory.record import Record


@runtime_checkable
class Memory(Protocol):
    """Four methods. Whatever they raise is logged and skipped; the call goes on without the memory.

    A memory that waits for a disk or a network sets ``blocking = True``: async calls then use it from a
    thread, and calls of other processes are waited for. One that has ``__len__`` is not asked while it is 0.
    """

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these keys, in any order."""
        ...

    def save(self, record: Record) -> None:
        """Keep a record; one with the same ``id`` is replaced."""

    def claim(self, key: str, seconds: float) -> bool:
        """Whether the caller may now do the work named by ``key``.

        False while another one holds it, which is for ``seconds`` at most.
        """
        ...

    def release(self, key: str) -> None:
        """Give a claim back."""


def whole_number(name: str, value: object) -> int:
    """``value``, if it is a whole number from 1 on. Raises ``ConfigurationError`` that names the option."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name} takes a whole number from 1 on, not {value!r}")
    return value


def seconds(name: str, value: object) -> float:
    """``value``, if it is a number above 0. Raises ``ConfigurationError`` that names the option."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ConfigurationError(f"{name} takes a number of seconds above 0, not {value!r}")
    return float(value)


class Tokens:
    """One token for each claim granted, so that a claim which ran out is never taken from its next owner.

    Tokens of one key are given back oldest first: it is the oldest one whose claim may have run out.
    """

    def __init__(self) -> None:
        self._held: dict[str, deque[str]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def new() -> str:
        """A token that nobody else has."""
        return secrets.token_hex(16)

    def hold(self, key: str, token: str) -> None:
        """Remember a claim that was granted."""
        with self._lock:
            self._held.setdefault(key, deque()).append(token)

    def give_back(self, key: str) -> str | None:
        """The token to release ``key`` with; ``None`` when this process holds no claim on it."""
        with self._lock:
            tokens = self._held.get(key)
            if tokens is None:
                return None
            token = tokens.popleft()
            if not tokens:
                del self._held[key]
            return token
