"""Calling functions, waiting, threads: what differs between sync and async programs, in two classes.

All that uses them is written once, as coroutines. In a sync program these never suspend, so ``run`` drives them.
Async programs may run under asyncio or trio; trio is looked for only where it is loaded already, and asyncio is loaded
only where it is used: a sync program need not wait for it.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import math
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class SyncIO:
    """For sync programs: everything blocks, and nothing suspends."""

    asynchronous = False
    awaits = False
    """Whether what needs asyncio can be awaited here: litellm, a client of Redis."""
    iterates = "__next__"
    """The method that gives the next chunk of a stream which can be read here: an async one cannot."""
    step = staticmethod(next)

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """What the function returns; a coroutine as it is."""
        return function(*args, **kwargs)

    async def hook(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a function of the user's returns, sync or async."""
        return resolved(function, *args)

    async def ask(self, action: Callable[[], Any], seconds: float | None, *, blocks: bool) -> Any:  # noqa: ARG002
        """The answer to a request for a summary; a stream as the list of its chunks.

        Raises ``TimeoutError`` after ``seconds``: a sync call cannot be interrupted, so it is left alone in its thread.
        """
        if seconds is None:
            return _joined(resolved(action))
        return _begun(lambda: _joined(resolved(action))).result(seconds)

    async def thread(self, action: Callable[[], T]) -> T:
        """The result of an action that may take long, without blocking an event loop."""
        return action()

    async def wait(self, future: Future[Any], seconds: float) -> None:
        """Wait until the future is done, for ``seconds`` at most. Its result is not looked at."""
        wait_for((future,), seconds)

    def beside(self, action: Callable[[], object]) -> None:
        """Do something short that raises nothing."""
        resolved(action)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)  # noqa: ASYNC251 - nothing else runs


class AsyncIO:
    """For async programs, under asyncio or trio."""

    asynchronous = True
    iterates = "__anext__"
    step = staticmethod(anext)

    @property
    def awaits(self) -> bool:
        """As above: not under trio."""
        return _trio() is None

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """What the function returns, awaited where that can be."""
        outcome = function(*args, **kwargs)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def hook(self, function: Callable[..., Any], *args: Any) -> Any:
        """As ``call``."""
        return await self.call(function, *args)

    async def ask(self, action: Callable[[], Any], seconds: float | None, *, blocks: bool) -> Any:
        """As above. ``blocks`` says that the action is a plain function of the user's, which may block: in a thread."""
        async with _timeout(seconds):
            reply = await self.thread(lambda: _joined(action())) if blocks else _joined(action())
            return await _awaited(reply)

    async def thread(self, action: Callable[[], T]) -> T:
        """The result of an action, run in a thread of its own.

        Not in the event loop's own threads: its end would wait for what a cancellation has left alone.
        """
        future = _begun(action)
        while not future.done():
            await self.wait(future, 3600)
        return future.result()

    async def wait(self, future: Future[Any], seconds: float) -> None:
        """Wait until the future is done, for ``seconds`` at most. Its result is not looked at."""
        trio = _trio()
        if trio is not None:
            own = trio.CapacityLimiter(1)  # Trio's own lets forty wait at a time.
            await trio.to_thread.run_sync(wait_for, (future,), seconds, abandon_on_cancel=True, limiter=own)
            return
        import asyncio

        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def finish() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def call_soon(_: Future[Any]) -> None:
            with contextlib.suppress(RuntimeError):  # The loop of a waiter that was cancelled may be closed.
                loop.call_soon_threadsafe(finish)

        future.add_done_callback(call_soon)
        await asyncio.wait((waiter,), timeout=seconds)

    def beside(self, action: Callable[[], object]) -> None:
        """Do something short that raises nothing, without waiting for its end: a coroutine function as a task."""
        if not inspect.iscoroutinefunction(action) or not self.awaits:
            _begun(lambda: resolved(action))
            return
        import asyncio

        task = asyncio.get_running_loop().create_task(action())
        _TASKS.add(task)  # The loop itself keeps weak references only.
        task.add_done_callback(_TASKS.discard)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio

        trio = _trio()
        await (asyncio.sleep(seconds) if trio is None else trio.sleep(seconds))


_TASKS: set[asyncio.Task[Any]] = set()

IO = SyncIO | AsyncIO
SYNC, ASYNC = SyncIO(), AsyncIO()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine over ``SyncIO``, which never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine over SyncIO waited for an event loop")


def is_kind(question: Callable[[Any], bool], function: Any) -> bool:
    """What ``inspect`` answers for a callable: of a partial for its function, of an object also for its ``__call__``.

    Args:
        question: Such as ``inspect.iscoroutinefunction``.
        function: The callable.
    """
    while isinstance(function, functools.partial):
        function = function.func
    return question(function) or (not inspect.isroutine(function) and question(type(function).__call__))


def _joined(reply: Any) -> Any:
    """A stream, read to its end; any other reply as it is."""
    return list(reply) if hasattr(type(reply), "__next__") else reply


async def _awaited(reply: Any) -> Any:
    """The reply that is awaited, where it is, and an async stream read to its end."""
    if inspect.isawaitable(reply):
        reply = await reply
    return [chunk async for chunk in reply] if hasattr(type(reply), "__anext__") else reply


def _trio() -> Any:
    """The library trio, where this code runs under it."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


@contextlib.asynccontextmanager
async def _timeout(seconds: float | None) -> AsyncGenerator[None]:
    """Raises ``TimeoutError`` when what is inside takes longer than ``seconds``."""
    trio = _trio()
    if trio is None:
        import asyncio

        async with asyncio.timeout(seconds):
            yield
        return
    with trio.move_on_after(math.inf if seconds is None else seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise TimeoutError


def resolved(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function, sync or async, in a sync program; whether or not a loop runs in this thread."""
    outcome = function(*args)
    if not inspect.isawaitable(outcome):
        return outcome

    import asyncio

    # The public function raises where there is none; what the action raises would get that error as its context.
    if asyncio._get_running_loop() is None:  # noqa: SLF001
        return asyncio.run(_awaited(outcome))
    return _begun(lambda: asyncio.run(_awaited(outcome))).result()


def _begun(action: Callable[[], T]) -> Future[T]:
    """Run in a daemon thread of its own, with this context."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(action))
        except StopIteration as error:
            done.set_exception(RuntimeError(repr(error)))  # No coroutine can raise one.
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            done.set_exception(error)

    threading.Thread(target=work, daemon=True, name="compacter").start()
    return done
