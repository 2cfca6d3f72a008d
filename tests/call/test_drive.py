"""The driver carries steps out and outcomes back, and closes the coroutine whatever happens, in
sync and async alike.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from compacter.call.world import DEFERRED, step_through
from compacter.runtime.io import ASYNC, SYNC, run

if TYPE_CHECKING:
    from collections.abc import Callable


class World:
    """Carries steps out by a function."""

    def __init__(
        self, perform: Callable[[float], Any], *, io: Any = SYNC, large: bool = False
    ) -> None:
        self._perform = perform
        self.io = io
        self.large = large

    async def compute(self, work: Callable[[], Any]) -> Any:
        return await self.io.thread(work) if self.large else work()

    async def sleep(self, seconds: float) -> Any:
        outcome = self._perform(seconds)
        return await outcome if hasattr(outcome, "__await__") else outcome


async def sum_of_two(closed: list[str]) -> float:
    try:
        first = await DEFERRED.sleep(0)
        try:
            await DEFERRED.sleep(1)
        except ValueError as error:
            first += len(str(error))
        second = await DEFERRED.sleep(0)
        return float(first + second)
    finally:
        closed.append(threading.current_thread().name)


async def later(seconds: float) -> float:
    await asyncio.sleep(0)
    if seconds == 0:
        return 10.0
    raise ValueError("four")


@pytest.mark.parametrize("large", [False, True])
async def test_steps(large: bool) -> None:
    """Outcomes are sent and errors thrown; with a large history it computes in a thread."""
    closed: list[str] = []
    assert await step_through(World(later, io=ASYNC, large=large), sum_of_two(closed)) == 24.0
    assert closed == ["compacter" if large else "MainThread"]


@pytest.mark.parametrize(
    "interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit]
)
def test_an_interrupt_is_not_shown_to_the_coroutine(interrupt: type[BaseException]) -> None:
    seen: list[BaseException] = []

    async def curious() -> None:
        try:
            await DEFERRED.sleep(0)
        except Exception as error:  # noqa: BLE001 - nothing may come here
            seen.append(error)
        finally:
            seen.append(GeneratorExit())

    def interrupted(_: float) -> float:
        raise interrupt

    with pytest.raises(interrupt):
        run(step_through(World(interrupted), curious()))
    assert [type(error) for error in seen] == [GeneratorExit]


async def test_a_driver_cancelled_while_a_thread_works_ends_now() -> None:
    entered = threading.Event()
    leave = threading.Event()
    closed = threading.Event()

    async def busy() -> None:
        try:
            entered.set()
            assert leave.wait(300)
            await DEFERRED.sleep(0)
        finally:
            closed.set()

    task = asyncio.create_task(step_through(World(later, io=ASYNC, large=True), busy()))
    await asyncio.to_thread(entered.wait, 300)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not closed.is_set()

    leave.set()
    del task
    assert await asyncio.to_thread(closed.wait, 300)


def test_a_sync_program_is_told_when_something_waits_for_an_event_loop() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waited for an event loop"):
        run(waits())
