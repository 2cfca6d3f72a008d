"""The world of a call: the interface that a call awaits, and coroutines whose steps a driver runs.

With the world `DEFERRED` a coroutine awaits nothing itself. `step_through` returns each of its
steps, or has it carried out where an event loop runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

World: TypeAlias = Any
"""The object whose methods a call awaits: a `Performer`, or the driver in a test.

* ``ask``, ``emit`` and ``approve`` are those of a compaction; see ``effects.py``.
* ``send(messages, options)`` calls the wrapped function, and returns a `Reply`.
* ``look_up(head=())`` returns the remembered view of the caller's messages.
* ``remember(after)`` stores a view of the caller's messages.
* ``forget()`` removes what this call has stored.
* ``quote(question)`` returns quotes of compacted messages.
* ``view()`` is ``look_up()`` without counting.
* ``prepare(call, ratio, target)`` starts the next compaction in the background.
* ``find_prepared(request)`` returns the view that was made in the background.
"""


class Step(NamedTuple):
    """A step that a coroutine leaves to its driver: a method of the world, and its arguments."""

    name: str
    given: tuple[Any, ...]

    def __await__(self) -> Generator[Step, Any, Any]:
        return (yield self)


class _Deferred:
    def __getattr__(self, name: str) -> Callable[..., Step]:
        return lambda *given: Step(name, given)


DEFERRED: Any = _Deferred()
"""World whose methods yield a `Step` when they are awaited."""


async def step_through(
    world: Any, coroutine: Coroutine[Any, Any, Any], outcome: Any = None, until: str = ""
) -> Any:
    """Run a coroutine whose world is `DEFERRED`, and return its result.

    Args:
        world: Carries out the steps, and computes between them by its ``compute``. An ``Exception``
            of a step is thrown into the coroutine.
        coroutine: The coroutine to run.
        outcome: Outcome of the step that was returned last.
        until: Name of steps that are returned instead of carried out. Call again with the outcome
            to continue.
    """
    advance = coroutine.send
    try:
        while True:
            ended, step = await world.compute(partial(_advance, advance, outcome))
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
    """Run a coroutine up to its next step. Return False and the step, or True and the result at its
    end.
    """
    try:
        return False, advance(outcome)
    except StopIteration as stop:
        return True, stop.value
