"""What was already compacted, so that a program which resends its whole history pays for a summary once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compacter.memory.base import AsyncClaim, BaseMemory, Claim, Memory, MemoryUnavailable
from compacter.memory.inprocess import InProcessMemory
from compacter.memory.record import Record

if TYPE_CHECKING:
    from compacter.memory.redis import RedisMemory
    from compacter.memory.sqlite import SQLiteMemory

__all__ = [
    "AsyncClaim",
    "BaseMemory",
    "Claim",
    "InProcessMemory",
    "Memory",
    "MemoryUnavailable",
    "Record",
    "RedisMemory",
    "SQLiteMemory",
]


def __getattr__(name: str) -> object:
    if name == "SQLiteMemory":
        from compacter.memory.sqlite import SQLiteMemory

        return SQLiteMemory
    if name == "RedisMemory":
        from compacter.memory.redis import RedisMemory

        return RedisMemory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
