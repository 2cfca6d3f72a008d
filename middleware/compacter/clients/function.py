"""Wrapping one callable: same signature, same kind."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

from compacter.clients.binding import Binding
from compacter.clients.calls import Calls, Function
from compacter.engine import Engine


def wrap_function(
    engine: Engine, function: Function, binding: Binding, *, asynchronous: bool | None = None
) -> Function:
    """The function with compaction around it: same signature, same kind (sync, async, generator).

    ``asynchronous`` says what cannot be seen: that a plain function's result is always awaited (a decorated
    coroutine function, as the SDKs have them).
    """
    calls = Calls(engine, function, binding)
    if _is(inspect.isasyncgenfunction, function):
        shaped: Function = calls.async_generator
    elif _is(inspect.isgeneratorfunction, function):
        shaped = calls.generator
    elif asynchronous or _is(inspect.iscoroutinefunction, function):
        shaped = calls.asynchronous()
    else:
        shaped = calls.synchronous()
    if shaped in (calls.async_generator, calls.generator):
        shaped = _as_function(shaped, asynchronous=shaped == calls.async_generator)
    wrapped = (
        functools.wraps(function)(shaped)
        if hasattr(function, "__name__")
        else functools.update_wrapper(
            shaped,
            function,
            assigned=(name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(function, name)),
            updated=(),
        )
    )
    wrapped.__wrapped__ = function
    return wrapped


def _is(question: Callable[[Any], bool], function: Function) -> bool:
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return question(inner) or (not inspect.isroutine(inner) and question(type(inner).__call__))


def _as_function(shaped: Function, *, asynchronous: bool) -> Function:
    if asynchronous:

        async def stream(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            chunks = shaped(*args, **kwargs)
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()

        return stream

    def each(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from shaped(*args, **kwargs))

    return each
