"""The options that a compaction reads, as types."""
# ruff: noqa: D102 - `Options` describes them.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from compacter.lines.passages import Quotes
    from compacter.overflow import TokenLimit


class Settings(Protocol):
    """The values of the options of a ``Compacter``, as plain attributes; ``Options`` describes
    each. An object of this class is never changed.
    """

    compact_ratio: float
    summarizer: str | Callable[..., object] | None
    summary_prompt: str | None
    focus: str | None
    max_summary_tokens: int
    strategy: tuple[Any, ...]
    fallback: tuple[Any, ...]
    preserve_recent_turns: int
    trigger_tokens: int | float | Callable[..., bool] | None
    prepare_tokens: int | float | None
    alternate_roles: bool | None
    recall: Quotes | None
    redact: Callable[[str], str] | None
    retrieved: tuple[str, str] | Callable[[str, int], str] | None
    rules: tuple[str, ...]
    before_compaction: Callable[..., Any] | None
    after_compaction: Callable[..., Any] | None

    @property
    def detect(self) -> Callable[[BaseException], TokenLimit | None]: ...
    @property
    def writer(self) -> str | Callable[..., object] | None: ...
    @property
    def summarizes(self) -> bool: ...
