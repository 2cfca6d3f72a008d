"""Calls that need one compaction wait for the call that makes it, and never for themselves."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from compacter.runtime.io import ASYNC, IO, SYNC, run
from compacter.runtime.single_flight import LONGEST_WAIT, Flight, SingleFlight


def lead(flights: SingleFlight, key: str = "k") -> Flight:
    """Begin a flight."""
    flight, leads = flights.join(key)
    assert leads
    return flight


def follow(flights: SingleFlight, key: str = "k") -> Flight:
    """Join a flight in progress."""
    flight, leads = flights.join(key)
    assert not leads
    return flight


def waits(flight: Flight, io: IO = SYNC) -> bool:
    """Whether this code would wait for the flight; it looks once at its watch."""
    looks: list[float] = []

    class Watching(type(io)):  # type: ignore[misc]
        async def wait(self, future: Future[Any], seconds: float) -> None:
            looks.append(seconds)
            flight.loop = asyncio.new_event_loop()  # It does not run, so that the wait is over.
            flight.loop.close()

    run(flight.wait(Watching(), 60))
    return bool(looks)


def elsewhere(flights: SingleFlight, key: str = "k") -> tuple[Flight, bool]:
    """Join from another thread and context, as another call."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(flights.join, key).result(300)


def test_the_first_leads_and_another_thread_waits_until_it_has_finished() -> None:
    flights = SingleFlight()
    leader = lead(flights)
    assert elsewhere(flights) == (leader, False)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(leader.done.result, 60)
        assert not waiting.done()
        leader.release()
        waiting.result(300)
    assert not flights._table
    assert elsewhere(flights)[1]


def test_releasing_twice_does_not_end_the_next_flight() -> None:
    flights = SingleFlight()
    first = lead(flights)
    first.release()
    second = contextvars.Context().run(lead, flights)
    first.release()
    assert not second.over()
    assert elsewhere(flights) == (second, False)


def test_a_flight_that_nobody_ends_is_joined_no_longer_than_anybody_waits() -> None:
    """An interrupt may come between a leader and its release."""
    flights = SingleFlight()
    lost = lead(flights)
    lost.began -= LONGEST_WAIT
    assert elsewhere(flights)[1]


async def test_what_is_waited_for_can_be_awaited() -> None:
    flights = SingleFlight()
    leader = lead(flights)
    context = contextvars.Context()
    waiting = [asyncio.create_task(leader.wait(ASYNC, 60), context=context) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    leader.release()
    await asyncio.gather(*waiting)
    assert leader.over()


async def test_a_task_never_waits_for_itself_nor_for_the_task_that_started_it() -> None:
    flights = SingleFlight()
    held = lead(flights)

    async def is_waited_for() -> bool:
        return waits(follow(flights), ASYNC)

    assert not await is_waited_for()
    assert not await asyncio.create_task(is_waited_for())
    held.release()


def test_a_context_whose_own_flight_has_ended_waits_for_the_next_one() -> None:
    flights = SingleFlight()
    lead(flights).release()
    assert elsewhere(flights)[1]
    assert waits(follow(flights))


async def test_a_call_that_blocks_the_loop_does_not_wait_for_a_task_of_that_loop() -> None:
    flights = SingleFlight()

    async def begin() -> Flight:
        return lead(flights)

    held = await asyncio.create_task(begin())
    assert not waits(follow(flights))
    held.release()


def test_a_leader_whose_loop_does_not_run_any_more_holds_nobody_up() -> None:
    flights = SingleFlight()

    async def make() -> Flight:
        held = lead(flights)
        assert elsewhere(flights) == (held, False)
        assert not held.over()
        return held

    loop = asyncio.new_event_loop()
    held = loop.run_until_complete(make())
    assert held.over()
    assert elsewhere(flights)[1]
    loop.close()


def test_a_waiter_whose_loop_has_ended_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()
    caplog.clear()  # What other tests left may be logged as it is collected.
    flights = SingleFlight()
    leader = lead(flights)

    async def give_up() -> None:
        waiting = asyncio.create_task(follow(flights).wait(ASYNC, 60))
        await asyncio.sleep(0)
        waiting.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(give_up()))
    thread.start()
    thread.join()
    leader.release()
    gc.collect()
    assert not caplog.records


def test_a_forked_child_does_not_wait_for_its_parents_flights(environment: dict[str, str]) -> None:
    program = """
import os, threading
from compacter.runtime.single_flight import SingleFlight
flights = SingleFlight()
thread = threading.Thread(target=lambda: held.append(flights.join("k")))
held = []
thread.start(); thread.join()
child = os.fork()
if child == 0:
    os._exit(0 if flights.join("k")[1] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not flights.join("k")[1]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600, env=environment)
