"""``History``: a list of messages with pins, which can be compacted, searched and stored."""

from __future__ import annotations

import json
from collections import UserList
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Never, Self, SupportsIndex

from compacter.by_hand import CompactionResult, check_messages, format_of
from compacter.compacter import Compacter
from compacter.compaction.calibration import Calibration
from compacter.compaction.sizes import Sizes
from compacter.errors import (
    CompactionError,
    ConfigurationError,
    InvalidHistoryError,
    check_text,
    whole_number,
    with_hints,
)
from compacter.history import snapshot as snapshots
from compacter.history.snapshot import VERSION
from compacter.lines.archive import Archive
from compacter.lines.frame import folded
from compacter.lines.passages import Passage
from compacter.lines.said import Redact
from compacter.memory import record
from compacter.messages.format import Message, get_format
from compacter.messages.recognise import UnknownFormatError
from compacter.runtime.io import ASYNC, IO, SYNC, run
from compacter.text.table import as_html

_WINDOW_SHARE = 0.8  # Default threshold, as a share of a known window.


@with_hints
class History(UserList[Message]):
    """A list of messages with pins, to be passed wherever a list of messages is accepted.

    Every compaction keeps a pinned message word for word, with its tool call or results. If you
    pass a ``History`` to a wrapped call, and the call has to compact it, the history contains the
    compacted messages as soon as the call has succeeded, or its stream has begun. If the call
    fails, the history is unchanged.

    Args:
        messages: The first messages; the pins of another ``History`` are copied.
        compacter: The ``Compacter`` that compacts this history; by default ``Compacter()``.
        model: Name of the litellm model whose window counts. Without ``summarizer`` it summarizes.
        wire_format: Format of the messages, if it cannot be detected.
        max_tokens: Threshold for compaction, in tokens; ``None`` for the option ``trigger_tokens``
            of ``compacter``, else 80 % of a known window.
        reserve_tokens: Number of tokens to keep free below the threshold.
        archive: Whether to keep compacted messages (some megabytes) for quotes and ``search``.
        conversation: Name in events; ``None`` for a digest of the first three messages. The name
            stays the same when messages are compacted, copied or stored.

    Raises:
        ConfigurationError: An argument is invalid.
    """

    def __init__(
        self,
        messages: Iterable[Message] = (),
        *,
        compacter: Compacter | None = None,
        model: str | None = None,
        wire_format: str | None = None,
        max_tokens: int | None = None,
        reserve_tokens: int = 0,
        archive: bool = True,
        conversation: str | None = None,
    ) -> None:
        if not isinstance(compacter, (Compacter, type(None))):
            raise ConfigurationError(f"compacter takes a Compacter, not {compacter!r}")
        check_text("model", model, "a model's name")
        get_format(wire_format or "openai")
        check_text("conversation", conversation, "a name")
        if max_tokens is not None:
            whole_number("max_tokens", max_tokens, least=1, of="tokens")
        whole_number("reserve_tokens", reserve_tokens, least=0, of="tokens")
        super().__init__(check_messages(messages, Iterable))
        # Keep objects, not ids: a deep copy or a pickle preserves which are in the list.
        self._pinned: list[Message] = list(getattr(messages, "_pinned", ()))
        self.rules: tuple[str, ...] = getattr(messages, "rules", ())
        """Texts of the messages that were appended as rules, oldest first."""
        kept = getattr(messages, "archive", None) or Archive()
        self.bound: record.Bound = getattr(messages, "bound", record.UNBOUND)
        self.archive: Archive | None = kept.copy() if archive else None
        """Archive of the compacted messages; ``None`` with ``archive=False``."""
        self._conversation = conversation or str(getattr(messages, "conversation", ""))
        # Size, in characters, at which a compaction did not come below the threshold.
        self._size_above = 0
        # Messages before and after the newest compaction; the archive before it.
        self._newest: tuple[list[Message], list[Message], Archive | None] | None = None
        self._compacter = compacter or Compacter()
        self._model = model
        self._wire_format = wire_format
        self._max_tokens = max_tokens
        self._reserve_tokens = reserve_tokens

    @property
    def messages(self) -> list[Message]:
        """The messages as a new list, for ``json.dumps`` for instance."""
        return list(self.data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, History):
            return (self.data, self.pins) == (other.data, other.pins)
        return super().__eq__(other)

    __hash__ = None

    def __getitem__(self, index: SupportsIndex | slice) -> Any:  # noqa: ANN401 - a message, or several
        """Return a message, or a list of messages."""
        return self.data[index]

    def __setitem__(self, index: SupportsIndex | slice, value: Any) -> None:  # noqa: ANN401
        """Replace one message, which keeps the pin."""
        if isinstance(index, slice):
            raise TypeError(
                "a History takes one message at a place: del, insert or extend for others"
            )
        check_messages([value])
        if id(self.data[index]) in self.pinned_ids():
            self._pinned.append(value)
        self.data[index] = value

    def insert(self, i: int, item: Message, *, pinned: bool = False) -> None:
        """Insert a message.

        Args:
            i: Position of the message that it is inserted before, as for ``list.insert``.
            item: The message.
            pinned: Whether every compaction keeps it verbatim.
        """
        check_messages([item])
        if pinned:
            self._pinned.append(item)
        self.data.insert(i, item)

    def extend(self, other: Iterable[Message]) -> None:
        """Append the messages of ``other``. If that is a ``History``, its pins are copied too."""
        self.data.extend(check_messages(other, Iterable))
        self._pinned += getattr(other, "_pinned", ())

    def __add__(self, other: object) -> Never:
        raise TypeError("a History has no +; history.extend(messages) appends to it")

    __radd__ = __iadd__ = __add__

    def pin(self, index: int, *, pinned: bool = True) -> None:
        """Pin a message: every compaction keeps it verbatim. Raises ``IndexError``.

        Args:
            index: Position of the message.
            pinned: Whether it is pinned from now on.
        """
        if index not in range(-len(self), len(self)):
            raise IndexError(f"there is no message {index!r}: the history has {len(self)}")
        message = self.data[index]
        self._pinned = [other for other in self._pinned if other is not message]
        if pinned:
            self._pinned.append(message)

    def unpin(self, index: int) -> None:
        """Remove the pin of the message at ``index``. Raises ``IndexError``."""
        self.pin(index, pinned=False)

    @property
    def pins(self) -> tuple[bool, ...]:
        """Whether each message is pinned, in the order of the messages."""
        pinned = self.pinned_ids()
        return tuple(id(message) in pinned for message in self.data)

    def pinned_ids(self) -> frozenset[int]:
        """Return the ``id`` of each pinned message object."""
        return frozenset(map(id, self._pinned))

    @property
    def version(self) -> object:
        """The messages and pins now; a compaction is installed only if these have not changed."""
        return self.messages, self.pinned_ids()

    @property
    def conversation(self) -> str:
        """Name in events; empty while there are too few messages for a digest."""
        if not self._conversation and len(self) > 3:  # One may be a system message.
            with suppress(UnknownFormatError):
                form = format_of(self.messages, self._wire_format)
                first = record.openings(form, self.messages)
                self._conversation = record.conversation_digest(first)
        return self._conversation

    def __repr__(self) -> str:
        return f"History({len(self)} messages, {sum(self.pins)} pinned)"

    def _repr_html_(self) -> str:
        rows = [("messages", f"{len(self):,}"), ("pinned", f"{sum(self.pins):,}")]
        return as_html([*rows, *(("rule", rule) for rule in self.rules)])

    def __copy__(self) -> Self:
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__)
        clone.data = list(self.data)
        clone._pinned = list(self._pinned)
        if self.archive is not None:
            clone.archive = self.archive.copy()
        return clone

    copy = __copy__

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle or to copy deeply, with the contents of the archive."""
        kept = None if self.archive is None else self.archive.snapshot()
        return {**vars(self), "archive": kept, "_newest": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.archive is not None:
            self.archive = Archive.restored(self.archive)

    def append(self, item: Message, *, pinned: bool = False, rule: bool = False) -> None:
        """Append a message.

        Args:
            item: The message.
            pinned: Whether every compaction keeps it verbatim.
            rule: Whether every later summary contains its text as a rule.

        Raises:
            ConfigurationError: ``rule`` is set, and the message has no text.
        """
        # Items of the Responses API have a type, and Gemini's messages parts, or are texts.
        is_text = isinstance(item, str) and self._wire_format != "gemini"
        if is_text or (isinstance(item, dict) and not item.keys() & {"role", "type", "parts"}):
            given = "a text" if is_text else "one without a role"
            raise ConfigurationError(
                f'append takes a message such as {{"role": "user", "content": "..."}}, not {given}'
            )
        if rule:
            text = format_of([item], self._wire_format).plain_text(item)
            if not (text and text.strip()):
                raise ConfigurationError("rule=True takes a message with text")
            self.rules = (*self.rules, text)
        self.insert(len(self), item, pinned=pinned)

    def tokens(self) -> int:
        """Return the size in tokens: by ``token_counter``, else estimated by earlier replies."""
        return self._compacter.estimate_tokens(
            self.messages, model=self._model, wire_format=self._wire_format
        )

    def needs_compaction(self) -> bool:
        """Return whether the threshold is reached; False if it is unknown.

        The threshold is ``max_tokens``, else the Compacter's ``trigger_tokens``, else 80 % of the
        model's window; less ``reserve_tokens``.
        """
        threshold = self._threshold()
        return bool(threshold and self.data and self.tokens() >= threshold)

    def compact_if_needed(self) -> CompactionResult:
        """Compact to below the threshold if it is reached, and return the result.

        Messages that must stay are kept, even if they are too large; the history is then compacted
        again when it has grown by a quarter. Raises ``CompactionError`` if there is no summary and
        the option ``fallback`` is ``None``.
        """
        return run(self._compact_if_needed(SYNC))

    async def acompact_if_needed(self) -> CompactionResult:
        """Like ``compact_if_needed``, without blocking the event loop."""
        return await self._compact_if_needed(ASYNC)

    def compact(
        self, *, budget: int | None = None, summary: str | None = None, focus: str | None = None
    ) -> CompactionResult:
        """Compact now, whatever the size (see ``Compacter.compact``), and return the result.

        Args:
            budget: Largest size afterwards, in characters, the summary included.
            summary: A summary of your own, in place of a model's.
            focus: What the summary must not lose, in place of the option ``focus``.

        Raises:
            CompactionError: Nothing can be compacted, or there is no summary and ``fallback`` is
                ``None``. The history is then unchanged.
            ConfigurationError: An argument is invalid, or there is no summarizer.
        """
        return run(self._compact(SYNC, budget, summary, focus, forced=True))

    async def acompact(
        self, *, budget: int | None = None, summary: str | None = None, focus: str | None = None
    ) -> CompactionResult:
        """Like ``compact``, with its arguments, without blocking the event loop."""
        return await self._compact(ASYNC, budget, summary, focus, forced=True)

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """Return the passages most relevant to a query, also of compacted messages, best first.

        Args:
            query: A question or search words.
            limit: Largest number of passages.
        """
        return self._compacter.search(self, query, limit, wire_format=self._wire_format)

    def install(
        self, version: object, messages: Sequence[Message], redact: Redact | None = None
    ) -> bool:
        """Replace the messages by compacted ones, unless the history has changed since. Return
        whether it did so.

        Args:
            version: ``version`` when the compaction began.
            messages: The compacted messages.
            redact: Applied to the texts for the archive.
        """
        if version != self.version:
            return False
        before = self.messages
        self._newest = before, [*messages], self.archive
        if self.archive is not None:
            self.archive = self.archive.copy()
            form = format_of(before, self._wire_format)
            self.archive.add(folded(before, messages, form), len(before) - len(messages), redact)
        self._conversation = self.conversation
        # In place, so that a message which another thread appends now is not lost.
        self.data[: len(before)] = messages
        return True

    def undo(self) -> bool:
        """Put back what the newest compaction has replaced, and let ``compacter`` forget it. Return
        False if it is unknown, as after a restart, or if its messages have changed.
        """
        before, after, archive = self._newest or ([], [], None)
        if not after or [*map(id, self.data[: len(after)])] != [*map(id, after)]:
            return False
        self._newest = None
        self.archive = archive
        self.data[: len(after)] = before
        self.bound = record.Bound("", len(self.data))
        self._compacter.forget(self.data, wire_format=self._wire_format)
        return True

    async def _compact(
        self,
        io: IO,
        budget: int | None,
        summary: str | None = None,
        focus: str | None = None,
        *,
        forced: bool = False,
    ) -> CompactionResult:
        """Compact, install and return the messages; with ``forced``, raise if nothing could be."""
        own = self._compacter
        version = self.version
        compact: Any = own.acompact if io.asynchronous else own.compact
        result: CompactionResult = await io.call(
            compact,
            self,
            model=self._model,
            wire_format=self._wire_format,
            budget=budget,
            summary=summary,
            focus=focus,
        )
        if not result.changed:
            if forced and (budget is None or not result.fits):
                raise CompactionError("the history is too short: no message can be compacted")
            return result
        if not self.install(version, result.messages, own.options.redact):
            own.tell_history_changed(result.event)
            return CompactionResult(self.messages)
        self.bound = record.Bound("", len(result.messages))
        return result

    async def _compact_if_needed(self, io: IO) -> CompactionResult:
        budget = await io.thread(self._budget)
        if budget is None:
            fits = not await io.thread(self.needs_compaction)
            return CompactionResult(self.messages, fits=fits)
        result = await self._compact(io, budget)
        self._size_above = self._size() if await io.thread(self.needs_compaction) else 0
        return result

    def _size(self) -> int:
        return sum(map(format_of(self.messages, self._wire_format).size, self.messages))

    def _budget(self) -> int | None:
        """Return the size to compact to, in characters; ``None`` if no compaction is due."""
        limit = self._threshold()
        size = self._size()
        if limit is None or not size:
            return None
        return self._sizes.below(limit, size, self.tokens(), self._size_above)

    @property
    def _sizes(self) -> Sizes:
        own = self._compacter
        return Sizes(own.options, Calibration(window=own.window(self._model)))

    def _threshold(self) -> int | None:
        trigger = self._max_tokens or self._compacter.options.trigger_tokens
        if trigger is None or callable(trigger):  # A function decides on calls only.
            trigger = _WINDOW_SHARE
        limit = self._sizes.threshold(trigger)
        return limit and max(1, limit - self._reserve_tokens)

    def snapshot(self) -> str:
        """Return messages, pins, rules and archive as versioned JSON; SDK objects become dicts."""
        frozen = self.copy()
        content = {
            "version": VERSION,
            "wire_format": self._wire_format,
            "messages": frozen.data,
            "pins": frozen.pins,
            "rules": self.rules,
            "conversation": self.conversation,
            "archive": self.archive.snapshot() if self.archive else None,
        }
        return json.dumps(record.storable(content))

    def restore(self, snapshot: str | bytes) -> None:
        """Replace messages, pins, rules and archive by those of a snapshot.

        Args:
            snapshot: Result of ``snapshot()``.

        Raises:
            InvalidHistoryError: It is not a snapshot, damaged, or of another version. The history
                is then unchanged.
        """
        try:
            read = snapshots.read(snapshot)
            format_of(read.messages, read.wire_format or self._wire_format)
            pinned = [message for message, pin in zip(read.messages, read.pins, strict=True) if pin]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise InvalidHistoryError(
                f"not a History snapshot of version {VERSION}, or damaged: {error}"
            ) from None
        if self.archive is not None:
            self.archive = read.archive
        self._wire_format = read.wire_format or self._wire_format
        self.rules = tuple(read.rules)
        self._conversation = read.conversation or self._conversation
        self._pinned = pinned
        self._newest = None
        self.data = read.messages
