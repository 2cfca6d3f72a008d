"""What ``Compacter.wrap`` takes: functions, callable objects, and the clients there is an adapter for."""

from __future__ import annotations

import copy
import inspect
from typing import Any, TypeVar

from compacter.clients.binding import bind
from compacter.clients.function import wrap_function
from compacter.engine import Engine

T = TypeVar("T")

SUPPORTED = (
    "a function (sync, async, streaming) such as litellm.completion, a bound method, a functools.partial or a callable object "
    "whose messages argument is called messages, input or contents (another name: pass messages_param=...; another wire format: "
    "pass wire_format=...)"
)


def wrap(engine: Engine, target: T, *, messages_param: str | None, wire_format: str | None) -> T:
    """The wrapped target. Raises ``TypeError`` that lists what is supported."""
    if not callable(target) or inspect.isclass(target):
        raise TypeError(f"compacter cannot wrap {_described(target)}; it wraps {SUPPORTED}")
    binding = bind(target, messages_param=messages_param, wire_format=wire_format)
    if binding is None:
        raise TypeError(
            f"{_described(target)} has no parameter for messages that compacter knows; it wraps {SUPPORTED}"
        )
    wrapped: Any = wrap_function(engine, target, binding)
    if inspect.isroutine(target) or hasattr(target, "func"):
        return wrapped  # type: ignore[no-any-return]
    return _same_type(target, wrapped)


def _same_type(target: T, wrapped: Any) -> T:
    """A copy of a callable object whose call is the wrapped one: its attributes and its type stay."""
    kind = type(target)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG001
        return wrapped(*args, **kwargs)

    try:
        clone = copy.copy(target)
        clone.__class__ = type(
            kind.__name__,
            (kind,),
            {"__call__": call, "__module__": kind.__module__, "__qualname__": kind.__qualname__},
        )
    except (TypeError, AttributeError):
        return wrapped  # type: ignore[no-any-return]
    return clone


def _described(target: object) -> str:
    return getattr(target, "__qualname__", None) or f"a {type(target).__module__}.{type(target).__qualname__}"
