"""Carry out the effects of a call and of a compaction, in sync and async programs.

The order is: the request of a call, requests for summaries, events and hooks, memory, compactions
made ahead, quotes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from compacter.call import ahead, streams
from compacter.call.call import Call
from compacter.call.effects import Find, Forget, Prepare, Save, Send
from compacter.call.lead import Lead
from compacter.call.pump import pump
from compacter.call.reduce import compact_ahead
from compacter.call.request import Request, holds_secrets
from compacter.call.state import GiveUps, State
from compacter.call.target import STATUS, Target
from compacter.compaction.plan import CompactionPlan
from compacter.effects import Approve, Ask, Effect, Emit, Quote, Restore
from compacter.errors import FunctionError
from compacter.events import (
    CompactionEvent,
    CompactionReused,
    CompactionStarted,
    PassagesRecalled,
    PreparationFailed,
    SpendingReached,
)
from compacter.memory.match import View
from compacter.memory.record import Record, conversation_digest, prefix_digest
from compacter.messages.fields import Unencodable, dig, first
from compacter.messages.format import Message
from compacter.messages.refusals import UNSAID
from compacter.messages.replies import Reply, read_reply, read_stream, tokens_cached, usage_of
from compacter.runtime import models
from compacter.runtime.io import IO, is_large
from compacter.runtime.single_flight import LONGEST_WAIT

if TYPE_CHECKING:
    from compacter.lines.frame import Quotation

T = TypeVar("T")
_CROWDED = "the server takes one request at a time; none is made ahead there from now on"
# Statuses of a server that accepts no further request now: too many, not available, overloaded.
_BUSY = (429, 503, 529)


@dataclass(kw_only=True, eq=False)
class Handlers:
    """Carries out the effects of one call, or of one compaction by hand. `close` ends its flight
    and its claims.
    """

    state: State
    """State that the calls of a Compacter share."""
    io: IO
    """Input and output, sync or async."""
    call: Call
    """The call. By hand, one whose request is not sent."""
    target: Target = field(default_factory=Target)
    """The wrapped function and the call's arguments."""
    large: bool = False
    """Whether the history is so large that computations on it must not block an event loop."""
    scope: str = ""
    """Part of each record's key; equal for calls that may share a summary."""
    history: Any = None
    """The ``History`` that was passed in place of a list."""
    version: object = None
    """Its version at the time of the call."""
    is_ahead: bool = False
    """Whether it makes a compaction that is not in force yet."""
    last: Reply | None = None
    """Last reply of the wrapped function."""
    raised: tuple[Exception, ...] = ()
    """Exceptions of the wrapped function."""
    # Plain class attributes, so that `replace()` resets them.
    # Seconds of `timeout` used so far: by the summarizer, and by waiting for another call's
    # summary.
    _spent = 0.0
    # Tokens that the provider has read from its cache, of the requests for the present summary.
    _cached_tokens = 0

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._lead = Lead(self.state, self.io)
        # Views that this call has read from memory or made, each with the id of its record.
        self._views: list[tuple[Sequence[Message], str]] = []
        # Records that this call has stored.
        self._made: list[Record] = []

    async def perform(self, effect: Effect[Any], /) -> Any:
        """Carry out an effect by the method of its name, and return its answer."""
        carry_out: Callable[[Effect[Any]], Awaitable[Any]]
        carry_out = getattr(self, type(effect).__name__.lower())
        answer = await carry_out(effect)
        if isinstance(answer, View) or (isinstance(effect, Send) and answer.token_limit):
            # So far the history was only read. What follows takes many times as long.
            original = self.call.request.original
            self.large = self.large or (self.io.asynchronous and is_large(original))
        return answer

    def close(self) -> None:
        """Release the flight and the claims of this call. Calls that wait for its summary then
        continue.
        """
        self._lead.close()

    async def _compute(self, work: Callable[[], T]) -> T:
        """Return the result of a computation; run it in a thread if the history is large."""
        return await self.io.thread(work) if self.large else work()

    # -- the request of the call -------------------------------------------------------------------

    async def send(self, sent: Send) -> Reply:
        """Call the wrapped function, and count what that costs with the option ``spending``. A
        token limit is in the reply; any other exception of the function is raised.

        If the server refuses the call as one too many while it makes a compaction ahead, wait for
        that compaction, then send the call once more. From then on, no compaction is made ahead on
        that server.
        """
        limit = self.last and self.last.token_limit
        # A stream that has ended without content may be handed back; it was read to its end.
        if self.last and limit and limit.source not in UNSAID:
            await streams.close(self.io, self.last.raw)
        place = self.target.place
        preparations = self.state.preparations
        beside = preparations.at(place) if self.state.prepares else ()
        try:
            reply = await self._send_once(sent)
        except Exception as error:
            if not beside or first(error, STATUS) not in _BUSY:
                raise
            preparations.crowded.add(place)
            for flight in beside:
                await flight.wait(self.io, LONGEST_WAIT)
            event = PreparationFailed(reason=_CROWDED, **self.call.request.named)
            await self.state.emit(self.io, event)
            reply = await self._send_once(sent)
        await self._count(sent, reply)
        return reply

    async def _send_once(self, sent: Send) -> Reply:
        """Call the wrapped function; a token limit is in the reply."""
        detect = partial(self.state.limit_since, GiveUps.count)
        target = self.target
        function: Any = target.function
        args, kwargs = target.arguments(self.call.request, sent.messages, sent.options)
        try:
            raw = await self.io.call(function, *args, **kwargs)
            quiet = target.binding.quiet
            reply = await streams.opened(self.io, raw, detect, quiet, self.note_late)
        except Exception as error:
            reply = Reply(token_limit=detect(error), error=error)
            self.take(reply)
            if reply.token_limit is None:
                raise
        self.take(reply)
        return reply

    def take(self, reply: Reply | None) -> None:
        """Record ``reply`` as the newest reply of the wrapped function in this call."""
        self.last = reply
        if reply is not None and reply.error is not None:
            self.raised = (*self.raised, reply.error)

    def hands_back(self, error: Exception) -> bool:
        """Return whether the wrapped function has raised an exception, which then counts as the
        last reply.
        """
        is_own = any(error is each for each in self.raised)
        self.last = Reply(error=error) if is_own else self.last
        return is_own

    def note_late(self, error: Exception) -> None:
        """Note a token limit that ended a stream after its first content, so that the conversation
        is compacted before its next call.
        """
        limit = self.state.options.detect(error)
        if limit is not None:
            self.state.note_late(self.call.state, limit)

    async def _count(self, sent: Send, reply: Reply) -> None:
        """Add the tokens of a request to what its conversation has spent."""
        spending = self.state.options.spending
        if spending is None or reply.token_limit is not None:
            return
        spent = self.call.state.spent
        with self.state.safely("reading"):
            read, written = usage_of(reply.raw)
            read = read or self.call.estimate(sent.messages)
            spent.add(read + written, models.cost(self.target.model, read, written, reply.raw))
        if spent.is_all(spending) and not spent.is_told:
            spent.is_told = True
            facts = dict(zip(("tokens", "for_summaries", "dollars"), spent.numbers, strict=True))
            event = SpendingReached.model_validate({**facts, **self.call.request.named})
            await self.state.emit(self.io, event)

    # -- requests for summaries --------------------------------------------------------------------

    def _time_left(self) -> float:
        """Return the rest of ``timeout``, in seconds."""
        # Even a compaction made ahead needs a limit: if it hung, it would keep its place for ever.
        limit = self.state.options.timeout or (LONGEST_WAIT if self.is_ahead else math.inf)
        return max(0.0, limit - self._spent)

    async def ask(self, question: Ask) -> Reply:
        """Send a prompt to the summarizer, and add its costs to the totals; raises its
        exceptions.
        """
        if self.target.function is not None:  # By hand nothing is counted.
            self.call.check_share(question)
        left = self._time_left()
        began = time.monotonic()
        try:
            seconds = None if left == math.inf else left
            raw = await self.target.ask(self.state, self.io, self.call.request, question, seconds)
        finally:
            self._spent += time.monotonic() - began
        if raw is None and question.by_provider:
            text = "" if self.state.tells_no_provider else "the wrapped call has no compaction"
            self.state.tells_no_provider = True
            return Reply(text)
        reply = read_stream(raw) if isinstance(raw, tuple) else read_reply(raw)
        model = self.state.options.writer
        if not isinstance(model, str):
            model = dig(raw, "model") or (self.target.model if model is None else None)
        read = reply.input_tokens
        written = reply.output_tokens
        cost = reply.cost
        if read:
            self._cached_tokens += tokens_cached(raw)
            if isinstance(model, str):
                cost = models.cost(model, read, written, raw)
        self.call.state.spent.add(read + written, cost, is_summary=True)
        self.state.totals.add(input_tokens=read, output_tokens=written, cost=cost)
        return replace(reply, raw=raw, cost=cost)

    # -- events and hooks --------------------------------------------------------------------------

    async def emit(self, effect: Emit) -> Any:
        """Send an event to totals, log and hooks, and return it with its ``duration``."""
        event = effect.event
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
            self._cached_tokens = 0
        elif isinstance(event, CompactionEvent):
            seconds = time.monotonic() - self._started
            update = {"duration": seconds, "cached_tokens": self._cached_tokens}
            event = event.model_copy(update=update)
        elif isinstance(event, CompactionReused):
            caches = self.call.calibration.caches is not False
            saved = models.price(self.target.model, event.tokens_saved, cached=caches)
            event = event.model_copy(update={"cost_saved": saved})
        await self.state.emit(self.io, event)
        return event

    async def _hook(self, option: str, given: object, remedy: str, *kinds: type) -> Any:
        """Return the answer of a user's function; ``None`` if it fails or is not of these kinds."""
        hook: Any = getattr(self.state.options, option)
        with self.state.safely("hook"):
            answer = await self.io.hook(hook, given)
            if not isinstance(answer, (*kinds, NoneType)):
                raise FunctionError(f"{option} returned {type(answer).__name__}; {remedy}")
            return answer
        return None

    async def approve(self, effect: Approve) -> CompactionPlan | None:
        """Pass the plan to the hook ``before_compaction``. Return the plan to carry out, which the
        hook may have changed, or ``None`` if the hook forbids the compaction.
        """
        plan = effect.plan
        remedy = "return the plan, with another cut if need be, False for a veto, or None"
        copy = replace(plan)
        answer = await self._hook("before_compaction", copy, remedy, CompactionPlan, bool)
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    async def restore(self, effect: Restore) -> Sequence[Message]:
        """Return the messages that ``after_compaction`` wants back; none if it fails."""
        event = effect.event.model_copy()
        remedy = "return a list of messages"
        return await self._hook("after_compaction", event, remedy, list, tuple) or ()

    # -- memory ------------------------------------------------------------------------------------

    async def find(self, asked: Find) -> View | None:
        """Return the compacted view of the caller's messages from memory, or ``None``."""
        request = self.call.request
        if asked.is_prepared:
            return await self._find_prepared(request)
        if head := asked.head:
            began = time.monotonic()
            digest = partial(prefix_digest, request.format, head, self.scope)
            with suppress(Unencodable):  # Without a key, other calls cannot be found.
                await self._lead.take(await self._compute(digest), self._time_left())
            self._spent += time.monotonic() - began
        view = await self._view()
        if not head and not self.is_ahead:
            digest_of = conversation_digest(request.openings or ())
            for _ in range(self.state.take_forget(digest_of)):
                if view is not None:
                    await self._forget(view.source)
                    view = await self._view()
        if view is not None and asked.is_counted:
            self._views.append((view, view.record))
            self.call.state.spent.raise_to(view.spent)
        return view

    async def _view(self, *, is_ahead: bool = False) -> View | None:
        """Return the view of the compaction in force, or of the one made ahead."""
        openings = self.call.request.openings
        view: View | None = await self._use_memory("view", openings, is_ahead=is_ahead)
        if view is not None:
            self.call.calibration.assume_window(view.window)
        return view

    async def save(self, effect: Save) -> str:
        """Store a view of the caller's messages in memory; return its name."""
        after = effect.after
        options = self.state.options
        if holds_secrets(self.call.request, after, options.redact):
            return ""
        spent = self.call.state.spent.numbers if options.spending else ()
        record = await self._use_memory("remember", after, self.call.calibration.window, spent)
        # Released first: waiting calls can use the record while the model answers.
        self._lead.release()
        if record and not self.is_ahead:
            self._made.append(record)
            self._views.append((after, record.id))
        return record.id if record else ""

    async def forget(self, _: Forget) -> None:
        """Delete the records that this call has stored, so that no later call begins with them."""
        while self._made:
            await self._forget(self._made.pop())

    async def _forget(self, record: Record) -> None:
        if self.state.matcher is not None:
            with self.state.safely("memory"):
                await self.state.matcher.forget(record, io=self.io)

    async def _use_memory(self, method: str, *given: object, is_ahead: bool = False) -> Any:
        """Return the result of a method of `Matcher` for the caller's messages; ``None`` if it
        fails, or without a memory.
        """
        is_ahead = is_ahead or self.is_ahead
        matcher = self.state.prepared if is_ahead else self.state.matcher
        if matcher is None:
            return None
        request = self.call.request
        scope = self.scope + ahead.SCOPE * is_ahead
        use = partial(getattr(matcher, method), scope, request.format, request.original, *given)
        with self.state.safely("memory"):
            return await use(io=self.io, large=self.large)
        return None

    # -- compactions made ahead --------------------------------------------------------------------

    async def prepare(self, asked: Prepare) -> None:
        """Start the next compaction of this conversation in the background. Do nothing if that
        compaction is already made or running, or if the messages do not continue those of the
        conversation's last call.
        """
        state = self.state
        call = self.call
        with state.safely("preparation"):
            preparation = await self._preparation(call.request)
            if not asked.ratio or preparation is None or preparation.flight is not None:
                return
            place = self.target.place
            if place in state.preparations.crowded:
                return
            # The call was perhaps too quick to leave the loop; a compaction is not.
            self.large = self.io.asynchronous and is_large(call.request.messages)
            request = await self._compute(partial(ahead.copy_of, call.request))
            # Without a fallback: a failing summarizer is asked again when the compaction is due.
            update = {"compact_ratio": asked.ratio, "fallback": ()}
            options = call.options.model_copy(update=update)
            own = Call(options, request, call.calibration, call.state)
            maker = replace(self, call=own, is_ahead=True)
            make = partial(pump, compact_ahead(own, asked.target), maker)
            state.preparations.begin(preparation, self.io, make, place)

    async def _find_prepared(self, request: Request) -> View | None:
        """Return the view made ahead, or ``None``. If it is being made, wait for it."""
        began = time.monotonic()
        preparation = await self._preparation(request) if self.state.preparations else None
        if preparation is not None and preparation.flight is not None:
            await preparation.flight.wait(self.io, min(LONGEST_WAIT, self._time_left()))
        self._spent += time.monotonic() - began
        return await self._view(is_ahead=True)

    async def _preparation(self, request: Request) -> ahead.Preparation | None:
        """Return the preparation of this conversation; ``None`` if the request does not continue
        the one before, or cannot be encoded.
        """
        with suppress(Unencodable):
            return await self._compute(partial(self.state.preparations.of, self.scope, request))
        return None

    # -- quotes ------------------------------------------------------------------------------------

    async def quote(self, question: Quote) -> str:
        """Return quotes of compacted messages for the newest user message, or an empty string."""
        started = time.monotonic()
        recall = self.state.options.recall

        def find() -> Quotation | None:
            # Of the user's redaction, or of SQLite; logged once.
            with self.state.safely("recall"):
                return self.state.recall().quotes(question, tuple(self._views))
            return None

        # A large archive may not be indexed yet, and the user's function may be slow.
        slow = question.archive or (recall and recall.search)
        quotation = await (self.io.thread(find) if slow else self._compute(find))
        if quotation is None:
            return ""
        text = quotation.text
        if question.sent:
            event = PassagesRecalled(
                passages=len(quotation.passages),
                characters=len(text),
                tokens=self.call.calibration.tokens(len(text)),
                duration=time.monotonic() - started,
                **self.call.request.named,
            )
            await self.state.emit(self.io, event)
        return text
