"""Compaction by hand: what ``Compacter.compact`` and ``plan`` do with a list of messages, and the
checks of their arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Never

from compacter import models
from compacter.call.state import State
from compacter.compaction.conversation import Conversation, find_pinned
from compacter.compaction.cut import plan
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.summarize import summarizes
from compacter.errors import ConfigurationError, InvalidHistoryError, whole_number
from compacter.events import CompactionEvent
from compacter.io import ASYNC, IO, SYNC, is_large, run
from compacter.memory.record import conversation_digest
from compacter.messages.format import Message, MessageFormat, get_format
from compacter.messages.recognise import recognise
from compacter.recall.passages import Passage


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The new messages, and those that a summary stands for."""

    messages: list[Message] = field(repr=False)
    """A new list; messages that were kept are the same objects."""
    discarded: tuple[Message, ...] = field(default=(), repr=False)
    """Original messages that are no longer in the list, in order."""
    event: CompactionEvent | None = None
    """Event of the compaction; ``None`` if nothing was changed."""
    fits: bool = True
    """Whether the messages are within ``budget``; True without one."""

    @property
    def changed(self) -> bool:
        """Whether anything was compacted."""
        return self.event is not None


class ByHand:
    """What a ``Compacter`` does with a list of messages that it is passed, without a call of the
    model that they are for.
    """

    _state: State

    def window(self, model: str | None) -> int | None:
        """Return a model's context window in tokens: from an error, else from litellm's table;
        ``None`` if unknown.

        Args:
            model: Name of the model as it is passed to calls; ``None`` for calls without one.
        """
        check_model(model)
        return self._state.calibration(model).window

    def estimate_tokens(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
    ) -> int:
        """Return the size of messages in tokens: by ``token_counter``, else an estimate calibrated
        by replies.

        Args:
            messages: Messages in any of the formats.
            model: Name of the model whose characters per token are used.
            wire_format: Format of the messages, if it cannot be detected.

        Raises:
            ConfigurationError: An argument is invalid, or the format of the messages is unknown.
        """
        held = check_messages(messages)
        check_model(model)
        counter = self._state.options.token_counter
        if counter is not None:
            return counter(list(held))
        size = format_of(held, wire_format).size
        return self._state.calibration(model).tokens(sum(map(size, held)))

    def plan(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
    ) -> CompactionPlan:
        """Return what ``compact`` would compact, without calling a model. If its cut is 0, nothing
        can be compacted.

        Args:
            messages: Messages in any of the formats.
            model: Name of the model whose window is used.
            wire_format: Format of the messages, if it cannot be detected.
            budget: Largest size of the result, in characters, the summary included.

        Raises:
            ConfigurationError: An argument is invalid, or the format of the messages is unknown.
        """
        return read_plan(self._state, messages, model, wire_format, budget)

    def compact(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
        summary: str | None = None,
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
            strict: Whether a tool call without its result, or a result without its call, is an
                error. Otherwise it is passed through.
            **given: Nothing else; the error for another argument says what is meant.

        Raises:
            TypeError: There is no such argument.
            CompactionError: There is no summary, and ``fallback`` is ``None``.
            InvalidHistoryError: ``strict`` is set, and a tool call or result lacks its partner.
            ConfigurationError: An argument is invalid, the format is unknown, or there is no
            summarizer.
        """
        _refuse(given)
        return run(
            compact_by_hand(
                self._state,
                SYNC,
                messages,
                model,
                wire_format,
                budget,
                summary=summary,
                strict=strict,
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
        strict: bool = False,
        **given: Never,
    ) -> CompactionResult:
        """As ``compact``, without blocking the event loop.

        ``messages``, ``model``, ``wire_format``, ``budget``, ``summary``, ``strict`` and the
        exceptions are the same.
        """
        _refuse(given)
        return await compact_by_hand(
            self._state, ASYNC, messages, model, wire_format, budget, summary=summary, strict=strict
        )

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
        from compacter.recall.frame import folded
        from compacter.recall.index import Index
        from compacter.recall.quotes import search

        held = check_messages(messages)
        if not isinstance(query, str):
            raise ConfigurationError(f"query takes a text, not {query!r}")
        whole_number("limit", limit, least=1, of="passages")
        archive = getattr(messages, "archive", None)
        index = Index(archive.index().entries if archive else (), max_bytes=sys.maxsize)
        if held:
            form = format_of(held, wire_format)
            index = index.extend(folded(held, (), form), self._state.redaction)
        return search(index, query, limit)


def _refuse(given: Mapping[str, object]) -> None:
    """Raise ``TypeError`` for arguments that ``compact`` does not take."""
    for name in given:
        raise TypeError(
            f"compact() takes no {name!r}: budget=... is the largest size of the result, in "
            f"characters; a threshold in tokens is History(messages, max_tokens=...)"
        )


async def compact_by_hand(
    state: State,
    io: IO,
    messages: Sequence[Message],
    model: str | None,
    wire_format: str | None,
    budget: int | None,
    *,
    summary: str | None,
    strict: bool,
) -> CompactionResult:
    """Compact messages now (see ``Compacter.compact``)."""
    from compacter.call.perform import Performer
    from compacter.compaction.run import Compaction, compact

    options = state.options
    given: object = summary
    if given is not None and not (isinstance(given, str) and given.strip()):
        raise ConfigurationError(
            f"summary takes the text of a summary, not {summary!r}; leave it out to have one made"
        )
    large = io.asynchronous and is_large(messages)
    read = partial(read_plan, state, messages, model, wire_format, budget, summary)
    planned = await io.thread(read) if large else read()
    for half in planned.conversation.broken if strict else ():
        raise InvalidHistoryError(
            f"{half.what} {half.call_id!r} at message {half.index}: its partner is missing",
            call_id=half.call_id,
            index=half.index,
        )
    asks = summary is None and options.summarizer is None
    if asks and planned.cut and summarizes(options):
        if model is None:
            raise ConfigurationError(
                'there is no summarizer: pass model="..." (a litellm model) or summary="...", '
                "or set "
                'Compacter(summarizer=...); summarizer="extractive" needs no model'
            )
        models.check_installed(f"model={model!r}")
    performer = Performer(state=state, io=io, model=model, large=large)
    made: Compaction | None = await performer.conduct(compact(options, planned, performer.world))
    if made is None:
        return CompactionResult(list(messages), fits=planned.is_met_by(planned.original_data_size))
    event = await performer.emit(made.event)
    fits = planned.is_met_by(made.conversation.size)
    return CompactionResult(list(made.conversation.messages), event.discarded, event, fits)


def read_plan(
    state: State,
    messages: Sequence[Message],
    model: str | None,
    wire_format: str | None,
    budget: int | None,
    summary: str | None = None,
) -> CompactionPlan:
    """Return the plan of compacting messages, which are read here."""
    from compacter.recall.frame import strip

    held = check_messages(messages)
    check_model(model)
    if budget is not None:
        whole_number("budget", budget, least=1, of="characters")
    form = format_of(held, wire_format)
    held = tuple(strip(held, form)) or held
    by_history: frozenset[int] = getattr(messages, "pinned_ids", frozenset)()
    rules = state.options.with_declared(getattr(messages, "rules", ()))
    asked = CompactionPlan(
        conversation=Conversation.of(
            held,
            form,
            pinned=find_pinned(state.pin, held, form, by_history),
            rules=rules,
        ),
        trigger="manual",
        calibration=state.calibration(model),
        model=model,
        digest=state.options.conversation
        or getattr(messages, "conversation", "")
        or conversation_digest(form, held),
        target=budget,
        summary=summary,
        must=budget is not None,
    )
    return plan(state.options, asked)


def format_of(messages: Sequence[Message], wire_format: str | None) -> MessageFormat:
    """Return the format of that name, or else that of the messages. Raises ``ConfigurationError``
    if there is none.
    """
    return get_format(recognise(messages) if wire_format is None else wire_format)


def check_messages(messages: object) -> tuple[Message, ...]:
    """Return the messages. Raises ``ConfigurationError`` if this is not a list of messages."""
    if isinstance(messages, (str, bytes, bytearray)) or not isinstance(messages, Sequence):
        raise ConfigurationError(
            f"messages takes a list of messages, not {type(messages).__name__}"
        )
    held = tuple(messages)
    for kind in set(map(type, held)):
        if issubclass(kind, (type(None), int, float, bytes)):
            index = next(index for index, message in enumerate(held) if type(message) is kind)
            raise ConfigurationError(
                f"messages[{index}] is not a message but {held[index]!r}; a message is a dict such "
                f'as {{"role": "user", "content": "..."}}'
            )
    return held


def check_model(model: object) -> None:
    """Raise ``ConfigurationError`` if this is not the name of a model, or ``None``."""
    if model is not None and not isinstance(model, str):
        raise ConfigurationError(f"model takes a model's name, not {model!r}")


def check_wire_format(name: str | None) -> None:
    """Raise ``ConfigurationError`` if this is not the name of a format, or ``None``."""
    if name is not None:
        get_format(name)
