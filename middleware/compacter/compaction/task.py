"""What a strategy gets, and what it may do."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from compacter.compaction.check import assemble
from compacter.compaction.cut import CompactionPlan
from compacter.errors import ConfigurationError
from compacter.messages.format import Message, Wire
from compacter.messages.parts import Entry
from compacter.summaries import tag

if TYPE_CHECKING:
    from compacter.effects import Effect
    from compacter.options import Options


_NOTED = "[note] "
_NOTE = re.compile(r"\A\[note\] [^\n]*(?:\n\n|\Z)")
"""What ``keep`` has written before, so that notes never pile up."""

Steps = Generator["Effect[Any]", Any, "list[Message]"]
"""A strategy that needs a model is a generator of effects that returns the compacted list."""


@dataclass(slots=True)
class Tally:
    """What making one compaction has cost so far. The one thing about a task that changes."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    fallback: bool = False
    summary: str = ""
    ledger: str = ""
    names: list[str] = field(default_factory=list)
    retention: float | None = None
    repaired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """One compaction, as a strategy sees it. Sizes are data sizes in characters; messages are read only."""

    plan: CompactionPlan
    wire: Wire
    alternate: bool
    protected: tuple[bool, ...]
    """Which messages must come out verbatim: system, pinned, the last user message."""
    target: int | None = None
    """Characters that the result may have at most, where that is known."""
    chars_per_token: float = 4.0
    window: int | None = None
    """The model's context window in tokens, where it is known."""
    options: Options
    summary: str | None = None
    """A summary that the caller has made; it replaces the model's."""
    summarizer_window: int | None = None
    """Context window in tokens of a summarizer that is another model; ``None``: taken to be the model's own."""
    tally: Tally = field(default_factory=Tally, repr=False)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return self.plan.messages

    @property
    def head(self) -> tuple[Message, ...]:
        """The messages that the plan would fold."""
        return self.plan.head

    def size(self, messages: Sequence[Message] | None = None) -> int:
        """Data size of ``messages`` (all of the task's by default), in characters."""
        return sum(map(self.wire.size, self.messages if messages is None else messages))

    def fits(self, messages: Sequence[Message]) -> bool:
        """Whether ``messages`` reach the target; True where no target is known."""
        return self.target is None or self.size(messages) <= self.target

    def entries(self, messages: Sequence[Message] | None = None) -> list[Entry]:
        """What can be read in the head, or in ``messages``; no reasoning, no prior summary, secrets redacted."""
        redact = self.options.redact
        chosen = self.plan.folded if messages is None else range(len(messages))
        source = self.plan.messages if messages is None else messages
        found: list[Entry] = []
        for index in chosen:
            if messages is None and index == self.plan.prior:
                continue
            found.extend(self.wire.entries(source[index], index))
        return [replace(entry, text=redact(entry.text)) for entry in found] if redact else found

    def prior(self) -> tag.Parsed | None:
        """The prior summary that lies in the head, secrets redacted, or ``None``."""
        if self.plan.prior is None:
            return None
        found = tag.parse(self.wire.plain_text(self.plan.messages[self.plan.prior]) or "")
        redact = self.options.redact
        if found is None or redact is None:
            return found
        # It may have been made by a Compacter that redacted nothing, or less.
        try:
            return tag.Parsed(redact(found.prose), redact(found.ledger))
        except Exception:  # noqa: BLE001 - the user's own; what cannot be redacted is not kept
            return tag.Parsed("")

    def fold(self, prose: str, ledger: str = "") -> list[Message]:
        """The compacted list with a summary message of this text in place of the head."""
        folded = set(self.plan.folded)
        keep = [index for index in range(len(self.messages)) if index not in folded]
        self.tally.summary, self.tally.ledger = prose, ledger
        return assemble(
            self.wire,
            self.messages,
            keep,
            self.wire.say("user", tag.compose(prose, ledger)),
            alternate=self.alternate,
        )

    def keep(self, indexes: Sequence[int], note: str = "") -> list[Message]:
        """The compacted list of the messages at ``indexes``, what must stay, and a note in a summary message.

        Tool partners of a kept message are kept too, so no pair is ever broken. A prior summary is kept:
        below the note, whose place is taken by the note of the next time, or as it is where there is no note.
        """
        wanted = set(indexes)
        prose, ledger, prior = "", "", self.prior()
        if prior is not None and self.plan.prior is not None:
            wanted.add(self.plan.prior)
            if note:
                wanted.remove(self.plan.prior)
                prose, ledger = _NOTE.sub("", prior.prose), prior.ledger
        history = self.wire.outline(self.messages)
        ends = [*history.steps[1:], len(self.messages)]
        keep: list[int] = []
        for start, end in zip(history.steps, ends, strict=True):
            whole = any(index in wanted for index in range(start, end))
            keep.extend(index for index in range(start, end) if whole or self.protected[index])
        if note:
            told = f"{_NOTED}{' '.join(note.split())}"
            prose = f"{told}\n\n{prose}" if prose else told
        self.tally.summary, self.tally.ledger = prose, ledger
        summary = self.wire.say("user", tag.compose(prose, ledger)) if note else None
        return assemble(self.wire, self.messages, keep, summary, alternate=self.alternate)


@runtime_checkable
class CompactionStrategy(Protocol):
    """A way to compact. A class with a ``name`` and this one method is enough.

    ``compact`` returns the compacted list, made of the task's own message objects and what ``task.fold`` or
    ``task.keep`` put beside them; or the list unchanged when there is nothing it can do. Messages are read
    only: one that returns changed copies of them, one for one, has an attribute ``edits = True``. What
    breaks a promise, or raises, is caught before anything is sent, and the fallback is used instead.
    """

    @property
    def name(self) -> str:
        """A stable name that events carry."""
        ...

    def compact(self, task: CompactionTask) -> list[Message] | Steps:
        """The compacted list, or a generator of effects that returns it."""
        ...


def whole_number(name: str, value: object, *, least: int, of: str) -> int:
    """``value``, a whole number from ``least`` on. Raises ``ConfigurationError`` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} takes a number of {of} from {least} on, not {value!r}")
    return value
