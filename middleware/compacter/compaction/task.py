"""What a strategy gets, and what it may do."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from compacter.compaction.check import assemble
from compacter.compaction.cut import CompactionPlan
from compacter.errors import ConfigurationError
from compacter.messages.format import Message, Wire
from compacter.messages.parts import Entry
from compacter.overflow import TokenLimit, detect_token_limit
from compacter.redaction import decode_escapes
from compacter.summary.message import Summary, compose, parse
from compacter.summary.words import flat

if TYPE_CHECKING:
    from compacter.call.effects import Effect


Steps = Generator["Effect[Any]", Any, "list[Message]"]
"""A strategy that needs a model is a generator of effects that returns the compacted list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How summaries are made: the options a strategy may need."""

    max_summary_tokens: int = 4096
    summary_prompt: str | None = None
    fallback: tuple[str, ...] = ("truncate",)
    ledger_share: float = 0.25
    extractors: tuple[Callable[[str], Any], ...] = ()
    redact: Callable[[str], str] | None = None
    detect: Callable[[BaseException], TokenLimit | None] = detect_token_limit
    summarizer_window: int | None = None
    """Context window in tokens of a summarizer that is another model; ``None``: taken to be the model's own."""
    extractive: bool = False
    """Whether summaries are made without any model."""
    native: bool = False
    """Whether the summarizer gets the messages themselves instead of a transcript."""
    summary: str | None = None
    """A summary that the host has made; it replaces the model's."""

    @property
    def fills(self) -> bool:
        """Whether passages fill what a model's summary leaves of a size that was asked for by hand."""
        return self.summary is None and self.ledger_share > 0


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
    unverified: list[str] = field(default_factory=list)
    """What the check of a summary took out."""


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
    settings: Settings = field(default_factory=Settings)
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
        redact = self.settings.redact
        chosen = self.plan.folded if messages is None else range(len(messages))
        source = self.plan.messages if messages is None else messages
        found: list[Entry] = []
        for index in chosen:
            if messages is None and index == self.plan.prior:
                continue
            found.extend(self.wire.entries(source[index], index))
        if redact is None:
            return found
        return [replace(part, text=redact(decode_escapes(part.text)), name=redact(part.name)) for part in found]

    def prior(self) -> Summary | None:
        """The prior summary that lies in the head, secrets redacted, or ``None``."""
        if self.plan.prior is None:
            return None
        found = parse(self.wire.plain_text(self.plan.messages[self.plan.prior]) or "")
        redact = self.settings.redact
        if found is None or redact is None:
            return found
        # It may have been made by a Compacter that redacted nothing, or less.
        try:
            rules = tuple(map(redact, found.rules))
            return replace(found, story=redact(found.story), quoted=redact(found.quoted), rules=rules)
        except Exception:  # noqa: BLE001 - the user's own; what cannot be redacted is not kept
            return Summary()

    def fold(self, summary: Summary | str) -> list[Message]:
        """The compacted list with a message of this summary in place of the head."""
        folded = set(self.plan.folded)
        keep = [index for index in range(len(self.messages)) if index not in folded]
        return self._with(keep, summary if isinstance(summary, Summary) else Summary(summary))

    def keep(self, indexes: Sequence[int], note: str = "") -> list[Message]:
        """The compacted list of the messages at ``indexes``, what must stay, and a note in a summary message.

        Tool partners of a kept message are kept too, so no pair is ever broken. A prior summary is kept:
        below the note, whose place is taken by the note of the next time, or as it is where there is no note.
        """
        wanted = set(indexes)
        summary = self.prior() or Summary()
        if self.plan.prior is not None and not note:
            wanted.add(self.plan.prior)
        history = self.wire.outline(self.messages)
        ends = [*history.steps[1:], len(self.messages)]
        keep: list[int] = []
        for start, end in zip(history.steps, ends, strict=True):
            whole = any(index in wanted for index in range(start, end))
            keep.extend(index for index in range(start, end) if whole or self.protected[index])
        if note and self.plan.prior is not None:
            keep = [index for index in keep if index != self.plan.prior]
        return self._with(keep, replace(summary, notes=(flat(note),)) if note else None)

    def _with(self, keep: Sequence[int], summary: Summary | None) -> list[Message]:
        self.tally.summary, self.tally.ledger = (summary.prose, summary.verbatim) if summary else ("", "")
        message = None if summary is None else self.wire.say("user", compose(summary))
        return assemble(self.wire, self.messages, keep, message, alternate=self.alternate)


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
