"""Waiting for a coroutine in a sync program, and for anything no longer than a time allows."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from compacter.clients.streams import is_async_stream

T = TypeVar("T")


def resolve(outcome: Any) -> Any:
    """The result of something that may be a coroutine, in a sync program, whether or not a loop runs in this thread."""
    if not inspect.isawaitable(outcome):
        return outcome

    async def wait() -> Any:
        result = await outcome
        return [chunk async for chunk in result] if is_async_stream(result) else result

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    return in_thread(lambda: asyncio.run(wait()), None)


def in_thread(action: Callable[[], T], seconds: float | None) -> T:
    """Run in a thread of its own, for ``seconds`` at most. Raises ``TimeoutError``."""
    return _begun(action).result(seconds)


async def beside(action: Callable[[], T]) -> T:
    """Run in a thread of its own without blocking the event loop.

    Not in the loop's own threads: its end would wait for what a cancellation has left alone.
    """
    return await asyncio.wrap_future(_begun(action))


def _begun(action: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(action))
        except StopIteration as error:
            # No coroutine can raise one.
            done.set_exception(RuntimeError(repr(error)))
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="compacter").start()
    return done
