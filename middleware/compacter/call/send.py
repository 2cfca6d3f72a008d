"""Send the request of one call to the wrapped function, and requests for summaries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from compacter.call import streams
from compacter.call.arguments import USUAL, Args, Binding, Named, options_of
from compacter.call.option_names import Form, other_form
from compacter.call.request import ConversationState, Request
from compacter.call.state import GiveUps, State
from compacter.compaction.check import join_users, origins_of
from compacter.effects import Ask
from compacter.events import PreparationFailed
from compacter.messages.fields import dig, first
from compacter.messages.format import Message
from compacter.messages.refusals import UNSAID
from compacter.messages.replies import Reply, read_reply, read_stream, tokens_cached
from compacter.options.checks import ASKED, taken
from compacter.overflow.signals import signals_of
from compacter.runtime import models
from compacter.runtime.io import IO, is_kind
from compacter.runtime.single_flight import LONGEST_WAIT

_CROWDED = "the server takes one request at a time; none is made ahead there from now on"
# Statuses of a server that accepts no further request now: too many, not available, overloaded.
_BUSY = (429, 503, 529)
# Statuses that are not about the form of a request.
_OTHER_REASONS = (401, 402, 403, 408, 429, 502, 503, 504, 529)
_STATUS = (
    "status_code",
    "response.status_code",
    "code",
    "response.ResponseMetadata.HTTPStatusCode",
)


@dataclass(kw_only=True, eq=False)
class Sender:
    """Sends the requests of one call, or those for the summaries of a compaction by hand."""

    state: State
    """State that the calls of a Compacter share."""
    io: IO
    """Input and output, sync or async."""
    model: str | None = None
    """Name of the model; of the function if the call has no model."""
    function: Callable[..., Any] | None = None
    """The wrapped function; ``None`` for a compaction by hand."""
    binding: Binding = field(default_factory=Binding)
    args: Args = ()
    kwargs: Named = field(default_factory=dict)
    request: Request = None  # type: ignore[assignment]  # once it has been read; never by hand
    """The caller's own request."""
    conversation: ConversationState = field(default_factory=ConversationState)
    place: str = ""
    """The server of the call, as far as it is known."""
    as_passed: bool = True
    """Whether ``request.original`` is what the caller passed: no ``History``, and without quotes of
    an earlier call."""
    last: Reply | None = None
    """Last reply of the wrapped function."""
    raised: list[Exception] = field(default_factory=list)
    """Exceptions of the wrapped function."""
    cached_tokens: int = 0
    """Tokens that the provider has read from its cache, of the requests for the present summary."""

    # -- the wrapped function ----------------------------------------------------------------------

    def take(self, reply: Reply | None) -> None:
        """Take the reply of a quiet call as the last one."""
        self.last = reply
        if reply is not None and reply.error is not None:
            self.raised.append(reply.error)

    def hands_back(self, error: Exception) -> bool:
        """Return whether the wrapped function has raised an exception, which then counts as the
        last reply.
        """
        is_own = any(error is each for each in self.raised)
        self.last = Reply(error=error) if is_own else self.last
        return is_own

    async def send(self, messages: Sequence[Message], options: Mapping[str, object]) -> Reply:
        """Call the wrapped function with these messages, and ``options`` in place of the caller's
        (such as a lowered ``max_tokens``). A token limit is in the reply; any other exception of
        the function is raised.

        If the server refuses the call as one too many while it makes a compaction ahead, wait for
        that compaction, then send the call once more. From then on, no compaction is made ahead on
        that server.
        """
        last = self.last
        limit = None if last is None or last.error is not None else last.token_limit
        # A stream that has ended without content may be handed back; it was read to its end.
        if last is not None and limit is not None and limit.source not in UNSAID:
            await streams.close(self.io, last.raw)
        args = self.args
        kwargs = self.kwargs
        binding = self.binding
        unchanged = self.as_passed and messages is self.request.original
        preparations = self.state.preparations
        beside = preparations.at(self.place) if self.state.prepares else ()
        if options or not unchanged:
            # If nothing was compacted, pass the caller's own object: it may be a text, or a list
            # that the function adds to.
            given = binding.messages(args, kwargs) if unchanged else list(messages)
            args, kwargs = binding.replace(args, kwargs, given, options)
        try:
            return await self._send_once(args, kwargs)
        except Exception as error:
            if not beside or first(error, _STATUS) not in _BUSY:
                raise
        preparations.crowded.add(self.place)
        for flight in beside:
            await flight.wait(self.io, LONGEST_WAIT)
        event = PreparationFailed(reason=_CROWDED, **self.request.named)
        await self.state.emit(self.io, event)
        return await self._send_once(args, kwargs)

    async def _send_once(self, args: Args, kwargs: Named) -> Reply:
        """Call the wrapped function; a token limit is in the reply."""
        detect = partial(self.state.limit_since, GiveUps.count)
        function: Any = self.function
        try:
            raw = await self.io.call(function, *args, **kwargs)
            quiet = self.binding.quiet
            self.last = await streams.opened(self.io, raw, detect, quiet, self.note_late)
        except Exception as error:
            self.raised.append(error)
            self.last = Reply(token_limit=detect(error), error=error)
            if self.last.token_limit is None:
                raise
        return self.last

    def note_late(self, error: Exception) -> None:
        """Note a token limit that ended a stream after its first content, so that the conversation
        is compacted before its next call.
        """
        limit = self.state.options.detect(error)
        if limit is not None:
            self.state.note_late(self.conversation, limit)

    # -- the summarizer ----------------------------------------------------------------------------

    async def request_summary(
        self, question: Ask, seconds: float | None, *, is_second: bool = False
    ) -> Reply:
        """Send a prompt, wait ``seconds`` at most, and add its costs to the totals. If the server
        refuses the form of the request, send the prompt once more in another.
        """
        totals = self.state.totals
        if question.by_provider:
            made = self._provider_request(question)
            if made is None:
                text = "" if self.state.tells_no_provider else "the wrapped call has no compaction"
                self.state.tells_no_provider = True
                return Reply(text)
            request = made
            blocks = False
        else:
            request, blocks = await self._summary_request(question)
        totals.add(summarizer_calls=1)
        try:
            raw = await self.io.ask(request, seconds, blocks=blocks)
        except Exception as error:
            form = self._form
            if question.by_provider or not self._learn_form(error, question) or is_second:
                raise
            try:
                return await self.request_summary(question, seconds, is_second=True)
            except Exception:
                self.state.forms[self._form_key] = form  # The other one did not help.
                raise
        reply = read_stream(raw) if isinstance(raw, tuple) else read_reply(raw)
        reply = replace(reply, raw=raw)
        model = self.state.options.writer
        if not isinstance(model, str):
            model = dig(raw, "model") or (self.model if model is None else None)
        if reply.input_tokens:
            self.cached_tokens += tokens_cached(raw)
            if isinstance(model, str):
                cost = models.cost(model, reply.input_tokens, reply.output_tokens, raw)
                reply = replace(reply, cost=cost)
        tokens = reply.input_tokens + reply.output_tokens
        self.conversation.spent.add(tokens, reply.cost, is_summary=True)
        totals.add(
            input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=reply.cost
        )
        return reply

    def _learn_form(self, error: Exception, question: Ask) -> bool:
        """Return whether the server has refused the form of a request for a summary; note the one
        for the next request.
        """
        options = self.state.options
        if callable(options.summarizer) or options.detect(error):
            return False
        status = first(error, _STATUS)
        if status in _OTHER_REASONS:
            return False
        form = self._form
        usual = self.binding.read(self.args, self.kwargs).output_option or "max_tokens"
        name = usual if form.limit is None else form.limit
        # `serve` and others have the server's words in the body only.
        # The status is no limit.
        said = f"{error} {signals_of(error).text}".replace(str(status), "")
        names = options_of(self.kwargs, self.binding.messages_param)
        other = other_form(said, form, name, question.max_tokens, names)
        if other in (None, form):
            return False
        self.state.forms[self._form_key] = other
        return True

    @property
    def _form_key(self) -> str:
        return f"{self.model}\0{self.place}\0{self.state.options.summarizer}"

    @property
    def _form(self) -> Form:
        """Form in which the server takes requests for summaries, as far as it is known."""
        return self.state.forms.get(self._form_key, USUAL)

    def _provider_request(self, question: Ask) -> Callable[[], Any] | None:
        """Return a function that has the provider compact messages; ``None`` if the wrapped call
        cannot, or secrets are redacted, as the provider's compaction would have them.
        """
        binding = self.binding
        if binding.provider_function is None or self.state.options.redact is not None:
            return None
        text = "\n".join(message["content"] for message in question.messages)
        messages = list(question.prefix or ())
        made = binding.provider_call(self.args, self.kwargs, messages, text, question.max_tokens)
        if made is None:
            return None
        args, kwargs = made
        return partial(binding.provider_function, *args, **kwargs)

    async def _summary_request(self, question: Ask) -> tuple[Callable[[], Any], bool]:
        """Return a function that requests the summary, and whether it blocks an event loop: the
        option ``summarizer``, the wrapped function itself, or litellm.
        """
        summarizer = self.state.options.writer
        messages = [dict(message) for message in question.messages]
        form = self._form
        limit = min(question.max_tokens, form.most or question.max_tokens)
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
                self.request.format,
                messages,
                limit,
                question.prefix,
                form,
            )
            if question.prefix and self.request.alternates:
                given = binding.messages(args, kwargs)
                origins = origins_of(self.request.original, given)
                joined = join_users(self.request.format, given, origins)
                args, kwargs = binding.replace(args, kwargs, joined, {})
            return partial(binding.summary_function or self.function, *args, **kwargs), False
        await self.io.thread(models.load)  # Now, as `timeout` limits the request alone.
        option = "max_tokens" if form.limit is None else form.limit
        beside = {option: limit} if option else {}
        awaits = self.io.awaits
        request = partial(
            models.completion,
            awaited=awaits,
            model=summarizer or self.model,
            messages=[*(question.prefix or ()), *messages],
            **beside,
            **({"stream": True} if form.streams else {}),
        )
        return request, not awaits
