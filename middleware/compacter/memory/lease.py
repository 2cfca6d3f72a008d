"""Claims that are renewed while their owner lives, so that a dead owner delays nobody for long."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

from compacter.io import ASYNC, IO, SYNC, run

LEASE = 1.5
"""Seconds for which a claim is granted at a time. It is renewed while its owner lives, so that a
process which dies delays others no longer than this."""
LEASE_OF_A_LOOP = 10.0
"""The same for a claim that only the program's event loop can renew: longer than a loop is busy."""
# Renewals in the time of one lease, so that some may come late, or fail.
_RENEWALS = 4

Renew = Callable[[], Coroutine[Any, Any, bool]]
GiveBack = Callable[[], Coroutine[Any, Any, None]]
Keeper = Callable[[], Coroutine[Any, Any, None]]


class _Claim:
    """A claim that is renewed until it ends.

    A claim that is lost, or whose process has died, expires.

    Args:
        seconds: Seconds for which it is renewed.
        renew: Extends it in the store for another ``lease`` seconds, and returns whether it was
            still this owner's.
        give_back: Ends it in the store.
        start: Starts the renewing; by default in a thread of its own, or for an ``AsyncLease`` as a
            task.
        lease: Seconds for which the store grants it at a time.
    """

    io: IO

    def __init__(
        self,
        seconds: float,
        renew: Renew,
        give_back: GiveBack,
        start: Callable[[Keeper], object] | None = None,
        lease: float = LEASE,
    ) -> None:
        self._give_back = give_back
        self._process = os.getpid()
        self._ended: Future[None] = Future()
        if seconds > lease:
            # Nothing in it refers to this object, which ends the renewing when it is dropped.
            until = time.monotonic() + seconds
            io = self.io if start is None else ASYNC
            begin = start or (ASYNC.beside if io.asynchronous else _start_thread)
            begin(partial(_keep, io, self._ended, renew, lease, until))

    def _end(self) -> bool:
        """End the renewing, and return whether the claim has yet to be given back."""
        # In a forked child another thread of the parent may hold the future's lock for ever.
        if self._process != os.getpid() or self._ended.done():
            return False
        self._ended.set_result(None)
        return True

    def __del__(self) -> None:
        self._end()


class Lease(_Claim):
    """A claim of a sync program. ``renew`` and ``give_back`` are coroutines over ``SyncIO``, unless
    ``start`` says where they run.
    """

    io = SYNC

    def release(self) -> None:
        """Give the claim back, as :meth:`Claim.release` promises."""
        if self._end():
            run(self._give_back())


class AsyncLease(_Claim):
    """A claim of an async program, whose ``release`` is awaited."""

    io = ASYNC

    async def release(self) -> None:
        """Give the claim back, as :meth:`Claim.release` promises."""
        if self._end():
            await self._give_back()


async def _keep(io: IO, ended: Future[None], renew: Renew, lease: float, until: float) -> None:
    """Renew a lease until it has ended or was lost."""
    while True:
        await io.wait(ended, lease / _RENEWALS)
        if ended.done() or time.monotonic() + lease >= until:
            return
        try:
            if not await renew():
                return
        except Exception:  # noqa: BLE001, S112 - the store may be busy: the lease lasts for some more tries
            continue


def _start_thread(keeper: Keeper) -> None:
    work = partial(_run_keeper, keeper)
    threading.Thread(target=work, daemon=True, name="compacter-claim").start()


def _run_keeper(keeper: Keeper) -> None:
    run(keeper())
