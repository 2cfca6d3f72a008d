"""Texts that identify the value of a setting, so that only equal settings share a summary."""

from __future__ import annotations

import contextlib
import secrets
import sys
import weakref
from dataclasses import fields
from operator import attrgetter
from typing import Any

from compacter.errors import UserFunction
from compacter.redaction import Redaction
from compacter.runtime.locks import Lock

_PLAIN = (type(None), int, float, str)
# By the ``id`` of an object, until it dies.
_TOKENS: dict[int, str] = {}
_LOCK = Lock()


def identify(value: Any) -> str:  # noqa: ANN401 - of any option
    """Return a text that identifies a setting: the content of a plain value, the name of a
    function.
    """
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (UserFunction, Redaction)):
        return identify(value.function)
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(identify, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(identify, value)))}}}"
    parameters = getattr(type(value), "__dataclass_params__", None)
    if parameters and parameters.frozen:
        members = [f"{one.name}={identify(getattr(value, one.name))}" for one in fields(value)]
        return f"{identify(type(value))}({', '.join(members)})"
    with contextlib.suppress(Exception):  # Of a value without an importable name.
        module = value.__module__
        name: str = getattr(value, "__qualname__", "")
        if attrgetter(name)(sys.modules[module]) is value:
            return f"{module}.{name}"
    return _token(value)


def _token(value: object) -> str:
    """Return a text that identifies this object in this process; it is never used for another
    object.
    """
    with _LOCK:
        token = _TOKENS.get(id(value))
        if token is None:
            token = f"object {secrets.token_hex(8)}"
            with contextlib.suppress(TypeError):  # Without a weak reference, another each time.
                weakref.finalize(value, _TOKENS.pop, id(value))
                _TOKENS[id(value)] = token
        return token
