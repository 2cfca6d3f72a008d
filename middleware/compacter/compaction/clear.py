"""Replace old, large tool results by a receipt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from compacter.compaction.task import CompactionTask, whole_number
from compacter.errors import ConfigurationError
from compacter.messages.format import Message
from compacter.messages.steps import Kind

_RECEIPT = "[tool result cleared to save room: {size:,} characters]"


@dataclass(frozen=True, slots=True, init=False)
class ClearToolResults:
    """Replaces each old, large tool result by a receipt with its size; calls and pairs stay.

    Args:
        keep_recent: Number of the newest result messages that stay as they are.
        min_size: Characters from which on a result is large.
        exclude: Names of tools whose results stay.

    Raises:
        ConfigurationError: An argument is unusable.
    """

    keep_recent: int
    """Number of the newest result messages that stay."""
    min_size: int
    """Characters from which on a result is large."""
    exclude: frozenset[str]
    """Names of tools whose results stay."""
    name: str
    """``clear_tool_results``."""
    edits: ClassVar[bool] = True
    """Its results hold changed copies of messages, one for one."""

    def __init__(self, *, keep_recent: int = 3, min_size: int = 400, exclude: Iterable[str] = ()) -> None:
        kept = whole_number("keep_recent", keep_recent, least=0, of="results")
        least = whole_number("min_size", min_size, least=0, of="characters")
        if isinstance(exclude, str):
            raise ConfigurationError(f'exclude takes several tool names, such as ("{exclude}",)')
        object.__setattr__(self, "keep_recent", kept)
        object.__setattr__(self, "min_size", max(least, len(_RECEIPT) + 12))
        object.__setattr__(self, "exclude", frozenset(exclude))
        object.__setattr__(self, "name", "clear_tool_results")

    def compact(self, task: CompactionTask) -> list[Message]:
        """The list of ``task`` with receipts; messages that carry no large result are the identical objects."""
        form, kinds = task.conversation.format, task.conversation.kinds
        names = form.tool_names(task.messages)
        carriers = [
            index for index, kind in enumerate(kinds) if kind is Kind.RESULT or (kind is Kind.USER and names.get(index))
        ]
        old = carriers[: len(carriers) - self.keep_recent] if self.keep_recent else carriers
        out = list(task.messages)
        for index in old:
            if not task.protected[index] and not self.exclude & set(names.get(index, ())):
                out[index] = form.rewrite(out[index], self._receipt)
        return out

    def _receipt(self, kind: str, text: str, name: str) -> str:
        if kind != "result" or len(text) <= self.min_size or name in self.exclude:
            return text
        return _RECEIPT.format(size=len(text))
