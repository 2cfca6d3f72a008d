"""compacter: a long conversation never dies of a context-window error.

Wrap the completion call you already have::

    completion = Compacter().wrap(litellm.completion)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compacter.by_hand import CompactionResult
    from compacter.compacter import Compacter, compacted
    from compacter.compaction.plan import CompactionPlan
    from compacter.compaction.strategies import (
        ClearToolResults,
        CompactionStrategy,
        Shorten,
        Truncate,
    )
    from compacter.compaction.summarize import Summarize
    from compacter.errors import (
        CompacterError,
        CompactionError,
        InvalidHistoryError,
    )
    from compacter.events import CompactionEvent
    from compacter.history import History
    from compacter.lines.passages import Quotes
    from compacter.memory.inprocess import InProcessMemory
    from compacter.memory.redis import RedisMemory
    from compacter.memory.sqlite import SQLiteMemory
    from compacter.overflow import TokenLimit, detect_token_limit
    from compacter.search_tool import recall_tool

    __version__: str

__all__ = [
    "ClearToolResults",
    "Compacter",
    "CompacterError",
    "CompactionError",
    "CompactionEvent",
    "CompactionPlan",
    "CompactionResult",
    "CompactionStrategy",
    "History",
    "InProcessMemory",
    "InvalidHistoryError",
    "Quotes",
    "RedisMemory",
    "SQLiteMemory",
    "Shorten",
    "Summarize",
    "TokenLimit",
    "Truncate",
    "compacted",
    "detect_token_limit",
    "recall_tool",
]

_HOMES = {
    "compacter.compacter": "Compacter compacted",
    "compacter.history": "History",
    "compacter.errors": "CompacterError CompactionError InvalidHistoryError",
    "compacter.events": "CompactionEvent",
    "compacter.compaction.plan": "CompactionPlan",
    "compacter.memory.inprocess": "InProcessMemory",
    "compacter.memory.sqlite": "SQLiteMemory",
    "compacter.memory.redis": "RedisMemory",
    "compacter.overflow": "TokenLimit detect_token_limit",
    "compacter.lines.passages": "Quotes",
    "compacter.search_tool": "recall_tool",
    "compacter.by_hand": "CompactionResult",
    "compacter.compaction.summarize": "Summarize",
    "compacter.compaction.strategies": ("CompactionStrategy Truncate ClearToolResults Shorten"),
}
"""The modules of these names, which are imported when they are used."""
_METHODS = frozenset(
    {
        "acompact",
        "compact",
        "forget",
        "on_compaction",
        "on_event",
        "plan",
        "search",
        "using",
        "wrap",
    }
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("llm-compacter")
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        # Not by looking at the class: imports of the package's own modules come here first.
        helps = f"use an object of a class: Compacter(...).{name}(...)" if name in _METHODS else ""
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; {helps or f'it has {__all__}'}"
        )
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
