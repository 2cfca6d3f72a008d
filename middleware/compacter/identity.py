"""Texts that identify the value of a setting, so that only equal settings share a summary."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import sys
import weakref
from dataclasses import fields, is_dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from compacter.errors import UserFunction
from compacter.locks import Lock
from compacter.redaction import Redaction

_PLAIN = (type(None), bool, int, float, str, bytes)
_PROCESS = secrets.token_hex(8)
_COUNTER = itertools.count()
_TOKENS: dict[int, tuple[weakref.ref[Any], str]] = {}
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
    if is_dataclass(value) and not isinstance(value, type) and parameters and parameters.frozen:
        members = []
        # By name, and only if set: an argument that a later version adds changes nothing for those
        # who leave it out, and records from before it are found again.
        for member in sorted(fields(value), key=lambda member: bool(member.kw_only)):
            text = identify(getattr(value, member.name))
            if not member.kw_only:
                members.append(text)
            elif text != identify(member.default):
                members.append(f"{member.name}={text}")
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
        known = _TOKENS.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        # With the process id, because a forked child continues its parent's counter.
        token = f"object {_PROCESS}-{os.getpid()}-{next(_COUNTER)}"
        with contextlib.suppress(TypeError):  # Without a weak reference, another text each time.
            _TOKENS[id(value)] = weakref.ref(value, partial(_TOKENS.pop, id(value))), token
        return token
