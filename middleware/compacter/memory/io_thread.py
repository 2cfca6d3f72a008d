"""A thread with an event loop of its own, in which a memory talks to its server.

The program's event loop may be busy for seconds. Here the answers are read when they come, so that
the time until then is the server's time, and claims are renewed meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from compacter.io import ASYNC
from compacter.locks import ForkAware, Lock
from compacter.memory.protocol import MemoryUnavailable

T = TypeVar("T")
# Seconds of one wait for a result, which comes earlier: each operation has its own time limit.
_A_LONG_TIME = 3_600.0
# What a forked child got from its parent. Closing it would disturb the connections of the parent.
_inherited: list[object] = []


class IOThread(ForkAware):
    """A thread with an event loop and a client that belongs to it. Both begin with the first use.

    Thread-safe. A forked child begins anew.

    Args:
        connect: Returns the client, which connects later and is closed by ``aclose()``.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        super().__init__()
        self._connect = connect
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ending: weakref.finalize[Any, Any] | None = None
        self.client: Any = None
        """The client, while the thread runs."""

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Start a coroutine function in the thread."""
        with self._lock:
            loop = self._loop or self._begin()
            return asyncio.run_coroutine_threadsafe(work(), loop)

    def wait_for(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a coroutine function of the client, from sync code."""
        future = self.start(lambda: work(self.client))
        try:
            return future.result()
        except CancelledError:
            raise MemoryUnavailable("the memory was closed") from None
        finally:
            future.cancel()

    async def wait_async(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """As ``wait_for``, from any event loop of asyncio."""
        future = self.start(lambda: work(self.client))
        try:
            while not future.done():
                await ASYNC.wait(future, _A_LONG_TIME)
            return future.result()
        except CancelledError:
            raise MemoryUnavailable("the memory was closed") from None
        finally:
            future.cancel()

    def close(self) -> None:
        """End the thread and its connections; the next use begins anew."""
        with self._lock:
            thread = self._thread
            ending = self._ending
            self._loop = self._thread = self._ending = self.client = None
        if ending is not None:
            ending()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def after_fork_in_child(self) -> None:
        """Begin anew, as a child has no thread but its own."""
        if self._ending is not None:
            self._ending.detach()
        _inherited.extend((self._loop, self.client))
        self._loop = self._thread = self._ending = self.client = None

    def _begin(self) -> asyncio.AbstractEventLoop:
        self.client = self._connect()
        self._loop = loop = asyncio.new_event_loop()
        arguments = (loop, self.client)
        self._thread = threading.Thread(
            target=_serve, args=arguments, daemon=True, name="compacter-redis"
        )
        self._thread.start()
        self._ending = weakref.finalize(self, _stop, loop)
        return loop


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon_threadsafe(loop.stop)


def _serve(loop: asyncio.AbstractEventLoop, client: Any) -> None:  # noqa: ANN401 - one of redis-py's classes
    """Run the loop until it is stopped; then end what is left, and close the connections."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_finish(client))
    finally:
        loop.close()


async def _finish(client: Any) -> None:  # noqa: ANN401 - as above
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await client.aclose()
