"""Carries out the compactions that are made ahead: which run, which wait in line, and where.

A sync program gets daemon threads, an asyncio program tasks of its own loop, and a trio program
tasks of a nursery that it hands over. At most eight run at once for each ``Compacter``; the others
wait in line, the one that is nearest to its limit first. The process may end at any time: nothing
is lost but what was being made.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from compacter.io import ASYNC, IO, run
from compacter.locks import ForkAware, Lock
from compacter.messages.format import Message

if TYPE_CHECKING:
    import asyncio

MOST_AT_ONCE = 8
"""Most preparations that run at once. Each is a request to a model: more would take the share of
the provider's rate limit that the program's own calls need."""
MOST_WAITING = 1_000
"""Most preparations in line; each keeps the messages of its conversation alive."""
# Most conversations of which is known what came of their last preparation; a few numbers each.
_MOST_SETTLED = 10_000
# Preparations that the present code is part of: its hooks and its summarizer.
_WITHIN: contextvars.ContextVar[tuple[Preparation, ...]] = contextvars.ContextVar(
    "compacter_preparations", default=()
)

Key = tuple[str, str]
"""Scope and name of a conversation."""


@dataclass(eq=False, kw_only=True)
class Preparation:
    """One compaction to make ahead."""

    key: Key
    messages: Sequence[Message]
    """The caller's own messages."""
    nearness: float
    """Size of its request as a share of the size at which a compaction is due."""
    tenant: Hashable = None
    """Caller on whose behalf it is made; callers take turns."""
    io: IO
    make: Callable[[], Coroutine[Any, Any, object]]
    """Makes the compaction. Raises no ``Exception``."""
    nursery: Any = None
    """Nursery of a trio program."""
    done: Future[None] = field(default_factory=Future)
    loop: asyncio.AbstractEventLoop | None = None
    """Loop of an asyncio program."""
    task: asyncio.Task[None] | None = None
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    """Context variables of the call that showed the size."""

    def continues(self, key: Key, messages: Sequence[Message]) -> bool:
        """Return whether these are the messages of its conversation, and perhaps later ones."""
        count = len(self.messages)
        if self.key != key or len(messages) < count:
            return False
        try:
            # Mostly the same objects, which Python compares without looking into them.
            return list(self.messages) == list(messages[:count])
        except Exception:  # noqa: BLE001 - of a foreign class
            return False

    def is_over(self) -> bool:
        """Return whether to stop waiting for it: it is done, or its event loop does not run."""
        if self.done.done():
            return True
        return self.loop is not None and (self.loop.is_closed() or not self.loop.is_running())

    def blocks(self, io: IO) -> bool:
        """Return whether waiting for it would last for ever: this code is part of it, or stops the
        loop that it runs in.
        """
        if self in _WITHIN.get():
            return True
        return not io.asynchronous and self.loop is not None and self.loop is running_loop()

    async def wait(self, io: IO, seconds: float) -> None:
        """Wait until it is over, for ``seconds`` at most."""
        end = time.monotonic() + seconds
        while not self.is_over() and (left := end - time.monotonic()) > 0:
            await io.wait(self.done, min(_LOOK_AGAIN, left))


# Seconds after which is looked again whether the loop of a preparation still runs.
_LOOK_AGAIN = 1.0


@dataclass(slots=True)
class _Settled:
    """What came of a conversation's last preparation. Keeps no message alive."""

    count: int
    """Number of the caller's messages then."""
    ahead: int
    """How many more they were than those of the request: another number shows that the conversation
    was compacted since."""
    last: str
    """Digest of the last one."""
    calls: int
    """Number of further calls to wait before another try; -1 if the compaction was made."""


