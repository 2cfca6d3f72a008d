"""Requests for summaries: which function is called, with which arguments, and what it costs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from compacter.call.arguments import Args, Binding, Named
from compacter.call.option_names import other_limit
from compacter.call.state import State
from compacter.effects import AskSummarizer
from compacter.messages.fields import dig, first
from compacter.messages.replies import Reply, chunk_text, read_reply
from compacter.options.checks import ASKED, taken
from compacter.runtime import models
from compacter.runtime.io import IO, is_kind

# Where a reply states what its provider has read from a prompt cache.
_CACHED = (
    "usage.prompt_tokens_details.cached_tokens",
    "usage.input_tokens_details.cached_tokens",
    "usage.cache_read_input_tokens",
)


@dataclass(kw_only=True, eq=False)
class Summarizer:
    """Requests the summaries of one call, or of one compaction by hand."""

    state: State
    """State that the calls of a Compacter share."""
    io: IO
    """Sync or async."""
    model: str | None = None
    """Name of the model; of the function if the call has no model."""
    function: Callable[..., Any] | None = None
    """The wrapped function; ``None`` for a compaction by hand."""
    binding: Binding = field(default_factory=Binding)
    args: Args = ()
    kwargs: Named = field(default_factory=dict)
    place: str = ""
    """The server of the call, as far as it is known."""
    form: Any = None
    """`MessageFormat` of the call; by hand it is not needed."""
    cached_tokens: int = 0
    """Tokens that the provider has read from its cache."""

    async def request(self, question: AskSummarizer, seconds: float | None) -> Reply:
        """Send a prompt for ``seconds`` at most, and count what it costs."""
        totals = self.state.totals
        request, blocks = await self._request_of(question)
        totals.add(summarizer_calls=1)
        try:
            raw = await self.io.ask(request, seconds, blocks=blocks)
        except Exception as error:
            if not self._learn_output_limit(error, question):
                raise
            request, blocks = await self._request_of(question)
            totals.add(summarizer_calls=1)
            raw = await self.io.ask(request, seconds, blocks=blocks)
        reply = Reply("".join(map(chunk_text, raw))) if isinstance(raw, tuple) else read_reply(raw)
        model = self.state.options.summarizer
        if not isinstance(model, str):
            model = dig(raw, "model") or (self.model if model is None else None)
        if reply.input_tokens:
            cached = first(raw, _CACHED)
            self.cached_tokens += cached if isinstance(cached, int) else 0
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
                self.form,
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
