"""compacter: a long conversation never dies of a context-window error."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name in {"detect_token_limit", "TokenLimit"}:
        from compacter import overflow

        return getattr(overflow, name)
    raise AttributeError(name)
