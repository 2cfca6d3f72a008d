"""Carry out the steps of a call and of a compaction, in sync and async programs.

The order is: requests for summaries, events and hooks, memory, compactions made ahead, quotes.
Requests are sent in ``send.py``.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from compacter.call import ahead
from compacter.call.attempt import Attempt
from compacter.call.effects import Find, FindPrepared, Forget, Prepare, Save, Send
from compacter.call.pump import pump
from compacter.call.reduce import compact_ahead
from compacter.call.request import Request, holds_secrets
from compacter.call.send import Sender
from compacter.compaction.calibration import Calibration
from compacter.compaction.plan import CompactionPlan
from compacter.effects import Approve, Ask, Effect, Emit, Quote, Restore
from compacter.errors import FunctionError
from compacter.events import (
    CompactionEvent,
    CompactionReused,
    CompactionStarted,
    Event,
    PassagesRecalled,
    SpendingReached,
)
from compacter.memory.match import View
from compacter.memory.record import Record, conversation_digest, prefix_digest
from compacter.messages.fields import Unencodable
from compacter.messages.format import Message
from compacter.messages.replies import Reply, usage_of
from compacter.runtime import models
from compacter.runtime.io import is_large
from compacter.runtime.single_flight import LONGEST_WAIT

if TYPE_CHECKING:
    from compacter.lines.frame import Quotation

T = TypeVar("T")
E = TypeVar("E", bound=Event)
# Duration of a claim, and longest wait for another process's claim, in seconds. Most summaries take
# less time; if the claiming process has died, others wait no longer than this.
_CLAIM_SECONDS = 30.0
# Seconds between two requests for a claim: short beside a summary, long beside a round trip.
_CLAIM_POLL = 0.05


@dataclass(kw_only=True, eq=False)
class Performer(Sender):
    """Carries out the steps of one call, or of one compaction by hand. `close` ends its flight and
    its claims.
    """

    large: bool = False
    """Whether the history is so large that computations on it must not block an event loop."""
    calibration: Calibration = field(default_factory=Calibration)
    """Calibration of the model."""
    scope: str = ""
    """Part of each record's key; equal for calls that may share a summary."""
    history: Any = None
    """The ``History`` that was passed in place of a list."""
    version: object = None
    """Its version at the time of the call."""
    is_ahead: bool = False
    """Whether it makes or reads a compaction that is not in force yet."""
    # Plain class attributes, so that `replace()` resets them.
    # Seconds of `timeout` used so far: by the summarizer, and by waiting for another call's
    # summary.
    _spent = 0.0
    _is_closed = False

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        # Views that this call has read from memory or made, each with the id of its record.
        self._views: list[tuple[Sequence[Message], str]] = []
        # Records that this call has stored.
        self._made: list[Record] = []
        # Functions that release its flight and its claims.
        self._held: list[Callable[[], object]] = []

    async def perform(self, effect: Effect[Any], /) -> Any:
        """Carry out an effect, and return its answer."""
        answer = await _METHODS[type(effect)](self, effect)
        if isinstance(answer, View) or (isinstance(effect, Send) and answer.token_limit):
            # So far the history was only read. What follows takes many times as long.
            self.large = self.large or (self.io.asynchronous and is_large(self.request.original))
        return answer

    async def _compute(self, work: Callable[[], T], *, slow: object = False) -> T:
        """Return the result of a computation; run it in a thread if it is ``slow`` or the history
        is large.
        """
        return await self.io.thread(work) if self.large or slow else work()

    # -- summaries ---------------------------------------------------------------------------------

    def time_left(self) -> float:
        """Return the rest of ``timeout``, in seconds."""
        # Even a compaction made ahead needs a limit: if it hung, it would keep its place for ever.
        limit = self.state.options.timeout or (LONGEST_WAIT if self.is_ahead else math.inf)
        return max(0.0, limit - self._spent)

    async def ask(self, question: Ask) -> Reply:
        """Send a prompt to the summarizer; raises its exceptions."""
        self._check_share(question)
        left = self.time_left()
        began = time.monotonic()
        try:
            return await self.request_summary(question, None if left == math.inf else left)
        finally:
            self._spent += time.monotonic() - began

    # -- what the conversation spends --------------------------------------------------------------

    async def call(self, sent: Send) -> Reply:
        """Send the request, and count what it costs with the option ``spending``."""
        reply = await self.send(sent.messages, sent.options)
        spending = self.state.options.spending
        if spending is None or reply.token_limit is not None:
            return reply
        spent = self.conversation.spent
        with self.state.safely("reading"):
            read, written = usage_of(reply.raw)
            read = read or self._estimate(sent.messages)
            spent.add(read + written, models.cost(self.model, read, written, reply.raw))
        if spent.is_all(spending) and not spent.is_told:
            spent.is_told = True
            facts = dict(zip(("tokens", "for_summaries", "dollars"), spent.numbers, strict=True))
            await self.emit(SpendingReached.model_validate({**facts, **self.request.named}))
        return reply

    def _estimate(self, messages: Sequence[Message]) -> int:
        """Return the estimated tokens of messages."""
        return self.calibration.tokens(sum(map(self.request.format.size, messages)))

    def _check_share(self, question: Ask) -> None:
        """Raise ``FunctionError`` if the summaries have had their share of the spending."""
        spending = self.state.options.spending
        if spending is not None and self.function is not None:  # By hand nothing is counted.
            size = sum(len(str(message.get("content"))) for message in question.messages)
            prompt = self.calibration.tokens(size)
            prompt += self._estimate(question.prefix or ()) * question.by_provider
            request = self._estimate(self.request.original)
            self.conversation.spent.check_share(spending, prompt, request)

    # -- events and hooks --------------------------------------------------------------------------

    async def emit(self, event: E) -> E:
        """Send an event to totals, log and hooks, and return it with its ``duration``."""
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
            self.cached_tokens = 0
        elif isinstance(event, CompactionEvent):
            seconds = time.monotonic() - self._started
            update = {"duration": seconds, "cached_tokens": self.cached_tokens}
            event = event.model_copy(update=update)
        elif isinstance(event, CompactionReused):
            event = event.model_copy(update={"cost_saved": self._price(event.tokens_saved)})
        await self.state.emit(self.io, event)
        return event

    def _price(self, tokens: int) -> float | None:
        """Return the price of input tokens of this model in USD, ``None`` if it is unknown.

        They are the oldest of a conversation, so where the provider has a cache they would come
        from there: unless its last reply says that nothing did.
        """
        rates = models.prices(self.model)
        if rates is None:
            return None
        usual, cached, _ = rates
        rate = usual if cached is None or self.calibration.caches is False else cached
        return round(tokens * rate, 12)

    async def approve(self, plan: CompactionPlan) -> CompactionPlan | None:
        """Pass the plan to ``before_compaction``, and return the one to carry out; ``None`` for a
        veto.
        """
        hook: Any = self.state.options.before_compaction
        answer: object = None
        with self.state.safely("hook"):
            answer = await self.io.hook(hook, replace(plan))
            if not isinstance(answer, (CompactionPlan, bool, NoneType)):
                raise FunctionError(
                    f"before_compaction returned {type(answer).__name__}; return the plan, "
                    "with another cut if need be, False for a veto, or None"
                )
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    async def restore(self, event: CompactionEvent) -> Sequence[Message]:
        """Return the messages that ``after_compaction`` wants back; none if it fails."""
        hook: Any = self.state.options.after_compaction
        with self.state.safely("hook"):
            answer = await self.io.hook(hook, event.model_copy())
            if not isinstance(answer, (list, tuple, NoneType)):
                raise FunctionError(
                    f"after_compaction returned {type(answer).__name__}; return a list of messages"
                )
            return answer or ()
        return ()

    # -- memory ------------------------------------------------------------------------------------

    async def find(self, asked: Find) -> View | None:
        """Return the compacted view of the caller's messages from memory, or ``None``."""
        head = asked.head
        if head:
            began = time.monotonic()
            digest = partial(prefix_digest, self.request.format, head, self.scope)
            with suppress(Unencodable):  # Without a key, other calls cannot be found.
                await self._lead(await self._compute(digest))
            self._spent += time.monotonic() - began
        view = await self._view()
        if not head and not self.is_ahead:
            for _ in range(
                self.state.take_forget(conversation_digest(self.request.openings or ()))
            ):
                if view is None:
                    break
                await self._forget(view.source)
                view = await self._view()
        if view is not None and asked.is_counted:
            self._views.append((view, view.record))
            self.conversation.spent.raise_to(view.spent)
        return view

    async def _view(self) -> View | None:
        """Return the view of the compaction in force, or of the one made ahead."""
        view: View | None = await self._use_memory("view", self.request.openings)
        if view is not None:
            self.calibration.assume_window(view.window)
        return view

    async def remember(self, after: Sequence[Message]) -> str:
        """Store ``after`` in memory as the view of the caller's messages; return its name."""
        if holds_secrets(self.request, after, self.state.options.redact):
            return ""
        spent = self.conversation.spent.numbers if self.state.options.spending else ()
        record = await self._use_memory("remember", after, self.calibration.window, spent)
        # Released first: waiting calls can use the record while the model answers.
        self._release()
        if record and not self.is_ahead:
            self._made.append(record)
            self._views.append((after, record.id))
        return record.id if record else ""

    async def forget(self) -> None:
        """Delete the records that this call has stored, so that no later call begins with them."""
        while self._made:
            await self._forget(self._made.pop())

    async def _forget(self, record: Record) -> None:
        matcher = self.state.matcher
        if matcher is not None:
            with self.state.safely("memory"):
                await matcher.forget(record, io=self.io)

    async def _use_memory(self, method: str, *given: object) -> Any:
        """Return the result of a method of `Matcher` for the caller's messages; ``None`` if it
        fails, or without a memory.
        """
        state = self.state
        matcher = state.prepared if self.is_ahead else state.matcher
        if matcher is None:
            return None
        request = self.request
        scope = self.scope + ahead.SCOPE * self.is_ahead
        use = partial(getattr(matcher, method), scope, request.format, request.original, *given)
        with state.safely("memory"):
            return await use(io=self.io, large=self.large)
        return None

    # -- one summary for all calls that need it ----------------------------------------------------

    async def _lead(self, key: str) -> None:
        """Become the call that makes this compaction, or wait for the call that already does. Calls
        in this process are found by flights, those of other processes by claims in the memory. If
        the memory never grants a claim, do not wait.

        ``key`` is the digest of the compacted messages, with their scope.
        """
        state = self.state
        flight, leads = state.flights.join(key)
        seconds = self.time_left()
        if not leads:
            await flight.wait(self.io, min(LONGEST_WAIT, seconds))
            return
        self._hold(flight.release)
        if state.memory is None or not state.memory.blocking:
            return
        end = time.monotonic() + min(_CLAIM_SECONDS, seconds)
        while not await self._is_granted(key):
            if state.grants is None:
                state.grants = await self._is_granted(f"probe {secrets.token_hex()}")
            if not state.grants or time.monotonic() > end:
                return
            await self.io.sleep(_CLAIM_POLL)
        state.grants = True

    async def _is_granted(self, key: str) -> bool:
        """Request the claim, and return whether it was granted; True if the memory fails. It is
        released when the call is closed.
        """
        state = self.state
        memory: Any = state.memory

        def claim() -> bool:
            # Kept in the thread, so that a claim granted after a cancellation is released too.
            claimed: Any = True
            with state.safely("memory"):
                claimed = memory.claim(key, _CLAIM_SECONDS)
            release = getattr(claimed, "release", None)
            if callable(release):
                self._hold(partial(self.io.beside, partial(self._give_back, release)))
            return claimed is not None and claimed is not False

        return await self.io.thread(claim)

    def _give_back(self, release: Callable[[], object]) -> None:
        """Release a flight or a claim; its failure is logged."""
        with self.state.safely("memory"):
            release()

    def _hold(self, release: Callable[[], object]) -> None:
        """Release a flight or a claim when the call is closed; at once if it is closed already."""
        self._held.append(release)
        if self._is_closed:
            self._release()

    def _release(self) -> None:
        """Release the flight and the claims."""
        with suppress(IndexError):  # The list is empty: another thread may release too.
            while True:
                self._give_back(self._held.pop())

    def close(self) -> None:
        """Release the flight and the claims, and those that are granted later."""
        self._is_closed = True
        self._release()

    # -- compactions made ahead --------------------------------------------------------------------

    async def prepare(self, asked: Prepare) -> None:
        """Start this compaction in the background, unless it is made or running, or the request
        does not continue the one before.
        """
        with self.state.safely("preparation"):
            preparations = self.state.preparations
            preparation = await self._preparation(asked.request)
            if not asked.ratio or preparation is None or preparation.flight is not None:
                return
            if self.place in preparations.crowded:
                return
            # The call was perhaps too quick to leave the loop; a compaction is not.
            self.large = self.io.asynchronous and is_large(asked.request.messages)
            request = await self._compute(partial(ahead.copy_of, asked.request))
            maker = replace(self, request=request, is_ahead=True)
            # Without a fallback: a failing summarizer is asked again when the compaction is due.
            update = {"compact_ratio": asked.ratio, "fallback": ()}
            options = self.state.options.model_copy(update=update)
            call = Attempt(options, request, self.calibration, self.conversation)
            preparations.begin(
                preparation,
                self.io,
                lambda: pump(compact_ahead(call, asked.target), maker),
                self.place,
            )

    async def find_prepared(self, request: Request) -> View | None:
        """Return the view made ahead for the caller's messages, or ``None``.

        If it is being made, wait for it.
        """
        began = time.monotonic()
        preparation = await self._preparation(request) if self.state.preparations else None
        if preparation is not None and preparation.flight is not None:
            await preparation.flight.wait(self.io, min(LONGEST_WAIT, self.time_left()))
        self._spent += time.monotonic() - began
        return await replace(self, is_ahead=True)._view()  # noqa: SLF001 - of this class

    async def _preparation(self, request: Request) -> ahead.Preparation | None:
        """Return the preparation of this conversation; ``None`` if the request does not continue
        the one before, or cannot be encoded.
        """
        with suppress(Unencodable):
            find = partial(self.state.preparations.of, self.scope, request)
            return await self._compute(find)
        return None

    # -- quotes ------------------------------------------------------------------------------------

    async def quote(self, question: Quote) -> str:
        """Return quotes of compacted messages for the newest user message, or an empty string."""
        started = time.monotonic()
        recall: Any = self.state.options.recall
        # A large archive may not be indexed yet, and the user's function may be slow.
        slow = question.archive or (recall and recall.search)
        quotation = await self._compute(partial(self._find_quotes, question), slow=slow)
        if quotation is None:
            return ""
        text = quotation.text
        if question.sent:
            event = PassagesRecalled(
                model=self.model,
                conversation=question.digest,
                passages=len(quotation.passages),
                characters=len(text),
                tokens=self.calibration.tokens(len(text)),
                duration=time.monotonic() - started,
            )
            await self.emit(event)
        return text

    def _find_quotes(self, question: Quote) -> Quotation | None:
        """Return quotes. Log an exception once, and do not raise it: the user's redaction and
        SQLite may fail.
        """
        with self.state.safely("recall"):
            return self.state.recall().quotes(question, tuple(self._views))
        return None


# The method that carries out each effect.
_METHODS: Mapping[type[Effect[Any]], Callable[[Performer, Any], Awaitable[Any]]] = {
    Ask: Performer.ask,
    Approve: lambda handlers, effect: handlers.approve(effect.plan),
    Emit: lambda handlers, effect: handlers.emit(effect.event),
    Find: Performer.find,
    FindPrepared: lambda handlers, effect: handlers.find_prepared(effect.request),
    Forget: lambda handlers, _: handlers.forget(),
    Prepare: Performer.prepare,
    Quote: Performer.quote,
    Restore: lambda handlers, effect: handlers.restore(effect.event),
    Save: lambda handlers, effect: handlers.remember(effect.after),
    Send: Performer.call,
}
