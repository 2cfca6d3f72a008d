"""What a memory has to do (``Memory``), what the memories here have in common, and the one in this process."""

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

from compacter.errors import CompacterError, ConfigurationError
from compacter.fork import Lock
from compacter.memory.record import Record, footprint
from compacter.memory.single_flight import SingleFlight

T = TypeVar("T")

DEADLINE = 1.0
"""Seconds that one operation of a memory may take, unless the user says otherwise."""
LEASE = 1.5
"""Seconds for which a claim is granted at a time. While its owner lives it is renewed, so that a process which dies
holds others up no longer than this."""
WEEK = 7 * 86_400.0
"""Seconds for which a memory that outlives the process keeps what nobody uses, unless the user says otherwise."""
PER_KEY = 32
"""Records that it keeps under one key: the newest of one conversation count, its older ones only for forks."""
_RENEWAL = LEASE / 4
_PAUSE = 5.0
"""Seconds for which a memory that failed is left alone."""
_LONG_PAUSE = 60.0
"""The same, while an operation that was given up is still waiting."""
_MEGABYTE = 1 << 20


class MemoryUnavailable(CompacterError):  # noqa: N818 - a state, like ``concurrent.futures.BrokenExecutor``
    """A memory did not answer within its deadline, or failed a moment ago and is left alone for some seconds."""


class Claim(Protocol):
    """The right to make one summary, as long as it is neither given back nor run out."""

    def release(self) -> None:
        """Give the claim back.

        * Without effect when it has run out, even if another one holds a claim on the same key by now.
        * Without effect a second time, and in a forked child of the process that got it.
        * Whatever it raises is logged and ignored: the claim runs out by itself.
        """
        ...


@runtime_checkable
class Memory(Protocol):
    """What ``Compacter(memory=...)`` takes: any object with these three methods.

    All of them may be called from several threads at once, and from a forked child. Whatever they raise is logged
    (``compacter.memory_failed``) and skipped: the call goes on without the memory. A call waits for them, so they
    should give up by themselves after about a second. Async calls use them from a thread.

    ``compacter.testing.memory_conformance`` is the suite that the memories here pass.
    """

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records that were saved with ``record.key`` among ``keys``, in any order.

        * ``keys`` are texts of hexadecimal digits, at most eight; none of them may be known.
        * Returns an empty sequence, not ``None``, when nothing is found.
        * A stored record that cannot be read (``Record.from_json`` gives ``None``) is left out and hides no other one.
        * What is returned may be shared between callers: a record never changes.
        * Asked on every call, so it should be one round trip.
        """
        ...

    def save(self, record: Record) -> None:
        """Keep ``record``.

        * One with the same ``record.id`` is replaced.
        * Found by the next ``find`` of this process; by other processes when they can see it.
        * May drop older records, the least recently used first. Losing one costs a summary, nothing else.
        * May decline what is too large, without an error.
        * Raises ``compacter.messages.fields.Unencodable`` (through ``record.to_json()``) for what has no faithful text
          form; nothing is kept then.
        """
        ...

    def claim(self, key: str, seconds: float) -> Claim | None:
        """The right to make the summary named by ``key``, or ``None`` while somebody else holds it.

        * Never waits for the other one; the caller asks again.
        * Granted for ``seconds`` at most. It should end earlier where the owner's process has died.
        * Not re-entrant: a second claim of the same process gets ``None`` too.
        * A memory that is used by one process alone may always grant it: within a process calls wait for each other
          anyway.
        * What it raises counts as granted: two summaries are better than none.
        """
        ...


class BaseMemory(Memory):
    """Base class of the memories here. ``max_bytes`` bounds what is attached (see :meth:`attach`)."""

    blocking: bool = True
    """Whether the methods may wait for a disk or a network. Async calls then use them from a thread, and calls of other
    processes are waited for by ``claim``."""
    asynchronous: bool = False
    """Whether there are ``afind``, ``asave`` and ``aclaim`` too, which calls under asyncio await in place of a thread.
    They promise what ``find``, ``save`` and ``claim`` do; ``release`` of what ``aclaim`` gives is awaited."""

    async def afind(self, keys: Sequence[str]) -> Sequence[Record]:
        """As ``find``, awaited."""
        raise NotImplementedError

    async def asave(self, record: Record) -> None:
        """As ``save``, awaited."""
        raise NotImplementedError

    async def aclaim(self, key: str, seconds: float) -> AsyncLease | None:
        """As ``claim``, awaited."""
        raise NotImplementedError

    def __init__(self, max_bytes: int = 64 * _MEGABYTE) -> None:
        self.max_bytes = whole_number("max_bytes", max_bytes)
        self.flights = SingleFlight()
        """Compactions under way in this process, for all that share this memory."""
        self._attached: LRUCache[str, tuple[object, int]] = LRUCache(self.max_bytes, getsizeof=lambda entry: entry[1])
        self._taken = 0
        """Bytes that the memory itself takes of ``max_bytes``."""
        self._lock = Lock()

    def empty(self) -> bool:
        """Whether there is certainly no record, known without waiting. A call does nothing for an empty memory."""
        return False

    def attach(self, key: str, value: object, size: int) -> None:
        """Keep an object beside the records, in this process only: something that is quicker found than made again.

        The least recently used are dropped where all of them together would take more than the memory's bytes; one that
        is too large by itself is not kept.

        Args:
            key: Name by which it is found; what it named before is replaced.
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
        """What was attached under this ``key``; ``None`` where it was dropped, or never was."""
        with self._lock:
            found = self._attached.get(key)
            return found[0] if found is not None else None


