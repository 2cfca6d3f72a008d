"""The ``Memory`` protocol, and the base class of the memories here."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cachetools import LRUCache

from compacter.errors import CompacterError, whole_number
from compacter.locks import Lock
from compacter.memory.record import Record
from compacter.single_flight import SingleFlight

if TYPE_CHECKING:
    from compacter.memory.circuit import Circuit, Report
    from compacter.memory.lease import AsyncLease

DEADLINE = 1.0
"""Default time limit of one operation of a memory, in seconds."""
WEEK = 7 * 86_400.0
"""Default time in seconds for which a memory that outlives the process keeps an unused record."""
PER_KEY = 32
"""Most records that it keeps under one key: older ones of a conversation matter only to its forks.
"""
MEGABYTE = 1 << 20
# Most reports that wait for a call to log them: a program may use a memory without any call.
_MOST_REPORTS = 16


class MemoryUnavailable(CompacterError):  # noqa: N818 - a state, like ``concurrent.futures.BrokenExecutor``
    """A memory did not answer within its deadline, or failed a moment ago and is not used for some
    seconds.
    """


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
        caller has it.

        * Never waits for the other caller; the caller tries again.
        * Valid for ``seconds`` at most. It should end earlier if the owner's process has died.
        * Not re-entrant: a second claim of the same process returns ``None`` too.
        * A memory that is used by one process alone may always return a claim, as calls within a
          process wait for each other anyway.
        * If it raises, the call makes the summary: two summaries are better than none.
        """
        ...


class BaseMemory(Memory):
    """Base class of the memories here. ``max_bytes`` is the largest size of attached objects (see
    :meth:`attach`).
    """

    blocking: bool = True
    """Whether the methods may wait for a disk or a network. Async calls then run them in a thread,
    and wait for calls of other processes by ``claim``."""
    asynchronous: bool = False
    """Whether ``afind``, ``asave`` and ``aclaim`` are implemented; calls under asyncio await them
    instead of a thread. They behave as ``find``, ``save`` and ``claim`` do; ``release`` of the
    claim is awaited too."""

    async def afind(self, keys: Sequence[str]) -> Sequence[Record]:
        """As ``find``, but asynchronous."""
        raise NotImplementedError

    async def asave(self, record: Record) -> None:
        """As ``save``, but asynchronous."""
        raise NotImplementedError

    async def aclaim(self, key: str, seconds: float) -> AsyncLease | None:
        """As ``claim``, but asynchronous."""
        raise NotImplementedError

    def __init__(self, max_bytes: int = 64 * MEGABYTE) -> None:
        self.max_bytes = whole_number("max_bytes", max_bytes, least=1, of="bytes")
        self.flights = SingleFlight()
        """Compactions in progress in this process, for all calls that share this memory."""
        self._attached: LRUCache[str, tuple[object, int]] = LRUCache(
            self.max_bytes, getsizeof=lambda entry: entry[1]
        )
        # Bytes of `max_bytes` that the records take.
        self._taken = 0
        self._lock = Lock()
        self.circuits: tuple[Circuit, ...] = ()
        """What counts its failures; empty for a memory that is never left alone."""
        self._reports: deque[Report] = deque(maxlen=_MOST_REPORTS)

    def take_reports(self) -> list[Report]:
        """Return what happened to the memory since the last time, for the log, each once."""
        reports: list[Report] = []
        while self._reports:
            try:
                reports.append(self._reports.popleft())
            except IndexError:  # Another thread was faster.
                break
        return reports

    def reports(self, error: BaseException) -> bool:  # noqa: ARG002
        """Return whether the memory reports such a failure itself, when it is left alone.

        Args:
            error: What a method raised.
        """
        return False

    def empty(self) -> bool:
        """Return whether the memory is certainly empty, without waiting. Calls do not look up
        anything in it then.
        """
        return False

    def attach(self, key: str, value: object, size: int) -> None:
        """Cache an object in this process.

        The least recently used objects are dropped if all of them would take more than
        ``max_bytes`` together; an object that is too large by itself is not kept.

        Args:
            key: Key of the object; an earlier object under this key is replaced.
            value: The object.
            size: Bytes that it keeps alive.
        """
        with self._lock:
            self._attached.pop(key, None)
            if self._taken + size <= self.max_bytes:
                self._attached[key] = value, size
                while self._taken + self._attached.currsize > self.max_bytes:
                    self._attached.popitem()

    def attached(self, key: str) -> object | None:
        """Return the object attached under this ``key``; ``None`` if there is none, or it was
        dropped.
        """
        with self._lock:
            found = self._attached.get(key)
            return found[0] if found is not None else None


class _OwnMemory(BaseMemory):
    """Wrapper of a user's own memory, which has only the three methods of ``Memory``."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        return self._memory.find(keys)

    def save(self, record: Record) -> None:
        self._memory.save(record)

    def claim(self, key: str, seconds: float) -> Claim | None:
        return self._memory.claim(key, seconds)


def base_memory(memory: Memory) -> BaseMemory:
    """Return ``memory`` as a ``BaseMemory``, wrapped if needed."""
    return memory if isinstance(memory, BaseMemory) else _OwnMemory(memory)
