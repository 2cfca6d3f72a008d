"""The pump has effects carried out, gives answers back, and closes the policy whatever happens, in
sync and async alike.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from compacter.call.pump import pump
from compacter.effects import Effect, Flow
from compacter.runtime.io import ASYNC, SYNC, run

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Sleep(Effect[float]):
    """An effect of these tests."""

    seconds: float


class Sleeper:
    """Carries effects out by a function."""

    def __init__(
        self, carry_out: Callable[[float], Any], *, io: Any = SYNC, large: bool = False
    ) -> None:
        self._carry_out = carry_out
        self.io = io
        self.large = large

    async def perform(self, effect: Any, /) -> Any:
        outcome = self._carry_out(effect.seconds)
        return await outcome if hasattr(outcome, "__await__") else outcome


def sum_of_two(closed: list[str]) -> Flow[float]:
    try:
        first = yield from Sleep(0)
        try:
            yield from Sleep(1)
        except ValueError as error:
            first += len(str(error))
        second = yield from Sleep(0)
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
    assert await pump(sum_of_two(closed), Sleeper(later, io=ASYNC, large=large)) == 24.0
    assert closed == ["compacter" if large else "MainThread"]


@pytest.mark.parametrize(
    "interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit]
)
def test_an_interrupt_is_not_shown_to_the_policy(interrupt: type[BaseException]) -> None:
    seen: list[BaseException] = []

    def curious() -> Flow[None]:
        try:
            yield from Sleep(0)
        except Exception as error:  # noqa: BLE001 - nothing may come here
            seen.append(error)
        finally:
            seen.append(GeneratorExit())

    def interrupted(_: float) -> float:
        raise interrupt

    with pytest.raises(interrupt):
        run(pump(curious(), Sleeper(interrupted)))
    assert [type(error) for error in seen] == [GeneratorExit]


async def test_a_pump_cancelled_while_a_thread_works_ends_now() -> None:
    entered = threading.Event()
    leave = threading.Event()
    closed = threading.Event()

    def busy() -> Flow[None]:
        try:
            entered.set()
            assert leave.wait(300)
            yield from Sleep(0)
        finally:
            closed.set()

    task = asyncio.create_task(pump(busy(), Sleeper(later, io=ASYNC, large=True)))
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
