"""Attributes that are computed once, and special methods for one object."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_attribute(Generic[T]):  # noqa: N801 - used as a decorator, as ``property`` is
    """A method without arguments whose result becomes an attribute at first use.

    ``functools.cached_property`` without its lock: before Python 3.12 one lock serves all objects
    of a class, and a process that forks while another thread computes such an attribute copies it
    locked. The child then hangs at the same attribute. Two threads may both compute the value here.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, thing: None, kind: type) -> cached_attribute[T]: ...

    @overload
    def __get__(self, thing: object, kind: type) -> T: ...

    def __get__(self, thing: object | None, kind: type) -> cached_attribute[T] | T:
        if thing is None:
            return self
        # No ``__set__``: from now on Python finds the value in the object's own dictionary first.
        value = thing.__dict__[self._name] = self._compute(thing)
        return value


def with_special_methods(thing: T, methods: Mapping[str, Callable[..., Any]]) -> T:
    """Replace special methods of one object, and return it; ``isinstance`` and the class's name
    stay the same.

    Python looks special methods up on the class. The object's class is set to a subclass of its
    own, made once for each class and set of methods; a vendor's class is never changed. Data of a
    single object is kept in its ``__dict__``. Raises ``TypeError`` if the class cannot be set
    (``__slots__``, types of C extensions).
    """
    kind = type(thing)
    members = {
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "__qualname__": kind.__qualname__,
        **methods,
    }
    for subclass in type.__subclasses__(kind):  # Weak references, so that unused classes are freed.
        if all(vars(subclass).get(name) is method for name, method in methods.items()):
            break
    else:
        subclass = types.new_class(
            kind.__name__, (kind,), exec_body=lambda space: space.update(members)
        )
    changed: Any = thing  # Type checkers do not allow setting a class.
    changed.__class__ = subclass
    if type(thing) is not subclass:
        # Mocks ignore it.
        raise TypeError(f"the class of a {kind.__qualname__} cannot be replaced")
    return thing
