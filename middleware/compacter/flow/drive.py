"""The two drivers: they carry a flow's effects to the world and the outcomes back. All policy is in the flow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from compacter.flow.effects import Effect, Flow

T = TypeVar("T")


class HandOver(BaseException):
    """Raised by ``perform`` in a sync program whose reply has to be awaited: the flow goes on in ``adrive``.

    No error, and no flow may catch it.
    """

    flow: Flow[Any]
    effect: Effect[Any]

    def __init__(self, reply: Awaitable[Any]) -> None:
        super().__init__("the flow goes on in the caller's event loop")
        self.reply = reply


def drive(flow: Flow[T], perform: Callable[[Effect[Any]], Any]) -> T:
    """Run a flow to its end. Whatever ``perform`` raises is thrown into it, but for what is no ``Exception``."""
    handed_over = False
    try:
        effect = next(flow)
        while True:
            try:
                outcome = perform(effect)
            except HandOver as handing:
                handed_over, handing.flow, handing.effect = True, flow, effect
                raise
            except Exception as error:  # noqa: BLE001 - the flow decides what an error means
                effect = flow.throw(error)
            else:
                effect = flow.send(outcome)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        if not handed_over:
            flow.close()


async def adrive(
    flow: Flow[T], perform: Callable[[Effect[Any]], Awaitable[Any]], effect: Effect[Any] | None = None
) -> T:
    """As ``drive``; a cancellation closes the flow and passes on. ``effect`` is where a flow handed over stands."""
    try:
        effect = next(flow) if effect is None else effect
        while True:
            try:
                outcome = await perform(effect)
            except Exception as error:  # noqa: BLE001 - the flow decides what an error means
                effect = flow.throw(error)
            else:
                effect = flow.send(outcome)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()
