"""Compaction without a wrapped call: ``Compacter.compact``, ``plan`` and ``search``, and the checks
of their arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Never

from compacter.call.state import State
from compacter.compaction.conversation import Conversation, find_pinned
from compacter.compaction.cut import plan_compaction
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.sizes import Sizes
from compacter.effects import Emit
from compacter.errors import (
    ConfigurationError,
    InvalidHistoryError,
    check_text,
    whole_number,
    with_hints,
)
from compacter.events import CompactionEvent
from compacter.lines.passages import Passage
from compacter.memory.record import conversation_digest, openings
from compacter.messages.format import Message, MessageFormat, get_format
from compacter.messages.recognise import recognise
from compacter.runtime import models
from compacter.runtime.io import ASYNC, IO, SYNC, is_large, run
from compacter.text.table import Table

_NOT_MESSAGES = (
    type(None),
    int,
    float,
    complex,
    bytes,
    bytearray,
    list,
    tuple,
    set,
    frozenset,
    type,
)


@with_hints
@dataclass(frozen=True, slots=True)
class CompactionResult(Table):
    """The new messages, and those that the compaction removed."""

    messages: list[Message] = field(repr=False)
    """A new list; messages that were kept are the same objects."""
    discarded: tuple[Message, ...] = field(default=(), repr=False)
    """Original messages that are no longer in the list, in order."""
    event: CompactionEvent | None = None
    """Event of the compaction; ``None`` if nothing was changed."""
    fits: bool = True
    """Whether the messages are within ``budget``, or within a known window that they exceeded."""

    @property
    def changed(self) -> bool:
        """Whether anything was compacted."""
        return self.event is not None

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "compaction", self.event.sentence if self.event else "nothing was changed"
        yield "messages", f"{len(self.messages):,}; {len(self.discarded):,} were removed"
        yield "fits", "yes" if self.fits else "no"
        if self.event and self.event.summarizer_calls:
            read = f"{self.event.input_tokens:,} tokens read, {self.event.output_tokens:,} written"
            yield "summarizer calls", f"{self.event.summarizer_calls:,}, {read}"

    if not TYPE_CHECKING:  # Type checkers know that it cannot be awaited.

        def __await__(self) -> Never:
            raise TypeError(
                "compact() returns its result at once; in async code: await acompact(...)"
            )

        def __getitem__(self, key: object) -> Never:  # Iteration calls it too.
            raise TypeError("a CompactionResult is no list or dict: use result.messages")


@with_hints
class ByHand:
    """Methods of a ``Compacter`` that take a list of messages and call no wrapped function."""

    _state: State
    _shown_as: ClassVar = "Compacter"

    def window(self, model: str | None) -> int | None:
        """Return the context window of a model, in tokens: the number that a refusal of its
        provider has stated, or else the number in litellm's table. ``None`` if neither is known.

        Args:
            model: Name of the model, as you pass it to calls; ``None`` if your calls pass no name.
        """
        check_text("model", model, "a model's name")
        return self._state.in_force().calibration(model).window

    def estimate_tokens(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
    ) -> int:
        """Return the size of messages in tokens. The option ``token_counter`` counts them. Without
        it, compacter estimates the number from their characters, and from the characters per token
        that earlier replies of the model have shown.

        Args:
            messages: Messages in any of the formats.
            model: Name of the model whose characters per token are used.
            wire_format: Format of the messages, if it cannot be detected.

        Raises:
            ConfigurationError: An argument is invalid, or the format of the messages is unknown.
        """
        checked = check_messages(messages)
        check_text("model", model, "a model's name")
        state = self._state.in_force()
        counter = state.options.token_counter
        if counter is not None:
            return counter(checked)
        size = format_of(checked, wire_format).size
        return state.calibration(model).tokens(sum(map(size, checked)))

    def plan(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
        summary: str | None = None,
        focus: str | None = None,
    ) -> CompactionPlan:
        """Return what ``compact`` would compact, without calling a model. If its cut is 0, nothing
        can be compacted.

        Messages that exceed the known window of the model are compacted as in a call that it
        refuses; else ``compact_ratio`` alone decides.

        Args:
            messages: Messages in any of the formats.
            model: Name of the model whose window is used: from litellm's table, or learnt by calls.
            wire_format: Format of the messages, if it cannot be detected.
            budget: Largest size of the result, in characters, the summary included.
            summary: A summary of your own, in place of a model's.
            focus: What the summary must not lose, in place of the option ``focus``.

        Raises:
            ConfigurationError: An argument is invalid, or the format of the messages is unknown.
        """
        from compacter.lines.frame import strip

        state = self._state.in_force()
        options = state.options
        checked = check_messages(messages)
        check_text("model", model, "a model's name")
        check_text("summary", summary, "the text of a summary, or None to have one made")
        check_text("focus", focus, "a text, or None for the option")
        if focus is not None:
            options = options.model_copy(update={"focus": focus})
        if budget is not None:
            whole_number("budget", budget, least=1, of="characters")
        form = format_of(checked, wire_format)
        left = tuple(strip(checked, form) or checked)
        by_history: frozenset[int] = getattr(messages, "pinned_ids", frozenset)()
        read = Conversation(
            left,
            form,
            pinned=find_pinned(state.pin, left, form, by_history),
            rules=options.with_declared(getattr(messages, "rules", ())),
        )
        sizes = Sizes(options, state.calibration(model))
        target = budget
        reserved = 0
        if budget is None:
            target, reserved = in_window(sizes, read)
        asked = CompactionPlan(
            conversation=read,
            trigger="manual",
            options=options,
            sizes=sizes,
            reserved=reserved,
            model=model,
            digest=options.conversation
            or getattr(messages, "conversation", "")
            or conversation_digest(openings(form, left)),
            target=target,
            summary=summary,
            is_required=budget is not None,
        )
        return plan_compaction(asked)

    def compact(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
        summary: str | None = None,
        focus: str | None = None,
        strict: bool = False,
        **given: Never,
    ) -> CompactionResult:
        """Compact the messages now, and return the result. The list that is passed is not changed.

        Args:
            messages: Messages in any of the formats.
            model: Name of the litellm model that writes the summary if the option ``summarizer`` is
                not set.
            wire_format: Format of the messages, if it cannot be detected.
            budget: Largest size of the result, in characters, the summary included; ``None`` to use
                the option ``compact_ratio``. Messages that must stay may exceed it: see ``fits`` of
                the result.
            summary: A summary of your own, in place of a model's.
            focus: What the summary must not lose, in place of the option ``focus``.
            strict: Whether a tool call without its result, or a result without its call, is an
                error. Otherwise it is passed through.
            **given: Other arguments, which raise an error that names the remedy.

        Raises:
            TypeError: An argument is unknown.
            CompactionError: There is no summary, and ``fallback`` is ``None``.
            InvalidHistoryError: ``strict`` is set, and a tool call or result lacks its partner.
            ConfigurationError: An argument is invalid, the format is unknown, or there is no
                summarizer.
        """
        return run(
            self._compact(
                SYNC,
                messages,
                strict=strict,
                model=model,
                wire_format=wire_format,
                budget=budget,
                summary=summary,
                focus=focus,
                **given,
            )
        )

    async def acompact(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
        summary: str | None = None,
        focus: str | None = None,
        strict: bool = False,
        **given: Never,
    ) -> CompactionResult:
        """Like ``compact``, without blocking the event loop; raises the exceptions of ``compact``.

        Args:
            messages: Messages in any of the formats.
            model: Name of the litellm model that writes the summary.
            wire_format: Format of the messages, if it cannot be detected.
            budget: Largest size of the result, in characters.
            summary: A summary of your own, in place of a model's.
            focus: What the summary must not lose, in place of the option ``focus``.
            strict: Whether half of a tool pair is an error.
            **given: Other arguments, which raise an error that names the remedy.
        """
        return await self._compact(
            ASYNC,
            messages,
            strict=strict,
            model=model,
            wire_format=wire_format,
            budget=budget,
            summary=summary,
            focus=focus,
            **given,
        )

    def forget(self, messages: Sequence[Message], *, wire_format: str | None = None) -> None:
        """Forget the newest compaction of a conversation that wrapped calls have compacted: its
        next call with this object begins from the compaction before that, or else from all
        messages. Called twice, it forgets two.

        Args:
            messages: The conversation, as it is passed to calls.
            wire_format: Format of the messages, if it cannot be detected.

        Raises:
            ConfigurationError: An argument is invalid, or the format of the messages is unknown.
        """
        from compacter.lines.frame import strip

        checked = check_messages(messages)
        form = format_of(checked, wire_format)
        first = openings(form, strip(checked, form) or checked)
        self._state.in_force().note_forget(conversation_digest(first))

    def search(
        self,
        messages: Sequence[Message],
        query: str,
        limit: int = 5,
        *,
        wire_format: str | None = None,
    ) -> list[Passage]:
        """Return the passages most relevant to a query, best first.

        Searches the messages and those that a ``History`` has compacted. The option ``redact`` is
        applied.

        Args:
            messages: Messages in any of the formats.
            query: A question or search words.
            limit: Largest number of passages.
            wire_format: Format of the messages, if it cannot be detected.

        Raises:
            ConfigurationError: An argument is invalid.
        """
        from compacter.lines.frame import folded
        from compacter.lines.quotes import search
        from compacter.lines.talk import Talk

        checked = check_messages(messages)
        if not isinstance(query, str):
            raise ConfigurationError(f"query takes a text, not {query!r}")
        whole_number("limit", limit, least=1, of="passages")
        archive = getattr(messages, "archive", None)
        talk = Talk(archive.talk.parts if archive else (), max_bytes=sys.maxsize)
        if checked:
            form = format_of(checked, wire_format)
            talk = talk.extend(folded(checked, (), form), self._state.in_force().redaction)
        return search(talk, query, limit)

    async def _compact(
        self, io: IO, messages: Sequence[Message], *, strict: bool = False, **given: Any
    ) -> CompactionResult:
        """Compact messages by their plan, which takes the other arguments."""
        for name in given.keys() - {"model", "wire_format", "budget", "summary", "focus"}:
            raise TypeError(
                f"compact() takes no {name!r}: budget=... is the largest size of the result, in "
                f"characters; a threshold in tokens is History(messages, max_tokens=...)"
            )
        from compacter.call.call import Call
        from compacter.call.handlers import Handlers
        from compacter.call.pump import pump
        from compacter.call.request import Request
        from compacter.call.target import Target
        from compacter.compaction.run import compact

        state = self._state.in_force()
        options = state.options
        large = io.asynchronous and is_large(messages)
        read = partial(self.plan, messages, **given)
        planned = await io.thread(read) if large else read()
        for half in planned.conversation.broken if strict else ():
            raise InvalidHistoryError(
                f"{half.what} {half.call_id!r} at message {half.index}: its partner is missing",
                call_id=half.call_id,
                index=half.index,
            )
        model = planned.model
        asks = planned.summary is None and options.writer is None
        if asks and planned.cut and options.summarizes:
            if model is None:
                raise ConfigurationError(
                    'there is no summarizer: pass model="..." (a litellm model) or summary="...", '
                    'or set Compacter(summarizer=...); summarizer="extractive" needs no model'
                )
            models.check_installed(f"model={model!r}")
        talk = planned.conversation
        request = Request(format=talk.format, original=talk.messages, messages=talk.messages)
        call = Call(options, request, planned.sizes.calibration)
        target = Target(model=model)
        handlers = Handlers(state=state, io=io, call=call, target=target, large=large)
        made = await pump(compact(planned), handlers)
        if made is None:
            fits = planned.fits_size(planned.original_data_size)
            return CompactionResult(list(messages), fits=fits)
        after, done = made
        event = await handlers.emit(Emit(done))
        fits = planned.fits_size(after.size)
        return CompactionResult(list(after.messages), event.discarded, event, fits)


def in_window(sizes: Sizes, conversation: Conversation) -> tuple[int | None, int]:
    """Return two sizes in characters: the largest size that the messages may have in the model's
    window, and the part of it to leave free for quotes. The first is ``None`` if the window is
    unknown, or if the messages fit into it.
    """
    target = sizes.target(None, 0)
    if target is None or conversation.size <= target:
        return None, 0
    begins_turn = conversation.last_user == len(conversation.messages) - 1
    room = target - conversation.size + conversation.free
    return target, sizes.quotes_in(room) if begins_turn else 0


def format_of(messages: Sequence[Message], wire_format: str | None) -> MessageFormat:
    """Return the format with this name, or without a name the format of the messages. Raises
    ``ConfigurationError`` if the format is unknown.
    """
    return get_format(recognise(messages) if wire_format is None else wire_format)


def check_messages(messages: Any, of: type[Any] = Sequence) -> list[Message]:  # noqa: ANN401 - checked here
    """Return the messages as a list. Raises ``ConfigurationError`` if they are not messages."""
    if isinstance(messages, (str, bytes, bytearray, Mapping)) or not isinstance(messages, of):
        inside = "; pass its .messages" if hasattr(messages, "messages") else ""
        raise ConfigurationError(
            f"messages takes a list of messages, not {type(messages).__name__}{inside}"
        )
    checked: list[Message] = list(messages)
    for index, message in enumerate(checked):
        if isinstance(message, _NOT_MESSAGES):
            raise ConfigurationError(
                f"messages[{index}] is not a message but {message!r}. A message is a dict such "
                'as {"role": "user", "content": "..."}, or an object of a provider\'s SDK'
            )
    return checked
