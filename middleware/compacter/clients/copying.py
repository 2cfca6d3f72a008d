"""Copy a client, replace methods of the copy: the type stays, and the client that was given is left alone.

A proxy around a client would not be one: ``isinstance`` fails, and what its methods call on ``self`` goes past the
proxy. So the object is copied (shallow: connections and settings are shared), and the copy gets methods of its own in
its ``__dict__``, where Python finds them before those of the class.

Two things need more than that. A *resource* (``client.chat.completions``) refers back to its client, so it is copied as
well, and the copy refers to the copied client. A *special method* (``__enter__``, ``__iter__``, ``__call__``) is looked
up on the class and never on the object, so ``with_special_methods`` gives the object a subclass of its own class.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from types import MethodType
from typing import Any, TypeVar

from compacter.call.io import ASYNC, SYNC, run

T = TypeVar("T")
Copies = dict[int, Any]
"""``id`` of an object that belongs to the original -> its copy."""


def copy_client(thing: T, copies: Copies) -> T:
    """A shallow copy, entered in ``copies``; its references to what is in there already lead to the copies.

    Cached properties that were made from the original are left out: the copy makes its own when asked for them.
    Nothing of the class is called: clients have a ``__getattr__`` that is not ready for a half-made object.
    """
    kind = type(thing)
    copy = object.__new__(kind)
    copies[id(thing)] = copy
    for name, value in vars(thing).items():
        cached = isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)
        if not (cached and _refers_to_original(value, copies)):
            copy.__dict__[name] = _moved(value, copies)
    return copy


def _refers_to_original(value: object, copies: Copies) -> bool:
    return any(id(member) in copies for member in getattr(value, "__dict__", {}).values())


def _moved(value: Any, copies: Copies) -> Any:
    """The value, or its copy where there is one; a method of the original becomes one of the copy."""
    if isinstance(value, MethodType) and id(value.__self__) in copies:
        return MethodType(value.__func__, copies[id(value.__self__)])
    return copies.get(id(value), value)


def copied_part(original: Any, copy: Any, path: tuple[str, ...], copies: Copies) -> Any:
    """The copy's own part at ``path``: a copy of the original's, or a new one; ``None`` where there is none."""
    for name in path:
        part = vars(original).get(name) if original is not None else None
        if part is None:
            copy = getattr(copy, name, None)
            if copy is None:
                return None
        else:
            own = copies.get(id(part))
            copy.__dict__[name] = copy = copy_client(part, copies) if own is None else own
        original = part
    return copy


def unbound(method: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a bound method; for any other callable, a function that takes ``self`` and ignores it."""
    if isinstance(method, MethodType):
        return method.__func__

    @functools.wraps(method)
    def call(_: Any, *args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call


def set_method(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Give one object a method of its own; ``function`` takes ``self``."""
    owner.__dict__[name] = MethodType(function, owner)


def is_awaited(function: Callable[..., Any]) -> bool:
    """Whether a call's result is awaited, also where the SDK's decorators hide the coroutine function."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def diverted(
    function: Callable[..., Any],
    applies: Callable[[Mapping[str, Any]], Any],
    body: Callable[..., Coroutine[Any, Any, Any]],
) -> Callable[..., Any]:
    """The function; calls whose keywords ``applies`` to are made by ``body``, written once for sync and async."""
    if is_awaited(function):

        @functools.wraps(function)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            return await (body(ASYNC, *args, **kwargs) if applies(kwargs) else function(*args, **kwargs))

        return acall

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(body(SYNC, *args, **kwargs)) if applies(kwargs) else function(*args, **kwargs)

    return call


def keep_wrapping(owner: Any, names: tuple[str, ...], wrap: Callable[[Any], Any]) -> None:
    """Have methods that make another client (``copy``, ``with_options``) make a wrapped one."""

    def wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def make(*args: Any, **kwargs: Any) -> Any:
            return wrap(function(*args, **kwargs))

        return make

    for name in names:
        if hasattr(owner, name):
            set_method(owner, name, wrapping(unbound(getattr(owner, name))))
