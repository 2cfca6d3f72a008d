"""Performs the effects of one call, in sync and async programs.

A `Performer` requests summaries and sends events. A `WrappedCall`, one call of a wrapped function, also calls that
function, and uses memory and quotes. Its last methods let several calls share one summary; the functions at the end
detect that another Compacter, inside the wrapped function, has given up.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from compacter import models
from compacter.call import streams
from compacter.call.arguments import Binding
from compacter.call.io import IO, Stopped, is_kind
from compacter.call.recover import Policy
from compacter.call.request import read_reply
from compacter.call.state import State
from compacter.compaction.task import CompactionPlan
from compacter.effects import AskSummarizer, Call, Effect, Emit, Flow, Quote, Remember, Remembered, Reply
from compacter.events import CompactionEvent, CompactionStarted, PassagesRecalled, RetriesExhausted
from compacter.locks import LONGEST_WAIT, LOOK_AGAIN
from compacter.memory.base import BaseMemory, Steps, advanced, apump, pump
from compacter.memory.match import Recognised, View
from compacter.memory.record import prefix_digest
from compacter.messages.fields import Unencodable, json_text, word
from compacter.messages.format import Message, MessageFormat
from compacter.overflow import detect_in_reply
from compacter.summary import message as summary_message

if TYPE_CHECKING:
    from compacter.history import History

T = TypeVar("T")
Performs = Callable[[Any, Any], Awaitable[Any]]
"""A function that performs an effect; its arguments are the performer and the effect."""
_CLAIM_SECONDS = 120.0
"""Duration of a claim, and longest wait for another process's claim, in seconds."""
_CLAIM_POLL = 0.05


@dataclass(kw_only=True, eq=False)
class Performer:
    """Performs the effects of a compaction."""

    state: State
    """State that the calls of a Compacter share."""
    io: IO
    """Sync or async."""
    model: str | None = None
    """Name of the model; of the function if the call has no model."""
    large: bool = False
    """Whether the history is so large that computations on it must not block an event loop."""
    gave_up: bool = field(default=False, init=False)
    """Whether the call was given up after at least one round."""
    _started: float = field(default_factory=time.monotonic, init=False)
    _spent: float = field(default=0.0, init=False)
    """Used part of ``timeout``, in seconds: time of the summarizer, and of waiting for another call's summary."""

    async def run(self, flow: Flow[Any], outcome: Any = None, until: type[Effect[Any]] | tuple[()] = ()) -> Any:
        """Perform a flow's effects, and return its result.

        With ``until``, return its next effect of that kind instead; call again with the outcome to continue. An
        ``Exception`` of an effect is thrown into the flow; only ``Call`` and ``AskSummarizer`` raise any. For a large
        history the flow itself runs in a thread, so that it does not block the event loop.
        """
        advance = flow.send
        try:
            while True:
                step = partial(advanced, advance, outcome)
                ended, found = await self.io.thread(step) if self.large else step()
                if ended or isinstance(found, until):
                    return found
                perform: Performs = self.performs.get(type(found), _unknown)
                try:
                    outcome, advance = await perform(self, found), flow.send
                except Exception as error:  # noqa: BLE001 - handled by the flow
                    outcome, advance = error, flow.throw
        except BaseException:
            with contextlib.suppress(ValueError):  # A thread abandoned by a cancellation still runs it.
                flow.close()
            raise

    async def _asked(self, effect: AskSummarizer) -> Reply:
        totals, summarizer, timeout = self.state.totals, self.state.options.summarizer, self.state.options.timeout
        if summarizer is None or isinstance(summarizer, str):
            ask, blocks = self._request(effect)
        else:
            options = {"model": self.model, "max_tokens": effect.max_tokens}
            taken = {name: options[name] for name in self.state.summarizer_takes if options[name] is not None}
            ask = partial(summarizer, [dict(message) for message in effect.messages], **taken)
            blocks = self.io.asynchronous and not is_kind(inspect.iscoroutinefunction, summarizer)
        totals.add(summarizer_calls=1)
        began = time.monotonic()
        try:
            raw = await self.io.ask(ask, None if timeout is None else max(0.0, timeout - self._spent), blocks=blocks)
        finally:
            self._spent += time.monotonic() - began
        reply = Reply("".join(map(streams.text_of, raw))) if isinstance(raw, list) else read_reply(raw)
        model = summarizer
        if not isinstance(summarizer, str):
            model = word(raw, "model") or (self.model if summarizer is None else None)
        if reply.input_tokens and isinstance(model, str):
            reply = replace(reply, cost=models.cost(model, reply.input_tokens, reply.output_tokens, raw))
        totals.add(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=reply.cost)
        return reply

    def _request(self, effect: AskSummarizer) -> tuple[Callable[[], Any], bool]:
        """Return a function that requests the summary through litellm, and whether it blocks an event loop."""
        asked = {
            "model": self.state.options.summarizer or self.model,
            "max_tokens": effect.max_tokens,
            "messages": [*(effect.prefix or ()), *map(dict, effect.messages)],
        }
        awaits = self.io.awaits
        return partial(models.acompletion if awaits else models.completion, **asked), not awaits

    async def emit(self, effect: Emit[Any]) -> Any:
        """Send an event to totals, log and hooks, and return it with its duration.

        For a plan, return the one to carry out, or ``None`` after a veto.
        """
        event = effect.what
        if isinstance(event, CompactionPlan):
            return await self._approved(event)
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
        if isinstance(event, RetriesExhausted):
            self.gave_up = event.rounds > 0
        if isinstance(event, CompactionEvent):
            event = event.model_copy(update={"duration": time.monotonic() - self._started})
        for hook in self.state.record(event):
            # A copy, so that no hook sees another one's changes.
            await self._safely("hook", partial(self.io.hook, hook, event.model_copy()))
        return event

    async def _approved(self, plan: CompactionPlan) -> CompactionPlan | None:
        hook = self.state.options.before_compaction
        if hook is None:
            return plan
        answer = await self._safely("hook", partial(self.io.hook, hook, replace(plan)))
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    async def _safely(self, what: str, action: Callable[[], Awaitable[Any]], otherwise: object = None) -> Any:
        """Return the result of a hook or memory; if it raises, log the exception and return ``otherwise``."""
        try:
            return await action()
        except Exception as error:  # noqa: BLE001 - a failing hook or memory must not break the call
            self.state.log.failed(what, error)
            return otherwise

    performs: ClassVar[Mapping[type[Effect[Any]], Performs]] = {AskSummarizer: _asked, Emit: emit}
    """Functions that perform the effects, by the effect's class."""


