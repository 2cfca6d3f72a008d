"""Does what a compaction asks for, in sync and async programs: summaries and events."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from compacter import models
from compacter.call.apart import APART, drive
from compacter.call.state import State
from compacter.compaction.plan import CompactionPlan
from compacter.effects import AskSummarizer
from compacter.events import CompactionEvent, CompactionStarted, Event, RetriesExhausted
from compacter.io import IO, is_kind
from compacter.messages.fields import field as member
from compacter.messages.fields import word
from compacter.messages.replies import Reply, chunk_text, read_reply

T = TypeVar("T")
E = TypeVar("E", bound=Event)


@dataclass(kw_only=True, eq=False)
class Performer:
    """Does what a compaction asks for: the `World` of one."""

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
    gave_up: bool = field(default=False, init=False)
    """Whether the call was given up after at least one round."""
    _started: float = field(default_factory=time.monotonic, init=False)
    # Tokens that the summarizer's provider has read from its cache.
    _cached: int = field(default=0, init=False)
    # Used part of `timeout`, in seconds: time of the summarizer, and of waiting for another call's
    # summary.
    _spent: float = field(default=0.0, init=False)

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

    @property
    def timeout(self) -> float | None:
        """Limit for the summaries, in seconds."""
        return self.state.options.timeout or self.most_seconds

    def time_left(self) -> float:
        """Return the rest of ``timeout``, in seconds."""
        return math.inf if self.timeout is None else max(0.0, self.timeout - self._spent)

    async def ask(self, question: AskSummarizer) -> Reply:
        """See `World`."""
        totals = self.state.totals
        summarizer = self.state.options.summarizer
        seconds = None if self.timeout is None else self.time_left()
        if summarizer is None or isinstance(summarizer, str):
            ask, blocks = self._request(question)
        else:
            options = {"model": self.model, "max_tokens": question.max_tokens}
            taken = {
                name: options[name]
                for name in self.state.summarizer_takes
                if options[name] is not None
            }
            ask = partial(summarizer, [dict(message) for message in question.messages], **taken)
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
        self._cached += _tokens_from_cache(raw) if reply.input_tokens else 0
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

    async def emit(self, event: E) -> E:
        """See `World`."""
        if isinstance(event, CompactionStarted):
            self._started = time.monotonic()
            self._cached = 0
        if isinstance(event, RetriesExhausted):
            self.gave_up = event.rounds > 0
        if isinstance(event, CompactionEvent):
            seconds = time.monotonic() - self._started
            event = event.model_copy(update={"duration": seconds, "cached_tokens": self._cached})
        for hook in self.state.record(event):
            # A copy, so that no hook sees another one's changes.
            await self.safely("hook", partial(self.io.hook, hook, event.model_copy()))
        return event

    async def approve(self, plan: CompactionPlan) -> CompactionPlan | None:
        """See `World`."""
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


def _tokens_from_cache(reply: object) -> int:
    """Return the tokens that a reply's usage says were read from a prompt cache."""
    usage = member(reply, "usage")
    details = member(usage, "prompt_tokens_details") or member(usage, "input_tokens_details")
    count = member(details, "cached_tokens") or member(usage, "cache_read_input_tokens")
    return count if isinstance(count, int) else 0
