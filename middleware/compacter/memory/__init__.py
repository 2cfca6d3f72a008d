"""Memories of earlier compactions, so that a program which resends its whole history pays for a
summary once.
"""

from __future__ import annotations

from compacter.memory.inprocess import InProcessMemory
from compacter.memory.protocol import BaseMemory, Claim, Memory
from compacter.memory.record import Record
from compacter.memory.stored import MemoryUnavailable

__all__ = [
    "BaseMemory",
    "Claim",
    "InProcessMemory",
    "Memory",
    "MemoryUnavailable",
    "Record",
]
