"""The ``Memory`` protocol, and the base class of the memories here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from compacter.memory.record import Record
from compacter.runtime.single_flight import SingleFlight


class Claim(Protocol):
    """The right to make one summary, until it is released or expires."""

    def release(self) -> None:
        """Release the claim.

        * Does nothing if it has expired, even if another caller has claimed the same key by now.
        * Does nothing a second time, or in a forked child of the process that claimed it.
        * Its exceptions are logged and ignored: the claim expires by itself.
        """
        ...


@runtime_checkable
class Memory(Protocol):
    """Protocol of ``Compacter(memory=...)``: any object with these three methods.

    They may be called from several threads at once, and from a forked child. Their exceptions are
    logged (``compacter.memory_failed``), and the call continues without the memory. A call waits
    for them, so they should time out after about a second. Async calls run them in a thread.

    ``compacter.testing.memory_conformance`` tests a memory; the memories here pass it.
    """

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records that were saved with ``record.key`` among ``keys``, in any order.

        * ``keys`` are at most eight strings of hexadecimal digits; there may be no records for any
          of them.
        * Returns an empty sequence, not ``None``, if there are no records.
        * A stored record that cannot be read (``Record.from_json`` returns ``None``) is left out;
          the others are not.
        * The records may be shared between callers, as a record never changes.
        * Used by every call, so it should be one round trip.
        """
        ...

    def save(self, record: Record) -> None:
        """Save ``record``.

        * A record with the same ``record.id`` is replaced.
        * The next ``find`` of this process returns it; those of other processes as soon as they can
          see it.
        * Older records may be dropped, the least recently used first. Losing one only costs another
          summary.
        * A record that is too large may be ignored, without an error.
        * Raises ``compacter.messages.fields.Unencodable`` (through ``record.to_json()``) if the
          record cannot be stored as text without loss; nothing is saved then.
        """
        ...

    def claim(self, key: str, seconds: float) -> Claim | None:
        """Return the right to make the summary identified by ``key``, or ``None`` while another
        process has it.

        * Never waits for the other process; the caller tries again.
        * Valid for ``seconds``, also if its process has died.
        * Belongs to this memory object: a process that has it may get it again at once, since calls
          within a process wait for each other anyway. One that is used by one process alone may
          always return a claim.
        * If it raises, the call makes the summary: two summaries are better than none.
        """
        ...


class BaseMemory(Memory):
    """Base class of compacter's own memories, and of yours if you like. It adds to the three
    methods of ``Memory`` what compacter asks of a memory besides.
    """

    blocking: bool = True
    """Whether the methods may wait for a disk or a network. Async calls then run them in a thread,
    and wait for calls of other processes by ``claim``."""
    failures: tuple[type[Exception], ...] = ()
    """Exceptions that the memory reports itself, once for many."""

    def __init__(self) -> None:
        self.flights = SingleFlight()
        """Compactions in progress in this process, for all calls that share this memory."""
        self.matches: dict[str, int] = {}
        """For the id of a record, Python's hash of the messages that it last matched."""
        self.write_log: Callable[..., object] = lambda *_: None
        """Writes to the log of the ``Compacter`` that uses the memory; see ``Log.write``."""

    @property
    def is_away(self) -> bool:
        """Whether the memory failed, and has not worked since."""
        return False

    def empty(self) -> bool:
        """Return ``True`` if the memory certainly has no record; calls then skip the look-up. It
        must answer at once. ``False`` means that the memory may have records.
        """
        return False


class HeldClaim:
    """A claim that was granted to this process.

    Args:
        give_back: Ends it in the store, if it is still this owner's; ``None`` if it is not stored.
    """

    def __init__(self, give_back: Callable[[], object] | None = None) -> None:
        self._give_back = give_back
        self._process = os.getpid()

    def release(self) -> None:
        """Give the claim back, as :meth:`Claim.release` promises."""
        give_back = self._give_back
        if give_back is not None and self._process == os.getpid():
            self._give_back = None
            give_back()


def base_memory(memory: Memory) -> BaseMemory:
    """Return ``memory`` as a ``BaseMemory``. A user's own memory is put into one that calls its
    three methods.
    """
    if isinstance(memory, BaseMemory):
        return memory
    base = BaseMemory()  # type: ignore[abstract]
    vars(base).update(find=memory.find, save=memory.save, claim=memory.claim)
    return base
