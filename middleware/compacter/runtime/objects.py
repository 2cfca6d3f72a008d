"""Special methods for one object, such as a client or a stream of a vendor."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


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