class _OwnMemory(BaseMemory):
    """A user's own memory that declares the three methods of ``Memory`` only."""

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
    """``memory`` with all that a ``BaseMemory`` declares."""
    return memory if isinstance(memory, BaseMemory) else _OwnMemory(memory)


class InProcessMemory(BaseMemory):
    """Keeps the most recently used records of this process: the default.

    Thread-safe; may be shared by several ``Compacter``; a forked child goes on with a copy of its own. Its methods
    raise nothing.

    Args:
        max_entries: Number of records, from 1 on.
        max_bytes: Bytes that the memory keeps alive, from 1 on: the records and, in the room that they leave, what
            recognises a long history quickly.

    Raises:
        ConfigurationError: A bound is not a whole number from 1 on.
    """

    blocking = False

    def __init__(self, max_entries: int = 1_000, max_bytes: int = 64 * _MEGABYTE) -> None:
        self.max_entries = whole_number("max_entries", max_entries)
        super().__init__(max_bytes)
        self._records: LRUCache[str, tuple[Record, int]] = LRUCache(self.max_bytes, getsizeof=lambda entry: entry[1])
        self._ids: dict[str, dict[str, None]] = {}
        """The ids of the records under each key, in the order in which they came."""

    def __len__(self) -> int:
        return len(self._records)

    def __bool__(self) -> bool:
        # An empty memory is a memory.
        return True

    def __repr__(self) -> str:
        return f"InProcessMemory(max_entries={self.max_entries}, max_bytes={self.max_bytes})"

    def __reduce__(self) -> tuple[object, ...]:
        # What is copied or pickled begins empty: records belong to the process that made them.
        return type(self), (self.max_entries, self.max_bytes)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these ``keys``."""
        with self._lock:
            return [self._records[name][0] for key in keys for name in self._ids.get(key, ())]

    def save(self, record: Record) -> None:
        """Keep ``record``, and drop the least recently used where there are too many.

        One that is larger than ``max_bytes`` is not kept.
        """
        name, size = record.id, footprint(record)
        with self._lock:
            dropped = [self._records.pop(name)[0]] if name in self._records else []
            if size <= self.max_bytes:
                while self._records and (
                    len(self._records) >= self.max_entries or self._records.currsize + size > self.max_bytes
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
        """Always granted, whatever ``key`` and ``seconds``: threads and tasks wait for each other by ``flights``."""
        return Lease(0, lambda: False, lambda: None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._records.clear()
            self._ids.clear()
            self._attached.clear()
            self._taken = 0

    def empty(self) -> bool:
        """Whether there is no record."""
        return not self._ids  # A plain dict: this is asked on every call.


class Circuit:
    """Leaves a memory alone for some seconds after it failed, so that not every call waits for it.

    After the pause one operation tries; the others wait for its outcome by failing at once.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Forget every failure."""
        self._failed: float | None = None
        self._stuck: set[object] = set()

    def check(self, since: float | None = None) -> float:
        """Raise ``MemoryUnavailable`` while the memory is left alone; the present time otherwise.

        With ``since``, the time of an earlier check, raise only if it has failed after that.
        """
        now, failed = time.monotonic(), self._failed
        if failed is not None:
            if since is None and now - failed >= (_LONG_PAUSE if self._stuck else _PAUSE):
                self._failed = now
            elif since is None or failed > since:
                raise MemoryUnavailable(f"{self._name} failed a moment ago and is left alone for some seconds")
        return now

    def failed(self) -> None:
        """Begin the pause."""
        self._failed = time.monotonic()

    def succeeded(self) -> None:
        """End the pause."""
        self._failed = None

    def within(self, seconds: float, action: Callable[[], T]) -> T:
        """What ``action`` returns or raises, run in a thread of its own.

        Raises ``MemoryUnavailable`` after ``seconds``. The thread is left alone then; until it has ended the pause is
        a minute, so that few of them pile up.
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
            raise MemoryUnavailable(f"{self._name} did not answer within {seconds:g} seconds") from None


