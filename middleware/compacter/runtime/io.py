"""Calls, waiting and threads: two classes, for sync and for async programs.

Code that uses them is written once, as coroutines. In a sync program these never suspend, so
``run`` drives them. Async programs may run under asyncio or trio. trio is used only if it is
imported already, and asyncio is imported only when it is needed, to keep sync programs light.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import inspect
import math
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, TypeVar

T = TypeVar("T")
# Size of a history, in characters and in messages, from which computations on it run outside the
# event loop: those on 20,000 characters take 5 to 10 ms.
_LARGE = 20_000
_MANY = 400
READS = 10
"""Messages that are read in the time in which one is compacted, rather fewer."""
THREADS = "compacter"
"""Beginning of the names of all daemon threads of the package."""
# Longest wait for an import at the end of the process, in seconds.
_LONGEST_IMPORT = 30.0


class Stopped(Exception):  # noqa: N818 - not an error
    """Carries a ``StopIteration`` of the wrapped function, which no coroutine can raise (PEP 479),
    up to ``run``.
    """


class SyncIO:
    """For sync programs: everything blocks, and nothing suspends."""

    asynchronous = False
    awaits = False
    """Whether code that needs asyncio can be awaited: litellm, an async Redis client."""
    iterates = "__next__"
    """Name of the method that returns a stream's next chunk."""
    step = staticmethod(next)

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the function and return its result; a coroutine is not awaited."""
        try:
            return function(*args, **kwargs)
        except StopIteration as error:
            raise Stopped(error) from None

    async def hook(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the user's function, sync or async, and return its result."""
        return resolve(function, *args)

    async def ask(self, action: Callable[[], Any], seconds: float | None, *, blocks: bool) -> Any:  # noqa: ARG002
        """Return the reply to a request for a summary; a stream as a tuple of its chunks.

        Raises ``TimeoutError`` after ``seconds``; a sync call, which cannot be interrupted,
        continues in its thread.
        """
        if seconds is None:
            return _join_stream(resolve(action))
        return in_thread(lambda: _join_stream(resolve(action))).result(seconds)

    async def thread(self, action: Callable[[], T]) -> T:
        """Run an action that may take long, and return its result. A sync program waits for it."""
        return action()

    async def wait(self, future: Future[Any], seconds: float | None) -> None:
        """Wait until the future is done, for ``seconds`` at most. Its result is not used."""
        wait_for((future,), seconds)

    def beside(self, action: Callable[[], object]) -> None:
        """Run a short action that raises no exception, and wait until it has ended."""
        action()

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
        """Whether code that needs asyncio can be awaited: False under trio."""
        return _trio() is None

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the function and return its result, awaited if it is awaitable."""
        outcome = function(*args, **kwargs)
        return await outcome if inspect.isawaitable(outcome) else outcome

    hook = call

    async def ask(self, action: Callable[[], Any], seconds: float | None, *, blocks: bool) -> Any:
        """Return the reply to a request for a summary; a stream as a tuple of its chunks.

        With ``blocks``, the action runs in a thread: it is a plain function, which may block.
        """
        async with _timeout(seconds):
            reply = (
                await self.thread(lambda: _join_stream(action()))
                if blocks
                else _join_stream(action())
            )
            return await _await_reply(reply)

    async def thread(self, action: Callable[[], T]) -> T:
        """Run an action in a new thread, and return its result.

        Not in the event loop's executor, which would wait for abandoned actions when the loop is
        closed.
        """
        future = in_thread(action)
        await self.wait(future, None)
        return future.result()

    async def wait(self, future: Future[Any], seconds: float | None) -> None:
        """Wait until the future is done, for ``seconds`` at most. Its result is not used."""
        trio = _trio()
        if trio is None:
            import asyncio

            event = asyncio.Event()
            call_soon = asyncio.get_running_loop().call_soon_threadsafe
        else:
            event = trio.Event()
            call_soon = trio.lowlevel.current_trio_token().run_sync_soon

        def finish(_: Future[Any]) -> None:
            with contextlib.suppress(RuntimeError):  # After a cancellation the loop may be closed.
                call_soon(event.set)

        future.add_done_callback(finish)
        with contextlib.suppress(TimeoutError):
            async with _timeout(seconds):
                await event.wait()

    def beside(self, action: Callable[[], object]) -> None:
        """Start a short action that does not raise, without waiting for it."""
        # At the end of the interpreter a new thread no longer begins, and starting one would wait
        # for ever.
        if not sys.is_finalizing():
            in_thread(action)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio

        trio = _trio()
        await (asyncio.sleep(seconds) if trio is None else trio.sleep(seconds))


IO = SyncIO | AsyncIO
SYNC = SyncIO()
ASYNC = AsyncIO()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that uses ``SyncIO``, and so never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    except Stopped as stopped:
        theirs: StopIteration = stopped.args[0]
    else:
        coroutine.close()
        raise RuntimeError("a coroutine that uses SyncIO waited for an event loop")
    raise theirs


def is_kind(question: Callable[[Any], bool], function: Any) -> bool:
    """Apply a predicate of ``inspect`` to a callable, or to its ``__call__``.

    Args:
        question: Predicate such as ``inspect.iscoroutinefunction``.
        function: Callable to test.
    """
    return question(function) or (
        not inspect.isroutine(function) and question(type(function).__call__)
    )


def _join_stream(reply: Any) -> Any:
    """Return a tuple of a stream's chunks; any other reply unchanged."""
    return tuple(reply) if hasattr(type(reply), "__next__") else reply


