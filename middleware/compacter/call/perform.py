"""Carrying out the effects of one call, in a sync or an async program."""

from __future__ import annotations

import contextlib
import inspect
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from compacter import models
from compacter.call import streams
from compacter.call.arguments import Binding
from compacter.call.io import IO, is_kind, on_trio
from compacter.call.recover import Policy
from compacter.call.request import read_reply
from compacter.call.state import State
from compacter.compaction.task import CompactionPlan
from compacter.effects import AskSummarizer, Call, Effect, Flow, Quote, Remember, Remembered, Reply, Tell
from compacter.events import CompactionEvent, CompactionStarted, Event, PassagesRecalled, RetriesExhausted
from compacter.memory.base import BaseMemory
from compacter.memory.match import Thread, View
from compacter.memory.record import flight_key
from compacter.memory.single_flight import LONGEST_WAIT, LOOK_AGAIN
from compacter.messages.fields import json_text, word
from compacter.messages.format import Message, MessageFormat
from compacter.overflow import detect_in_reply
from compacter.summary import message as summary_message

if TYPE_CHECKING:
    from compacter.history import History

T = TypeVar("T")
_CLAIM_SECONDS = 120.0
"""Seconds for which a claim is asked for, and for which another process's claim is waited for."""
_CLAIM_POLL = 0.05


@dataclass(frozen=True, slots=True)
class WrappedCall:
    """One call of a wrapped function, as the caller made it, and what was read of it."""

    function: Callable[..., Any]
    binding: Binding
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    policy: Policy
    scope: str
    """Part of each record's key: calls that may share a summary have the same."""
    model: str
    """The model's name; where the call says none, the function's."""
    history: History | None
    """What was passed in place of a list."""
    version: int
    """Its version at that time."""
    large: bool
    """Whether the history is so large that an event loop must not wait for what is worked out about it."""


async def adrive(flow: Flow[T], performer: Performer) -> T:
    """Run a flow to its end. What an effect raises is thrown into it, but for what is no ``Exception``."""
    try:
        _, result = await carried_on(flow, performer)
        outcome: T = result
        return outcome
    finally:
        with contextlib.suppress(ValueError):  # A thread that a cancellation has left alone is still in it.
            flow.close()


async def carried_on(
    flow: Flow[T], performer: Performer, outcome: Any = None, until: type[Effect[Any]] | tuple[()] = ()
) -> tuple[bool, Any]:
    """Carry a flow on: whether it has come to its end, and its result, or the effect of the kind ``until``.

    Where that would hold up an event loop, what the flow does between its effects is done in a thread.
    """
    advance: Callable[[Any], Effect[Any]] = flow.send
    while True:
        step = partial(_step, advance, outcome)
        ended, found = step() if not performer.large else await performer.io.thread(step)
        if ended or isinstance(found, until):
            return ended, found
        try:
            outcome, advance = await performer.perform(found), flow.send
        except Exception as error:  # noqa: BLE001 - the flow decides what an error means
            outcome, advance = error, flow.throw


def _step(advance: Callable[[Any], Effect[Any]], outcome: Any) -> tuple[bool, Any]:
    """As ``carried_on``, up to the next effect."""
    try:
        return False, advance(outcome)
    except StopIteration as stop:
        return True, stop.value


