"""Strategies that need no model: leave the head out, clear tool results, shorten the largest messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from compacter.compaction.task import CompactionTask, whole_number
from compacter.errors import ConfigurationError
from compacter.messages.format import Message
from compacter.messages.parts import Kind
from compacter.summary import message as summary_message
from compacter.summary.message import Summary

_NOTE = re.compile(r"(\d+) earlier messages? left out without a summary\.")


@dataclass(frozen=True, slots=True)
class Truncate:
    """Replaces the head by a note that says how many messages are gone. A prior summary stays, below that note."""

    name: str = "truncate"
    """Name that events carry."""

    def compact(self, task: CompactionTask) -> list[Message]:
        """The list of ``task`` without its head."""
        return self.noted(task, task.prior() or Summary())

    @staticmethod
    def noted(task: CompactionTask, summary: Summary) -> list[Message]:
        """The list of ``task`` without its head; ``summary``, what was known before, is put below the note."""
        dropped = len(task.plan.folded) - (task.plan.prior is not None)
        if not dropped:
            return list(task.messages)
        others: list[str] = []
        for note in summary.notes:
            earlier = _NOTE.fullmatch(note)
            if earlier:
                dropped += int(earlier[1])
            else:
                others.append(note)
        note = f"{dropped} earlier message{'s' if dropped > 1 else ''} left out without a summary."
        return task.fold(replace(summary, notes=(*others, note)))


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
            if size > ceiling and not task.protected[index]:
                text = task.conversation.format.plain_text(out[index])
                if summary_message.parse(text or "") is None:
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
    def _shortened(task: CompactionTask, message: Message, size: int, ceiling: int) -> Message:
        """All texts of a message, each to its share of what the message may have."""
        form, texts = task.conversation.format, list[int]()

        def measure(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - every edit is called like this
            texts.append(len(text))
            return text

        form.rewrite(message, measure)
        words = sum(texts)
        room = ceiling - (size - words)
        if room <= 0:  # What is too large is not its words.
            return message

        from compacter.compaction import excerpt

        def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001
            share = max(100, len(text) * room // words)
            return text if len(text) <= share else excerpt.shorten(text, share)

        return form.rewrite(message, edit)
