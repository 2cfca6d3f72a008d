"""The driver carries effects out and outcomes back, and closes the flow whatever happens, in sync
and async alike.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from compacter.call.perform import Performer
from compacter.call.state import State
from compacter.effects import Effect
from compacter.io import ASYNC, SYNC, run
from compacter.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from compacter.effects import Flow


@dataclass(frozen=True)
class Sleep(Effect[None]):
    seconds: float


class Performs(Performer):
    """Carries effects out by a function."""

    def __init__(
        self, perform: Callable[[Effect[Any]], Any], *, io: Any = SYNC, large: bool = False
    ) -> None:
        super().__init__(state=State(Options()), io=io, large=large)
        self._perform = perform

    async def _performed(self, effect: Effect[Any]) -> Any:
        outcome = self._perform(effect)
        return await outcome if hasattr(outcome, "__await__") else outcome

    performs: ClassVar[Any] = {Sleep: _performed}


def drive(flow: Flow[Any], performer: Performs) -> Any:
    """Run a flow in a sync program."""
    return run(performer.run(flow))


def sum_of_two(closed: list[str]) -> Generator[Effect[Any], Any, float]:
    try:
        first = yield Sleep(0)
        try:
            yield Sleep(1)
        except ValueError as error:
            first += len(str(error))
        second = yield Sleep(0)
        return float(first + second)
    finally:
        closed.append(threading.current_thread().name)


def ten_or_error(effect: Effect[Any]) -> float:
    if effect == Sleep(0):
        return 10.0
    raise ValueError("four")


async def later(effect: Effect[Any]) -> float:
    await asyncio.sleep(0)
    return ten_or_error(effect)


def test_outcomes_are_sent_and_errors_thrown() -> None:
    closed: list[str] = []
    assert drive(sum_of_two(closed), Performs(ten_or_error)) == 24.0
    assert closed == ["MainThread"]


async def test_an_async_program_gets_the_same() -> None:
    closed: list[str] = []
    assert await Performs(later, io=ASYNC).run(sum_of_two(closed)) == 24.0
    assert closed == ["MainThread"]


async def test_with_a_large_history_the_flow_runs_in_a_thread() -> None:
    closed: list[str] = []
    assert await Performs(later, io=ASYNC, large=True).run(sum_of_two(closed)) == 24.0
    assert closed == ["compacter"]


def test_an_error_the_flow_does_not_take_comes_out() -> None:
    closed: list[str] = []

    def broken(effect: Effect[Any]) -> float:
        raise KeyError

    with pytest.raises(KeyError):
        drive(sum_of_two(closed), Performs(broken))
    assert len(closed) == 1


def test_what_is_no_effect_is_an_error_of_the_flow_that_yields_it() -> None:
    closed: list[str] = []
    with pytest.raises(TypeError, match="is not an effect"):
        run(Performer(state=State(Options()), io=SYNC).run(sum_of_two(closed)))
    assert len(closed) == 1


@pytest.mark.parametrize(
    "interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit]
)
def test_an_interrupt_is_not_shown_to_the_flow(interrupt: type[BaseException]) -> None:
    seen: list[BaseException] = []

    def curious() -> Generator[Effect[Any], Any, None]:
        try:
            yield Sleep(0)
        except Exception as error:  # noqa: BLE001 - nothing may come here
            seen.append(error)
        finally:
            seen.append(GeneratorExit())

    def interrupted(effect: Effect[Any]) -> float:
        raise interrupt

    with pytest.raises(interrupt):
        drive(curious(), Performs(interrupted))
    assert [type(error) for error in seen] == [GeneratorExit]


async def test_a_cancelled_driver_closes_its_flow() -> None:
    closed: list[str] = []
    waiting = asyncio.Event()

    async def stuck(effect: Effect[Any]) -> float:
        waiting.set()
        await asyncio.Event().wait()
        return 0.0

    task = asyncio.create_task(Performs(stuck, io=ASYNC).run(sum_of_two(closed)))
    await waiting.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(closed) == 1


async def test_a_driver_cancelled_while_its_flow_is_in_a_thread_ends_now_and_closes_it_later() -> (
    None
):
    entered = threading.Event()
    leave = threading.Event()
    closed = threading.Event()

    def busy() -> Generator[Effect[Any], Any, None]:
        try:
            entered.set()
            assert leave.wait(300)
            yield Sleep(0)
        finally:
            closed.set()

    task = asyncio.create_task(Performs(later, io=ASYNC, large=True).run(busy()))
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
