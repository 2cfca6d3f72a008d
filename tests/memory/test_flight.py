"""P13: whoever needs the same compaction waits for the one who makes it."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from compacter.memory.single_flight import Flights


def test_the_first_begins_and_another_thread_waits_until_it_lands() -> None:
    flights = Flights()
    assert flights.claim("k") is False
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(flights.claim, "k")
        assert not waiting.done()
        flights.release("k")
        assert waiting.result(10) is True
    assert flights.claim("k") is False


def test_other_keys_do_not_wait() -> None:
    flights = Flights()
    assert flights.claim("k") is False
    assert flights.claim("other") is False


def test_a_thread_never_waits_for_itself() -> None:
    flights = Flights()
    flights.claim("k")
    assert flights.claim("k") is None


def test_a_wait_that_takes_too_long_is_given_up_and_the_flight_goes_on() -> None:
    flights = Flights()
    flights.claim("k")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(flights.claim, "k", 0.001).result(10) is None
    assert len(flights) == 1


def test_releasing_what_nobody_holds_is_no_error() -> None:
    Flights().release("k")


async def test_tasks_wait_without_blocking_their_loop() -> None:
    flights = Flights()
    assert await asyncio.create_task(flights.aclaim("k")) is False
    waiting = [asyncio.create_task(flights.aclaim("k")) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    flights.release("k")
    assert await asyncio.gather(*waiting) == [True] * 3


async def test_a_task_never_waits_for_itself() -> None:
    flights = Flights()
    await flights.aclaim("k")
    assert await flights.aclaim("k") is None


async def test_a_task_that_was_started_by_the_one_that_began_does_not_wait_for_it() -> None:
    flights = Flights()
    await flights.aclaim("k")
    assert await asyncio.wait_for(asyncio.create_task(flights.aclaim("k")), 5) is None


def test_a_thread_that_runs_in_the_context_of_the_one_that_began_does_not_wait_for_it() -> None:
    flights = Flights()
    flights.claim("k")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(contextvars.copy_context().run, flights.claim, "k", 5.0).result() is None


async def test_a_context_whose_own_flight_has_landed_waits_for_the_next_one() -> None:
    flights = Flights()
    await flights.aclaim("k")
    flights.release("k")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(flights.claim, "k").result() is False
        waiting = asyncio.create_task(flights.aclaim("k"))
        await asyncio.sleep(0)
        assert not waiting.done()
        flights.release("k")
        assert await waiting is True


async def test_a_sync_call_inside_the_loop_does_not_wait_for_a_task_of_that_loop() -> None:
    flights = Flights()
    await flights.aclaim("k")
    assert flights.claim("k") is None


async def test_a_task_waits_for_a_thread() -> None:
    flights = Flights()
    await asyncio.to_thread(flights.claim, "k")
    waiting = asyncio.create_task(flights.aclaim("k"))
    await asyncio.sleep(0)
    await asyncio.to_thread(flights.release, "k")
    assert await waiting is True


async def test_an_awaited_wait_that_takes_too_long_is_given_up() -> None:
    flights = Flights()
    await asyncio.to_thread(flights.claim, "k")
    assert await flights.aclaim("k", 0.001) is None


async def test_the_cancellation_of_one_waiter_leaves_the_others_waiting() -> None:
    flights = Flights()
    await asyncio.to_thread(flights.claim, "k")
    one, other = (asyncio.create_task(flights.aclaim("k")) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    assert not other.done()
    flights.release("k")
    assert await other is True


def test_a_waiter_whose_loop_has_ended_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    flights = Flights()
    flights.claim("k")

    async def give_up() -> None:
        task = asyncio.create_task(flights.aclaim("k"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    thread = threading.Thread(target=lambda: asyncio.run(give_up()))
    thread.start()
    thread.join()
    flights.release("k")
    gc.collect()
    assert not caplog.records