async def _unknown(_: Performer, effect: object) -> Any:
    raise TypeError(f"{effect!r} is not an effect; strategies yield those of compacter.effects")


@dataclass(kw_only=True, eq=False)
class WrappedCall(Performer):
    """One call of a wrapped function: the caller's arguments, and the values read from them. Closed at its end."""

    function: Callable[..., Any]
    binding: Binding
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    policy: Policy
    scope: str
    """Part of each record's key; the same for calls that may share a summary."""
    as_passed: bool
    """Whether ``request.original`` is what the caller passed: no ``History``, and without quotes of an earlier call."""
    history: History | None
    """The ``History`` that was passed in place of a list."""
    version: int
    """Its version at the time of the call."""
    seen: Recognised | None = None
    """Result of the matcher's last look at these messages, if they have not changed since."""
    last: Reply | None = field(default=None, init=False)
    """Last reply of the wrapped function."""
    trace: TracebackType | None = field(default=None, init=False)
    """Traceback of that reply's ``error`` when it was raised."""
    _views: list[tuple[Sequence[Message], str]] = field(default_factory=list, init=False)
    """Views that this call has read from memory or made, each with the id of its record."""
    _held: list[Callable[[], object]] = field(default_factory=list, init=False)
    """Functions that release this call's flight and claim."""
    _closed: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def close(self, *, for_good: bool = True) -> None:
        """Release this call's flight and claim; ``for_good``: also a claim that is granted later."""
        with self._lock:
            held, self._held, self._closed = self._held, [], self._closed or for_good
        for release in held:
            self.state.safely("memory", release)

    async def _called(self, effect: Call) -> Reply:
        before, last = GiveUps.count, self.last
        if last is not None and last.token_limit is not None and last.error is None:
            await streams.close(self.io, last.raw)
        args, kwargs = self.args, self.kwargs
        unchanged = self.as_passed and effect.messages is self.policy.request.original
        try:
            if effect.options or not unchanged:
                # The caller's own object if nothing was folded: it may be a text, or a list that the function adds to.
                messages = self.binding.messages(args, kwargs) if unchanged else list(effect.messages)
                args, kwargs = self.binding.replace(args, kwargs, messages, effect.options)
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
            self.last, self.trace = Reply(error=error), error.__traceback__
            if gave_up_since(before, error):
                return self.last
            raise
        self.last = reply
        if reply.error is not None:
            self.trace = reply.error.__traceback__
            return Reply(error=reply.error) if gave_up_since(before, reply.error) else reply
        return reply

    def _request(self, effect: AskSummarizer) -> tuple[Callable[[], Any], bool]:
        """As above; without the option ``summarizer`` the request goes to the wrapped function itself."""
        if self.state.options.summarizer is not None:
            return super()._request(effect)
        binding, form, limit = self.binding, self.policy.request.format, effect.max_tokens
        messages = [dict(message) for message in effect.messages]
        if effect.prefix is None:
            args, kwargs = binding.summary_call(self.args, self.kwargs, form, messages, limit)
        else:
            instruction = messages[0]["content"]
            args, kwargs = binding.native_call(self.args, self.kwargs, form, effect.prefix, instruction, limit)
        return partial(binding.summary_function or self.function, *args, **kwargs), False

    # -- memory and quotes ---------------------------------------------------------------------------------------------

    async def _remembered(self, effect: Remembered) -> View | None:
        memory, matcher, policy = self.state.memory, self.state.matcher, self.policy
        if effect.head:
            began = time.monotonic()
            await self._lead(effect.head)
            self._spent += time.monotonic() - began
        if memory is None or matcher is None:
            return None
        # The wrapped function may have changed the messages since they were seen.
        seen = None if effect.head else self.seen
        view = await self._use(memory, matcher.view, self.scope, policy.request.format, effect.messages, seen)
        if view is not None:
            self._views.append((view, view.record))
            policy.calibration.window = policy.calibration.window or view.window
        return view

    async def _remember(self, effect: Remember) -> None:
        memory, matcher, redact = self.state.memory, self.state.matcher, self.state.options.redact
        form, window = self.policy.request.format, self.policy.calibration.window
        if memory is None or matcher is None or (redact and holds_secrets(redact, form, effect.before, effect.after)):
            return
        record = await self._use(memory, matcher.remember, self.scope, form, effect.before, effect.after, window)
        if record:
            self._views.append((effect.after, record))

    async def _quoted(self, effect: Quote) -> str:
        started = time.monotonic()
        find = partial(self.state.quotation, effect, tuple(self._views))
        recall = self.state.options.recall
        # The archive of a short ``History`` may be large, and not indexed yet; the user's ranking may be slow.
        slow = self.large or effect.archive or (recall is not None and recall.rank is not None)
        found = await self.io.thread(find) if slow else find()
        if found is None:
            return ""
        event = PassagesRecalled(
            model=self.model,
            conversation=effect.digest,
            passages=len(found.passages),
            characters=len(found.text),
            tokens=self.policy.calibration.tokens(len(found.text)),
            duration=time.monotonic() - started,
        )
        await self.emit(Emit(event))
        return found.text

    async def _use(self, memory: BaseMemory, work: Callable[..., Steps[T]], *given: object) -> T | None:
        """Return the result of using the memory: awaited if it is async, in a thread if it blocks."""
        if self.io.awaits and memory.asynchronous:
            thread = self.io.thread if self.large else None
            used: T | None = await self._safely("memory", lambda: apump(work(*given, awaited=True), thread))
            return used
        action = partial(self.state.safely, "memory", lambda: pump(work(*given)))
        return await self.io.thread(action) if memory.blocking or self.large else action()

    # -- one summary shared by several calls ---------------------------------------------------------------------------

    async def _lead(self, head: Sequence[Message]) -> None:
        """Become the call that folds this head, or wait for the call that already does."""
        state, io = self.state, self.io
        digest = partial(prefix_digest, self.policy.request.format, head, self.scope)
        try:
            key = await io.thread(digest) if self.large else digest()
        except Unencodable:
            return  # The head has no key, so other calls cannot be found.
        flight = state.flights.join(key, blocks=not io.asynchronous)
        if flight is None:
            return
        if flight.leads:
            self._held.append(flight.release)
            if state.memory is not None and state.memory.blocking:
                await self._claim(state.memory, key)
            return
        end = time.monotonic() + min(LONGEST_WAIT, (state.options.timeout or math.inf) - self._spent)
        while not flight.over() and (remaining := end - time.monotonic()) > 0:
            await io.wait(flight.done, min(LOOK_AGAIN, remaining))

    async def _claim(self, memory: BaseMemory, key: str) -> None:
        """Claim the compaction among all processes, or wait for the process that has claimed it."""
        state = self.state
        end = time.monotonic() + min(_CLAIM_SECONDS, (state.options.timeout or math.inf) - self._spent)
        while not await self._granted(memory, key):
            # Do not wait if the memory never grants any claim.
            if state.grants is None:
                state.grants = await self._granted(memory, f"probe {secrets.token_hex()}")
            if not state.grants or time.monotonic() > end:
                return
            await self.io.sleep(_CLAIM_POLL)
        state.grants = True

    async def _granted(self, memory: BaseMemory, key: str) -> bool:
        """Request the claim, and return whether it was granted; True if the memory fails."""
        if self.io.awaits and memory.asynchronous:
            return self._hold(await self._safely("memory", lambda: memory.aclaim(key, _CLAIM_SECONDS), otherwise=True))

        def claim() -> bool:
            # Kept in the thread, so that a claim granted after a cancellation is released too.
            asked = partial(memory.claim, key, _CLAIM_SECONDS)
            return self._hold(self.state.safely("memory", asked, otherwise=True))

        return await self.io.thread(claim)

    def _hold(self, claim: Any) -> bool:
        """Return whether the claim was granted, and have it released when this call is closed."""
        if claim is None or isinstance(claim, bool):
            return bool(claim)
        give_back = getattr(claim, "release", None)
        if not callable(give_back):
            fault = f"claim() returns an object with a method release() or None, not {type(claim).__name__}"
            self.state.log.failed("memory", TypeError(fault))
            return True
        release: Callable[[], object] = partial(self.state.safely, "memory", give_back)
        if inspect.iscoroutinefunction(give_back):
            # Not a partial: Python 3.11 does not recognise a partial of a coroutine method as a coroutine function.
            async def awaited() -> None:
                await self._safely("memory", give_back)

            release = awaited
        with self._lock:
            if not self._closed:
                self._held.append(partial(self.io.beside, release))
                return True
        self.io.beside(release)
        return True

    performs: ClassVar[Mapping[type[Effect[Any]], Performs]] = {
        **Performer.performs,
        Call: _called,
        Remembered: _remembered,
        Remember: _remember,
        Quote: _quoted,
    }