class Performer:
    """Carries out the effects of one call; closed at its end, whatever that end is.

    Args:
        state: What the calls of a Compacter share.
        io: Sync or async.
        call: ``None`` for a compaction by hand; ``model`` and ``large`` then say what is known of that.
    """

    def __init__(
        self,
        state: State,
        io: IO,
        call: WrappedCall | None = None,
        *,
        model: str | None = None,
        large: bool = False,
    ) -> None:
        self.io = io
        self.large = large if call is None else call.large
        self.refused: object = None
        """A reply that said "too long"; where it is a stream, it is closed before the next attempt."""
        self.raised: tuple[Exception, TracebackType | None] | None = None
        """What the wrapped function raised last, and its traceback without frames of ours."""
        self.answered: Reply | None = None
        """What the wrapped function returned last, where that came after what it raised."""
        self.gave_up = False
        """Whether compacting and retrying was in vain."""
        self._state = state
        self._call = call
        self._model = model if call is None else call.model
        self._started = time.monotonic()
        self._spent = 0.0
        """Seconds that compacting has taken so far; the provider's own time is not among them."""
        self._views: list[tuple[Sequence[Message], str]] = []
        """The views that this call got or made, each with the id of its record."""
        self._held: list[Callable[[], object]] = []
        """What gives back what this call holds: its flight and its claim."""
        self._awaits = io.asynchronous and state.memory is not None and state.memory.asynchronous and not on_trio()
        """Whether the memory is awaited."""
        self._closed = False
        self._lock = threading.Lock()

    def close(self, *, for_good: bool = True) -> None:
        """Release what this call holds, so that nobody waits for it; ``for_good``: also what it is granted later."""
        with self._lock:
            held, self._held, self._closed = self._held, [], self._closed or for_good
        for release in held:
            self._state.safely("memory", release)

    async def perform(self, effect: Effect[Any]) -> Any:
        """Carry out one effect. Only ``Call`` and ``AskSummarizer`` raise."""
        call = self._call
        match effect:
            case AskSummarizer():
                return await self._asked(effect)
            case Tell(what=CompactionPlan()):
                return await self._approved(effect.what)
            case Tell():
                return await self._told(effect.what)
            case Call() if call is not None:
                return await self._called(call, effect)
            case Remembered() if call is not None:
                return await self._remembered(call, effect)
            case Remember() if call is not None:
                return await self._remember(call, effect)
            case Quote() if call is not None:
                return await self._quoted(call, effect)
        raise TypeError(f"{effect!r} is no effect; strategies yield those of compacter.effects")

    # -- the wrapped function ------------------------------------------------------------------------------------------

    async def _called(self, call: WrappedCall, effect: Call) -> Reply:
        before = GiveUps.count
        if self.refused is not None:
            await streams.close(self.io, self.refused)
        self.refused = None
        try:
            args, kwargs = call.binding.replace(call.args, call.kwargs, effect.messages, effect.options)
            raw = await self.io.call(call.function, *args, **kwargs)
            if hasattr(type(raw), self.io.iterates):
                reply = await streams.opened(self.io, raw, self._state.detect, call.binding.quiet)
            else:
                reply = Reply(raw=raw, token_limit=detect_in_reply(raw))
        except Exception as error:
            self.failed(error)
            if gave_up_since(before, error):
                return Reply(error=error)
            raise
        if reply.error is not None:
            self.failed(reply.error)
            return Reply(error=reply.error) if gave_up_since(before, reply.error) else reply
        self.raised, self.answered = None, reply
        if reply.token_limit is not None:
            self.refused = reply.raw
        return reply

    def failed(self, error: Exception) -> None:
        """Take in what the wrapped function raised."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
            trace = trace.tb_next
        self.raised = error, trace

    # -- the summarizer ------------------------------------------------------------------------------------------------

    async def _asked(self, effect: AskSummarizer) -> Reply:
        function, args, kwargs, blocks = self._summary_call(effect)
        self._state.totals.count(summarizer_calls=1)
        with self._budget() as seconds:
            raw = await self.io.ask(partial(function, *args, **kwargs), seconds, blocks=blocks)
        reply = Reply("".join(map(streams.text_of, raw))) if isinstance(raw, list) else read_reply(raw)
        summarizer = self._state.options.summarizer
        model = summarizer
        if not isinstance(summarizer, str):
            model = word(raw, "model") or (self._model if summarizer is None else None)
        if reply.input_tokens and isinstance(model, str):
            reply = replace(reply, cost=models.cost(model, reply.input_tokens, reply.output_tokens, raw))
        self._state.totals.count(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=reply.cost)
        return reply

    def _summary_call(
        self, effect: AskSummarizer
    ) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any], bool]:
        """Which function to ask, with what, and whether it may block an event loop."""
        summarizer, call = self._state.options.summarizer, self._call
        messages = [dict(message) for message in effect.messages]
        if summarizer is not None and not isinstance(summarizer, str):
            options = accepted(summarizer, {"max_tokens": effect.max_tokens, "model": self._model})
            return summarizer, (messages,), options, not is_kind(inspect.iscoroutinefunction, summarizer)
        if summarizer is not None or call is None:
            awaits = self.io.asynchronous and not on_trio()  # litellm's own awaitables need asyncio.
            if summarizer is None:
                messages = [*(effect.prefix or ()), *messages]
            asked = {"model": summarizer or self._model, "messages": messages, "max_tokens": effect.max_tokens}
            return (models.acompletion if awaits else models.completion), (), asked, not awaits
        binding, form = call.binding, call.policy.request.format
        if effect.prefix is not None:
            args, kwargs = binding.native_call(
                call.args, call.kwargs, form, effect.prefix, messages[0]["content"], effect.max_tokens
            )
        else:
            args, kwargs = binding.summary_call(call.args, call.kwargs, form, messages, effect.max_tokens)
        return binding.asks or call.function, args, kwargs, False

    # -- events --------------------------------------------------------------------------------------------------------

    async def _told(self, event: Event) -> Event:
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
        if isinstance(event, RetriesExhausted):
            self.gave_up = event.rounds > 0
        if isinstance(event, CompactionEvent):
            event = event.model_copy(update={"duration": time.monotonic() - self._started})
        for hook in self._state.told(event):
            # A copy: what one hook does to it is not seen by the next one.
            await self._safely("hook", partial(self.io.hook, hook, event.model_copy()))
        return event

    async def _approved(self, plan: CompactionPlan) -> CompactionPlan | None:
        hook = self._state.options.before_compaction
        if hook is None:
            return plan
        answer = await self._safely("hook", partial(self.io.hook, hook, replace(plan)))
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    # -- memory --------------------------------------------------------------------------------------------------------

    async def _remembered(self, call: WrappedCall, effect: Remembered) -> View | None:
        memory, matcher = self._state.memory, self._state.matcher
        form, calibration = call.policy.request.format, call.policy.calibration
        if effect.head:
            await self._lead(call, effect.head)
        if memory is None or matcher is None:
            return None
        asked = call.scope, form, effect.messages
        view = await self._use(memory, lambda: matcher.view(*asked), lambda thread: matcher.aview(*asked, thread))
        if view is not None:
            self._views.append((view, view.record))
            calibration.window = calibration.window or view.window
        return view

    async def _remember(self, call: WrappedCall, effect: Remember) -> None:
        memory, matcher, redact = self._state.memory, self._state.matcher, self._state.options.redact
        form, window = call.policy.request.format, call.policy.calibration.window
        if memory is None or matcher is None or (redact and holds_secrets(redact, form, effect.before, effect.after)):
            return
        made = call.scope, form, effect.before, effect.after, window
        record = await self._use(
            memory, lambda: matcher.remember(*made), lambda thread: matcher.aremember(*made, thread)
        )
        if record:
            self._views.append((effect.after, record))

    async def _quoted(self, call: WrappedCall, effect: Quote) -> str:
        started = time.monotonic()
        find = partial(self._state.quotation, effect, tuple(self._views))
        found = await self.io.thread(find) if self.large else find()
        if found is None:
            return ""
        await self._told(
            PassagesRecalled(
                model=self._model,
                conversation=effect.digest,
                passages=len(found.passages),
                characters=len(found.text),
                tokens=call.policy.calibration.tokens(len(found.text)),
                duration=time.monotonic() - started,
            )
        )
        return found.text

    async def _lead(self, call: WrappedCall, head: Sequence[Message]) -> None:
        """Become the call that folds this head, or wait for the one that does."""
        state, io = self._state, self.io
        key = state.safely("memory", lambda: flight_key(call.scope, call.policy.request.format, head))
        flight = None if key is None else state.flights.join(key, blocks=not io.asynchronous)
        if key is None or flight is None:
            return
        if flight.leads:
            self._held.append(flight.release)
            if state.memory is not None and state.memory.blocking:
                await self._claim(state.memory, key)
            return
        with self._budget() as left:
            end = time.monotonic() + (LONGEST_WAIT if left is None else min(LONGEST_WAIT, left))
            while not flight.over() and (remaining := end - time.monotonic()) > 0:
                await io.wait(flight.done, min(LOOK_AGAIN, remaining))

    async def _claim(self, memory: BaseMemory, key: str) -> None:
        """Claim the compaction among all processes, or wait for the one that has it."""
        with self._budget() as left:
            end = time.monotonic() + (_CLAIM_SECONDS if left is None else min(_CLAIM_SECONDS, left))
            while not await self._granted(memory, key):
                # A memory that never grants a claim is not waited for.
                if self._state.grants is None:
                    self._state.grants = await self._granted(memory, f"probe {secrets.token_hex(8)}")
                if not self._state.grants or time.monotonic() > end:
                    return
                await self.io.sleep(_CLAIM_POLL)
            self._state.grants = True

    async def _granted(self, memory: BaseMemory, key: str) -> bool:
        """Whether this call now holds the claim; True too when the memory cannot say."""
        if self._awaits:
            return self._hold(await self._safely("memory", lambda: memory.aclaim(key, _CLAIM_SECONDS), otherwise=True))

        def claim() -> bool:
            # In the thread: a claim that is granted after a cancellation is given back all the same.
            asked = partial(memory.claim, key, _CLAIM_SECONDS)
            return self._hold(self._state.safely("memory", asked, otherwise=True))

        return await self.io.thread(claim)

    def _hold(self, claim: Any) -> bool:
        if claim is None or isinstance(claim, bool):
            return bool(claim)
        release = self._release_of(claim)
        with self._lock:
            if not self._closed:
                self._held.append(partial(self.io.beside, release))
                return True
        self.io.beside(release)
        return True

    def _release_of(self, claim: Any) -> Callable[[], object]:
        if not inspect.iscoroutinefunction(claim.release):
            return partial(self._state.safely, "memory", claim.release)

        # A function: of a partial of a method Python 3.11 cannot tell that it is awaited.
        async def release() -> None:
            await self._safely("memory", claim.release)

        return release

    async def _use(
        self, memory: BaseMemory, action: Callable[[], T], awaited: Callable[[Thread | None], Awaitable[T]]
    ) -> T | None:
        """Use the memory: awaited where it can be; from a thread where it waits for a disk or a network."""
        if self._awaits:
            used: T | None = await self._safely("memory", lambda: awaited(self.io.thread if self.large else None))
            return used
        if memory.blocking or self.large:
            return await self.io.thread(lambda: self._state.safely("memory", action))
        return self._state.safely("memory", action)

    # -- both ----------------------------------------------------------------------------------------------------------

    async def _safely(self, what: str, action: Callable[[], Awaitable[Any]], otherwise: object = None) -> Any:
        """The result of something of the user's; ``otherwise`` when it raises, which is logged."""
        try:
            return await action()
        except Exception as error:  # noqa: BLE001 - nothing that compacter does for itself may raise into a call
            self._state.log.failed(what, error)
            return otherwise

    @contextlib.contextmanager
    def _budget(self) -> Generator[float | None]:
        """Gives what is left of ``timeout``, in seconds; what is done meanwhile is taken off it."""
        timeout, started = self._state.options.timeout, time.monotonic()
        try:
            yield None if timeout is None else max(0.0, timeout - self._spent)
        finally:
            self._spent += time.monotonic() - started


