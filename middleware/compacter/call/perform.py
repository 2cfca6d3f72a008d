"""Performs the effects of a compaction, in sync and async programs: summaries and events."""

from __future__ import annotations

import contextlib
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from compacter import models
from compacter.call.state import State
from compacter.compaction.task import CompactionPlan
from compacter.effects import AskSummarizer, Effect, Emit, Flow
from compacter.events import CompactionEvent, CompactionStarted, RetriesExhausted
from compacter.io import IO, is_kind
from compacter.messages.fields import word
from compacter.messages.replies import Reply, chunk_text, read_reply

Performs = Callable[[Any, Any], Awaitable[Any]]
"""A function that performs an effect; its arguments are the performer and the effect."""


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
    # Used part of `timeout`, in seconds: time of the summarizer, and of waiting for another call's
    # summary.
    _spent: float = field(default=0.0, init=False)

    async def run(
        self, flow: Flow[Any], outcome: Any = None, until: type[Effect[Any]] | tuple[()] = ()
    ) -> Any:
        """Perform a flow's effects, and return its result.

        With ``until``, return its next effect of that kind instead; call again with the outcome to
        continue. An ``Exception`` of an effect is thrown into the flow; only ``Call`` and
        ``AskSummarizer`` raise any. For a large history the flow itself runs in a thread, so that
        it does not block the event loop.
        """
        advance = flow.send
        try:
            while True:
                step = partial(_advance, advance, outcome)
                ended, found = await self.io.thread(step) if self.large else step()
                if ended or isinstance(found, until):
                    return found
                perform: Performs = self.performs.get(type(found), _unknown)
                try:
                    outcome = await perform(self, found)
                    advance = flow.send
                except Exception as error:  # noqa: BLE001 - handled by the flow
                    outcome = error
                    advance = flow.throw
        except BaseException:
            # A thread abandoned by a cancellation still runs it.
            with contextlib.suppress(ValueError):
                flow.close()
            raise

    @property
    def timeout(self) -> float | None:
        """Limit for the summaries, in seconds."""
        return self.state.options.timeout

    def time_left(self) -> float:
        """Return the rest of ``timeout``, in seconds."""
        return math.inf if self.timeout is None else max(0.0, self.timeout - self._spent)

    async def _ask_summarizer(self, effect: AskSummarizer) -> Reply:
        totals = self.state.totals
        summarizer = self.state.options.summarizer
        seconds = None if self.timeout is None else self.time_left()
        if summarizer is None or isinstance(summarizer, str):
            ask, blocks = self._request(effect)
        else:
            options = {"model": self.model, "max_tokens": effect.max_tokens}
            taken = {
                name: options[name]
                for name in self.state.summarizer_takes
                if options[name] is not None
            }
            ask = partial(summarizer, [dict(message) for message in effect.messages], **taken)
            blocks = self.io.asynchronous and not is_kind(inspect.iscoroutinefunction, summarizer)
        totals.add(summarizer_calls=1)
        began = time.monotonic()
        try:
            raw = await self.io.ask(ask, seconds, blocks=blocks)
        finally:
            self._spent += time.monotonic() - began
        reply = Reply("".join(map(chunk_text, raw))) if isinstance(raw, list) else read_reply(raw)
        model = summarizer
        if not isinstance(summarizer, str):
            model = word(raw, "model") or (self.model if summarizer is None else None)
        if reply.input_tokens and isinstance(model, str):
            reply = replace(
                reply, cost=models.cost(model, reply.input_tokens, reply.output_tokens, raw)
            )
        totals.add(
            input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=reply.cost
        )
        return reply

    def _request(self, effect: AskSummarizer) -> tuple[Callable[[], Any], bool]:
        """Return a function that requests the summary through litellm, and whether it blocks an
        event loop.
        """
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
            return await self._ask_hook(event)
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
        if isinstance(event, RetriesExhausted):
            self.gave_up = event.rounds > 0
        if isinstance(event, CompactionEvent):
            event = event.model_copy(update={"duration": time.monotonic() - self._started})
        for hook in self.state.record(event):
            # A copy, so that no hook sees another one's changes.
            await self.safely("hook", partial(self.io.hook, hook, event.model_copy()))
        return event

    async def _ask_hook(self, plan: CompactionPlan) -> CompactionPlan | None:
        hook = self.state.options.before_compaction
        if hook is None:
            return plan
        answer = await self.safely("hook", partial(self.io.hook, hook, replace(plan)))
        if answer is False:
            return None
        return answer if isinstance(answer, CompactionPlan) else plan

    async def safely(
        self, what: str, action: Callable[[], Awaitable[Any]], otherwise: object = None
    ) -> Any:
        """Return the result of a hook or memory; if it raises, log the exception and return
        ``otherwise``.
        """
        try:
            return await action()
        except Exception as error:  # noqa: BLE001 - a hook or memory must not break the call
            self.state.log.failed(what, error)
            return otherwise

    performs: ClassVar[Mapping[type[Effect[Any]], Performs]] = {
        AskSummarizer: _ask_summarizer,
        Emit: emit,
    }
    """Functions that perform the effects, by the effect's class."""


def _advance(advance: Callable[[Any], Any], outcome: object) -> tuple[bool, Any]:
    """Run a flow up to its next effect; return False and that, or True and the flow's result at its
    end.
    """
    try:
        return False, advance(outcome)
    except StopIteration as stop:
        return True, stop.value


async def _unknown(_: Performer, effect: object) -> Any:
    raise TypeError(f"{effect!r} is not an effect; strategies yield those of compacter.effects")
