"""Addresses of memories, as options, environment variables and the commands take them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from compacter.errors import ConfigurationError
from compacter.memory.inprocess import InProcessMemory
from compacter.memory.protocol import Memory

IN_PROCESS = "in-process"
_NONE = frozenset({"none", "false", "no", "off"})

REDIS = ("redis://", "rediss://", "unix://")
"""Beginnings of the address of a Redis server."""
# Text that can only be a file name.
_FILE = re.compile(
    r"(?![a-z]+://)(?:[./~].*|[A-Za-z]:[\\/].*|.*\.(?:db|sqlite3?)|:memory:)", re.DOTALL
)


def memory_of(text: str, **options: Any) -> Memory | None:
    """Return the memory for ``in-process``, ``none``, ``sqlite:PATH``, ``sqlite:///PATH``, a file
    name, or a Redis URL; a memory that stores text gets the options, such as ``encryption``.

    Raises ``ConfigurationError`` for any other text.
    """
    if text.lower() in _NONE:
        return None
    if text.lower() == IN_PROCESS:
        return InProcessMemory()
    if text.startswith(REDIS):
        from compacter.memory.redis import RedisMemory

        return RedisMemory(text, **options)
    path = sqlite_path(text)
    if path is None:
        # The message does not repeat the address, which may contain a password.
        raise ConfigurationError(
            "memory takes sqlite:PATH, redis://HOST:PORT/DB, rediss://... or unix:///SOCKET"
        )
    from compacter.memory.sqlite import SQLiteMemory

    return SQLiteMemory(path, **options)


def sqlite_path(address: str) -> str | None:
    """Return the file name in an address; ``None`` if it is not the address of a file."""
    if address.startswith("sqlite:"):
        path = address.removeprefix("sqlite:").removeprefix("//")
    else:
        path = address if _FILE.fullmatch(address) else ""
    return os.path.expanduser(path) or None  # noqa: PTH111 - ":memory:" is not a path


def keys_from(source: object, name: str) -> list[str]:
    """Return the keys of ``file:PATH``, one a line, or of ``env:NAME``, with commas or spaces
    between them. The first one encrypts, and all decrypt.

    ``name`` is the name of the setting, for the ``ConfigurationError`` if the source has no key.
    The error does not repeat a text that may be a key.
    """
    # LiteLLM's config files write variables so.
    kind, _, place = str(source).replace("os.environ/", "env:", 1).partition(":")
    if kind not in ("file", "env"):
        raise ConfigurationError(
            f"{name} takes file:PATH, a file with one key a line, or env:NAME, and not a key itself"
        )
    text = os.environ.get(place, "")
    if kind == "file":
        try:
            text = Path(place).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text file"
            raise ConfigurationError(f"{name}: cannot read {place!r}: {reason}") from None
    keys = text.replace(",", " ").split()
    if not keys:
        raise ConfigurationError(
            f"{name}: there is no key in {source}; make one by: python -c "
            "'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
        )
    return keys
