"""Memories of earlier compactions, so that a program which resends its whole history pays for a
summary once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from compacter.memory.circuit import MemoryUnavailable
from compacter.memory.inprocess import InProcessMemory
from compacter.memory.protocol import BaseMemory, Claim, Memory
from compacter.memory.record import Record

if TYPE_CHECKING:
    from compacter.memory.redis import RedisMemory
    from compacter.memory.sqlite import SQLiteMemory

__all__ = [
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
    if name in ("RedisMemory", "SQLiteMemory"):
        return getattr(import_module(f"{__name__}.{name.removesuffix('Memory').lower()}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