class Lease:
    """A claim that is renewed for as long as it is held, by a thread.

    ``renew`` extends it in the store for another ``LEASE`` seconds, and returns whether it was still this owner's;
    ``give_back`` ends it there. A lease that is lost, or whose process has died, runs out.
    """

    def __init__(self, seconds: float, renew: Callable[[], bool], give_back: Callable[[], None]) -> None:
        self._give_back = give_back
        self._process = os.getpid()
        self._ended = threading.Event()
        if seconds > LEASE:
            keep = _kept(partial(self._ended.wait, _RENEWAL), renew, time.monotonic() + seconds)
            threading.Thread(target=pump, args=(keep,), daemon=True, name="compacter-claim").start()

    def release(self) -> None:
        """Give the claim back, as :meth:`Claim.release` promises."""
        if not self._ended.is_set() and self._process == os.getpid():
            self._ended.set()
            self._give_back()

    def __del__(self) -> None:
        self._ended.set()


class AsyncLease:
    """As ``Lease``, renewed by a task; ``renew`` and ``give_back`` are awaited, and so is ``release``."""

    def __init__(
        self, seconds: float, renew: Callable[[], Awaitable[bool]], give_back: Callable[[], Awaitable[None]]
    ) -> None:
        import asyncio

        self._give_back: Callable[[], Awaitable[None]] | None = give_back
        self._keeping: asyncio.Task[None] | None = None
        if seconds > LEASE:
            keep = _kept(partial(asyncio.sleep, _RENEWAL), renew, time.monotonic() + seconds)
            self._keeping = asyncio.get_running_loop().create_task(apump(keep))

    async def release(self) -> None:
        """Give the claim back, as :meth:`Claim.release` promises."""
        give_back, self._give_back = self._give_back, None
        self.__del__()
        if give_back is not None:
            await give_back()

    def __del__(self) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            if self._keeping is not None:
                self._keeping.cancel()


Steps = Generator[Any, Any, T]
"""Work that yields what it waits for: results, or in async programs what can be awaited."""


def pump(steps: Steps[T]) -> T:
    """The outcome of steps whose waiting is done as soon as they say what for."""
    outcome = None
    try:
        while True:
            outcome = steps.send(outcome)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def apump(steps: Steps[T], thread: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None) -> T:
    """The outcome of steps that wait for awaitables; ``thread`` runs what is worked out in between, if it is much."""
    advance: Callable[[Any], Any] = steps.send
    outcome: Any = None
    try:
        while True:
            step = partial(_advanced, advance, outcome)
            ended, found = step() if thread is None else await thread(step)
            if ended:
                result: T = found
                return result
            try:
                outcome, advance = await found, steps.send
            except Exception as error:  # noqa: BLE001 - the steps decide what an error means
                outcome, advance = error, steps.throw
    finally:
        with contextlib.suppress(ValueError):  # A thread that a cancellation has left alone is still in it.
            steps.close()


def _advanced(advance: Callable[[Any], Any], outcome: object) -> tuple[bool, Any]:
    try:
        return False, advance(outcome)
    except StopIteration as stop:
        return True, stop.value


def _kept(pause: Callable[[], object], renew: Callable[[], object], until: float) -> Steps[None]:
    """Renew a lease again and again. ``pause`` waits until the next time, and returns whether it has ended."""
    while not (yield pause()) and time.monotonic() + LEASE < until:
        try:
            if not (yield renew()):
                return
        except Exception:  # noqa: BLE001, S112 - the store may be busy: the lease lasts for some more tries
            continue


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
