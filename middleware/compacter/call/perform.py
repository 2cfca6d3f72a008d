"""One call's world: it performs the effects of a flow, in a sync or an async program."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from compacter import models
from compacter.call import streams
from compacter.call.arguments import Binding
from compacter.call.effects import (
    Answer,
    AskPlan,
    AskSummarizer,
    Call,
    Claim,
    Clock,
    Effect,
    HandOver,
    Outcome,
    Recall,
    Remember,
    Sleep,
    Tell,
    Usage,
)
from compacter.call.request import answer_of, model_of, tokens_of
from compacter.call.state import Engine
from compacter.call.streams import is_async_stream, is_sync_stream, joined
from compacter.compaction.cut import CompactionPlan
from compacter.memory import Memory
from compacter.memory.single_flight import LONGEST_WAIT
from compacter.messages.format import Message, Wire
from compacter.overflow import detect_in_reply

T = TypeVar("T")
_CLAIM_SECONDS = 120.0
_CLAIM_POLL = 0.05


class World:
    """Made for a call that has something to do; closed at its end, whatever that end is."""

    def __init__(
        self, engine: Engine, wire: Wire, model: str | None, function: Callable[..., Any] | None,
        binding: Binding | None, args: tuple[Any, ...], kwargs: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.engine = engine
        self.wire = wire
        self.model = model
        self.function = function
        self.binding = binding
        self.args = args
        self.kwargs = kwargs
        self.first: Awaitable[Any] | None = None
        self._claims: list[tuple[str, bool]] = []
        self._closed = False
        self._lock = threading.Lock()
        self._spent = 0.0
        """Seconds that compacting has taken so far; the provider's own time is not among them."""
        self.made: Sequence[Message] | None = None
        """What the last compaction made of the messages."""
        self.refused: object = None
        """A reply that said "too long"; where it is a stream, it is closed before the next attempt."""

    def close(self) -> None:
        """Give back what this call holds, so that nobody waits for it."""
        with self._lock:
            claims, self._claims, self._closed = self._claims, [], True
        for key, shared in claims:
            self.engine.flights.release(key)
            if shared:
                self._give_back(key)

    def _give_back(self, key: str) -> None:
        def release() -> None:
            self._guard("release", lambda: self._memory.release(key))

        try:
            # A memory that waits for a disk or a network must not keep the loop waiting, nor a cancellation.
            _ = asyncio.get_running_loop().run_in_executor(None, release)
        except RuntimeError:
            release()

    @property
    def _memory(self) -> Memory:
        memory = self.engine.options.memory
        assert memory is not None  # noqa: S101 - nothing is claimed where there is none
        return memory

    # -- sync --------------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect[Any]) -> Any:
        """Carry out one effect."""
        match effect:
            case Call():
                return self._call(effect)
            case AskSummarizer():
                return self._ask(effect)
            case Tell():
                for hook in self.engine.hooks_for(effect.event):
                    self._guard("hook", lambda: resolve(hook(effect.event)))  # noqa: B023 - called at once
                return None
            case AskPlan():
                return self._plan(
                    self._guard("hook", lambda: resolve(self._before(effect.plan)), effect.plan), effect.plan
                )
            case Claim():
                return self._claim(effect)
            case Sleep():
                time.sleep(effect.seconds)
                return None
            case _:
                return self._at_once(effect)

    def _at_once(self, effect: Effect[Any]) -> Any:
        match effect:
            case Recall():
                return self.engine.view(self.model, self.wire, effect.messages)
            case Remember():
                self.made = effect.after
                return self.engine.remember(self.model, self.wire, effect.before, effect.after)
            case Clock():
                return time.monotonic()
            case Usage():
                return tokens_of(effect.reply)[0]
            case _:
                raise TypeError(
                    f"{effect!r} is no effect that can be performed; strategies yield those of compacter.flow.effects"
                )

    def _call(self, effect: Call) -> Outcome:
        assert self.function is not None  # noqa: S101
        assert self.binding is not None  # noqa: S101
        args, kwargs = self.binding.replace(self.args, self.kwargs, effect.messages, effect.options)
        if hasattr(self.refused, "close"):
            streams.shut(self.refused)
        reply = self.function(*args, **kwargs)
        if hasattr(reply, "__await__"):
            raise HandOver(reply)
        return self.opened(reply) if is_sync_stream(reply) else Outcome(reply, detect_in_reply(reply))

    def opened(self, stream: Any) -> Outcome:
        """Look into a stream until its first content. Raises a token-limit error that comes before that."""
        opening = streams.look(stream)
        if opening.error is not None and self.engine.detect(opening.error) is not None:
            streams.shut(stream)
            raise opening.error
        reply = streams.replay(stream, opening)
        self.refused = reply if opening.found else None
        return Outcome(reply, opening.found)

    def _ask(self, effect: AskSummarizer) -> Answer:
        with self._on_the_clock() as seconds:
            if seconds is None:
                return self._answer(self._summarize(effect))
            # A sync call cannot be interrupted: it is left alone in its thread, and the call goes on without it.
            return self._answer(in_thread(lambda: self._summarize(effect), seconds))

    def _summarize(self, effect: AskSummarizer) -> object:
        function, args, kwargs = self._summary_call(effect, asynchronous=False)
        return resolve(joined(function(*args, **kwargs)))

    def _claim(self, effect: Claim) -> bool:
        key = self.engine.flight_key(self.model, self.wire, effect.messages)
        with self._on_the_clock():
            waited = self.engine.flights.claim(key, self._wait(LONGEST_WAIT))
        if waited is not False:
            return bool(waited)
        self._claims.append((key, False))
        if not self.engine.blocking:
            return False
        end = time.monotonic() + self._wait(_CLAIM_SECONDS)
        polled = False
        while not self._shared_claim(key):
            polled = True
            if time.monotonic() > end:
                break
            time.sleep(_CLAIM_POLL)
        return polled

    def _shared_claim(self, key: str) -> bool:
        """Whether this process now holds the claim among all processes; True too when the memory cannot say."""
        granted = self._guard("claim", lambda: self._memory.claim(key, _CLAIM_SECONDS), otherwise=True)
        if granted:
            with self._lock:
                if not self._closed:
                    self._claims[-1] = (key, True)
                    return True
            # The call was cancelled while its thread was still asking.
            self._guard("release", lambda: self._memory.release(key))
        return bool(granted)

    # -- async -------------------------------------------------------------------------------------------------------

    async def aperform(self, effect: Effect[Any]) -> Any:
        """Carry out one effect without blocking the event loop."""
        match effect:
            case Call():
                return await self._acall(effect)
            case AskSummarizer():
                with self._on_the_clock() as seconds:
                    async with asyncio.timeout(seconds):
                        return self._answer(await self._asummarize(effect))
            case Tell():
                for hook in self.engine.hooks_for(effect.event):
                    await self._aguard("hook", lambda: hook(effect.event))  # noqa: B023 - called at once
                return None
            case AskPlan():
                return self._plan(
                    await self._aguard("hook", lambda: self._before(effect.plan), effect.plan), effect.plan
                )
            case Claim():
                return await self._aclaim(effect)
            case Sleep():
                return await asyncio.sleep(effect.seconds)
            case Recall() | Remember() if self.engine.blocking:
                return await asyncio.to_thread(self._at_once, effect)
            case _:
                return self._at_once(effect)

    async def _acall(self, effect: Call) -> Outcome:
        assert self.function is not None  # noqa: S101
        assert self.binding is not None  # noqa: S101
        args, kwargs = self.binding.replace(self.args, self.kwargs, effect.messages, effect.options)
        if hasattr(self.refused, "close"):
            await streams.ashut(self.refused)
        # A plain function's awaitable is at hand already where the sync driver has found out that it returns one.
        reply, self.first = self.first, None
        if reply is None:
            reply = self.function(*args, **kwargs)
        if inspect.isawaitable(reply):
            reply = await reply
        return await self.aopened(reply) if is_async_stream(reply) else Outcome(reply, detect_in_reply(reply))

    async def aopened(self, stream: Any) -> Outcome:
        """As ``opened``."""
        opening = await streams.alook(stream)
        if opening.error is not None and self.engine.detect(opening.error) is not None:
            await streams.ashut(stream)
            raise opening.error
        reply = streams.replay(stream, opening)
        self.refused = reply if opening.found else None
        return Outcome(reply, opening.found)

    async def _asummarize(self, effect: AskSummarizer) -> object:
        function, args, kwargs = self._summary_call(effect, asynchronous=True)
        if self.engine.options.summarizer is not None and not inspect.iscoroutinefunction(unwrapped(function)):
            reply: Any = await beside(lambda: joined(function(*args, **kwargs)))
        else:
            reply = function(*args, **kwargs)
        if inspect.isawaitable(reply):
            reply = await reply
        if is_async_stream(reply):
            return [chunk async for chunk in reply]
        return joined(reply)

    async def _aclaim(self, effect: Claim) -> bool:
        key = self.engine.flight_key(self.model, self.wire, effect.messages)
        with self._on_the_clock():
            waited = await self.engine.flights.aclaim(key, self._wait(LONGEST_WAIT))
        if waited is not False:
            return bool(waited)
        self._claims.append((key, False))
        if not self.engine.blocking:
            return False
        end = time.monotonic() + self._wait(_CLAIM_SECONDS)
        polled = False
        while not await asyncio.to_thread(self._shared_claim, key):
            polled = True
            if time.monotonic() > end:
                break
            await asyncio.sleep(_CLAIM_POLL)
        return polled

    # -- both --------------------------------------------------------------------------------------------------------

    def _summary_call(
        self, effect: AskSummarizer, *, asynchronous: bool
    ) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """Which function to ask, and with what."""
        self.engine.ledger.asked()
        summarizer = self.engine.options.summarizer
        messages = [dict(message) for message in effect.messages]
        if isinstance(summarizer, str):
            function: Callable[..., Any] = models.acompletion if asynchronous else models.completion
            return function, (), {"model": summarizer, "messages": messages, "max_tokens": effect.max_tokens}
        if summarizer is not None:
            return (
                summarizer,
                (messages,),
                accepted(summarizer, {"max_tokens": effect.max_tokens, "model": self.model}),
            )
        if effect.prefix is not None and self.function is not None and self.binding is not None:
            args, kwargs = self.binding.native_call(
                self.args, self.kwargs, self.wire, effect.prefix, messages[0]["content"], effect.max_tokens
            )
            return self.binding.asks or self.function, args, kwargs
        if self.function is None or self.binding is None:
            messages = [*(effect.prefix or ()), *messages]
            return (
                models.acompletion if asynchronous else models.completion,
                (),
                {"model": self.model, "messages": messages, "max_tokens": effect.max_tokens},
            )
        args, kwargs = self.binding.summary_call(self.args, self.kwargs, self.wire, messages, effect.max_tokens)
        return self.binding.asks or self.function, args, kwargs

    def _answer(self, reply: object) -> Answer:
        if isinstance(reply, list):
            text = "".join(map(streams.text_of, reply))
            answer = Answer(text)
        else:
            answer = answer_of(reply)
        summarizer = self.engine.options.summarizer
        model = (
            summarizer
            if isinstance(summarizer, str)
            else model_of(reply) or (self.model if summarizer is None else None)
        )
        cost = models.cost(model, answer.input_tokens, answer.output_tokens, reply) if answer.input_tokens else None
        self.engine.ledger.answered(answer.input_tokens, answer.output_tokens, cost)
        return Answer(
            answer.text,
            answer.input_tokens,
            answer.output_tokens,
            answer.finish,
            answer.refused,
            answer.called_tool,
            cost,
        )

    def _seconds_left(self) -> float | None:
        """What is left of ``timeout``."""
        timeout = self.engine.options.timeout
        return None if timeout is None else max(0.0, timeout - self._spent)

    @contextlib.contextmanager
    def _on_the_clock(self) -> Generator[float | None]:
        """Gives what is left of ``timeout``; what is done meanwhile is taken off it."""
        started = time.monotonic()
        try:
            yield self._seconds_left()
        finally:
            self._spent += time.monotonic() - started

    def _wait(self, longest: float) -> float:
        """Seconds to wait for another call's compaction."""
        left = self._seconds_left()
        return longest if left is None else min(longest, left)

    def _before(self, plan: CompactionPlan) -> object:
        hook = self.engine.options.before_compaction
        return plan if hook is None else hook(plan)

    @staticmethod
    def _plan(answer: object, plan: CompactionPlan) -> CompactionPlan | None:
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    def _guard(self, what: str, action: Callable[[], T], otherwise: Any = None) -> Any:
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - a hook or a memory that raises must not break the call
            self.engine.complain(f"{what}_failed", error)
            return otherwise

    async def _aguard(self, what: str, action: Callable[[], Any], otherwise: Any = None) -> Any:
        try:
            outcome = action()
            return await outcome if inspect.isawaitable(outcome) else outcome
        except Exception as error:  # noqa: BLE001 - a hook or a memory that raises must not break the call
            self.engine.complain(f"{what}_failed", error)
            return otherwise


