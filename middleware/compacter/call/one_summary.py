"""One summary for all calls that need it at the same time: by flights in this process, by claims of
the memory among processes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from compacter.io import IO
from compacter.memory.protocol import BaseMemory
from compacter.single_flight import LONGEST_WAIT, LOOK_AGAIN, Flight

if TYPE_CHECKING:
    from compacter.call.ahead import Preparation
    from compacter.call.perform import Performer

# Duration of a claim, and longest wait for another process's claim, in seconds. Most summaries take
# less; where its process has died, nobody waits for longer.
_CLAIM_SECONDS = 30.0
# Seconds between two requests for a claim: short beside a summary, long beside a round trip.
_CLAIM_POLL = 0.05


async def lead(world: Performer, key: str) -> None:
    """Become the call that makes this compaction, or wait for the call that already does."""
    state = world.state
    memory = state.memory
    flight = state.flights.join(key, blocks=not world.io.asynchronous)
    if flight is None:
        return
    if flight.leads:
        world.hold(flight.release)
        if memory is not None and memory.blocking:
            await _claim(world, memory, key)
        return
    await wait_until_over(world.io, flight, min(LONGEST_WAIT, world.time_left()))


async def wait_until_over(io: IO, work: Flight | Preparation, seconds: float) -> None:
    """Wait for what another call does, for ``seconds`` at most. A loop that was closed or stands
    still does not end it, so it is looked at again and again.
    """
    end = time.monotonic() + seconds
    while not work.over() and (left := end - time.monotonic()) > 0:
        done: Any = work.done
        await io.wait(done, min(LOOK_AGAIN, left))


async def _claim(world: Performer, memory: BaseMemory, key: str) -> None:
    """Claim the compaction among all processes, or wait for the process that has claimed it. A
    memory that never grants a claim is not waited for.
    """
    state = world.state
    end = time.monotonic() + min(_CLAIM_SECONDS, world.time_left())
    while not await _is_granted(world, memory, key):
        if state.grants is None:
            state.grants = await _is_granted(world, memory, f"probe {secrets.token_hex()}")
        if not state.grants or time.monotonic() > end:
            return
        await world.io.sleep(_CLAIM_POLL)
    state.grants = True


async def _is_granted(world: Performer, memory: BaseMemory, key: str) -> bool:
    """Request the claim, and return whether it was granted; True if the memory fails. It is
    released when the call is closed.
    """
    state = world.state

    def claim() -> bool:
        # Kept in the thread, so that a claim granted after a cancellation is released too.
        request: Callable[[], Any] = partial(memory.claim, key, _CLAIM_SECONDS)
        claimed: Any = state.safely("memory", request, otherwise=True)
        state.log_reports(memory)
        give_back = getattr(claimed, "release", None)
        if callable(give_back):
            world.hold(partial(world.io.beside, partial(state.safely, "memory", give_back)))
        return claimed is not None and claimed is not False

    return await world.io.thread(claim)
