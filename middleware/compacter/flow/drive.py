"""The two drivers: they carry a flow's effects to the world and the outcomes back. All policy is in the flow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from compacter.flow.effects import Effect, Flow

T = TypeVar("T")


def drive(flow: Flow[T], perform: Callable[[Effect[Any]], Any]) -> T:
    """Run a flow to its end. Whatever ``perform`` raises is thrown into it, but for what is no ``Exception``."""
    try:
        effect = next(flow)
        while True:
            try:
                outcome = perform(effect)
            except Exception as error:  # noqa: BLE001 - the flow decides what an error means
                effect = flow.throw(error)
            else:
                effect = flow.send(outcome)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()


async def adrive(flow: Flow[T], perform: Callable[[Effect[Any]], Awaitable[Any]]) -> T:
    """As ``drive``; a cancellation closes the flow and passes on."""
    try:
        effect = next(flow)
        while True:
            try:
                outcome = await perform(effect)
            except Exception as error:  # noqa: BLE001 - the flow decides what an error means
                effect = flow.throw(error)
            else:
                effect = flow.send(outcome)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        flow.close()
