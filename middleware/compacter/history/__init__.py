"""``History``: a list of messages with pins, which can be compacted, searched and stored."""

from __future__ import annotations

from collections import UserList
from collections.abc import Iterable, Sequence
from typing import Any, Self, SupportsIndex

from compacter.by_hand import CompactionResult, check_messages, format_of
from compacter.compacter import Compacter
from compacter.compaction.sizes import Calibration, Sizes
from compacter.errors import CompactionError, ConfigurationError, check_text, whole_number
from compacter.history.snapshot import read_snapshot, write_snapshot
from compacter.memory.record import conversation_digest
from compacter.messages.format import Message, get_format
from compacter.messages.recognise import UnknownFormatError
from compacter.recall.archive import Archive
from compacter.recall.frame import folded
from compacter.recall.index import Redact
from compacter.recall.passages import Passage
from compacter.runtime.io import ASYNC, IO, SYNC, run

# Default threshold, as a share of a known window.
_WINDOW_SHARE = 0.8
# Types that can be added to a history.
_LISTS = (UserList, list, tuple)


class History(UserList[Message]):
    """A mutable sequence of messages, accepted wherever a message list is.

    A pinned message is kept verbatim by every compaction, in its order, with its tool call or
    results. If a wrapped call is passed a ``History`` and has to compact it, the compacted messages
    replace those of the history when the call has succeeded, or its stream has begun. A call that
    fails leaves it unchanged.

    Args:
        messages: The first messages; the pins of another ``History`` are copied.
        compacter: Used by ``compact`` and ``compact_if_needed``; ``None`` for one with default
            options.
        model: Name of a litellm model, for its window and for summaries if ``compacter`` has no
            ``summarizer``.
        wire_format: Format of the messages, if it cannot be detected.
        max_tokens: Threshold for compaction, in tokens; ``None`` for the option ``trigger_tokens``
            of ``compacter``, else 80 % of a known window.
        reserve_tokens: Number of tokens to keep free below the threshold.
        archive: Whether to keep compacted messages, up to some megabytes, for quotes and
            ``search``.
        conversation: Name in events; ``None`` for a digest of the first three messages. The name
            stays when they are compacted, copied or stored.

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
        # The pinned messages by their ``id``, which is not given to another message meanwhile.
        self._pinned: dict[int, Message] = dict(getattr(messages, "_pinned", {}))
        self._rules: tuple[str, ...] = getattr(messages, "rules", ())
        given = getattr(messages, "archive", None) if archive else None
        self._archive: Archive = (given or Archive()).copy()
        self._keeps = archive
        named: str = getattr(messages, "conversation", "")
        self._conversation = conversation or named
        # Size, in characters, at which a compaction did not come below the threshold.
        self._size_above = 0
        self._compacter = compacter or Compacter()
        self._model = model
        self._wire_format = wire_format
        self._max_tokens = max_tokens
        self._reserve_tokens = reserve_tokens

    # -- the list ----------------------------------------------------------------------------------

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
        """Replace messages: one, which keeps the pin, or those of a slice, which loses its pins."""
        several = check_messages(value if isinstance(index, slice) else [value], Iterable)
        if isinstance(index, slice):
            self.data[index] = several
            return
        if id(self.data[index]) in self._pinned:
            self._pinned[id(value)] = value
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
            self._pinned[id(item)] = item
        self.data.insert(i, item)

    def extend(self, other: Iterable[Message]) -> None:
        """Append messages; those of another ``History`` keep their pins.

        Args:
            other: The messages.
        """
        self[len(self) :] = other
        self._pinned |= getattr(other, "_pinned", {})

    def __iadd__(self, other: Iterable[Message]) -> Self:
        self.extend(other)
        return self

    def __add__(self, other: Iterable[Message]) -> History:
        """Return a new ``History`` with these messages, then those of another one or of a list."""
        if not isinstance(other, _LISTS):
            return NotImplemented
        return self._with(other, len(self))

    def __radd__(self, other: Iterable[Message]) -> History:
        """Return a new ``History`` with the messages of a list, then these."""
        if not isinstance(other, _LISTS):
            return NotImplemented
        return self._with(other, 0)

    def _with(self, other: Iterable[Message], at: int) -> Self:
        longer = self.copy()
        longer[at:at] = other
        longer._pinned |= getattr(other, "_pinned", {})  # noqa: SLF001 - of this class
        return longer

    def pin(self, index: int, *, pinned: bool = True) -> None:
        """Pin a message: every compaction keeps it verbatim. Raises ``IndexError``.

        Args:
            index: Position of the message.
            pinned: Whether it is pinned from now on.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no message {index}: the history has {len(self)}")
        message = self.data[index]
        self._pinned.pop(id(message), None)
        if pinned:
            self._pinned[id(message)] = message

    def unpin(self, index: int) -> None:
        """Remove the pin of the message at ``index``. Raises ``IndexError``."""
        self.pin(index, pinned=False)

    @property
    def pins(self) -> tuple[bool, ...]:
        """For each message, whether it is pinned."""
        return tuple(id(message) in self._pinned for message in self.data)

    def pinned_ids(self) -> frozenset[int]:
        """Return the ``id`` of each pinned message object."""
        return frozenset(self._pinned)

    @property
    def version(self) -> object:
        """The messages and pins now; a compaction is installed only if these have not changed."""
        return self.messages, self.pinned_ids()

    def _set(self, messages: list[Message], pins: Iterable[bool]) -> None:
        pinned = zip(messages, pins, strict=True)
        self._pinned = {id(message): message for message, is_pinned in pinned if is_pinned}
        self.data = messages

    @property
    def conversation(self) -> str:
        """Name in events; empty while there are too few messages for a digest."""
        if not self._conversation and len(self) > 3:  # One may be a system message.
            self._conversation = self._digest()
        return self._conversation

    def _digest(self) -> str:
        try:
            form = format_of(self.messages, self._wire_format)
        except UnknownFormatError:
            return ""
        return conversation_digest(form, self.messages)

    def __repr__(self) -> str:
        return f"History({len(self)} messages, {sum(self.pins)} pinned)"

    def __copy__(self) -> Self:
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__)
        clone.data = list(self.data)
        clone._pinned = dict(self._pinned)
        clone._archive = self._archive.copy()
        return clone

    copy = __copy__

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, or to copy deeply: of the Compacter its options, of the
        archive its contents.
        """
        return {**self.__dict__, "_pinned": self.pins, "_archive": self._archive.snapshot()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _archive=Archive.restored(state["_archive"]))
        self._set(self.data, state["_pinned"])

    def append(self, item: Message, *, pinned: bool = False, rule: bool = False) -> None:
        """Append a message.

        Args:
            item: The message.
            pinned: Whether every compaction keeps it verbatim.
            rule: Whether every later summary contains its text as a rule.

        Raises:
            ConfigurationError: ``rule`` is set, and the message has no text.
        """
        # Items of the Responses API have a type, and Gemini's messages parts.
        is_message = not isinstance(item, dict) or item.keys() & {"role", "type", "parts"}
        if not is_message or (isinstance(item, str) and self._wire_format != "gemini"):
            raise ConfigurationError(
                'append takes a message such as {"role": "user", "content": "..."}, not '
                f"{'one without a role' if isinstance(item, dict) else 'a text'}"
            )
        if rule:
            text = format_of([item], self._wire_format).plain_text(item)
            if not (text and text.strip()):
                raise ConfigurationError("rule=True takes a message with text")
            self._rules = (*self._rules, text)
        self.insert(len(self), item, pinned=pinned)

    @property
    def rules(self) -> tuple[str, ...]:
        """Texts of the messages that were appended as rules, oldest first."""
        return self._rules

    # -- compaction --------------------------------------------------------------------------------

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
        """As ``compact_if_needed``, without blocking the event loop."""
        return await self._compact_if_needed(ASYNC)

    def compact(self, *, budget: int | None = None, summary: str | None = None) -> CompactionResult:
        """Compact now, whether or not the threshold is reached (see ``Compacter.compact``), and
        return the result.

        Args:
            budget: Largest size afterwards, in characters, the summary included.
            summary: A summary of your own, in place of a model's.

        Raises:
            CompactionError: Nothing can be compacted, or there is no summary and ``fallback`` is
                ``None``. The history is then unchanged.
            ConfigurationError: An argument is invalid, or there is no summarizer.
        """
        return run(self._compact(SYNC, budget, summary, forced=True))

    async def acompact(
        self, *, budget: int | None = None, summary: str | None = None
    ) -> CompactionResult:
        """As ``compact``, with the same arguments, without blocking the event loop."""
        return await self._compact(ASYNC, budget, summary, forced=True)

    @property
    def archive(self) -> Archive | None:
        """Archive of the compacted messages; ``None`` with ``archive=False``."""
        return self._archive if self._keeps else None

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
        whether they were.

        Args:
            version: ``version`` when the compaction began.
            messages: The compacted messages.
            redact: Applied to the texts for the archive.
        """
        if version != self.version:
            return False
        before = self.messages
        if self._keeps:
            form = format_of(before, self._wire_format)
            removed = len(before) - len(messages)
            self._archive.add(folded(before, messages, form), removed, redact)
        self._conversation = self._conversation or self._digest()
        # In place, so that a message which another thread appends now is not lost.
        self.data[: len(before)] = messages
        return True

    async def _compact(
        self, io: IO, budget: int | None, summary: str | None = None, *, forced: bool = False
    ) -> CompactionResult:
        """Compact, install the messages, and return the result; with ``forced``, raise if nothing
        could be compacted.
        """
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
        )
        if not result.changed:
            if forced and (budget is None or not result.fits):
                raise CompactionError(
                    "the history is too short to compact: none of its messages can be compacted"
                )
            return result
        if not self.install(version, result.messages, own.options.redact):
            own.tell_history_changed(result.event)
            return CompactionResult(self.messages)
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
        form = format_of(self.messages, self._wire_format)
        return sum(map(form.size, self.messages))

    def _budget(self) -> int | None:
        """Return the size to compact to, in characters; ``None`` if that is not needed, or did not
        help before.
        """
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
        if trigger is None or callable(trigger):  # It decides on calls.
            trigger = _WINDOW_SHARE
        limit = self._sizes.threshold(trigger)
        return limit and max(1, limit - self._reserve_tokens)

    # -- persistence -------------------------------------------------------------------------------

    def snapshot(self) -> str:
        """Return messages, pins, rules and archive as versioned JSON; SDK objects become dicts."""
        frozen = self.copy()
        return write_snapshot(
            frozen.messages,
            pins=frozen.pins,
            wire_format=self._wire_format,
            rules=self._rules,
            conversation=self.conversation,
            archive=self._archive.snapshot() if self._archive else None,
        )

    def restore(self, snapshot: str | bytes) -> None:
        """Replace messages, pins, rules and archive by those of a snapshot.

        Args:
            snapshot: Result of ``snapshot()``.

        Raises:
            InvalidHistoryError: It is not a snapshot, damaged, or of another version. The history
                is then unchanged.
        """
        read = read_snapshot(snapshot, self._wire_format)
        if self._keeps:
            self._archive = read.archive
        self._wire_format = read.wire_format or self._wire_format
        self._rules = tuple(read.rules)
        self._conversation = read.conversation or self._conversation
        self._set(read.messages, read.pins)
