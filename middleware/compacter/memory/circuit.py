"""When a memory is left alone, and for how long its answer is awaited.

A memory that fails several times in a row is left alone for some seconds, so that not every call
waits for it. What counts is the answer of the server or the file, and not the time at which a busy
program looks at it.
"""

from __future__ import annotations

import contextvars
import re
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from compacter.locks import ForkAware
from compacter.memory.protocol import MemoryUnavailable

T = TypeVar("T")

FAILURES = 3
"""Failures in a row after which a memory is left alone: one may be a connection that ended."""
PAUSE = 5.0
"""Seconds for which it is left alone then; after that one operation tries it."""
LONG_PAUSE = 60.0
"""The same, while the thread of an operation that was given up is still waiting: few may pile up.
"""
# Most seconds of one step of waiting; a tenth of the default deadline.
_LONGEST_STEP = 0.1
# Fewest steps of a deadline.
_STEPS = 10
# Seconds by which a step ends late on a busy machine. A thread waits 5 ms for the interpreter when
# another one computes (`sys.getswitchinterval`).
_LATE = 0.02
# Part of its time for which a late step counts. A new connection takes ten turns of an event loop
# until its first answer is read, and each may be late; and a server that is silent is to be given
# up in a busy program too.
_LATE_SHARE = 0.125
# Most characters of an exception's text in the log.
_MOST_OF_CAUSE = 200
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to a memory, for the log."""

    level: Literal["info", "warning"]
    name: str
    """Name of the log's event, without the prefix."""
    sentence: str
    facts: dict[str, object] = field(default_factory=dict)


class Circuit(ForkAware):
    """Circuit breaker of one memory. Thread-safe.

    After ``FAILURES`` failures in a row operations fail at once for ``PAUSE`` seconds. Then one
    operation tries; the others fail at once until it has succeeded.

    Args:
        name: What failed, such as "the Redis server".
        address: Where it is, without credentials.
        tell: Called with a report when the memory is left alone, and when it answers again.
    """

    def __init__(
        self, name: str, address: str = "", tell: Callable[[Report], object] | None = None
    ) -> None:
        super().__init__()
        self._name = name
        self._address = address
        self._tell = tell
        # A fork does not wait for it: its owners may be waited for by the same fork.
        self._lock = threading.RLock()
        self.reset()

    def after_fork_in_child(self) -> None:
        """Forget the parent's failures, and a lock that one of its threads may have held."""
        self._lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        """Forget all failures."""
        self.failures = 0
        """Failures in a row."""
        # When the last pause began; `None` while the memory is used.
        self._paused: float | None = None
        self._opened = 0.0
        self._stuck: set[object] = set()

    @property
    def is_open(self) -> bool:
        """Whether the memory has failed several times, and not worked since."""
        return self._paused is not None

    def check(self, since: float | None = None) -> float:
        """Return the present time, or raise ``MemoryUnavailable`` during a pause.

        With ``since``, the time of an earlier check, raise only if a pause has begun after that.
        """
        now = time.monotonic()
        with self._lock:
            paused = self._paused
            if paused is None or (since is not None and paused <= since):
                return now
            if since is None and now - paused >= (LONG_PAUSE if self._stuck else PAUSE):
                # This operation tries. If it never ends, the next pause does.
                self._paused = now
                return now
        raise MemoryUnavailable(
            f"{self._name} failed a moment ago and is not used for some seconds"
        )

    def fail(self, error: BaseException) -> None:
        """Count a failure; begin a pause if it was the last of several, or of the operation that
        tried.
        """
        now = time.monotonic()
        with self._lock:
            self.failures += 1
            if self._paused is None:
                if self.failures < FAILURES:
                    return
                self._opened = now
                self._report_away(error)
            self._paused = now

    def succeed(self) -> None:
        """Count a success, which ends a pause."""
        if not self.failures and self._paused is None:
            return
        with self._lock:
            self.failures = 0
            if self._paused is not None:
                self._paused = None
                self._report_back()

    def within(self, seconds: float, action: Callable[[], T]) -> T:
        """Run ``action`` in a new thread, and return its result or raise its exception.

        Raises ``MemoryUnavailable`` after ``seconds``. The thread goes on then; until it has ended
        the pause is a minute, so that few of them pile up.
        """
        done: Future[T] = Future()
        context = contextvars.copy_context()
        stuck = self._stuck

        def work() -> None:
            try:
                done.set_result(context.run(action))
            except BaseException as error:  # noqa: BLE001 - handed to the caller
                done.set_exception(error)
            finally:
                stuck.discard(done)

        threading.Thread(target=work, daemon=True, name="compacter-memory").start()
        patience = Patience(seconds)
        while not done.done():
            began = time.monotonic()
            wait_for((done,), patience.step)
            if not done.done() and patience.is_over(time.monotonic() - began):
                break
        if done.done():
            return done.result()
        stuck.add(done)
        if done.done():
            stuck.discard(done)
        raise self._give_up(seconds)

    async def answer_within(self, seconds: float, operation: Coroutine[Any, Any, T]) -> T:
        """As ``within``, for an operation in this event loop of asyncio, which is cancelled after
        ``seconds``.
        """
        import asyncio

        task = asyncio.ensure_future(operation)
        # A cancelled operation may end with an exception that nobody waits for.
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        patience = Patience(seconds)
        try:
            while True:
                began = time.monotonic()
                await asyncio.wait((task,), timeout=patience.step)
                if task.done():
                    return task.result()
                if patience.is_over(time.monotonic() - began):
                    raise self._give_up(seconds)
        finally:
            task.cancel()

    def _give_up(self, seconds: float) -> MemoryUnavailable:
        error = MemoryUnavailable(f"{self._name} did not answer within {seconds:g} seconds")
        self.fail(error)
        return error

    def _report_away(self, error: BaseException) -> None:
        cause = describe(error)
        said = (
            f"{self._place} is left alone for {PAUSE:g} seconds at a time: it failed "
            f"{self.failures} times in a row ({cause}); calls go on without it"
        )
        facts = {"address": self._address, "cause": cause, "failures": self.failures}
        self._report(Report("warning", "memory_away", said, facts))

    def _report_back(self) -> None:
        seconds = time.monotonic() - self._opened
        said = f"{self._place} answers again, after {seconds:.0f} seconds"
        self._report(Report("info", "memory_back", said, {"address": self._address}))

    @property
    def _place(self) -> str:
        return f"{self._name} at {self._address}" if self._address else self._name

    def _report(self, report: Report) -> None:
        if self._tell is not None:
            self._tell(report)


class Patience:
    """How long an answer is awaited: so many seconds in which it would have been seen.

    The waiting goes in steps. A step that ends late shows that the event loop, the interpreter or
    the machine was busy with something else, and an answer may lie there unread: such a step counts
    for an eighth of its time.
    """

    def __init__(self, seconds: float) -> None:
        self.step = min(_LONGEST_STEP, seconds / _STEPS)
        """Seconds to wait at a time."""
        self._left = seconds

    def is_over(self, waited: float) -> bool:
        """Return whether a step that took ``waited`` seconds was the last one."""
        is_late = waited - self.step > _LATE
        self._left -= self.step * _LATE_SHARE if is_late else self.step
        return self._left < self.step / 100  # Subtractions seldom end at exactly 0.


def describe(error: BaseException) -> str:
    """Return the type and the first line of the text of a store's exception, without credentials.

    Such a text names an address or a state, and never quotes a record.
    """
    text = _CREDENTIALS.sub("", str(error).partition("\n")[0])[:_MOST_OF_CAUSE]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