def holds_secrets(
    redact: Callable[[str], str], form: MessageFormat, before: Sequence[Message], after: Sequence[Message]
) -> bool:
    """Whether a message that was edited, and so would be stored itself, holds what ``redact`` takes out.

    Summaries are redacted already; messages that stay as they are are stored by their position alone.
    """
    verbatim = set(map(id, before))
    for message in after:
        if id(message) in verbatim or summary_message.parse(form.plain_text(message) or "") is not None:
            continue
        text = json_text(form.content(message))
        try:
            if redact(text) != text:
                return True
        except Exception:  # noqa: BLE001 - the user's own; what cannot be redacted is not kept
            return True
    return False


async def tell(state: State, io: IO, event: Event) -> None:
    """Tell totals, log and hooks of an event."""
    await Performer(state, io).perform(Tell(event))


class GiveUps:
    """How many calls of this process were given up after compacting and retrying in vain."""

    count = 0


_GAVE_UP = "_compacter_gave_up"


def mark_given_up(error: Exception) -> None:
    """Mark an exception with which a call is given up."""
    GiveUps.count += 1
    with contextlib.suppress(AttributeError, TypeError):  # Some take no attributes.
        setattr(error, _GAVE_UP, GiveUps.count)


def gave_up_since(before: int, error: BaseException) -> bool:
    """Whether a Compacter inside the wrapped function has given up with this exception, or with one behind it.

    Then the one around it does not begin again: it would send the same refused requests. ``before`` is what
    ``GiveUps.count`` was when the call began: a program may raise one exception object several times.
    """
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None or GiveUps.count == before:
            return False
        if getattr(cause, _GAVE_UP, 0) > before:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def accepted(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that a function takes."""
    given = {name: value for name, value in options.items() if value is not None}
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return given
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return given
    return {name: value for name, value in given.items() if name in parameters}
