"""Does what a call and a compaction ask for, in sync and async programs.

In this order: requests for summaries, events and hooks, the wrapped function, memory and quotes.
"""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from compacter import models
from compacter.call import ahead, streams
from compacter.call.apart import APART, drive
from compacter.call.arguments import Args, Binding, Named
from compacter.call.nested import GiveUps, gave_up_since
from compacter.call.one_summary import lead
from compacter.call.other_words import find_quotes
from compacter.call.request import ConversationState, holds_secrets
from compacter.call.state import State
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import CompactionPlan
from compacter.effects import AskSummarizer, Quote
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionStarted,
    Event,
    PassagesRecalled,
    RetriesExhausted,
)
from compacter.io import IO, Stopped, is_kind
from compacter.memory.match import Matcher, View
from compacter.memory.record import prefix_digest
from compacter.messages.fields import Unencodable, first, word
from compacter.messages.format import Message
from compacter.messages.replies import Reply, chunk_text, read_reply

if TYPE_CHECKING:
    from compacter.call.call import Call
    from compacter.history import History

T = TypeVar("T")
E = TypeVar("E", bound=Event)
# Compactions in a row of one conversation for which a summarizer is asked in vain, and of the
# later ones the share that ask it again.
_IN_VAIN = 3
_PAUSE = 10
# Where a reply states what its provider has read from a prompt cache.
_CACHED = (
    "usage.prompt_tokens_details.cached_tokens",
    "usage.input_tokens_details.cached_tokens",
    "usage.cache_read_input_tokens",
)


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
    most_seconds: float | None = None
    """Limit for the summaries where the option ``timeout`` sets none."""
    function: Callable[..., Any] | None = None
    """The wrapped function; ``None`` for a compaction by hand."""
    binding: Binding = field(default_factory=Binding)
    args: Args = ()
    kwargs: Named = field(default_factory=dict)
    call: Call = None  # type: ignore[assignment]  # once it has been read; never by hand
    conversation: ConversationState = field(default_factory=ConversationState)
    scope: str = ""
    """Part of each record's key; the same for calls that may share a summary."""
    as_passed: bool = True
    """Whether ``request.original`` is what the caller passed: no ``History``, and without quotes of
    an earlier call."""
    history: History | None = None
    """The ``History`` that was passed in place of a list."""
    version: int = 0
    """Its version at the time of the call."""
    is_ahead: bool = False
    """Whether it makes or reads a compaction that is not in force yet."""
    gave_up: bool = field(default=False, init=False)
    """Whether the call was given up after at least one round."""
    last: Reply | None = field(default=None, init=False)
    """Last reply of the wrapped function."""
    trace: TracebackType | None = field(default=None, init=False)
    """Traceback of that reply's ``error`` when it was raised."""
    _started: float = field(default_factory=time.monotonic, init=False)
    # Tokens that the summarizer's provider has read from its cache.
    _cached: int = field(default=0, init=False)
    # Used part of `timeout`, in seconds: time of the summarizer, and of waiting for another call's
    # summary.
    _spent: float = field(default=0.0, init=False)
    # Whether the summarizer was asked since the last event of a failure.
    _asked: bool = field(default=False, init=False)
    # Views that this call has read from memory or made, each with the id of its record.
    _views: list[tuple[Sequence[Message], str]] = field(default_factory=list, init=False)
    # Functions that release this call's flight and claims.
    _held: list[Callable[[], object]] = field(default_factory=list, init=False)
    _closed: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def world(self) -> Any:
        """The world of coroutines that `conduct` is to run."""
        return APART if self.large else self

    async def conduct(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. That of a large history computes in threads, so that it
        does not block the event loop.
        """
        if not self.large:
            return await work
        result: T = await drive(self, work)
        return result

    async def compute(self, work: Callable[[], T]) -> T:
        """Return the result of a computation on the history."""
        return await self.io.thread(work) if self.large else work()

    # -- summaries ---------------------------------------------------------------------------------

    def time_left(self) -> float:
        """Return the rest of ``timeout``, in seconds."""
        limit = self.state.options.timeout or self.most_seconds or math.inf
        return max(0.0, limit - self._spent)

    async def ask(self, question: AskSummarizer) -> Reply:
        """Send a prompt to the summarizer; raises its exceptions.

        One that has failed several times in a row is asked for every tenth compaction only, if
        there is a fallback.
        """
        vain = self.conversation.vain
        if vain >= _IN_VAIN and vain % _PAUSE and self.state.options.fallback:
            self.conversation.vain += 1
            raise SummarizerPausedError(f"it has failed {vain} times in this conversation")
        self._asked = True
        return await self.request_reply(question)

    async def request_reply(self, question: AskSummarizer, most: float = math.inf) -> Reply:
        """Send a prompt to the summarizer for ``most`` seconds, and count what it costs."""
        totals = self.state.totals
        left = min(most, self.time_left())
        seconds = None if left == math.inf else left
        request, blocks = self._request_of(question)
        totals.add(summarizer_calls=1)
        began = time.monotonic()
        try:
            raw = await self.io.ask(request, seconds, blocks=blocks)
        finally:
            self._spent += time.monotonic() - began
        reply = Reply("".join(map(chunk_text, raw))) if isinstance(raw, list) else read_reply(raw)
        model = self.state.options.summarizer
        if not isinstance(model, str):
            model = word(raw, "model") or (self.model if model is None else None)
        if reply.input_tokens:
            cached = first(raw, _CACHED)
            self._cached += cached if isinstance(cached, int) else 0
            if isinstance(model, str):
                cost = models.cost(model, reply.input_tokens, reply.output_tokens, raw)
                reply = replace(reply, cost=cost)
        totals.add(
            input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=reply.cost
        )
        return reply

    def _request_of(self, question: AskSummarizer) -> tuple[Callable[[], Any], bool]:
        """Return a function that requests the summary, and whether it blocks an event loop: the
        option ``summarizer``, the wrapped function itself, or litellm.
        """
        summarizer = self.state.options.summarizer
        messages = [dict(message) for message in question.messages]
        limit = question.max_tokens
        if callable(summarizer):
            options = {"model": self.model, "max_tokens": limit}
            taken = {
                name: options[name]
                for name in self.state.summarizer_takes
                if options[name] is not None
            }
            blocks = self.io.asynchronous and not is_kind(inspect.iscoroutinefunction, summarizer)
            return partial(summarizer, messages, **taken), blocks
        if summarizer is None and self.function is not None:
            binding = self.binding
            form = self.call.request.format
            passed = self.args, self.kwargs, form
            if question.prefix is None:
                args, kwargs = binding.summary_call(*passed, messages, limit)
            else:
                instruction = messages[0]["content"]
                args, kwargs = binding.native_call(*passed, question.prefix, instruction, limit)
            return partial(binding.summary_function or self.function, *args, **kwargs), False
        request = models.acompletion if self.io.awaits else models.completion
        model = summarizer or self.model
        messages = [*(question.prefix or ()), *messages]
        return partial(request, model=model, max_tokens=limit, messages=messages), (
            not self.io.awaits
        )

    # -- events and hooks --------------------------------------------------------------------------

    async def emit(self, event: E) -> E:
        """Send an event to totals, log and hooks, and return it with its ``duration``."""
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
            self._cached = 0
        elif isinstance(event, RetriesExhausted):
            self.gave_up = event.rounds > 0
        elif isinstance(event, CompactionFailed):
            self.conversation.vain += self._asked
            self._asked = False
        elif isinstance(event, CompactionEvent):
            seconds = time.monotonic() - self._started
            event = event.model_copy(update={"duration": seconds, "cached_tokens": self._cached})
            if event.summarizer_calls and not event.fallback:
                self.conversation.vain = 0
        for hook in self.state.record(event):
            # A copy, so that no hook sees another one's changes.
            await self.safely("hook", partial(self.io.hook, hook, event.model_copy()))
        return event

    async def approve(self, plan: CompactionPlan) -> CompactionPlan | None:
        """Pass the plan to ``before_compaction``, and return the one to carry out; ``None`` for a
        veto.
        """
        hook = self.state.options.before_compaction
        if hook is None:
            return plan
        answer = await self.safely("hook", partial(self.io.hook, hook, replace(plan)))
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    async def safely(self, what: str, action: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of a hook or memory; if it raises, log the exception and return
        ``None``.
        """
        try:
            return await action()
        except Exception as error:  # noqa: BLE001 - a hook or memory must not break the call
            self.state.log.failed(what, error)
            return None

    # -- the wrapped function ----------------------------------------------------------------------

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
        binding = self.binding
        unchanged = self.as_passed and messages is self.call.request.original
        function: Any = self.function
        try:
            if options or not unchanged:
                # The caller's own object if nothing was compacted: it may be a text, or a list that
                # the function adds to.
                given = binding.messages(args, kwargs) if unchanged else list(messages)
                args, kwargs = binding.replace(args, kwargs, given, options)
            try:
                raw = function(*args, **kwargs)
            except StopIteration as error:
                if self.io.asynchronous:
                    raise
                raise Stopped(error) from None
            if self.io.asynchronous and inspect.isawaitable(raw):
                raw = await raw
            reply = await streams.read(self.io, raw, self.state.detect, binding.quiet)
        except Exception as error:
            reply = Reply(error=error)
            if not gave_up_since(before, error):
                self.last = reply
                self.trace = error.__traceback__
                raise
        self.last = reply
        if reply.error is not None:
            self.trace = reply.error.__traceback__
            if gave_up_since(before, reply.error):
                return Reply(error=reply.error)
        return reply

    # -- memory and quotes -------------------------------------------------------------------------

    async def look_up(self, head: Sequence[Message] = ()) -> View | None:
        """Return the compacted view of the caller's messages from memory, or ``None``.

        With a ``head`` that this call is about to compact, first wait for another call that is
        compacting the same head. If there is no such call, later ones wait for this one.
        """
        if head:
            began = time.monotonic()
            digest = partial(prefix_digest, self.call.request.format, head, self.scope)
            with suppress(Unencodable):  # It has no key then, so other calls cannot be found.
                await lead(self, await self.compute(digest))
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
        matcher = self.state.prepared if self.is_ahead else self.state.matcher
        if matcher is None:
            return None
        request = self.call.request
        look = partial(matcher.view, self.scope, request.format, request.original)
        view = await self._use(matcher, look)
        if view is not None:
            calibration = self.call.calibration
            calibration.window = calibration.window or view.window
        return view

    async def remember(self, after: Sequence[Message]) -> None:
        """Store ``after`` in memory as the view of the caller's messages."""
        matcher = self.state.prepared if self.is_ahead else self.state.matcher
        request = self.call.request
        if matcher is None or holds_secrets(request, after, self.state.options.redact):
            return
        window = self.call.calibration.window
        store = partial(
            matcher.remember, self.scope, request.format, request.original, after, window
        )
        record = await self._use(matcher, store)
        # Who waits for this summary finds it now, while the model answers.
        self.close(for_good=False)
        if record and not self.is_ahead:
            self._views.append((after, record))
            self.state.note_record(record)
            recall = self.state.options.recall
            if recall is not None and recall.embed is not None:
                await self.io.thread(partial(self._embed_compacted, after))

    def _embed_compacted(self, after: Sequence[Message]) -> None:
        request = self.call.request
        view = Conversation.of(after, request.format)
        asked = Quote(request.original, view, 0, request.archive, request.digest, sent=False)
        self.use_recall("add", asked)

    async def _use(self, matcher: Matcher, work: Callable[..., Coroutine[Any, Any, T]]) -> T | None:
        """Return the result of using the memory; ``None`` if it fails."""
        used: T | None = await self.safely("memory", partial(work, io=self.io, large=self.large))
        self.state.log_reports(matcher.memory)
        return used

    async def prepare(self, ratio: float, target: int) -> None:
        """Have this compaction made in the background, see ``ahead.py``."""
        await self.safely("preparation", partial(ahead.prepare, self, ratio, target))

    async def find_prepared(self) -> View | None:
        """Return the view of the caller's messages that was made ahead, or ``None``.

        If it is being made, wait for it.
        """
        began = time.monotonic()
        await ahead.wait_for(self)
        self._spent += time.monotonic() - began
        return await replace(self, scope=self.scope + ahead.SCOPE, is_ahead=True).view()

    async def quote(self, question: Quote) -> str:
        """Return quotes of compacted messages for the newest user message, or an empty string."""
        started = time.monotonic()
        recall = self.state.options.recall
        # The archive of a short ``History`` may be large, and not indexed yet; the user's functions
        # may be slow.
        slow = self.large or question.archive or (recall and (recall.rank or recall.embed))

        quotation = await find_quotes(self, question, slow=slow)
        if quotation is None:
            return ""
        text = quotation.text
        if question.sent:
            event = PassagesRecalled(
                model=self.model,
                conversation=question.digest,
                passages=len(quotation.passages),
                characters=len(text),
                tokens=self.call.calibration.tokens(len(text)),
                duration=time.monotonic() - started,
                reworded=quotation.reworded,
            )
            await self.emit(event)
        return text

    def use_recall(self, method: str, question: Quote) -> Any:
        """Return the result of a method of `Recall`. An exception is logged once, not raised: the
        user's ranker or redaction may raise, and SQLite.
        """
        try:
            return getattr(self.state.recall(), method)(question, tuple(self._views))
        except Exception as error:  # noqa: BLE001 - as above
            self.state.log.failed("recall", error)
            return None

    # -- one summary for all that need it ----------------------------------------------------------

    def close(self, *, for_good: bool = True) -> None:
        """Release this call's flight and claims; ``for_good``: also a claim that is granted
        later.
        """
        with self._lock:
            held = self._held
            self._held = []
            self._closed = self._closed or for_good
        for give_back in held:
            self.state.safely("memory", give_back)

    def hold(self, release: Callable[[], object]) -> None:
        """Have a claim released when this call is closed; at once if it is."""
        with self._lock:
            is_late = self._closed
            if not is_late:
                self._held.append(release)
        if is_late:
            release()
