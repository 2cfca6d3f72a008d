"""The ``Memory`` protocol, the base class of the memories here, and the memory of this process."""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitTimeoutError
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from cachetools import LRUCache

from compacter.errors import CompacterError, ConfigurationError, whole_number
from compacter.locks import Lock
from compacter.memory.record import Record, footprint
from compacter.single_flight import SingleFlight

T = TypeVar("T")

DEADLINE = 1.0
"""Default time limit of one operation of a memory, in seconds."""
LEASE = 1.5
"""Seconds for which a claim is granted at a time. It is renewed while its owner lives, so that a
process which dies delays others no longer than this."""
WEEK = 7 * 86_400.0
"""Default time in seconds for which a memory that outlives the process keeps an unused record."""
PER_KEY = 32
"""Most records that it keeps under one key: older ones of a conversation matter only to its forks.
"""
_RENEWAL = LEASE / 4
_PAUSE = 5.0
"""Seconds for which a memory is not used after it failed."""
_LONG_PAUSE = 60.0
"""The same, while an operation that timed out is still running."""
_MEGABYTE = 1 << 20


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

    def __init__(self, max_bytes: int = 64 * _MEGABYTE) -> None:
        self.max_bytes = whole_number("max_bytes", max_bytes, least=1, of="bytes")
        self.flights = SingleFlight()
        """Compactions in progress in this process, for all calls that share this memory."""
        self._attached: LRUCache[str, tuple[object, int]] = LRUCache(
            self.max_bytes, getsizeof=lambda entry: entry[1]
        )
        self._taken = 0
        """Bytes of ``max_bytes`` that the records take."""
        self._lock = Lock()

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


