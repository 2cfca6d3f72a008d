"""Compactions made ahead: the background task of each conversation, and its state.

A sync program gets daemon threads, and an asyncio program tasks of its own loop; under trio none is
made. At most eight run at once for each ``Compacter``; a conversation that finds no place tries
again at its next reply. The process may end at any time: only the unfinished compactions are lost.
"""

from __future__ import annotations

import contextvars
import copy
import math
import os
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from compacter.call.request import Request
from compacter.memory.record import prefix_digest, prefix_digests
from compacter.runtime.io import IO, run
from compacter.runtime.locks import Lock
from compacter.runtime.single_flight import Flight, running_loop

if TYPE_CHECKING:
    import asyncio

SCOPE = "\0prepared"
"""Added to the scope of a compaction that is not in force yet, so that no call uses it."""
MOST_AT_ONCE = 8
"""Most preparations that run at once. Each is a request to a model: more would take the share of
the provider's rate limit that the program's own calls need."""
# Conversations of which a few numbers are kept; the longest unused are dropped.
_MOST_KEPT = 10_000
# Newest messages among which the last one of the request before is searched.
_MOST_NEW = 50
_NAME = "compacter-prepare"


def copy_of(request: Request) -> Request:
    """Return a copy of the request, without quotes, for the compaction in the background. The
    messages are copied too, so that the program can change its own ones meanwhile.
    """
    # Together: the messages of the one are those of the other.
    original, messages = copy.deepcopy((list(request.original), list(request.messages)))
    pinned = tuple(request.conversation.pinned)
    return replace(
        request,
        original=original,
        messages=messages,
        read=None,
        quotes="",
        places={},
        find_pinned=lambda _: pinned,
    )


@dataclass(eq=False, slots=True)
class Preparation:
    """State of the compaction that is made in advance for one conversation: what it compacts, and
    whether it is running. It has a digest of the messages, and no reference to them, so it keeps
    none in memory.
    """

    count: int = 0
    """Number of the caller's messages in the request before; once begun, number of those to
    compact."""
    digest: str = ""
    """Digest of these messages."""
    flight: Flight | None = None
    """Flight of the task that makes it; ``None`` if no task has begun since the last compaction."""
    task: asyncio.Task[None] | None = None
    """The task in an asyncio program, whose loop keeps only a weak reference."""


class Preparations:
    """The preparations of one ``Compacter``. Thread-safe; a forked child begins without any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.crowded: set[str] = set()
        """Servers that refused a call while a compaction was made ahead there."""
        # Each with its server.
        self._running: list[tuple[Flight, str]] = []
        # By the last messages of the request before.
        self._kept: LRUCache[str, Preparation] = LRUCache(_MOST_KEPT)

    def __bool__(self) -> bool:
        return any(not flight.over() for flight, _ in self._running)

    def at(self, place: str) -> list[Flight]:
        """Return the compactions in advance that a server (``place``) is still writing a summary
        for.
        """
        running = self._running
        return [flight for flight, where in running if where == place and not flight.over()]

    def of(self, scope: str, request: Request) -> Preparation | None:
        """Return the preparation of a conversation; ``None`` if this request does not continue the
        one before.

        The newest messages identify a conversation, so that it is still found after the program has
        dropped or edited the oldest ones. Raises ``Unencodable``.
        """
        form = request.format
        # The next request must contain these messages too. System messages and the last one do not
        # count: they may have the time of day, or text retrieved for this call alone.
        spoken = [message for message in request.original if form.speaker(message) != "system"]
        body = spoken[:-1]
        # The tasks of the parent do not run in a forked child. Another number of compacted messages
        # means another preparation.
        scope = f"{os.getpid()} {scope}{len(request.original) - len(request.messages)}"

        def key(at: int) -> str:
            # Fewer messages are equal in many conversations: "Done." and "Thanks!".
            return prefix_digest(form, body[max(0, at - 4) : at], scope)

        with self._lock:
            ends = range(len(body), max(0, len(body) - _MOST_NEW), -1)
            earlier = (self._kept.pop(key(at), None) for at in ends)
            kept = next(filter(None, earlier), Preparation())
            self._kept[key(len(body))] = kept
        # The messages to compact, and perhaps later ones.
        first, whole = prefix_digests(form, body, kept.count)
        continues = first == kept.digest
        if kept.flight is None:
            kept.count = len(body)
            kept.digest = whole
        return kept if continues else None

    def begin(
        self,
        kept: Preparation,
        io: IO,
        make: Callable[[], Coroutine[Any, Any, object]],
        place: str,
    ) -> None:
        """Start making it in the background, unless the most allowed are already running.

        Args:
            kept: The conversation's preparation.
            io: Sync or async.
            make: Function that makes it; raises no ``Exception``.
            place: The server that makes the summary.
        """
        if io.asynchronous and not io.awaits:
            return  # Under trio a task needs a nursery of the program's.
        loop = running_loop() if io.awaits else None
        thread = threading.get_ident() if io.asynchronous else 0
        flight = Flight(loop, thread)
        with self._lock:
            self._running = [item for item in self._running if not item[0].over()]
            if len(self._running) >= MOST_AT_ONCE:
                return
            self._running.append((flight, place))
            kept.flight = flight
        context = contextvars.copy_context()
        context.run(flight.enter)

        async def work() -> None:
            try:
                await make()
            finally:
                kept.task = None
                flight.release()

        try:
            if loop is not None:
                kept.task = loop.create_task(work(), name=_NAME, context=context)
                # A loop that is closed before the task has ended would report it. asyncio sets this
                # for its own tasks; see ``asyncio.gather``.
                kept.task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
            else:
                # A daemon thread: it must not delay the end of the program.
                start = partial(context.run, lambda: run(work()))
                threading.Thread(target=start, daemon=True, name=_NAME).start()
        except RuntimeError:  # There can be no more threads.
            flight.release()

    async def drain(self, io: IO, seconds: float | None) -> bool:
        """Wait until no compaction is being made in advance, but at most ``seconds``. Return
        whether none is left. A sync call does not wait for compactions that run in the event loop
        of its own thread, because the loop cannot continue while the call waits.
        """
        end = math.inf if seconds is None else time.monotonic() + seconds
        for flight, _ in list(self._running):
            await flight.wait(io, end - time.monotonic())
        return not self
