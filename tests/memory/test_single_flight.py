"""Who needs the same compaction waits for the one who makes it, and never for itself."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest

from compacter.runtime.io import ASYNC, IO, SYNC, run
from compacter.runtime.single_flight import Flight, SingleFlight


def lead(flights: SingleFlight, key: str = "k") -> Flight:
    """Begin a flight."""
    flight = flights.join(key)
    assert flight.leads
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


def elsewhere(flights: SingleFlight, key: str = "k") -> Flight:
    """Join from another thread and context, as another call."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(flights.join, key).result(300)


def test_the_first_leads_and_another_thread_waits_until_it_has_finished() -> None:
    flights = SingleFlight()
    leader = lead(flights)
    follower = elsewhere(flights)
    assert not follower.leads
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(follower.done.result, 60)
        assert not waiting.done()
        leader.release()
        waiting.result(300)
    assert elsewhere(flights).leads


def test_releasing_twice_does_not_end_the_next_flight() -> None:
    flights = SingleFlight()
    first = lead(flights)
    first.release()
    second = contextvars.Context().run(lead, flights)
    first.release()
    assert not second.over()
    assert not elsewhere(flights).leads


def test_a_leader_that_is_lost_ends_its_flight() -> None:
    flights = SingleFlight()
    leader = lead(flights)
    follower = elsewhere(flights)
    del leader
    assert follower.over()
    assert not flights._table


def test_an_interruption_at_any_line_of_joining_leaves_nothing_behind() -> None:
    class Interrupted(BaseException):
        pass

    def interrupted_at(line: int) -> bool:
        """Whether there was such a line."""
        count = 0

        def trace(frame: object, event: str, argument: object) -> object:
            nonlocal count
            if event == "line":
                count += 1
                if count == line:
                    raise Interrupted
            return trace

        flights = SingleFlight()
        flight = None
        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            flight = flights.join("k")
        except Interrupted:
            pass
        finally:
            sys.settrace(None)
        assert len(flights._table) == (flight is not None), line
        return flight is None

    before = sys.gettrace()
    gc.disable()  # Finalizers of what other tests left would be interrupted, too.
    try:
        line = 1
        while contextvars.Context().run(interrupted_at, line):
            line += 1
    finally:
        gc.enable()
        sys.settrace(before)
    assert line > 5


async def test_what_is_waited_for_can_be_awaited() -> None:
    flights = SingleFlight()
    leader = lead(flights)
    followers = [await asyncio.to_thread(elsewhere, flights) for _ in range(3)]
    context = contextvars.Context()
    waiting = [
        asyncio.create_task(follower.wait(ASYNC, 60), context=context) for follower in followers
    ]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    leader.release()
    await asyncio.gather(*waiting)
    assert all(follower.over() for follower in followers)


async def test_a_task_never_waits_for_itself_nor_for_the_task_that_started_it() -> None:
    flights = SingleFlight()
    held = flights.join("k")

    async def is_waited_for() -> bool:
        return waits(flights.join("k"), ASYNC)

    assert not await is_waited_for()
    assert not await asyncio.create_task(is_waited_for())
    held.release()


def test_a_context_whose_own_flight_has_ended_waits_for_the_next_one() -> None:
    flights = SingleFlight()
    lead(flights).release()
    other = elsewhere(flights)
    joined = flights.join("k")
    assert not joined.leads
    assert waits(joined)
    assert other.leads


async def test_a_call_that_blocks_the_loop_does_not_wait_for_a_task_of_that_loop() -> None:
    flights = SingleFlight()

    async def begin() -> Flight:
        return flights.join("k")

    held = await asyncio.create_task(begin())
    assert not waits(flights.join("k"))
    held.release()


def test_a_leader_whose_loop_does_not_run_any_more_holds_nobody_up() -> None:
    flights = SingleFlight()
    held: list[Flight] = []
    followers: list[Flight] = []

    async def make() -> None:
        held.append(flights.join("k"))
        followers.append(elsewhere(flights))
        assert not followers[0].over()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(make())
    assert followers[0].over()
    assert elsewhere(flights).leads
    loop.close()


def test_a_waiter_whose_loop_has_ended_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()
    caplog.clear()  # What other tests left may be logged as it is collected.
    flights = SingleFlight()
    leader = lead(flights)

    async def give_up() -> None:
        waiting = asyncio.create_task(flights.join("k").wait(ASYNC, 60))
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
    os._exit(0 if flights.join("k").leads else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not flights.join("k").leads
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600, env=environment)


@pytest.mark.parametrize("interrupted", ["pop", "set_result"])
def test_a_release_that_is_interrupted_is_done_when_the_flight_is_collected(
    monkeypatch: pytest.MonkeyPatch, interrupted: str
) -> None:
    flights = SingleFlight()
    mine = lead(flights)
    waiting = elsewhere(flights)

    class Interrupting(dict[str, Any]):
        def pop(self, *_: Any) -> Any:
            raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        if interrupted == "pop":
            changed.setattr(mine, "table", Interrupting(mine.table))
        else:
            changed.setattr(Future, "set_result", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            mine.release()
    # What ``monkeypatch`` keeps.
    del changed, mine

    assert waiting.over()
    assert not flights._table