class InProcessMemory(BaseMemory):
    """Memory in this process, which keeps the most recently used records: the default.

    Thread-safe; may be shared by several ``Compacter``; a forked child continues with its own copy.
    Its methods do not raise exceptions.

    Args:
        max_entries: Most records to keep, at least 1.
        max_bytes: Most bytes to keep alive, at least 1: the records and, in the room that they
            leave, a cache that speeds up the lookup of long histories.

    Raises:
        ConfigurationError: An argument is not an integer of at least 1.
    """

    blocking = False

    def __init__(self, max_entries: int = 1_000, max_bytes: int = 64 * _MEGABYTE) -> None:
        self.max_entries = whole_number("max_entries", max_entries, least=1, of="records")
        super().__init__(max_bytes)
        self._records: LRUCache[str, tuple[Record, int]] = LRUCache(
            self.max_bytes, getsizeof=lambda entry: entry[1]
        )
        self._ids: dict[str, dict[str, None]] = {}
        """The ids of the records under each key, in the order of saving."""

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        # An empty memory is true as well.
        return True

    def __repr__(self) -> str:
        return f"InProcessMemory(max_entries={self.max_entries}, max_bytes={self.max_bytes})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, begins empty: records belong to the process that made them.
        return type(self), (self.max_entries, self.max_bytes)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``."""
        with self._lock:
            return [self._records[name][0] for key in keys for name in self._ids.get(key, ())]

    def save(self, record: Record) -> None:
        """Save ``record``, and drop the least recently used if there are too many.

        A record that is larger than ``max_bytes`` is not saved.
        """
        name = record.id
        size = footprint(record)
        with self._lock:
            dropped = [self._records.pop(name)[0]] if name in self._records else []
            if size <= self.max_bytes:
                while self._records and (
                    len(self._records) >= self.max_entries
                    or self._records.currsize + size > self.max_bytes
                ):
                    dropped.append(self._records.popitem()[1][0])
            for old in dropped:
                names = self._ids[old.key]
                del names[old.id]
                if not names:
                    del self._ids[old.key]
            if size <= self.max_bytes:
                self._records[name] = record, size
                self._ids.setdefault(record.key, {})[name] = None
            self._taken = int(self._records.currsize)
            while self._taken + self._attached.currsize > self.max_bytes:
                self._attached.popitem()

    def claim(self, key: str, seconds: float) -> Claim:  # noqa: ARG002
        """Return a claim for any ``key`` and ``seconds``, as threads and tasks wait for each other
        by ``flights``.
        """
        return Lease(0, lambda: False, lambda: None)

    def clear(self) -> None:
        """Delete all records."""
        with self._lock:
            self._records.clear()
            self._ids.clear()
            self._attached.clear()
            self._taken = 0

    def empty(self) -> bool:
        """Return whether the memory is empty."""
        return not self._ids  # A plain dict, for speed: every call uses this.


class Circuit:
    """Circuit breaker: after a failure a memory is not used for some seconds, so that not every
    call waits for it.

    After the pause one operation tries; the others fail at once until it has succeeded.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Forget all failures."""
        self._failed: float | None = None
        self._stuck: set[object] = set()

    @property
    def is_open(self) -> bool:
        """Whether the memory has failed and not worked since."""
        return self._failed is not None

    def check(self, since: float | None = None) -> float:
        """Return the present time, or raise ``MemoryUnavailable`` during a pause.

        With ``since``, the time of an earlier check, raise only if the memory has failed after
        that.
        """
        now = time.monotonic()
        failed = self._failed
        if failed is not None:
            if since is None and now - failed >= (_LONG_PAUSE if self._stuck else _PAUSE):
                self._failed = now
            elif since is None or failed > since:
                raise MemoryUnavailable(
                    f"{self._name} failed a moment ago and is not used for some seconds"
                )
        return now

    def failed(self) -> None:
        """Begin the pause."""
        self._failed = time.monotonic()

    def succeeded(self) -> None:
        """End the pause."""
        self._failed = None

    def within(self, seconds: float, action: Callable[[], T]) -> T:
        """Run ``action`` in a new thread, and return its result or raise its exception.

        Raises ``MemoryUnavailable`` after ``seconds``. The thread goes on then; until it has ended
        the pause is a minute, so that few of them pile up.
        """
        done: Future[T] = Future()
        context = contextvars.copy_context()
        stuck = self._stuck

        def run() -> None:
            try:
                done.set_result(context.run(action))
            except BaseException as error:  # noqa: BLE001 - handed to the caller
                done.set_exception(error)
            finally:
                stuck.discard(done)

        threading.Thread(target=run, daemon=True, name="compacter-memory").start()
        try:
            return done.result(seconds)
        except WaitTimeoutError:
            if done.done():
                raise
            stuck.add(done)
            if done.done():
                stuck.discard(done)
            self.failed()
            raise MemoryUnavailable(
                f"{self._name} did not answer within {seconds:g} seconds"
            ) from None


class Lease:
    """A claim that a thread renews until it is released.

    ``renew`` extends it in the store for another ``LEASE`` seconds, and returns whether it was
    still this owner's; ``give_back`` ends it there. A lease that is lost, or whose process has
    died, expires.
    """

    def __init__(
        self, seconds: float, renew: Callable[[], bool], give_back: Callable[[], None]
    ) -> None:
        self._give_back = give_back
        self._process = os.getpid()
        self._ended = threading.Event()
        if seconds > LEASE:
            keep = _renewed(partial(self._ended.wait, _RENEWAL), renew, time.monotonic() + seconds)
            threading.Thread(target=pump, args=(keep,), daemon=True, name="compacter-claim").start()

    def release(self) -> None:
        """Give the claim back, as :meth:`Claim.release` promises."""
        if not self._ended.is_set() and self._process == os.getpid():
            self._ended.set()
            self._give_back()

    def __del__(self) -> None:
        self._ended.set()


class AsyncLease:
    """A ``Lease`` that a task renews; ``renew``, ``give_back`` and ``release`` are awaited."""

    def __init__(
        self,
        seconds: float,
        renew: Callable[[], Awaitable[bool]],
        give_back: Callable[[], Awaitable[None]],
    ) -> None:
        import asyncio

        self._give_back: Callable[[], Awaitable[None]] | None = give_back
        self._keeping: asyncio.Task[None] | None = None
        if seconds > LEASE:
            keep = _renewed(partial(asyncio.sleep, _RENEWAL), renew, time.monotonic() + seconds)
            self._keeping = asyncio.get_running_loop().create_task(apump(keep))

    async def release(self) -> None:
        """Give the claim back, as :meth:`Claim.release` promises."""
        give_back = self._give_back
        self._give_back = None
        self.__del__()
        if give_back is not None:
            await give_back()

    def __del__(self) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            if self._keeping is not None:
                self._keeping.cancel()


Steps = Generator[Any, Any, T]
"""Generator of steps that yields the results it needs: the values, or in async programs awaitables
of them."""


def pump(steps: Steps[T]) -> T:
    """Run steps that yield values, and return their result."""
    outcome = None
    try:
        while True:
            outcome = steps.send(outcome)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def apump(
    steps: Steps[T], thread: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None
) -> T:
    """Run steps that yield awaitables, and return their result; ``thread``, if given, runs the work
    in between.
    """
    advance: Callable[[Any], Any] = steps.send
    outcome: Any = None
    try:
        while True:
            step = partial(advanced, advance, outcome)
            ended, found = step() if thread is None else await thread(step)
            if ended:
                result: T = found
                return result
            try:
                outcome = await found
                advance = steps.send
            except Exception as error:  # noqa: BLE001 - passed to the steps
                outcome = error
                advance = steps.throw
    finally:
        # A thread that outlives a cancellation still runs it.
        with contextlib.suppress(ValueError):
            steps.close()


def advanced(advance: Callable[[Any], Any], outcome: object) -> tuple[bool, Any]:
    """Run a generator up to its next value; return False and that, or True and the generator's
    result at its end.
    """
    try:
        return False, advance(outcome)
    except StopIteration as stop:
        return True, stop.value


def _renewed(pause: Callable[[], object], renew: Callable[[], object], until: float) -> Steps[None]:
    """Renew a lease repeatedly. ``pause`` waits until the next time, and returns whether the lease
    was released.
    """
    while not (yield pause()) and time.monotonic() + LEASE < until:
        try:
            if not (yield renew()):
                return
        except Exception:  # noqa: BLE001, S112 - the store may be busy: the lease lasts for some more tries
            continue


def seconds(name: str, value: object) -> float:
    """Return ``value`` if it is a number above 0, else raise ``ConfigurationError`` with the
    option's name.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value < float("inf")
    ):
        raise ConfigurationError(f"{name} takes a number of seconds above 0, not {value!r}")
    return float(value)
