"""Strategies without a model: drop the head, clear tool results, or shorten the largest messages."""

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
    """Replaces the head with a note of how many messages were dropped. A prior summary is kept below the note."""

    name: str = "truncate"
    """Name that events carry."""

    def compact(self, task: CompactionTask) -> list[Message]:
        """Return the list of ``task`` without its head."""
        return self.noted(task, task.prior() or Summary())

    @staticmethod
    def noted(task: CompactionTask, summary: Summary) -> list[Message]:
        """Return the list of ``task`` without its head, with ``summary``, the prior one, below the note."""
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
    """Replaces each old, large tool result with a receipt of its size. Tool calls stay paired with their results.

    Args:
        keep_recent: Number of the newest result messages to leave unchanged.
        min_size: Smallest size of a large result, in characters.
        exclude: Names of tools whose results are never cleared.

    Raises:
        ConfigurationError: An argument is invalid.
    """

    keep_recent: int
    """Number of the newest result messages to leave unchanged."""
    min_size: int
    """Smallest size of a large result, in characters."""
    exclude: frozenset[str]
    """Names of tools whose results are never cleared."""
    name: str
    """``clear_tool_results``."""
    edits: ClassVar[bool] = True
    """Its results contain changed copies of messages, one for one."""

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
        """Return the list of ``task`` with receipts. Messages without a large result are the identical objects."""
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
    """Shortens the largest messages until the request fits. Beginning and end are kept, with a receipt between them.

    System prompts, pinned messages, the last user message and the arguments of tool calls are never changed.

    Args:
        min_size: Smallest size of a shortened message, in characters; at least 100.

    Raises:
        ConfigurationError: ``min_size`` is invalid.
    """

    min_size: int
    """Smallest size of a shortened message, in characters."""
    name: str
    """``shorten``."""
    edits: ClassVar[bool] = True
    """Its results contain changed copies of messages, one for one."""

    def __init__(self, *, min_size: int = 400) -> None:
        whole = whole_number("min_size", min_size, least=100, of="characters")
        object.__setattr__(self, "min_size", whole)
        object.__setattr__(self, "name", "shorten")

    def compact(self, task: CompactionTask) -> list[Message]:
        """Return the list of ``task`` with the largest messages shortened, no more than needed."""
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
        """Return the largest size of a message with which the total is within ``goal``, by bisection."""
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
        """Return a copy of the message with each text shortened in proportion."""
        form, texts = task.conversation.format, list[int]()

        def measure(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - every edit is called like this
            texts.append(len(text))
            return text

        form.rewrite(message, measure)
        words = sum(texts)
        room = ceiling - (size - words)
        if room <= 0:  # The texts are not what makes it too large.
            return message

        from compacter.compaction import excerpt

        def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001
            share = max(100, len(text) * room // words)
            return text if len(text) <= share else excerpt.shorten(text, share)

        return form.rewrite(message, edit)
