"""Copy a client and replace methods of the copy, which has the same type, or a subclass of it where
a special method is replaced. The given client is not changed.

A proxy object would not do: ``isinstance`` fails, and its methods' calls on ``self`` bypass the
proxy. So the object is shallow-copied (connections and settings are shared), and the new methods
are put into the ``__dict__`` of the copy, where Python finds them before those of the class.

Two things need more. A *resource* (``client.chat.completions``) refers to its client, so it is
copied as well, and its copy refers to the copied client. A *special method* (``__enter__``,
``__iter__``, ``__call__``) is looked up on the class and never on the object, so
``with_special_methods`` gives the object a subclass of its own class.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from types import MemberDescriptorType, MethodType
from typing import Any, TypeVar

from compacter.call.arguments import Binding
from compacter.call.state import State
from compacter.call.wrap import OWN_OPTIONS, wrap_function
from compacter.runtime.io import ASYNC, IO, SYNC, run

T = TypeVar("T")
Copies = dict[int, Any]
"""``id`` of an object of the original -> its copy."""


def copy_client(thing: T, copies: Copies) -> T:
    """Return a shallow copy and add it to ``copies``; its references to objects that were copied
    before become references to their copies.

    Cached properties of the original are left out, so that the copy makes its own. No method of the
    class is called, as the ``__getattr__`` of a client may fail on an incomplete object.
    """
    kind = type(thing)
    copy = object.__new__(kind)
    copies[id(thing)] = copy
    for name, value in getattr(thing, "__dict__", {}).items():
        cached = isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)
        members = getattr(value, "__dict__", {}).values() if cached else ()
        if not any(id(member) in copies for member in members):
            copy.__dict__[name] = _move(value, copies)
    for slot in chain.from_iterable(vars(ancestor).values() for ancestor in kind.__mro__):
        if isinstance(slot, MemberDescriptorType):
            with suppress(AttributeError):  # It is empty.
                slot.__set__(copy, _move(slot.__get__(thing), copies))
    return copy


def _move(value: Any, copies: Copies) -> Any:
    """Return the copy of a value if there is one, else the value. A method of the original becomes
    the copy's.
    """
    if isinstance(value, MethodType) and id(value.__self__) in copies:
        return MethodType(value.__func__, copies[id(value.__self__)])
    return copies.get(id(value), value)


def copy_part(original: Any, copy: Any, path: tuple[str, ...], copies: Copies) -> Any:
    """Return the object at ``path`` of a copy, which is itself a copy of the original's; ``None``
    if there is no such object.
    """
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


def unbound(owner: Any, name: str) -> Callable[..., Any]:
    """Return the function of an object's method, which takes ``self`` first.

    A method of the class is looked up at each call: patches of an SDK's class after ``wrap``
    (tests, OpenTelemetry, Langfuse) work on a wrapped client too. A callable that is set on the
    object alone gets no ``self``.
    """
    own = vars(owner).get(name)
    if isinstance(own, MethodType):
        return own.__func__
    is_late = own is None and hasattr(type(owner), name)
    method = getattr(type(owner) if is_late else owner, name)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_late:
            return getattr(type(self), name)(self, *args, **kwargs)
        return method(*args, **kwargs)

    return call


def replace_method(state: State, owner: Any, name: str, binding: Binding) -> None:
    """Replace a method of an object by one that compacts."""
    function = unbound(owner, name)
    set_method(
        owner, name, wrap_function(state, function, binding, asynchronous=is_awaited(function))
    )


def take_options(owner: Any, name: str, twin: Callable[[Any, object], Any]) -> None:
    """Let a helper of an SDK, which sends messages by wrapped methods, accept
    ``compacter_options``.

    With options it is called on a copy of its object, which ``twin`` returns.
    """
    function = unbound(owner, name)

    async def call(io: IO, self: Any, *args: Any, **kwargs: Any) -> Any:
        other = twin(self, kwargs.pop(OWN_OPTIONS))
        return await io.call(function, other, *args, **kwargs)

    set_method(owner, name, divert(function, lambda kwargs: OWN_OPTIONS in kwargs, call))


def preset(twin: Any, wrapped: Any, names: Iterable[str], options: object) -> Any:
    """Return the copy, after its methods with these names were replaced by wrapped ones with the
    options.
    """
    for name in names:
        twin.__dict__[name] = functools.partial(getattr(wrapped, name), **{OWN_OPTIONS: options})
    return twin


def set_method(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Set a method on one object; ``function`` takes ``self``."""
    owner.__dict__[name] = MethodType(function, owner)


def is_awaited(function: Callable[..., Any]) -> bool:
    """Return whether a function is async, even if the SDK's decorators hide the coroutine
    function.
    """
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def divert(
    function: Callable[..., Any],
    applies: Callable[[Mapping[str, Any]], Any],
    body: Callable[..., Coroutine[Any, Any, Any]],
) -> Callable[..., Any]:
    """Return a function, sync or async as the given one, that calls ``body`` instead where
    ``applies(keywords)`` is true.
    """
    if is_awaited(function):

        @functools.wraps(function)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            return await (
                body(ASYNC, *args, **kwargs) if applies(kwargs) else function(*args, **kwargs)
            )

        return acall

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(body(SYNC, *args, **kwargs)) if applies(kwargs) else function(*args, **kwargs)

    return call


def keep_wrapping(owner: Any, names: tuple[str, ...], wrap: Callable[[Any], Any]) -> None:
    """Make methods that return another client (``copy``, ``with_options``) return a wrapped one."""

    def wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def make(*args: Any, **kwargs: Any) -> Any:
            return wrap(function(*args, **kwargs))

        return make

    for name in names:
        if hasattr(owner, name):
            set_method(owner, name, wrapping(unbound(owner, name)))
