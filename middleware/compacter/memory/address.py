"""A memory by its address: what variables of the environment, ``compacter serve`` and ``compacter doctor`` take."""

from __future__ import annotations

import os
import re

from compacter.errors import ConfigurationError
from compacter.memory.base import Memory

_REDIS = ("redis://", "rediss://", "unix://")
_FILE = re.compile(r"(?![a-z]+://)(?:[./~].*|[A-Za-z]:[\\/].*|.*\.(?:db|sqlite3?)|:memory:)", re.DOTALL)
"""What can only be the name of a file."""


def memory_at(address: str) -> Memory:
    """A memory at ``sqlite:PATH``, ``sqlite:///PATH``, the bare name of a file, or a Redis URL.

    Raises ``ConfigurationError`` for any other text.
    """
    if address.startswith(_REDIS):
        from compacter.memory.redis import RedisMemory

        return RedisMemory(address)
    path = sqlite_path(address)
    if path is None:
        # The address itself is not repeated: it may hold a password.
        raise ConfigurationError("memory takes sqlite:PATH, redis://HOST:PORT/DB, rediss://... or unix:///SOCKET")
    from compacter.memory.sqlite import SQLiteMemory

    return SQLiteMemory(path)


def sqlite_path(address: str) -> str | None:
    """The file that an address names; ``None`` where it names none."""
    if address.startswith("sqlite:"):
        path = address.removeprefix("sqlite:").removeprefix("//")
    else:
        path = address if _FILE.fullmatch(address) else ""
    return os.path.expanduser(path) or None  # noqa: PTH111 - ":memory:" is no path
