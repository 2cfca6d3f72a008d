"""The two drivers carry effects to the world and outcomes back, and close the flow whatever happens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from compacter.call.effects import Clock, Effect, Sleep, adrive, drive

if TYPE_CHECKING:
    from collections.abc import Generator


def sum_of_two(closed: list[str]) -> Generator[Effect[Any], Any, float]:
    try:
        first = yield from Clock()
        try:
            yield from Sleep(1)
        except ValueError as error:
            first += len(str(error))
        second = yield from Clock()
        return float(first + second)
    finally:
        closed.append("closed")


def world(effect: Effect[Any]) -> float:
    if isinstance(effect, Clock):
        return 10.0
    raise ValueError("four")


async def slow_world(effect: Effect[Any]) -> float:
    await asyncio.sleep(0)
    return world(effect)


def test_outcomes_are_sent_and_errors_thrown() -> None:
    closed: list[str] = []
    assert drive(sum_of_two(closed), world) == 24.0
    assert closed == ["closed"]


async def test_the_async_driver_does_the_same() -> None:
    closed: list[str] = []
    assert await adrive(sum_of_two(closed), slow_world) == 24.0
    assert closed == ["closed"]


def test_an_error_the_flow_does_not_take_comes_out() -> None:
    closed: list[str] = []

    def broken(effect: Effect[Any]) -> float:
        raise KeyError

    with pytest.raises(KeyError):
        drive(sum_of_two(closed), broken)
    assert closed == ["closed"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_an_interrupt_is_not_shown_to_the_flow(interrupt: type[BaseException]) -> None:
    seen: list[BaseException] = []

    def curious() -> Generator[Effect[Any], Any, None]:
        try:
            yield from Clock()
        except Exception as error:  # noqa: BLE001 - nothing may come here
            seen.append(error)
        finally:
            seen.append(GeneratorExit())

    def interrupted(effect: Effect[Any]) -> float:
        raise interrupt

    with pytest.raises(interrupt):
        drive(curious(), interrupted)
    assert [type(error) for error in seen] == [GeneratorExit]


async def test_a_cancelled_driver_closes_its_flow() -> None:
    closed: list[str] = []
    waiting = asyncio.Event()

    async def stuck(effect: Effect[Any]) -> float:
        waiting.set()
        await asyncio.Event().wait()
        return 0.0

    task = asyncio.create_task(adrive(sum_of_two(closed), stuck))
    await waiting.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == ["closed"]
