"""``History``: a list of messages that knows its pins and can compact itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, MutableSequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, overload

from compacter.call.io import ASYNC, IO, SYNC, run
from compacter.compacter import CompactionResult
from compacter.compaction.check import kept_and_discarded
from compacter.compaction.conversation import Conversation
from compacter.errors import CompactionError, ConfigurationError, InvalidHistoryError
from compacter.fork import Lock
from compacter.memory.record import conversation_digest
from compacter.messages.fields import plain
from compacter.messages.format import Message, UnknownFormatError, get_format, recognise
from compacter.recall.archive import Archive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compacter.compacter import Compacter
    from compacter.recall.index import Redact
    from compacter.recall.passages import Passage


_NO_MESSAGES = (bool, int, float, complex, bytes, bytearray, list, tuple, set, frozenset, type)
_CHANGES = Lock()
"""Held for the few instructions of a change: a history and its pins are never seen half-way. One for all."""
SNAPSHOT_VERSION = 1
_BYTES = "compacter:bytes"
_TARGET_SHARE = 0.9
"""Share of its threshold that a history is compacted to, so that the next message does not need it again."""
_GROWN = 1.25
"""Times its size to which a history that stayed above its threshold must have grown to be compacted again."""
_WINDOW_SHARE = 0.8
"""Share of a known window at which a history needs compaction, where neither it nor its Compacter says."""


class History(MutableSequence[Message]):
    """A mutable sequence of messages, accepted wherever a message list is.

    A pinned message survives every compaction verbatim, in its order, with its tool partners. A wrapped call
    that gets a History keeps it up to date: what the call's compactions made of it is installed when the
    call has succeeded, and a call that fails, or a stream that is not read to its end, leaves it as it was.

    Args:
        messages: What it begins with; the pins of another ``History`` are taken over.
        compacter: The ``Compacter`` that ``compact`` and ``compact_if_needed`` use; one with defaults otherwise.
        model: A litellm model: its window is used, and it writes summaries where ``compacter`` has no ``summarizer``.
        wire_format: The messages' format, where it cannot be recognised.
        max_tokens: Tokens from which on it needs compaction. ``None``: the option ``trigger_tokens`` of ``compacter``,
            else 80 % of a known window.
        reserve_tokens: Tokens below that size that are to stay free.
        archive: Whether to keep what is folded, up to some megabytes, so that calls can quote from it and ``search``
            finds it.
        conversation: What names it in events; ``None`` for a digest of its first three messages. It stays when they are
            folded, copied or stored.

    Raises:
        ConfigurationError: An argument is unusable.
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
        given: object = messages
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise ConfigurationError(f"messages takes a list of messages, not {type(messages).__name__}")
        if compacter is not None and not callable(getattr(compacter, "compact", None)):
            raise ConfigurationError(f"compacter takes a Compacter, not {compacter!r}")
        if model is not None and not isinstance(model, str):
            raise ConfigurationError(f"model takes a model's name, not {model!r}")
        limits: tuple[tuple[str, object, int], ...] = (
            ("max_tokens", max_tokens, 1),
            ("reserve_tokens", reserve_tokens, 0),
        )
        for name, value, least in limits:
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ConfigurationError(f"{name} takes a whole number from {least} on, not {value!r}")
        self._messages: list[Message] = _checked(messages)
        self._pins = [False] * len(self._messages)
        if isinstance(messages, History):
            self._pins = list(messages.pins)
        self._rules = messages.rules if isinstance(messages, History) else ()
        given = messages.archive if isinstance(messages, History) else None
        self._archive = (given or Archive()).copy() if archive else None
        if conversation is None and isinstance(messages, History):
            conversation = messages.conversation
        self._conversation = conversation or ""
        self._version = 0
        self._stuck = 0
        self._compacter = compacter
        self._model = model
        self._wire_format = wire_format
        self._max_tokens = max_tokens
        self._reserve_tokens = reserve_tokens

    # -- a list ----------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The messages as a new plain list, for ``json.dumps`` and the like."""
        return list(self._messages)

    @property
    def conversation(self) -> str:
        """What names it in events; empty as long as it has too few messages to tell it from others."""
        if not self._conversation and len(self._messages) > 3:  # One may be of the system.
            self._conversation = self._digest()
        return self._conversation

    def _digest(self) -> str:
        try:
            form = get_format(self._wire_format or recognise(self._messages))
        except UnknownFormatError:
            return ""
        return conversation_digest(form, self._messages)

    def __add__(self, other: Iterable[Message]) -> History:
        """A new ``History`` with the messages of another one, or of a list, behind these."""
        if not isinstance(other, (History, list, tuple)):
            return NotImplemented
        longer = self.copy()
        with _CHANGES:
            longer._messages += _checked(other)
            longer._pins += other.pins if isinstance(other, History) else [False] * len(other)
        return longer

    def __radd__(self, other: list[Message]) -> History:
        """A new ``History`` with the messages of a list before these."""
        if not isinstance(other, (list, tuple)):
            return NotImplemented
        longer = self.copy()
        with _CHANGES:
            longer._messages[:0] = _checked(other)
            longer._pins[:0] = [False] * len(other)
        return longer

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"History({len(self)} messages, {sum(self._pins)} pinned)"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, History):
            return self._messages == other._messages and self._pins == other._pins
        return self._messages == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> History:
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__)
        with _CHANGES:
            clone._messages, clone._pins = list(self._messages), list(self._pins)
            clone._archive = self._archive.copy() if self._archive is not None else None
        return clone

    copy = __copy__

    def __deepcopy__(self, memo: dict[int, Any]) -> History:
        """Messages of its own; the Compacter, with what it has learnt, is shared."""
        clone = memo[id(self)] = self.__copy__()
        clone._messages = deepcopy(clone._messages, memo)  # noqa: SLF001 - its own kind
        return clone

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything, the Compacter by its options, and of the archive what it holds."""
        with _CHANGES:
            archive = self._archive.snapshot() if self._archive is not None else None
            return {**self.__dict__, "_archive": archive}

    def __setstate__(self, state: dict[str, Any]) -> None:
        archive = state["_archive"]
        self.__dict__.update(state, _archive=None if archive is None else Archive.restored(archive))

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._messages[index]

    @overload
    def __setitem__(self, index: int, value: Message) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Message]) -> None: ...
    def __setitem__(self, index: int | slice, value: Any) -> None:
        """Replace; what takes the place of a pinned message is pinned, what comes by a slice is not."""
        value = _checked(value) if isinstance(index, slice) else _checked([value])[0]
        with _CHANGES:
            messages, pins = list(self._messages), list(self._pins)
            if isinstance(index, slice):
                pins[index] = [False] * len(value)
            messages[index] = value
            self._set(messages, pins)

    def __delitem__(self, index: int | slice) -> None:
        with _CHANGES:
            messages, pins = list(self._messages), list(self._pins)
            del messages[index], pins[index]
            self._set(messages, pins)

    def reverse(self) -> None:
        """Reverse in place; each pin goes with its message."""
        with _CHANGES:
            self._set(self._messages[::-1], self._pins[::-1])

    def insert(self, index: int, value: Message, *, pinned: bool = False) -> None:
        """Insert before ``index``.

        Args:
            index: Position of the message that comes next, as of ``list.insert``.
            value: The message.
            pinned: Whether it survives every compaction verbatim.
        """
        _checked([value])
        with _CHANGES:
            self._messages.insert(index, value)
            self._pins.insert(index, bool(pinned))
            self._version += 1

    def append(self, value: Message, *, pinned: bool = False, rule: bool = False) -> None:
        """Append at the end.

        Args:
            value: The message.
            pinned: Whether it survives every compaction verbatim.
            rule: Whether its text stands as a rule in every summary from then on.

        Raises:
            ConfigurationError: ``rule`` is set, and the message has no text.
        """
        _checked([value])
        if rule:
            text = get_format(self._wire_format or recognise([value])).plain_text(value)
            if not (text and text.strip()):
                raise ConfigurationError("rule=True takes a message of text")
            self._rules = (*self._rules, text)
        self.insert(len(self), value, pinned=pinned)

    @property
    def rules(self) -> tuple[str, ...]:
        """The texts that were appended as rules, oldest first."""
        return self._rules

    # -- pins ------------------------------------------------------------------------------------------------

    def pin(self, index: int) -> None:
        """Let the message at ``index`` survive every compaction verbatim. Raises ``IndexError``."""
        with _CHANGES:
            self._pins[index] = True
            self._version += 1

    def unpin(self, index: int) -> None:
        """Remove the pin of the message at ``index``. Raises ``IndexError``."""
        with _CHANGES:
            self._pins[index] = False
            self._version += 1

    @property
    def pins(self) -> tuple[bool, ...]:
        """Which messages are pinned, one element a message."""
        return tuple(self._pins)

    def pinned_ids(self) -> frozenset[int]:
        """``id`` of each pinned message object, by which a compaction recognises them."""
        with _CHANGES:
            return frozenset(id(message) for message, pinned in zip(self._messages, self._pins, strict=True) if pinned)

    # -- compaction ------------------------------------------------------------------------------------------

    def tokens(self) -> int:
        """Size in tokens: what the Compacter's ``token_counter`` says, else an estimate calibrated by replies."""
        return self._own().estimate_tokens(self._messages, model=self._model, wire_format=self._wire_format)

    def needs_compaction(self) -> bool:
        """Whether it has reached its threshold; False where none is known.

        The threshold is ``max_tokens``, else the Compacter's ``trigger_tokens``, else 80 % of the model's
        window; less ``reserve_tokens``.
        """
        threshold = self._threshold()
        return threshold is not None and bool(self._messages) and self.tokens() >= threshold

    def compact_if_needed(self) -> CompactionResult:
        """Compact to below the threshold when it has been reached; the result says so (``changed``, ``fits``).

        What must stay is kept, even where it is too much; such a history is tried again when it has grown by a quarter.
        Raises ``CompactionError`` where no summary can be had and the option ``fallback`` is ``None``.
        """
        return run(self._compact_if_needed(SYNC))

    async def acompact_if_needed(self) -> CompactionResult:
        """As ``compact_if_needed``, without blocking the event loop."""
        return await self._compact_if_needed(ASYNC)

    def compact(self, *, budget: int | None = None, summary: str | None = None) -> CompactionResult:
        """Compact now, even where it is not needed (see ``Compacter.compact``).

        Args:
            budget: Characters that the history may have afterwards, the summary included.
            summary: A summary of your own, in place of a model's.

        Raises:
            CompactionError: Nothing can be folded, or no summary can be had and ``fallback`` is ``None``. Nothing is
                changed then.
            ConfigurationError: An argument is unusable, or nobody can write a summary.
        """
        return run(self._compact(SYNC, budget, summary, forced=True))

    async def acompact(self, *, budget: int | None = None, summary: str | None = None) -> CompactionResult:
        """As ``compact``, without blocking the event loop; ``budget`` and ``summary`` are the same."""
        return await self._compact(ASYNC, budget, summary, forced=True)

    @property
    def version(self) -> int:
        """Counts changes; what was made of an older version is never installed."""
        return self._version

    @property
    def archive(self) -> Archive | None:
        """What was folded so far; ``None`` with ``archive=False``."""
        return self._archive

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """The passages of all that was ever said here, folded or not, that bear most on a query; best first.

        Args:
            query: Words, as a user would ask.
            limit: Number of passages, at most.

        Raises:
            SearchUnavailableError: Python's SQLite lacks FTS5.
        """
        return self._own().search(self, query, limit, wire_format=self._wire_format)

    def install(self, version: int, messages: Sequence[Message], redact: Redact | None = None) -> bool:
        """Take over a compacted list, unless the history has changed since; returns whether it was taken over.

        Args:
            version: ``version`` at the time when the list was made.
            messages: The compacted list.
            redact: Applied to what goes into the archive.
        """
        with _CHANGES:
            if version != self._version:
                return False
            positions, _ = kept_and_discarded(self._messages, messages)
            pins = [position is not None and self._pins[position] for position in positions]
            if self._archive is not None:
                form = get_format(self._wire_format or recognise(self._messages))
                self._archive.add(self._messages, messages, form, redact)
            self._conversation = self._conversation or self._digest()
            self._set(list(messages), pins)
            return True

    async def _compact(
        self, io: IO, budget: int | None, summary: str | None = None, *, forced: bool = False
    ) -> CompactionResult:
        """Compact, and take over what comes of it; ``forced``: it is an error where nothing does."""
        own, version = self._own(), self._version
        result: CompactionResult = await io.call(
            own.acompact if io.asynchronous else own.compact,
            self,
            model=self._model,
            wire_format=self._wire_format,
            budget=budget,
            summary=summary,
        )
        if not result.changed:
            if forced and (budget is None or not result.fits):
                raise CompactionError("the history is too short to compact: nothing in it could be folded")
            return result
        if not self.install(version, result.messages, own.options.redaction):
            own.tell_history_changed(result.event)
            return CompactionResult(list(self._messages))
        return result

    async def _compact_if_needed(self, io: IO) -> CompactionResult:
        budget = self._budget()
        if budget is None:
            return CompactionResult(list(self._messages), fits=not self.needs_compaction())
        result = await self._compact(io, budget)
        self._stuck = self._size() if self.needs_compaction() else 0
        return result

    def _size(self) -> int:
        form = get_format(self._wire_format or recognise(self._messages))
        return sum(map(form.size, self._messages))

    def _budget(self) -> int | None:
        """Characters to compact to, if that is needed and was not tried in vain before."""
        threshold, size = self._threshold(), self._size()
        if threshold is None or not size or size <= self._stuck * _GROWN:
            return None
        tokens = self.tokens()
        return max(1, int(size * threshold * _TARGET_SHARE / tokens)) if tokens >= threshold else None

    def _own(self) -> Compacter:
        if self._compacter is None:
            from compacter.compacter import Compacter

            self._compacter = Compacter()
        return self._compacter

    def _threshold(self) -> int | None:
        own = self._own()
        trigger = self._max_tokens if self._max_tokens is not None else own.options.trigger_tokens
        if trigger is None:
            trigger = _WINDOW_SHARE
        if isinstance(trigger, float):
            known = own.window(self._model)
            if known is None:
                return None
            trigger = int(trigger * known)
        return max(1, int(trigger) - self._reserve_tokens)

    # -- persistence -----------------------------------------------------------------------------------------

    def snapshot(self) -> str:
        """The messages, the pins and the fold state as versioned JSON text; SDK objects become dicts."""
        with _CHANGES:
            messages, pins = list(self._messages), list(self._pins)
        form = get_format(self._wire_format or recognise(messages))
        return json.dumps(
            {
                "version": SNAPSHOT_VERSION,
                "wire_format": self._wire_format,
                "messages": [plain(message) for message in messages],
                "pins": pins,
                "rules": list(self._rules),
                "conversation": self.conversation,
                "summary": Conversation.of(messages, form).prior,
                "archive": self._archive.snapshot() if self._archive else None,
            },
            default=_stored,
        )

    def restore(self, snapshot: str | bytes) -> None:
        """Replace the messages, pins and rules by those of a snapshot.

        Args:
            snapshot: Text that ``snapshot()`` has returned.

        Raises:
            InvalidHistoryError: It is no snapshot, a damaged one, or one of another version. Nothing is changed then.
        """
        try:
            data = json.loads(snapshot, object_hook=_restored)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidHistoryError(f"this is no snapshot of a History: {error}") from None
        if not isinstance(data, dict) or "version" not in data:
            raise InvalidHistoryError("this is no snapshot of a History: it has no version")
        if type(data["version"]) is not int or data["version"] != SNAPSHOT_VERSION:
            raise InvalidHistoryError(
                f"the snapshot has version {data['version']!r}; this compacter reads {SNAPSHOT_VERSION}"
            )
        messages, pins = data.get("messages"), data.get("pins")
        if (
            not isinstance(messages, list)
            or not isinstance(pins, list)
            or not all(isinstance(pin, bool) for pin in pins)
        ):
            raise InvalidHistoryError("the snapshot is mangled: messages and pins must be lists")
        if len(messages) != len(pins):
            raise InvalidHistoryError(f"the snapshot is mangled: {len(messages)} messages but {len(pins)} pins")
        rules = data.get("rules", [])
        if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
            raise InvalidHistoryError("the snapshot is mangled: rules must be texts")
        if not all(isinstance(message, (dict, str)) for message in messages):
            raise InvalidHistoryError("the snapshot is mangled: a message is neither an object nor text")
        self._check_fold(data, messages)
        if self._archive is not None:
            try:
                self._archive = Archive.restored(data.get("archive"))
            except (ValueError, TypeError, LookupError):
                raise InvalidHistoryError("the snapshot is mangled: its archive cannot be read") from None
        self._wire_format = data.get("wire_format") or self._wire_format
        self._rules = tuple(rules)
        self._conversation = str(data.get("conversation") or self._conversation)
        self._set(messages, pins)

    def _check_fold(self, data: dict[str, Any], messages: list[Message]) -> None:
        named = data.get("wire_format")
        if named is not None and not isinstance(named, str):
            raise InvalidHistoryError("the snapshot is mangled: wire_format is no name")
        try:
            form = get_format(named or self._wire_format or recognise(messages))
        except ValueError as error:
            raise InvalidHistoryError(f"the snapshot is mangled: {error}") from None
        if data.get("summary") != Conversation.of(messages, form).prior:
            raise InvalidHistoryError("the snapshot is mangled: its summary message is not where it was, or was edited")

    def _set(self, messages: list[Message], pins: list[bool]) -> None:
        with _CHANGES:
            self._messages, self._pins = messages, pins
            self._version += 1


def _checked(messages: Iterable[Message]) -> list[Message]:
    """A list of the messages. Raises ``ConfigurationError`` for the first that certainly is none."""
    held = list(messages)
    for index, message in enumerate(held):
        if message is None or isinstance(message, _NO_MESSAGES):
            raise ConfigurationError(
                f"messages[{index}] is no message: it is {type(message).__name__}. A message is a dict such as "
                '{"role": "user", "content": "..."}, or an object of a provider\'s SDK'
            )
    return held


def _stored(value: object) -> dict[str, str]:
    """Bytes, which some SDKs put into messages, as JSON."""
    if isinstance(value, (bytes, bytearray)):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    raise TypeError(f"a message holds a {type(value).__name__}, which a snapshot cannot keep")


def _restored(value: dict[str, object]) -> object:
    held = value.get(_BYTES)
    return base64.b64decode(held, validate=True) if len(value) == 1 and isinstance(held, str) else value
