"""Does what a call and a compaction ask for, in sync and async programs.

In this order: requests for summaries, events and hooks, the wrapped function, memory and quotes.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from compacter.call import ahead, streams
from compacter.call.apart import APART, drive
from compacter.call.arguments import Args, Binding, Named
from compacter.call.nested import GiveUps, limit_since
from compacter.call.one_summary import lead
from compacter.call.option_names import other_limit
from compacter.call.request import ConversationState, calibrate, holds_secrets
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
)
from compacter.memory.match import View
from compacter.memory.record import Record, prefix_digest
from compacter.messages.fields import Unencodable, first, word
from compacter.messages.format import Message
from compacter.messages.refusals import SEALED
from compacter.messages.replies import Reply, chunk_text, read_reply
from compacter.options.checks import ASKED, taken
from compacter.runtime import models
from compacter.runtime.io import IO, is_kind
from compacter.runtime.single_flight import LONGEST_WAIT
from compacter.text.words import clip

if TYPE_CHECKING:
    from compacter.call.call import Call
    from compacter.history import History
    from compacter.recall.frame import Quotation

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
# Limits of a request for other words, in tokens of output and in seconds, and of the words that are
# used, in characters: some fifteen words in any language.
_MOST_TOKENS = 200
_MOST_SECONDS = 5.0
_LONGEST_WORDS = 300


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
    call: Call = None  # type: ignore[assignment]  # once it has been read; never by hand
    conversation: ConversationState = field(default_factory=ConversationState)
    scope: str = ""
    """Part of each record's key; the same for calls that may share a summary."""
    place: str = ""
    """The server of the call, as far as it is known."""
    as_passed: bool = True
    """Whether ``request.original`` is what the caller passed: no ``History``, and without quotes of
    an earlier call."""
    history: History | None = None
    """The ``History`` that was passed in place of a list."""
    version: object = None
    """Its version at the time of the call."""
    is_ahead: bool = False
    """Whether it makes or reads a compaction that is not in force yet."""
    last: Reply | None = None
    """Last reply of the wrapped function."""
    # No fields: a copy begins with these.
    # Tokens that the summarizer's provider has read from its cache.
    _cached = 0
    # Used part of `timeout`, in seconds: time of the summarizer, and of waiting for another call's
    # summary.
    _spent = 0.0
    # Whether the summarizer was asked since the last event of a failure.
    _asked = False
    _is_closed = False

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        # Views that this call has read from memory or made, each with the id of its record.
        self._views: list[tuple[Sequence[Message], str]] = []
        # Records that this call has stored.
        self._made: list[Record] = []
        # Functions that release this call's flight and claims.
        self._held: list[Callable[[], object]] = []

    @property
    def world(self) -> Any:
        """The world of coroutines that `conduct` is to run."""
        return APART if self.large else self

    def conduct(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Return a coroutine to be awaited in place of this one: that of a large history computes
        in threads, so that it does not block the event loop.
        """
        return drive(self, work) if self.large else work

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
        request, blocks = await self._request_of(question)
        totals.add(summarizer_calls=1)
        began = time.monotonic()
        try:
            raw = await self.io.ask(request, seconds, blocks=blocks)
        except Exception as error:
            if not self._learn_output_limit(error, question):
                raise
            request, blocks = await self._request_of(question)
            totals.add(summarizer_calls=1)
            raw = await self.io.ask(request, seconds, blocks=blocks)
        finally:
            self._spent += time.monotonic() - began
        reply = Reply("".join(map(chunk_text, raw))) if isinstance(raw, tuple) else read_reply(raw)
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

    def _learn_output_limit(self, error: Exception, question: AskSummarizer) -> bool:
        """Return whether the server has refused the output limit of a request for a summary: the
        next one has another, or none.
        """
        options = self.state.options
        if callable(options.summarizer) or options.detect(error):
            return False
        usual = self.binding.read(self.args, self.kwargs).output_option or "max_tokens"
        name, _ = known = self.state.output_limits.get(self._limit_key, (usual, None))
        other = other_limit(error, name, question.max_tokens)
        if other in (None, known):
            return False
        self.state.output_limits[self._limit_key] = other
        return True

    @property
    def _limit_key(self) -> str:
        return f"{self.model}\0{self.place}\0{self.state.options.summarizer}"

    async def _request_of(self, question: AskSummarizer) -> tuple[Callable[[], Any], bool]:
        """Return a function that requests the summary, and whether it blocks an event loop: the
        option ``summarizer``, the wrapped function itself, or litellm.
        """
        summarizer = self.state.options.summarizer
        messages = [dict(message) for message in question.messages]
        limit = question.max_tokens
        option, most = self.state.output_limits.get(self._limit_key, (None, None))
        limit = min(limit, most or limit)
        if callable(summarizer):
            options = {"model": self.model, "max_tokens": limit}
            given = {
                name: options[name]
                for name in taken(summarizer, ASKED)
                if options[name] is not None
            }
            blocks = self.io.asynchronous and not is_kind(inspect.iscoroutinefunction, summarizer)
            return partial(summarizer, messages, **given), blocks
        if summarizer is None and self.function is not None:
            binding = self.binding
            args, kwargs = binding.summary_call(
                self.args,
                self.kwargs,
                self.call.request.format,
                messages,
                limit,
                question.prefix,
                option,
            )
            return partial(binding.summary_function or self.function, *args, **kwargs), False
        await self.io.thread(models.load)  # Here, as `timeout` is a limit for the request alone.
        model = summarizer or self.model
        messages = [*(question.prefix or ()), *messages]
        awaits = self.io.awaits
        option = "max_tokens" if option is None else option
        given = {option: limit} if option else {}
        request = partial(
            models.completion, awaited=awaits, model=model, messages=messages, **given
        )
        return request, not awaits

    # -- events and hooks --------------------------------------------------------------------------

    async def emit(self, event: E) -> E:
        """Send an event to totals, log and hooks, and return it with its ``duration``."""
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
            self._cached = 0
        elif isinstance(event, CompactionFailed):
            self.conversation.vain += self._asked
            self._asked = False
        elif isinstance(event, CompactionEvent):
            seconds = time.monotonic() - self._started
            event = event.model_copy(update={"duration": seconds, "cached_tokens": self._cached})
            if event.summarizer_calls and not event.fallback:
                self.conversation.vain = 0
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
        unchanged = self.as_passed and messages is self.call.request.original
        preparations = self.state.preparations
        beside = preparations.at(self.place) if preparations else ()
        if options or not unchanged:
            # The caller's own object if nothing was compacted: it may be a text, or a list that the
            # function adds to.
            given = binding.messages(args, kwargs) if unchanged else list(messages)
            args, kwargs = binding.replace(args, kwargs, given, options)
        reply = await self._send_once(args, kwargs)
        if beside and is_busy(reply) and await ahead.give_way(self, beside):
            reply = await self._send_once(args, kwargs)
        self.last = reply
        if reply.error is not None and reply.token_limit is None:
            raise reply.error
        return reply

    async def _send_once(self, args: Args, kwargs: Named) -> Reply:
        """Call the wrapped function; a token limit and any ``Exception`` are in the reply."""
        detect = partial(limit_since, GiveUps.count, self.state.detect)
        function: Any = self.function
        try:
            raw = await self.io.call(function, *args, **kwargs)
            return await streams.opened(
                self.io, raw, detect, self.binding.quiet, on_error=self.note_late
            )
        except Exception as error:  # noqa: BLE001 - in the reply
            return Reply(token_limit=detect(error), error=error)

    def note_late(self, error: Exception) -> None:
        """Note a token limit that ended a stream after its first content, so that the conversation
        is compacted before its next call.
        """
        limit = self.state.detect(error)
        if limit is not None and limit.source != SEALED:
            self.state.note_late(self.conversation, calibrate(self.call, limit))

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
        view: View | None = await self._use_memory("view")
        if view is not None:
            self.call.calibration.assume_window(view.window)
        return view

    async def remember(self, after: Sequence[Message]) -> None:
        """Store ``after`` in memory as the view of the caller's messages."""
        options = self.state.options
        request = self.call.request
        if holds_secrets(request, after, options.redact):
            return
        record = await self._use_memory("remember", after, self.call.calibration.window)
        # Who waits for this summary finds it now, while the model answers.
        self._release()
        if record and not self.is_ahead:
            self._made.append(record)
            self._views.append((after, record.id))
            self.state.note_record(record.id)
            if options.recall is not None and options.recall.embed is not None:
                view = Conversation.of(after, request.format)
                asked = Quote(request.original, view, 0, request.archive, request.digest)
                await self.io.thread(partial(self._use_recall, "add", asked))

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
        request = self.call.request
        scope = self.scope + ahead.SCOPE * self.is_ahead
        use = partial(getattr(matcher, method), scope, request.format, request.original, *given)
        result = None
        with state.safely("memory"):
            result = await use(io=self.io, large=self.large)
        state.log_reports(matcher.memory)
        return result

    async def prepare(self, ratio: float, target: int) -> None:
        """Have this compaction made in the background, see ``ahead.py``."""
        with self.state.safely("preparation"):
            await ahead.prepare(self, ratio, target)

    async def find_prepared(self) -> View | None:
        """Return the view of the caller's messages that was made ahead, or ``None``.

        If it is being made, wait for it.
        """
        began = time.monotonic()
        await ahead.wait_for(self)
        self._spent += time.monotonic() - began
        return await replace(self, is_ahead=True).view()

    async def quote(self, question: Quote) -> str:
        """Return quotes of compacted messages for the newest user message, or an empty string.

        For a question that finds nothing the summarizer is asked for other words if the option says
        so. A failure of that is logged, and changes nothing else.
        """
        started = time.monotonic()
        recall = self.state.options.recall
        # An archive may be large, and not indexed yet; the user's functions may be slow.
        slow = question.archive or (recall and (recall.rank or recall.embed))
        find = partial(self._use_recall, "quotes")
        quotation: Quotation | None = await self.compute(partial(find, question), slow=slow)
        if quotation is not None and quotation.prompt:
            words = ""
            with self.state.safely("reword"):
                prompt = AskSummarizer(
                    [{"role": "user", "content": quotation.prompt}], _MOST_TOKENS
                )
                reply = await self.request_reply(prompt, _MOST_SECONDS)
                words = clip(reply.text, _LONGEST_WORDS)
            find = partial(find, replace(question, words=words))
            quotation = await self.compute(find, slow=slow)
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

    def _use_recall(self, method: str, question: Quote) -> Any:
        """Return the result of a method of `Recall`. An exception is logged once, not raised: the
        user's ranker or redaction may raise, and SQLite.
        """
        with self.state.safely("recall"):
            return getattr(self.state.recall(), method)(question, tuple(self._views))
        return None

    # -- one summary for all that need it ----------------------------------------------------------

    def give_back(self, release: Callable[[], object]) -> None:
        """Release a flight or a claim; its failure is logged."""
        with self.state.safely("memory"):
            release()

    def hold(self, release: Callable[[], object]) -> None:
        """Have a flight or a claim released when this call is closed; at once if it is."""
        self._held.append(release)
        if self._is_closed:
            self._release()

    def _release(self) -> None:
        with suppress(IndexError):  # None is left: a thread with a late claim may be here too.
            while True:
                self.give_back(self._held.pop())

    def close(self) -> None:
        """Release this call's flight and claims, and those that are granted later."""
        self._is_closed = True
        self._release()
