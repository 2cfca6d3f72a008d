"""Addresses of memories, as options, environment variables and the commands take them."""

from __future__ import annotations

import os
import re

from compacter.errors import ConfigurationError
from compacter.memory.base import InProcessMemory, Memory

IN_PROCESS = "in-process"
_NONE = frozenset({"none", "false", "no", "off"})

REDIS = ("redis://", "rediss://", "unix://")
"""Beginnings of the address of a Redis server."""
_FILE = re.compile(
    r"(?![a-z]+://)(?:[./~].*|[A-Za-z]:[\\/].*|.*\.(?:db|sqlite3?)|:memory:)", re.DOTALL
)
"""Text that can only be a file name."""


def memory_of(text: str) -> Memory | None:
    """Return the memory for a text: ``in-process``, ``none``, or an address such as
    ``sqlite:PATH``.

    Raises ``ConfigurationError`` for any other text.
    """
    if text.lower() in _NONE:
        return None
    if text.lower() == IN_PROCESS:
        return InProcessMemory()
    return memory_at(text)


def memory_at(address: str) -> Memory:
    """Return the memory at ``sqlite:PATH``, ``sqlite:///PATH``, a file name, or a Redis URL.

    Raises ``ConfigurationError`` for any other text.
    """
    if address.startswith(REDIS):
        from compacter.memory.redis import RedisMemory

        return RedisMemory(address)
    path = sqlite_path(address)
    if path is None:
        # The message does not repeat the address, which may contain a password.
        raise ConfigurationError(
            "memory takes sqlite:PATH, redis://HOST:PORT/DB, rediss://... or unix:///SOCKET"
        )
    from compacter.memory.sqlite import SQLiteMemory

    return SQLiteMemory(path)


def sqlite_path(address: str) -> str | None:
    """Return the file name in an address; ``None`` if it is not the address of a file."""
    if address.startswith("sqlite:"):
        path = address.removeprefix("sqlite:").removeprefix("//")
    else:
        path = address if _FILE.fullmatch(address) else ""
    return os.path.expanduser(path) or None  # noqa: PTH111 - ":memory:" is not a path