def unwrapped(function: Any) -> Any:
    """What decides whether a callable is async: the function, or a callable object's ``__call__``."""
    return function if inspect.isroutine(function) or hasattr(function, "func") else type(function).__call__


def accepted(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that a function takes."""
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return dict(options)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return {name: value for name, value in options.items() if value is not None}
    return {name: value for name, value in options.items() if name in parameters and value is not None}


def resolve(outcome: Any) -> Any:
    """The result of something that may be a coroutine, in a sync program, whether or not a loop runs in this thread."""
    if not inspect.isawaitable(outcome):
        return outcome

    async def wait() -> Any:
        result = await outcome
        return [chunk async for chunk in result] if is_async_stream(result) else result

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    return in_thread(lambda: asyncio.run(wait()), None)


def in_thread(action: Callable[[], T], seconds: float | None) -> T:
    """Run in a thread of its own, for ``seconds`` at most. Raises ``TimeoutError``."""
    return _begun(action).result(seconds)


async def beside(action: Callable[[], T]) -> T:
    """Run in a thread of its own without blocking the event loop.

    Not in the loop's own threads: its end would wait for what a cancellation has left alone.
    """
    return await asyncio.wrap_future(_begun(action))


def _begun(action: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(action))
        except StopIteration as error:
            # No coroutine can raise one.
            done.set_exception(RuntimeError(repr(error)))
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="compacter").start()
    return done
