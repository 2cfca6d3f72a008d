"""The wrapped function with the arguments of one call, and the requests that they make: of the call
itself, and for summaries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from compacter.call.arguments import Args, Arguments, Binding, Named
from compacter.call.option_names import USUAL, Form, other_form
from compacter.call.request import Request
from compacter.call.state import State
from compacter.compaction.check import join_users, origins_of
from compacter.effects import Ask
from compacter.messages.fields import first
from compacter.messages.format import Message
from compacter.options.checks import ASKED, taken
from compacter.overflow.signals import signals_of
from compacter.runtime import models
from compacter.runtime.io import IO, is_kind

STATUS = (
    "status_code",
    "response.status_code",
    "code",
    "response.ResponseMetadata.HTTPStatusCode",
)
"""Paths of the HTTP status in an exception."""
# Statuses that are not about the form of a request.
_OTHER_REASONS = (401, 402, 403, 408, 429, 502, 503, 504, 529)


@dataclass(frozen=True, kw_only=True)
class Target:
    """The wrapped function together with the arguments of one call of it: it makes the arguments
    for compacted messages, and asks the function for a summary.
    """

    function: Callable[..., Any] | None = None
    """The wrapped function; ``None`` for a compaction by hand."""
    binding: Binding = field(default_factory=Binding)
    args: Args = ()
    kwargs: Named = field(default_factory=dict)
    model: str | None = None
    """Name of the model; of the function if the call has no model."""
    place: str = ""
    """The server of the call, as far as it is known."""
    as_passed: bool = True
    """Whether the request's ``original`` is what the caller passed: no ``History``, and without
    quotes of an earlier call."""

    def arguments(
        self, request: Request, messages: Sequence[Message], options: Mapping[str, object]
    ) -> Arguments:
        """Return the arguments of a call with these messages, and ``options`` in place of the
        caller's.
        """
        given: Any = list(messages)
        if self.as_passed and messages is request.original:
            if not options:
                return self.args, self.kwargs
            # The caller's own object: it may be a text, or a list that the function adds to.
            given = self.binding.messages(self.args, self.kwargs)
        return self.binding.replace(self.args, self.kwargs, given, options)

    async def ask(
        self, state: State, io: IO, request: Request, question: Ask, seconds: float | None
    ) -> Any:
        """Return the reply to a prompt, or ``None`` if the provider is to compact and cannot. Wait
        ``seconds`` at most. If the server refuses the form of the request, send the prompt once
        more in another.
        """
        options = state.options
        key = f"{self.model}\0{self.place}\0{options.summarizer}"
        form = state.forms.get(key, USUAL)
        blocks = False
        made: Callable[[], Any] | None = None
        if not question.by_provider:
            made, blocks = await self._summary(io, request, question, form, options.writer)
        elif options.redact is None:  # The provider's compaction would contain the secrets.
            made = self._by_provider(question)
        if made is None:
            return None
        state.totals.add(summarizer_calls=1)
        try:
            return await io.ask(made, seconds, blocks=blocks)
        except Exception as error:
            if question.by_provider or callable(options.summarizer) or options.detect(error):
                raise
            other = self._other_form(error, question, form)
            if other in (None, form):
                raise
        made, blocks = await self._summary(io, request, question, other, options.writer)
        state.totals.add(summarizer_calls=1)
        raw = await io.ask(made, seconds, blocks=blocks)
        state.forms[key] = other
        return raw

    async def _summary(
        self, io: IO, request: Request, question: Ask, form: Form, summarizer: Any
    ) -> tuple[Callable[[], Any], bool]:
        """Return a function that requests the summary, and whether it blocks an event loop: the
        option ``summarizer``, the wrapped function itself, or litellm.
        """
        messages = [dict(message) for message in question.messages]
        limit = min(question.max_tokens, form.most or question.max_tokens)
        if callable(summarizer):
            options = {"model": self.model, "max_tokens": limit}
            names = (name for name in taken(summarizer, ASKED) if options[name] is not None)
            blocks = io.asynchronous and not is_kind(inspect.iscoroutinefunction, summarizer)
            given = {name: options[name] for name in names}
            return partial(summarizer, messages, **given), blocks
        if summarizer is None and self.function is not None:
            return self._by_function(request, question, form, messages, limit), False
        await io.thread(models.load)  # Now, as `timeout` limits the request alone.
        option = "max_tokens" if form.limit is None else form.limit
        made = partial(
            models.completion,
            awaited=io.awaits,
            model=summarizer or self.model,
            messages=[*(question.prefix or ()), *messages],
            **({option: limit} if option else {}),
            **({"stream": True} if form.streams else {}),
        )
        return made, not io.awaits

    def _by_function(
        self, request: Request, question: Ask, form: Form, prompt: list[Any], limit: int
    ) -> Callable[[], Any]:
        """Return the wrapped function with the arguments of a request for a summary."""
        binding = self.binding
        prefix = question.prefix
        args, kwargs = binding.summary_call(
            self.args, self.kwargs, request.format, prompt, limit, prefix, form
        )
        if prefix and request.alternates:
            given = binding.messages(args, kwargs)
            joined = join_users(request.format, given, origins_of(request.original, given))
            args, kwargs = binding.replace(args, kwargs, joined, {})
        function: Any = binding.summary_function or self.function
        return partial(function, *args, **kwargs)

    def _by_provider(self, question: Ask) -> Callable[[], Any] | None:
        """Return a function that has the provider compact messages; ``None`` if the wrapped call
        cannot.
        """
        function = self.binding.provider_function
        if function is None:
            return None
        text = "\n".join(message["content"] for message in question.messages)
        messages = list(question.prefix or ())
        made = self.binding.provider_call(
            self.args, self.kwargs, messages, text, question.max_tokens
        )
        return None if made is None else partial(function, *made[0], **made[1])

    def _other_form(self, error: Exception, question: Ask, form: Form) -> Form | None:
        """Return the form of the next request for a summary, after the server has refused this one;
        ``None`` if the error is not about the form.
        """
        status = first(error, STATUS)
        if status in _OTHER_REASONS:
            return None
        usual = self.binding.read(self.args, self.kwargs).output_option or "max_tokens"
        name = usual if form.limit is None else form.limit
        # `serve` and others have the server's words in the body only. The status is no limit.
        said = f"{error} {signals_of(error).text}".replace(str(status), "")
        return other_form(said, form, name, question.max_tokens, self.binding.names(self.kwargs))