def holds_secrets(
    redact: Callable[[str], str], form: MessageFormat, before: Sequence[Message], after: Sequence[Message]
) -> bool:
    """Return whether an edited message, which would be stored itself, contains text that ``redact`` removes.

    Summaries are redacted already, and unchanged messages are stored as positions.
    """
    verbatim = set(map(id, before))
    for message in after:
        if id(message) in verbatim or summary_message.parse(form.plain_text(message) or "") is not None:
            continue
        text = json_text(form.content(message))
        try:
            if redact(text) != text:
                return True
        except Exception:  # noqa: BLE001 - a message that cannot be redacted is not stored
            return True
    return False


class GiveUps:
    """Number of this process's calls that were given up after at least one round."""

    count = 0


_GAVE_UP = "_compacter_gave_up"


def mark_given_up(error: Exception) -> None:
    """Mark the exception of a call that is given up."""
    GiveUps.count += 1
    with contextlib.suppress(AttributeError, TypeError):  # Some exceptions accept no attributes.
        setattr(error, _GAVE_UP, GiveUps.count)


def gave_up_since(before: int, error: BaseException) -> bool:
    """Return whether a Compacter inside the wrapped function has given up with this exception or one of its causes.

    The outer one then does not retry, because it would send the same requests again. ``before`` is ``GiveUps.count``
    at the start of the call, as a program may raise one exception object several times.
    """
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None or GiveUps.count == before:
            return False
        if getattr(cause, _GAVE_UP, 0) > before:
            return True
        cause = cause.__cause__ or cause.__context__
    return False
