"""Coroutines that are driven from outside: their computations run in threads, or stop at a step.

With the world `APART` a coroutine awaits nothing itself. Each step that it asks for comes out of
`drive`, which has it carried out where an event loop runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, NamedTuple


class Step(NamedTuple):
    """A step that a coroutine leaves to its driver: a method of the world, and its arguments."""

    name: str
    given: tuple[Any, ...]

    def __await__(self) -> Generator[Step, Any, Any]:
        return (yield self)


class _Apart:
    def __getattr__(self, name: str) -> Callable[..., Step]:
        return lambda *given: Step(name, given)


APART: Any = _Apart()
"""Stands for a world; awaiting its methods yields a `Step`."""


async def drive(
    world: Any, coroutine: Coroutine[Any, Any, Any], outcome: Any = None, until: str = ""
) -> Any:
    """Run a coroutine whose world is `APART`, and return its result.

    Args:
        world: Carries out the steps. An ``Exception`` of one is thrown into the coroutine. With its
            attribute ``large``, the coroutine computes in threads of its ``io``.
        coroutine: What to run.
        outcome: Outcome of the step that was returned last.
        until: Name of steps that are returned instead of carried out. Call again with the outcome
            to continue.
    """
    advance = coroutine.send
    try:
        while True:
            go_on = partial(_advance, advance, outcome)
            ended, step = await world.io.thread(go_on) if world.large else go_on()
            if ended or step.name == until:
                return step
            try:
                outcome = await getattr(world, step.name)(*step.given)
                advance = coroutine.send
            except Exception as error:  # noqa: BLE001 - handled by the coroutine
                outcome = error
                advance = coroutine.throw
    except BaseException:
        # A thread abandoned by a cancellation still runs it.
        with contextlib.suppress(ValueError):
            coroutine.close()
        raise


def _advance(advance: Callable[[Any], Any], outcome: object) -> tuple[bool, Any]:
    """Run a coroutine up to its next step; return False and that, or True and its result at its
    end.
    """
    try:
        return False, advance(outcome)
    except StopIteration as stop:
        return True, stop.value
