"""Copies of clients, and changes to the copies: the type stays, and the client given is left alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

T = TypeVar("T")
Moved = dict[int, Any]
"""``id`` of an object of the original -> its copy."""


def twin(thing: T, moved: Moved) -> T:
    """A shallow copy whose references to what has been copied already lead to the copies.

    Cached parts that were made from the original are left out: the copy makes its own when asked for them.
    Nothing of the class's is called: clients have a ``__getattr__`` that is not ready for a half-made object.
    """
    kind = type(thing)
    copy = object.__new__(kind)
    moved[id(thing)] = copy
    for name, value in vars(thing).items():
        cached = isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)
        if not (cached and _made_from(value, moved)):
            copy.__dict__[name] = _rebound(value, moved)
    return copy


def _made_from(value: object, moved: Moved) -> bool:
    return any(id(member) in moved for member in getattr(value, "__dict__", {}).values())


def _rebound(value: Any, moved: Moved) -> Any:
    if isinstance(value, MethodType) and id(value.__self__) in moved:
        return MethodType(value.__func__, moved[id(value.__self__)])
    return moved.get(id(value), value)


def reach(original: Any, copy: Any, path: tuple[str, ...], moved: Moved) -> Any:
    """The copy's own part at ``path``: the original's twin, or a new one; ``None`` where there is none."""
    for name in path:
        part = vars(original).get(name) if original is not None else None
        if part is None:
            copy = getattr(copy, name, None)
            if copy is None:
                return None
        else:
            own = moved.get(id(part))
            copy.__dict__[name] = copy = twin(part, moved) if own is None else own
        original = part
    return copy


def taking_self(method: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a bound method; what stands in a method's place, taking ``self`` as well."""
    if isinstance(method, MethodType):
        return method.__func__

    @functools.wraps(method)
    def call(_: Any, *args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call


def graft(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Give one object a method of its own."""
    owner.__dict__[name] = MethodType(function, owner)


def is_awaited(function: Callable[..., Any]) -> bool:
    """Whether a call's result is awaited, also where the SDK's decorators hide the coroutine function."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def keep_wrapping(owner: Any, names: tuple[str, ...], wrap: Callable[[Any], Any]) -> None:
    """Have methods that make another client (``copy``, ``with_options``) make a wrapped one."""
    for name in names:
        if hasattr(owner, name):
            graft(owner, name, _wrapping(taking_self(getattr(owner, name)), wrap))


def _wrapping(function: Callable[..., Any], wrap: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        return wrap(function(*args, **kwargs))

    return make
