"""Does what a call and a compaction ask for, in sync and async programs.

In this order: requests for summaries, events and hooks, the wrapped function, memory and quotes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from compacter.call import ahead, streams
from compacter.call.arguments import Args, Binding, Named
from compacter.call.attempt import Attempt
from compacter.call.one_summary import OneSummary
from compacter.call.reduce import compact_ahead
from compacter.call.request import ConversationState, Request, holds_secrets
from compacter.call.state import GiveUps, State
from compacter.call.summarizer import Summarizer
from compacter.call.world import DEFERRED, step_through
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.sizes import Calibration
from compacter.effects import AskSummarizer, Quote
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionStarted,
    Event,
    PassagesRecalled,
    PreparationFailed,
)
from compacter.memory.match import View
from compacter.memory.record import Record, prefix_digest
from compacter.messages.fields import Unencodable, first
from compacter.messages.format import Message
from compacter.messages.replies import Reply
from compacter.runtime.io import IO
from compacter.runtime.single_flight import LONGEST_WAIT, Flight

if TYPE_CHECKING:
    from compacter.recall.frame import Quotation

T = TypeVar("T")
E = TypeVar("E", bound=Event)
# After so many failed compactions in a row, only every `_PAUSE`th asks the summarizer again.
_MOST_FAILED = 3
_PAUSE = 10
_CROWDED = "the server takes one request at a time; none is made ahead there from now on"
# Statuses of a server that takes no further request now: too many, not available, overloaded.
_BUSY = (429, 503, 529)
_STATUS = (
    "status_code",
    "response.status_code",
    "code",
    "response.ResponseMetadata.HTTPStatusCode",
)


def is_busy(reply: Reply) -> bool:
    """Return whether a reply is the refusal of a server that takes no further request now."""
    is_other = reply.error is None or reply.token_limit is not None
    return not is_other and first(reply.error, _STATUS) in _BUSY


class SummarizerPausedError(RuntimeError):
    """The summarizer was not asked, as it has failed too often in this conversation."""


@dataclass(kw_only=True, eq=False)
class Performer:
    """Does what one call asks for, or one compaction by hand. `close` ends its flight and its
    claims.
    """

    state: State
    """State that the calls of a Compacter share."""
    io: IO
    """Sync or async."""
    model: str | None = None
    """Name of the model; of the function if the call has no model."""
    large: bool = False
    """Whether the history is so large that computations on it must not block an event loop."""
    function: Callable[..., Any] | None = None
    """The wrapped function; ``None`` for a compaction by hand."""
    binding: Binding = field(default_factory=Binding)
    args: Args = ()
    kwargs: Named = field(default_factory=dict)
    request: Request = None  # type: ignore[assignment]  # once it has been read; never by hand
    """The caller's own request."""
    calibration: Calibration = field(default_factory=Calibration)
    """What is known of the model."""
    conversation: ConversationState = field(default_factory=ConversationState)
    scope: str = ""
    """Part of each record's key; the same for calls that may share a summary."""
    place: str = ""
    """The server of the call, as far as it is known."""
    as_passed: bool = True
    """Whether ``request.original`` is what the caller passed: no ``History``, and without quotes of
    an earlier call."""
    history: Any = None
    """The ``History`` that was passed in place of a list."""
    version: object = None
    """Its version at the time of the call."""
    is_ahead: bool = False
    """Whether it makes or reads a compaction that is not in force yet."""
    last: Reply | None = None
    """Last reply of the wrapped function."""
    # Plain class attributes, so that `replace()` resets them.
    # Used part of `timeout`, in seconds: time of the summarizer, and of waiting for another call's
    # summary.
    _spent = 0.0
    # Whether the summarizer was asked since the last event of a failure.
    _asked = False

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        # Views that this call has read from memory or made, each with the id of its record.
        self._views: list[tuple[Sequence[Message], str]] = []
        # Records that this call has stored.
        self._made: list[Record] = []
        self._one = OneSummary(self.state, self.io)
        self._summarizer: Summarizer | None = None

    @property
    def world(self) -> Any:
        """The world of coroutines that `conduct` is to run."""
        return DEFERRED if self.large else self

    def conduct(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Return a coroutine to be awaited in place of this one: that of a large history computes
        in threads, so that it does not block the event loop.
        """
        return step_through(self, work) if self.large else work

    async def compute(self, work: Callable[[], T], *, slow: object = False) -> T:
        """Return the result of a computation, which is made in a thread if it is ``slow`` or the
        history large.
        """
        return await self.io.thread(work) if self.large or slow else work()

    # -- summaries ---------------------------------------------------------------------------------

    def time_left(self) -> float:
        """Return the rest of ``timeout``, in seconds."""
        # One made ahead that hangs would keep its place for ever.
        limit = self.state.options.timeout or (LONGEST_WAIT if self.is_ahead else math.inf)
        return max(0.0, limit - self._spent)

    async def ask(self, question: AskSummarizer) -> Reply:
        """Send a prompt to the summarizer; raises its exceptions.

        One that has failed several times in a row is asked for every tenth compaction only, if
        there is a fallback.
        """
        failed = self.conversation.failed_in_a_row
        if failed >= _MOST_FAILED and failed % _PAUSE and self.state.options.fallback:
            self.conversation.failed_in_a_row += 1
            raise SummarizerPausedError(f"it has failed {failed} times in this conversation")
        self._asked = True
        left = self.time_left()
        began = time.monotonic()
        try:
            return await self._asker().request(question, None if left == math.inf else left)
        finally:
            self._spent += time.monotonic() - began

    def _asker(self) -> Summarizer:
        """Return what requests this call's summaries."""
        if self._summarizer is None:
            self._summarizer = Summarizer(
                state=self.state,
                io=self.io,
                model=self.model,
                function=self.function,
                binding=self.binding,
                args=self.args,
                kwargs=self.kwargs,
                place=self.place,
                form=None if self.function is None else self.request.format,
            )
        return self._summarizer

    # -- events and hooks --------------------------------------------------------------------------

    async def emit(self, event: E) -> E:
        """Send an event to totals, log and hooks, and return it with its ``duration``."""
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
            self._asker().cached_tokens = 0
        elif isinstance(event, CompactionFailed):
            self.conversation.failed_in_a_row += self._asked
            self._asked = False
        elif isinstance(event, CompactionEvent):
            seconds = time.monotonic() - self._started
            cached = self._asker().cached_tokens
            event = event.model_copy(update={"duration": seconds, "cached_tokens": cached})
            if event.summarizer_calls and not event.fallback:
                self.conversation.failed_in_a_row = 0
        await self.state.emit(self.io, event)
        return event

    async def approve(self, plan: CompactionPlan) -> CompactionPlan | None:
        """Pass the plan to ``before_compaction``, and return the one to carry out; ``None`` for a
        veto.
        """
        hook: Any = self.state.options.before_compaction
        answer: object = None
        with self.state.safely("hook"):
            answer = await self.io.hook(hook, replace(plan))
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    # -- the wrapped function ----------------------------------------------------------------------

    async def send(self, messages: Sequence[Message], options: Mapping[str, object]) -> Reply:
        """Call the wrapped function with these messages, and ``options`` in place of the caller's
        (such as a lowered ``max_tokens``). A token limit is in the reply; any other exception of
        its is raised.
        """
        last = self.last
        if last is not None and last.token_limit is not None and last.error is None:
            await streams.close(self.io, last.raw)
        args = self.args
        kwargs = self.kwargs
        binding = self.binding
        unchanged = self.as_passed and messages is self.request.original
        preparations = self.state.preparations
        beside = preparations.at(self.place) if preparations else ()
        if options or not unchanged:
            # The caller's own object if nothing was compacted: it may be a text, or a list that the
            # function adds to.
            given = binding.messages(args, kwargs) if unchanged else list(messages)
            args, kwargs = binding.replace(args, kwargs, given, options)
        reply = await self._send_once(args, kwargs)
        if beside and is_busy(reply):
            await self._give_way(beside)
            reply = await self._send_once(args, kwargs)
        self.last = reply
        if reply.error is not None and reply.token_limit is None:
            raise reply.error
        return reply

    async def _send_once(self, args: Args, kwargs: Named) -> Reply:
        """Call the wrapped function; a token limit and any ``Exception`` are in the reply."""
        detect = partial(self.state.limit_since, GiveUps.count)
        function: Any = self.function
        try:
            raw = await self.io.call(function, *args, **kwargs)
            return await streams.opened(self.io, raw, detect, self.binding.quiet)
        except Exception as error:  # noqa: BLE001 - in the reply
            return Reply(token_limit=detect(error), error=error)

    async def _give_way(self, beside: Sequence[Flight]) -> None:
        """Wait for the compactions that were made ahead at this call's server when it refused the
        call as one too many. None is made ahead there from then on.
        """
        self.state.preparations.crowded.add(self.place)
        for flight in beside:
            await flight.wait(self.io, LONGEST_WAIT)
        await self.emit(PreparationFailed(reason=_CROWDED, **self.request.named))

    # -- memory and quotes -------------------------------------------------------------------------

    async def look_up(self, head: Sequence[Message] = ()) -> View | None:
        """Return the compacted view of the caller's messages from memory, or ``None``.

        With a ``head`` that this call is about to compact, first wait for another call that is
        compacting the same head. If there is no such call, later ones wait for this one.
        """
        if head:
            began = time.monotonic()
            digest = partial(prefix_digest, self.request.format, head, self.scope)
            with suppress(Unencodable):  # It has no key then, so other calls cannot be found.
                await self._one.lead(await self.compute(digest), self.time_left())
            self._spent += time.monotonic() - began
        view = await self.view()
        if view is not None:
            self._views.append((view, view.record))
            is_first = self.state.note_record(view.record)
            if not head:
                self.state.count("records_reused", self.model or "")
                if is_first:  # Another process, or another ``Compacter``, has made it.
                    self.state.totals.add(reused=1)
        return view

    async def view(self) -> View | None:
        """As ``look_up``, of what is in force or made ahead."""
        view: View | None = await self._use_memory("view")
        if view is not None:
            self.calibration.assume_window(view.window)
        return view

    async def remember(self, after: Sequence[Message]) -> None:
        """Store ``after`` in memory as the view of the caller's messages."""
        if holds_secrets(self.request, after, self.state.options.redact):
            return
        record = await self._use_memory("remember", after, self.calibration.window)
        # Released first: waiting calls can use the record while the model answers.
        self._one.release()
        if record and not self.is_ahead:
            self._made.append(record)
            self._views.append((after, record.id))
            self.state.note_record(record.id)

    async def forget(self) -> None:
        """Let no later call begin with a view that this call has stored."""
        matcher = self.state.matcher
        while matcher is not None and self._made:
            with self.state.safely("memory"):
                await matcher.forget(self._made.pop(), io=self.io)

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

    async def prepare(self, call: Attempt, ratio: float, target: int) -> None:
        """Have this compaction made in the background, unless that is done or under way, or the
        request does not continue the one before.
        """
        with self.state.safely("preparation"):
            preparations = self.state.preparations
            preparation = await self._preparation(call.request)
            if not ratio or preparation is None or preparation.flight is not None:
                return
            if self.place in preparations.crowded:
                return
            request = await self.compute(partial(ahead.copied, call.request))
            maker = replace(self, request=request, is_ahead=True)
            call = replace(call, request=request, world=maker.world)
            make = partial(compact_ahead, call, maker, ratio, target)
            preparations.begin(preparation, self.io, make, self.place)

    async def find_prepared(self, request: Request) -> View | None:
        """Return the view of the caller's messages that was made ahead, or ``None``.

        If it is being made, wait for it.
        """
        began = time.monotonic()
        preparation = await self._preparation(request) if self.state.preparations else None
        if preparation is not None and preparation.flight is not None:
            await preparation.flight.wait(self.io, min(LONGEST_WAIT, self.time_left()))
        self._spent += time.monotonic() - began
        return await replace(self, is_ahead=True).view()

    async def _preparation(self, request: Request) -> ahead.Preparation | None:
        """Return the preparation of this conversation; ``None`` if the request does not continue
        the one before, or cannot be encoded.
        """
        with suppress(Unencodable):
            find = partial(self.state.preparations.of, self.scope, request)
            return await self.compute(find)
        return None

    async def quote(self, question: Quote) -> str:
        """Return quotes of compacted messages for the newest user message, or an empty string."""
        started = time.monotonic()
        recall: Any = self.state.options.recall
        # An archive may be large, and not indexed yet; the user's function may be slow.
        slow = question.archive or (recall and recall.search)
        quotation = await self.compute(partial(self._find_quotes, question), slow=slow)
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
        """Return quotes. An exception is logged once, not raised: the user's redaction may raise,
        and SQLite.
        """
        with self.state.safely("recall"):
            return self.state.recall().quotes(question, tuple(self._views))
        return None

    def close(self) -> None:
        """Release this call's flight and claims, and those that are granted later."""
        self._one.close()
