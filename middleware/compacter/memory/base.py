"""What a memory has to offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

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
