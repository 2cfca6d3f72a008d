"""One call of a wrapped function: it calls that function, and uses memory and quotes."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import is_
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from compacter.call import streams
from compacter.call.arguments import Binding
from compacter.call.nested import GiveUps, gave_up_since
from compacter.call.one_summary import OneSummary
from compacter.call.perform import E
from compacter.call.preparations import Preparation
from compacter.call.prepare import SCOPE, WORTH, Prepare, make_ahead
from compacter.call.recover import Policy
from compacter.call.request import Request, facts_of
from compacter.compaction.change import Change
from compacter.compaction.conversation import Conversation
from compacter.effects import AskSummarizer, Quote
from compacter.errors import CompactionError, FunctionError
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    PassagesRecalled,
    PreparationFailed,
)
from compacter.io import Stopped
from compacter.memory.match import Matcher, View
from compacter.memory.protocol import BaseMemory
from compacter.memory.record import prefix_digest
from compacter.messages.fields import Unencodable, json_text
from compacter.messages.format import Message, MessageFormat
from compacter.messages.refusals import detect_in_reply
from compacter.messages.replies import Reply
from compacter.single_flight import LONGEST_WAIT
from compacter.summary import message as summary_message

if TYPE_CHECKING:
    from compacter.history import History

T = TypeVar("T")
# Compactions in a row of one conversation for which a summarizer is asked in vain, and of the
# later ones the share that ask it again.
_IN_VAIN = 3
_PAUSE = 10


class SummarizerPausedError(RuntimeError):
    """The summarizer was not asked, as it has failed too often in this conversation."""


@dataclass(kw_only=True, eq=False)
class WrappedCall(OneSummary):
    """One call of a wrapped function: the caller's arguments, and the values read from them. Closed
    at its end.
    """

    function: Callable[..., Any]
    binding: Binding
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    policy: Policy
    scope: str
    """Part of each record's key; the same for calls that may share a summary."""
    as_passed: bool
    """Whether ``request.original`` is what the caller passed: no ``History``, and without quotes of
    an earlier call."""
    history: History | None
    """The ``History`` that was passed in place of a list."""
    version: int
    """Its version at the time of the call."""
    ahead: bool = False
    """Whether it makes or reads a compaction that is not in force yet."""
    last: Reply | None = field(default=None, init=False)
    """Last reply of the wrapped function."""
    trace: TracebackType | None = field(default=None, init=False)
    """Traceback of that reply's ``error`` when it was raised."""
    # Whether the summarizer was asked since the last event of a failure.
    _asked: bool = field(default=False, init=False)
    # Views that this call has read from memory or made, each with the id of its record.
    _views: list[tuple[Sequence[Message], str]] = field(default_factory=list, init=False)

    async def send(self, messages: Sequence[Message], options: Mapping[str, object]) -> Reply:
        """Call the wrapped function with these messages, and ``options`` in place of the caller's
        (such as a lowered ``max_tokens``). Raises its exceptions.
        """
        before = GiveUps.count
        last = self.last
        if last is not None and last.token_limit is not None and last.error is None:
            await streams.close(self.io, last.raw)
        args = self.args
        kwargs = self.kwargs
        unchanged = self.as_passed and messages is self.policy.request.original
        try:
            if options or not unchanged:
                # The caller's own object if nothing was compacted: it may be a text, or a list that
                # the function adds to.
                given = self.binding.messages(args, kwargs) if unchanged else list(messages)
                args, kwargs = self.binding.replace(args, kwargs, given, options)
            try:
                raw = self.function(*args, **kwargs)
            except StopIteration as error:
                if self.io.asynchronous:
                    raise
                raise Stopped(error) from None
            if self.io.asynchronous and inspect.isawaitable(raw):
                raw = await raw
            if streams.has(type(raw), self.io.iterates):
                reply = await streams.opened(self.io, raw, self.state.detect, self.binding.quiet)
            else:
                reply = Reply(raw=raw, token_limit=detect_in_reply(raw))
        except Exception as error:
            self.last = Reply(error=error)
            self.trace = error.__traceback__
            if gave_up_since(before, error):
                return self.last
            raise
        self.last = reply
        if reply.error is not None:
            self.trace = reply.error.__traceback__
            return Reply(error=reply.error) if gave_up_since(before, reply.error) else reply
        return reply

    def _request(self, effect: AskSummarizer) -> tuple[Callable[[], Any], bool]:
        """As above; without the option ``summarizer`` the request goes to the wrapped function
        itself.
        """
        if self.state.options.summarizer is not None:
            return super()._request(effect)
        binding = self.binding
        form = self.policy.request.format
        limit = effect.max_tokens
        messages = [dict(message) for message in effect.messages]
        if effect.prefix is None:
            args, kwargs = binding.summary_call(self.args, self.kwargs, form, messages, limit)
        else:
            instruction = messages[0]["content"]
            args, kwargs = binding.native_call(
                self.args, self.kwargs, form, effect.prefix, instruction, limit
            )
        return partial(binding.summary_function or self.function, *args, **kwargs), False

    async def ask(self, question: AskSummarizer) -> Reply:
        """Send a prompt to the summarizer; raises its exceptions.

        One that has failed several times in a row is asked for every tenth compaction only, if
        there is a fallback.
        """
        known = self.policy.state
        if known.vain >= _IN_VAIN and known.vain % _PAUSE and self.policy.options.fallback:
            known.vain += 1
            raise SummarizerPausedError(f"it has failed {known.vain} times in this conversation")
        self._asked = True
        return await super().ask(question)

    async def emit(self, event: E) -> E:
        """Send an event to totals, log and hooks, and return it with its ``duration``."""
        known = self.policy.state
        if isinstance(event, CompactionFailed) and self._asked:
            known.vain += 1
            self._asked = False
        elif isinstance(event, CompactionEvent) and event.summarizer_calls and not event.fallback:
            known.vain = 0
        return await super().emit(event)

    # -- memory and quotes -------------------------------------------------------------------------

    async def look_up(self, head: Sequence[Message] = ()) -> View | None:
        """Return the compacted view of the caller's messages from memory, or ``None``.

        With a ``head`` that this call is about to compact, first wait for another call that is
        compacting the same head. If there is no such call, later ones wait for this one.
        """
        if head:
            await self._lead(head)
        view = await self.view()
        if view is not None:
            self._views.append((view, view.record))
            is_first = self.state.note_record(view.record)
            if not head:
                self.state.count("records_reused", self.model or "")
                if is_first:  # Another process, or another ``Compacter``, has made it.
                    self.state.totals.add(reused=1)
        return view

    @property
    def store(self) -> tuple[BaseMemory | None, Matcher | None]:
        """The memory for this call's compactions, and its matcher."""
        state = self.state
        return state.memory_of_prepared() if self.ahead else (state.memory, state.matcher)

    async def view(self) -> View | None:
        """As ``look_up``, of what is in force or made ahead."""
        memory, matcher = self.store
        if memory is None or matcher is None:
            return None
        request = self.policy.request
        look = partial(matcher.view, self.scope, request.format, request.original)
        view = await self._use(memory, look)
        if view is not None:
            calibration = self.policy.calibration
            calibration.window = calibration.window or view.window
        return view

    async def remember(self, after: Sequence[Message], change: Change | None = None) -> None:
        """Store ``after`` in memory as the view of the caller's messages.

        ``change`` is what made it of the messages that were sent.
        """
        memory, matcher = self.store
        request = self.policy.request
        before = request.original
        form = request.format
        redact = self.state.options.redact
        if (
            memory is None
            or matcher is None
            or (redact and holds_secrets(redact, form, before, after))
        ):
            return
        # The messages that were sent are the caller's own until something is remembered.
        own = (
            change is not None
            and len(before) == len(change.before)
            and all(map(is_, before, change.before))
        )
        window = self.policy.calibration.window
        origins = change.origins if change is not None and own else None
        store = partial(matcher.remember, self.scope, form, before, after, window, origins)
        record = await self._use(memory, store)
        # Who waits for this summary finds it now, while the model answers.
        self.close(for_good=False)
        if record and not self.ahead:
            self._views.append((after, record))
            self.state.note_record(record)
            recall = self.state.options.recall
            if recall is not None and recall.embed is not None:
                await self.io.thread(partial(self._embed_compacted, after))

    def _embed_compacted(self, after: Sequence[Message]) -> None:
        request = self.policy.request
        view = Conversation.of(after, request.format)
        asked = Quote(request.original, view, 0, request.archive, request.digest, sent=False)
        self.state.embed_compacted(asked, tuple(self._views))

    async def _lead(self, head: Sequence[Message]) -> None:
        """Become the call that compacts this head, or wait for the call that already does."""
        began = time.monotonic()
        digest = partial(prefix_digest, self.policy.request.format, head, self.scope)
        try:
            key = await self.io.thread(digest) if self.large else digest()
        except Unencodable:
            return  # The head has no key, so other calls cannot be found.
        await self.lead(key)
        self._spent += time.monotonic() - began

    async def prepare(self, what: Prepare) -> None:
        """Have this compaction made in the background, unless that is done or under way, or the
        request does not continue the one before.
        """
        await self.safely("preparation", partial(self._prepare, what))

    async def _prepare(self, what: Prepare) -> None:
        preparation, continues = await self._look(what.request)
        if not what.ratio or not continues or preparation.done is not None:
            return
        take_down = partial(_copy, what.request)
        copied = await self.io.thread(take_down) if self.large else take_down()
        maker = replace(
            self,
            policy=Policy(self.policy.options, copied, what.calibration, self.policy.state),
            scope=self.scope + SCOPE,
            history=None,
            ahead=True,
            # One that hangs would keep its place for ever.
            most_seconds=LONGEST_WAIT,
        )
        make = partial(maker._make, replace(what, request=copied))
        self.state.preparations.begin(preparation, self.io, make)

    async def _look(self, request: Request) -> tuple[Preparation, bool]:
        """Return the preparation of this conversation, and whether the request continues the one
        before. One that cannot be encoded continues none.
        """
        form = request.format
        original = request.original
        # What the next request is to contain too: without system messages and the last one, which
        # may hold the time of day, or text retrieved for this call alone.
        body = [message for message in original if form.speaker(message) != "system"][:-1]
        shorter = len(original) - len(request.messages)
        look = partial(self.state.preparations.of, self.scope, form, body, shorter)
        try:
            return await self.io.thread(look) if self.large else look()
        except Unencodable:
            return Preparation(), False

    async def _make(self, what: Prepare) -> None:
        """Make a compaction ahead, unless another process has stored one that fits. Raises no
        ``Exception``.
        """
        request = what.request
        try:
            view = await self.view()
            size = request.conversation.size
            if view is None or sum(map(request.format.size, view)) >= size * WORTH:
                await self.conduct(make_ahead(self.policy.options, what, self.world))
        except Exception as error:  # noqa: BLE001 - the call that is due takes the normal way
            cause = error.__cause__ if isinstance(error, CompactionError) else error
            reason = str(error) if isinstance(error, FunctionError) else "no summary could be had"
            facts = {**facts_of(cause), **request.named}
            await self.emit(PreparationFailed(reason=reason, **facts))

    async def find_prepared(self) -> View | None:
        """Return the view of the caller's messages that was made ahead, or ``None``.

        If it is being made, wait for it.
        """
        if self.state.preparations:
            began = time.monotonic()
            preparation, continues = await self._look(self.policy.request)
            if continues:
                await preparation.wait(self.io, min(LONGEST_WAIT, self.time_left()))
            self._spent += time.monotonic() - began
        return await replace(self, scope=self.scope + SCOPE, ahead=True).view()

    async def quote(self, question: Quote) -> str:
        """Return quotes of compacted messages for the newest user message, or an empty string."""
        started = time.monotonic()
        find = partial(self.state.quotation, question, tuple(self._views))
        recall = self.state.options.recall
        # The archive of a short ``History`` may be large, and not indexed yet; the user's functions
        # may be slow.
        functions = () if recall is None else (recall.rank, recall.embed)
        slow = self.large or question.archive or any(one is not None for one in functions)
        found = await self.io.thread(find) if slow else find()
        if found is None:
            return ""
        if not question.sent:
            return found.text
        event = PassagesRecalled(
            model=self.model,
            conversation=question.digest,
            passages=len(found.passages),
            characters=len(found.text),
            tokens=self.policy.calibration.tokens(len(found.text)),
            duration=time.monotonic() - started,
        )
        await self.emit(event)
        return found.text

    async def _use(
        self, memory: BaseMemory, work: Callable[..., Coroutine[Any, Any, T]]
    ) -> T | None:
        """Return the result of using the memory; ``None`` if it fails."""
        action = partial(work, io=self.io, large=self.large)
        used: T | None = await self.safely("memory", action)
        self.state.log_reports(memory)
        return used


def holds_secrets(
    redact: Callable[[str], str],
    form: MessageFormat,
    before: Sequence[Message],
    after: Sequence[Message],
) -> bool:
    """Return whether an edited message, which would be stored itself, contains text that ``redact``
    removes.

    Summaries are redacted already, and unchanged messages are stored as positions.
    """
    verbatim = set(map(id, before))
    for message in after:
        if (
            id(message) in verbatim
            or summary_message.parse(form.plain_text(message) or "") is not None
        ):
            continue
        text = json_text(form.content(message))
        try:
            if redact(text) != text:
                return True
        except Exception:  # noqa: BLE001 - a message that cannot be redacted is not stored
            return True
    return False


def _copy(request: Request) -> Request:
    """Return a copy of the request, which the program cannot change."""
    # Together: the messages of the one are those of the other.
    original, messages = copy.deepcopy((list(request.original), list(request.messages)))
    read = request.conversation
    made = Conversation.of(messages, request.format, pinned=read.pinned, rules=read.rules)
    return replace(request, original=original, messages=messages, read=made)