async def _await_reply(reply: Any) -> Any:
    """Await the reply if it is awaitable, and return it; an async stream as a tuple of its
    chunks.
    """
    if inspect.isawaitable(reply):
        reply = await reply
    if hasattr(type(reply), "__anext__"):
        return tuple([chunk async for chunk in reply])
    return reply


def imported(name: str) -> Any:
    """Return a module that the program has imported, else ``None``.

    Another thread may be inside its import: ``sys.modules`` has the module from the beginning, and
    what it will contain is missing.
    """
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def _trio() -> Any:
    """Return the module trio if this code runs under it, else ``None``."""
    trio = imported("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


@contextlib.asynccontextmanager
async def _timeout(seconds: float | None) -> AsyncGenerator[None]:
    """Raise ``TimeoutError`` if the block takes longer than ``seconds``."""
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


def resolve(function: Callable[..., Any], *args: Any) -> Any:
    """Call a sync or async function from sync code, and return its result; an async stream as a
    tuple of its chunks.

    A loop may be running in this thread.
    """
    outcome = function(*args)
    kind = type(outcome)
    if not inspect.isawaitable(outcome) and (
        hasattr(kind, "__next__") or not hasattr(kind, "__anext__")
    ):
        return outcome

    import asyncio

    # The public function raises if there is no loop, and its error would become the context of the
    # action's errors.
    if asyncio._get_running_loop() is None:  # noqa: SLF001
        return asyncio.run(_await_reply(outcome))
    return in_thread(lambda: asyncio.run(_await_reply(outcome))).result()


def in_thread(action: Callable[[], T]) -> Future[T]:
    """Run an action in a new daemon thread, with the current context."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.set_result(context.run(action))
        except StopIteration as error:
            done.set_exception(RuntimeError(repr(error)))  # A coroutine cannot raise this error.
        except BaseException as error:  # noqa: BLE001 - raised by the future
            done.set_exception(error)

    threading.Thread(target=work, daemon=True, name=THREADS).start()
    return done


@atexit.register
def _finish_imports() -> None:
    """Wait until no daemon thread of the package is inside an import.

    The interpreter stops daemon threads wherever they are. A thread that has the lock of a module
    would keep it, and a finalizer that imports this module would wait for ever; a thread inside the
    initialisation of a C++ library would abort the process. See
    https://docs.python.org/3/c-api/init.html#c.Py_FinalizeEx.
    """
    end = time.monotonic() + _LONGEST_IMPORT
    while time.monotonic() < end and any(map(_is_importing, threading.enumerate())):
        time.sleep(0.01)


def _is_importing(thread: threading.Thread) -> bool:
    frame = None
    if thread.daemon and thread.name.startswith(THREADS):
        frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib."):
        frame = frame.f_back
    return frame is not None


def is_large(messages: object, times: int = 1) -> bool:
    """Return whether computations on these messages should not block an event loop. A quick
    estimate.

    ``times``: 1 for a compaction; ``READS`` if the messages are only read.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return False
    most = _LARGE * times
    return len(messages) >= _MANY * times or weight(list(messages), most) >= most


def weight(value: Any, enough: int, depth: int = 6) -> int:
    """Return the number of characters of all texts in a value, counted up to ``enough``."""
    if isinstance(value, str):
        return len(value)
    inner = value
    if not isinstance(value, (list, tuple)):
        inner = (value if isinstance(value, dict) else getattr(value, "__dict__", {})).values()
    total = 0
    rest = max(0, depth - 2)
    for one in inner if depth else ():
        if type(one) is dict:  # Most are messages; a call for each would take half of the time.
            for text in one.values():
                total += len(text) if type(text) is str else weight(text, enough - total, rest)
        else:
            total += len(one) if type(one) is str else weight(one, enough - total, depth - 1)
        if total >= enough:
            break
    return total
