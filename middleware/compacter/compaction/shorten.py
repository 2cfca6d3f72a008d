"""The last resort for one oversized message: keep its beginning and its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from compacter.compaction import excerpt
from compacter.compaction.task import CompactionTask, whole_number
from compacter.messages.format import Message
from compacter.summary import message as summary_message


@dataclass(frozen=True, slots=True, init=False)
class Shorten:
    """Shortens the largest messages until the request fits: their beginning and end stay, with a receipt between.

    A system prompt, a pinned message and the last user message are never changed, nor are a call's arguments.

    Args:
        min_size: Characters that each message keeps at least, from 100 on.

    Raises:
        ConfigurationError: ``min_size`` is unusable.
    """

    min_size: int
    """Characters that each message keeps at least."""
    name: str
    """``shorten``."""
    edits: ClassVar[bool] = True
    """Its results hold changed copies of messages, one for one."""

    def __init__(self, *, min_size: int = 400) -> None:
        whole = whole_number("min_size", min_size, least=100, of="characters")
        object.__setattr__(self, "min_size", whole)
        object.__setattr__(self, "name", "shorten")

    def compact(self, task: CompactionTask) -> list[Message]:
        """The list of ``task`` with its largest messages shortened, the largest first, no more than needed."""
        sizes = task.conversation.sizes
        goal = task.target if task.target is not None else int(sum(sizes) * 0.5)
        ceiling = self._ceiling(sizes, task.protected, goal)
        out = list(task.messages)
        for index, size in enumerate(sizes):
            if size > ceiling and not task.protected[index] and not self._is_summary(task, index):
                out[index] = self._shortened(task, out[index], size, ceiling)
        return out

    def _ceiling(self, sizes: Sequence[int], protected: Sequence[bool], goal: int) -> int:
        """The size that no message may exceed, so that all together reach ``goal``: found by halving."""
        free = [size for size, stays in zip(sizes, protected, strict=True) if not stays]
        fixed = sum(sizes) - sum(free)
        low, high = self.min_size, max(free, default=self.min_size)
        while low < high:
            middle = (low + high + 1) // 2
            if fixed + sum(min(size, middle) for size in free) <= goal:
                low = middle
            else:
                high = middle - 1
        return low

    @staticmethod
    def _is_summary(task: CompactionTask, index: int) -> bool:
        return summary_message.parse(task.conversation.format.plain_text(task.messages[index]) or "") is not None

    @staticmethod
    def _shortened(task: CompactionTask, message: Message, size: int, ceiling: int) -> Message:
        """All texts of a message, each to its share of what the message may have."""
        texts: list[int] = []

        def measure(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - every edit is called like this
            texts.append(0 if kind == "call" else len(text))
            return text

        task.conversation.format.rewrite(message, measure)
        words = sum(texts)
        room = ceiling - (size - words)
        if words <= 0 or room <= 0:
            return message

        def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001
            share = max(100, len(text) * room // words)
            return text if kind == "call" or len(text) <= share else excerpt.shorten(text, share)

        return task.conversation.format.rewrite(message, edit)
