"""One summary for all calls that need it at the same time: by flights in this process, by claims of
the memory among processes.
"""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from compacter.runtime.single_flight import LONGEST_WAIT

if TYPE_CHECKING:
    from compacter.call.perform import Performer

# Duration of a claim, and longest wait for another process's claim, in seconds. Most summaries take
# less; where its process has died, nobody waits for longer.
_CLAIM_SECONDS = 30.0
# Seconds between two requests for a claim: short beside a summary, long beside a round trip.
_CLAIM_POLL = 0.05


async def lead(world: Performer, key: str) -> None:
    """Become the call that makes this compaction, or wait for the call that already does, here or
    in another process. A memory that never grants a claim is not waited for.
    """
    state = world.state
    flight = state.flights.join(key)
    if not flight.leads:
        await flight.wait(world.io, min(LONGEST_WAIT, world.time_left()))
        return
    world.hold(flight.release)
    if state.memory is None or not state.memory.blocking:
        return
    end = time.monotonic() + min(_CLAIM_SECONDS, world.time_left())
    while not await _is_granted(world, key):
        if state.grants is None:
            state.grants = await _is_granted(world, f"probe {secrets.token_hex()}")
        if not state.grants or time.monotonic() > end:
            return
        await world.io.sleep(_CLAIM_POLL)
    state.grants = True


async def _is_granted(world: Performer, key: str) -> bool:
    """Request the claim, and return whether it was granted; True if the memory fails. It is
    released when the call is closed.
    """
    state = world.state
    memory: Any = state.memory

    def claim() -> bool:
        # Kept in the thread, so that a claim granted after a cancellation is released too.
        claimed: Any = True
        with state.safely("memory"):
            claimed = memory.claim(key, _CLAIM_SECONDS)
        state.log_reports(memory)
        release = getattr(claimed, "release", None)
        if callable(release):
            world.hold(partial(world.io.beside, partial(world.give_back, release)))
        return claimed is not None and claimed is not False

    return await world.io.thread(claim)