class Preparations(ForkAware):
    """The preparations of one ``Compacter``. Thread-safe; a forked child begins without any."""

    def __init__(self) -> None:
        super().__init__()
        self.nursery: Any = None
        """Nursery for preparations of trio programs."""
        self.tenant: Callable[[], Hashable] | None = None
        """Returns the caller on whose behalf the present call is made."""
        self._lock = Lock()
        self._running: list[Preparation] = []
        self._line: list[Preparation] = []
        self._settled: LRUCache[Key, _Settled] = LRUCache(_MOST_SETTLED)

    def __bool__(self) -> bool:
        return bool(self._running or self._line)

    def after_fork_in_child(self) -> None:
        """Forget the parent's, which do not run in the child."""
        self._running = []
        self._line = []

    # -- for a call --------------------------------------------------------------------------------

    def offer(self, preparation: Preparation) -> None:
        """Start this one, or put it in line, unless its conversation has one already; it replaces
        an earlier one in line.
        """
        with self._lock:
            self._forget_ended()
            same = [other for other in self._line if _same(other, preparation)]
            self._line = [other for other in self._line if other not in same]
            if any(_same(other, preparation) for other in self._running):
                return
            self._line.append(preparation)
            if len(self._line) > MOST_WAITING:
                self._line.remove(min(self._line, key=lambda waiting: waiting.nearness))
        self._start()

    def due(self, key: Key, messages: Sequence[Message]) -> Preparation | None:
        """Return the running preparation of this conversation, and drop one in line: its compaction
        is due now.
        """
        with self._lock:
            self._line = [item for item in self._line if not item.continues(key, messages)]
            return next((item for item in self._running if item.continues(key, messages)), None)

    def is_settled(self, key: Key, count: int, ahead: int, last: Callable[[int], str]) -> bool:
        """Return whether nothing is to be prepared now for a request of ``count`` messages: it was
        done, or tried too few calls ago.

        ``ahead`` is how many more they are than those of the request, ``last`` returns the digest
        of the first so many messages' last one.
        """
        with self._lock:
            known = self._settled.get(key)
            if known is None or known.ahead != ahead or not 0 < known.count <= count:
                return False
            if last(known.count) != known.last:
                return False
            if known.calls < 0:
                return True
            known.calls -= 1
            return known.calls >= 0

    def settle(self, key: Key, count: int, ahead: int, last: str, calls: int) -> None:
        """Note what came of a preparation: ``calls`` is how many calls to wait before another try,
        -1 if it was made.
        """
        with self._lock:
            self._settled[key] = _Settled(count, ahead, last, calls)

    # -- waiting for all ---------------------------------------------------------------------------

    async def drain(self, io: IO, seconds: float | None) -> bool:
        """Wait until none is running or in line, for ``seconds`` at most; return whether that is
        so.

        In a sync program, those that need the event loop of this very thread are not waited for.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._lock:
                self._forget_ended()
                waiting = [item for item in self._running if not item.blocks(io)]
            left = None if end is None else end - time.monotonic()
            if not waiting or (left is not None and left <= 0):
                return not self
            pause = _LOOK_AGAIN if left is None else min(_LOOK_AGAIN, left)
            if io.asynchronous:
                await io.wait(waiting[0].done, pause)
            else:
                wait_for([item.done for item in waiting], pause, "FIRST_COMPLETED")

    # -- running -----------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start those that there is room for."""
        for preparation in self._take_next():
            try:
                self._begin(preparation)
            except Exception:  # noqa: BLE001 - the loop was closed, or there can be no more threads
                self._note_end(preparation)

    def _take_next(self) -> Iterator[Preparation]:
        """Yield those to start, taken from the line: the caller with the fewest running first, then
        the one nearest to its limit.
        """
        while True:
            with self._lock:
                if not self._line or len(self._running) >= MOST_AT_ONCE:
                    return
                running = Counter(item.tenant for item in self._running)
                preparation = max(
                    self._line, key=lambda item: (-running[item.tenant], item.nearness)
                )
                self._line.remove(preparation)
                self._running.append(preparation)
            yield preparation

    def _begin(self, preparation: Preparation) -> None:
        context = preparation.context
        if preparation.nursery is not None:
            context.run(preparation.nursery.start_soon, self._run, preparation)
        elif preparation.loop is None:
            # A daemon: it must not hold up the end of the program.
            threading.Thread(
                target=context.run,
                args=(lambda: run(self._run(preparation)),),
                daemon=True,
                name="compacter-prepare",
            ).start()
        elif preparation.loop is running_loop():
            self._begin_task(preparation)
        else:
            preparation.loop.call_soon_threadsafe(self._begin_task, preparation)

    def _begin_task(self, preparation: Preparation) -> None:
        assert preparation.loop is not None  # noqa: S101 - for the type checker
        task = preparation.loop.create_task(
            self._run(preparation), name="compacter-prepare", context=preparation.context
        )
        # A loop that is closed before the task has ended would report it. asyncio does the same
        # for tasks of its own; see ``asyncio.gather``.
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
        preparation.task = task

    async def _run(self, preparation: Preparation) -> None:
        was_made = False
        try:
            _WITHIN.set((*_WITHIN.get(), preparation))
            await preparation.make()
            was_made = True
        finally:
            if not was_made:
                # Its loop or nursery is ending: another one begun there now would be cut off too.
                self._drop_line(preparation)
            self._note_end(preparation)
            self._start()

    def _note_end(self, preparation: Preparation) -> None:
        with self._lock:
            if preparation in self._running:
                self._running.remove(preparation)
            if not preparation.done.done():
                preparation.done.set_result(None)

    def _drop_line(self, ended: Preparation) -> None:
        """Drop those in line that would run in the same loop or nursery."""
        if ended.loop is None and ended.nursery is None:
            return
        with self._lock:
            self._line = [
                item
                for item in self._line
                if item.loop is not ended.loop or item.nursery is not ended.nursery
            ]

    def _forget_ended(self) -> None:
        """Forget those whose event loop was closed, and with it their task."""
        closed = [
            item
            for item in (*self._running, *self._line)
            if item.loop is not None and item.loop.is_closed()
        ]
        for item in closed:
            (self._running if item in self._running else self._line).remove(item)
            if not item.done.done():
                item.done.set_result(None)


def _same(one: Preparation, other: Preparation) -> bool:
    """Return whether two preparations are of one conversation, ``other`` of a later state of it."""
    return one.continues(other.key, other.messages)


def place(io: IO, nursery: Any) -> tuple[asyncio.AbstractEventLoop | None, Any] | None:
    """Return the event loop, and the nursery, in which a preparation of this call is made; ``None``
    if there is no place for it: in a trio program that has not handed over a nursery.
    """
    if io is not ASYNC:
        return None, None
    if io.awaits:
        return running_loop(), None
    return None if nursery is None else (None, nursery)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread."""
    if "asyncio" not in sys.modules:
        return None
    import asyncio

    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None
