"""What to do with the head. Each strategy is a small pure class; users write their own (see ``base``)."""

from __future__ import annotations

from compacter.strategies.base import CompactionStrategy, CompactionTask
from compacter.strategies.chain import Chain
from compacter.strategies.clear import ClearToolResults
from compacter.strategies.shorten import Shorten
from compacter.strategies.summarize import Summarize
from compacter.strategies.truncate import Truncate

__all__ = [
    "Chain",
    "ClearToolResults",
    "CompactionStrategy",
    "CompactionTask",
    "Shorten",
    "Summarize",
    "Truncate",
]
