"""The pump: run a policy, and have each of its effects carried out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from compacter.effects import Effect, Flow
    from compacter.runtime.io import IO


class Handlers(Protocol):
    """Carries out effects."""

    io: IO
    """Input and output, sync or async."""
    large: bool
    """Whether the history is so large that the policy must compute in threads."""

    async def perform(self, effect: Effect[Any], /) -> Any:
        """Carry out an effect, and return its answer."""
        ...


async def pump(
    flow: Flow[Any], handlers: Handlers, answer: object = None, until: type | None = None
) -> Any:
    """Run a policy to its end, and return its result; or up to an effect of the type ``until``,
    and return that. In a sync program this never suspends.

    Args:
        flow: The policy.
        handlers: Carries out its effects. An ``Exception`` from it is thrown into the policy.
        answer: Answer to the effect that was returned last.
        until: Type of effects that are returned instead of carried out.
    """
    step: Callable[[Any], object] = flow.send
    try:
        while True:
            move = partial(_move, step, answer)
            has_ended, outcome = await handlers.io.thread(move) if handlers.large else move()
            if has_ended or (until and isinstance(outcome, until)):
                return outcome
            try:
                answer = await handlers.perform(outcome)
                step = flow.send
            except Exception as error:  # noqa: BLE001 - handled by the policy
                answer = error
                step = flow.throw
    except BaseException:
        # A thread abandoned by a cancellation still runs it.
        with contextlib.suppress(ValueError):
            flow.close()
        raise


def _move(step: Callable[[Any], object], answer: object) -> tuple[bool, Any]:
    """Run a policy up to its next effect. Return False and the effect, or True and the result."""
    try:
        return False, step(answer)
    except StopIteration as stop:
        return True, stop.value
