"""A scripted chat model with a context window, which records its requests."""

from __future__ import annotations

import bisect
import copy
import inspect
import itertools
import operator
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from compacter.errors import with_hints
from compacter.messages.format import Message
from compacter.runtime.io import ASYNC
from compacter.testing.errors import (
    ProviderError,
    Style,
    TokenLimitError,
    error_body,
    invalid_request_error,
    style_of,
    token_limit_error,
)
from compacter.testing.replies import (
    AsyncScriptedStream,
    Frame,
    ParsedReply,
    Replies,
    Reply,
    ReplyType,
    ScriptedStream,
    read_reply,
    script,
    shaped,
)
from compacter.testing.rules import CharacterCount, Check, Count, chat_fault, is_list


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the provider received it. All sizes are in tokens."""

    model: str
    messages: tuple[Message, ...]
    """Deep copies: later changes by the caller have no effect."""
    options: Mapping[str, Any]
    """Other arguments of the call, such as ``tools`` or ``max_tokens``; not copied."""
    tokens: int
    """Size of the input: messages, tools and system prompt."""
    max_tokens: int | None
    cached_tokens: int
    """Tokens of the first messages that are equal to those of the request before."""
    streaming: bool
    refused: bool = False
    """True if the request did not fit into the window."""
    invalid: str = ""
    """Fault of the list of messages; empty if it is valid."""


OverflowAt = Literal["open", "first_event", "after_role", "error_chunk"]
"""Point at which a stream reports that the request is too long; see `ScriptedModel`."""

Completion: TypeAlias = Any
"""A completion in OpenAI's shape: a dict, or a `Struct` with ``reply_type="object"``."""

_OUTPUT_OPTIONS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def check_word(name: str, word: object, known: object) -> None:
    """Raise ``ValueError`` if an argument is not one of the words of a ``Literal``."""
    if word not in get_args(known):
        raise ValueError(f"{name} takes {', '.join(map(repr, get_args(known)))}, not {word!r}")


class _Turn(NamedTuple):
    """One request, and the answer to it."""

    request: Request
    refusal: TokenLimitError | None
    frame: Frame


@with_hints
class ScriptedModel:
    """Fake provider that validates and counts each request, answers or refuses it, and records it.

    Call it as you would call litellm: ``model.completion(model=..., messages=..., **options)``, or
    the instance itself, or ``await model.acompletion(...)``, each with ``stream=True`` too. It is
    deterministic and never waits.
    """

    def __init__(
        self,
        *,
        window: int = 8_000,
        style: str | Style = "openai",
        replies: Replies = "ok",
        reply_type: ReplyType = "dict",
        chars_per_token: float = 4,
        count: Count | None = None,
        counts_output: bool = False,
        truncates: bool = False,
        usage: bool | Mapping[str, Any] = True,
        strict: bool = True,
        check: Check = chat_fault,
        overflow_at: OverflowAt = "open",
        chunk_size: int = 16,
    ) -> None:
        """Create a model with scripted replies.

        Args:
            window: Context window, in tokens. A longer request is refused (`TokenLimitError`).
            style: Form of the errors: a name from `STYLES`, or a `Style` of your own.
            replies: One reply for all requests, an iterable of replies, or a function of the
                messages. A refused request consumes no reply.
            reply_type: "dict" or "object".
            chars_per_token: Characters that count as one token.
            count: Tokenizer to use instead: a function of messages and options that returns a
                number of tokens.
            counts_output: Whether to refuse if input and ``max_tokens`` together exceed the window,
                as some providers do. Otherwise an answer that has no room is cut, with
                finish_reason "length".
            truncates: Whether to read only what fits instead of refusing, as some servers do;
                ``usage`` shows it.
            usage: Whether to report token counts, or a fixed ``usage``. A stream sends it if
                ``stream_options`` ask.
            strict: Whether to refuse invalid lists (`InvalidRequestError`), by `check`.
            check: Rules to use instead of `chat_fault`, those of OpenAI's chat completions: a
                function that returns the fault of the messages, or None.
            overflow_at: Where a stream refuses: "open" raises from the call, "first_event" from the
                first chunk, "after_role" after the role-only chunk, and "error_chunk" yields a
                chunk with an ``error`` member.
            chunk_size: Characters of text per chunk.

        Raises:
            ValueError: A style or another word is unknown, or a number is out of range.
            TypeError: ``replies`` has another type.
        """
        if type(window) is not int or window < 1:
            raise ValueError(f"window must be a whole number, such as window=300: {window!r}")
        check_word("overflow_at", overflow_at, OverflowAt)
        check_word("reply_type", reply_type, ReplyType)
        self.window = window
        self.style = style_of(style)
        self.count: Count = CharacterCount(chars_per_token) if count is None else count
        self.check: Check | None = check if strict else None
        self._next = script(replies)
        self._reply_type: ReplyType = reply_type
        self._counts_output = counts_output
        self._truncates = truncates
        self._usage = usage
        self._overflow_at = overflow_at
        self._chunk_size = chunk_size
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._streams: list[ScriptedStream | AsyncScriptedStream] = []

    # The calls

    def completion(
        self, model: str, messages: Sequence[Message], *, stream: bool | None = None, **options: Any
    ) -> Completion:
        """Return a reply, or raise an error like that of a provider.

        Args:
            model: Any name; it is recorded in `requests`.
            messages: The messages, in OpenAI's shape, or in one that `count` and `check` accept.
            stream: Whether to return a stream.
            **options: Options as for litellm; `max_tokens`, `tools` and `stream_options` have an
                effect.

        Raises:
            TokenLimitError: The request does not fit into the window.
            InvalidRequestError: The list of messages is invalid.
            ScriptExhaustedError: The replies are used up.
        """
        turn = self._admit(model, messages, options, streaming=bool(stream))
        reply = None if turn.refusal else self._next(turn.request.messages)
        if inspect.iscoroutine(reply):
            reply.close()
        if inspect.isawaitable(reply):
            raise TypeError("replies is an async function: only acompletion can await it")
        return self._deliver(turn, reply, ScriptedStream)

    async def acompletion(
        self, model: str, messages: Sequence[Message], *, stream: bool | None = None, **options: Any
    ) -> Completion:
        """Like ``completion``, for async programs. It yields to the event loop once before it
        answers, so other tasks can run in between, as they would during a request over a network.
        """
        turn = self._admit(model, messages, options, streaming=bool(stream))
        await ASYNC.sleep(0)
        reply = None if turn.refusal else self._next(turn.request.messages)
        if inspect.isawaitable(reply):
            reply = await reply
        return self._deliver(turn, reply, AsyncScriptedStream)

    __call__ = completion

    # Recorded requests

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far, including refused ones."""
        return tuple(self._requests)

    @property
    def rejected(self) -> int:
        """Number of requests refused because of their length."""
        return sum(request.refused for request in self._requests)

    @property
    def invalid(self) -> int:
        """Number of requests refused because of an invalid list of messages."""
        return sum(bool(request.invalid) for request in self._requests)

    @property
    def tokens_sent(self) -> int:
        """Input tokens of all requests, including refused ones."""
        return sum(request.tokens for request in self._requests)

    @property
    def cached_tokens(self) -> int:
        """Part of `tokens_sent` that a prompt cache would have had: see `Request.cached_tokens`."""
        return sum(request.cached_tokens for request in self._requests)

    @property
    def uncached_tokens(self) -> int:
        """Part of `tokens_sent` that a prompt cache would not have had."""
        return self.tokens_sent - self.cached_tokens

    @property
    def streams(self) -> tuple[ScriptedStream | AsyncScriptedStream, ...]:
        """All streams so far, with their state in ``closed`` and ``delivered``."""
        return tuple(self._streams)

    # The steps of a call

    def _admit(
        self, model: str, messages: Sequence[Message], options: dict[str, Any], *, streaming: bool
    ) -> _Turn:
        """Validate the messages, then count, as a server does. The request is recorded in
        any case.
        """
        fault = (self.check(messages) if self.check is not None else None) or ""
        kept = tuple(copy.deepcopy(list(messages))) if is_list(messages) else ()
        tokens = 0 if fault else self.count(kept, options)
        wanted = next(
            (options[name] for name in _OUTPUT_OPTIONS if options.get(name) is not None), None
        )
        output = wanted if self._counts_output else None
        refused = not fault and not self._truncates and tokens + (output or 0) > self.window
        with self._lock:
            request = Request(
                model=model,
                messages=kept,
                options=MappingProxyType(dict(options)),
                tokens=tokens,
                max_tokens=wanted,
                cached_tokens=0 if fault else self.count(self._same_start(kept), {}),
                streaming=streaming,
                refused=refused,
                invalid=fault,
            )
            self._requests.append(request)
            number = len(self._requests)
        if fault:
            raise invalid_request_error(message=fault)
        refusal = None
        if refused:
            refusal = token_limit_error(
                self.style, limit=self.window, input_tokens=tokens, output_tokens=output
            )
        return _Turn(request, refusal, Frame(number, model))

    def _same_start(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the first messages that are equal to those of the last request."""
        previous = self._requests[-1].messages if self._requests else ()
        same = itertools.takewhile(bool, map(operator.eq, previous, messages))
        return messages[: len(list(same))]

    def _deliver(
        self, turn: _Turn, reply: Reply | None, kind: type[ScriptedStream | AsyncScriptedStream]
    ) -> Completion:
        request = turn.request
        if turn.refusal is not None:
            if not request.streaming or self._overflow_at == "open":
                raise turn.refusal
            chunks = self._refusing(turn.refusal, turn.frame)
        else:
            answer = self._finish_answer(read_reply(reply or ""), request)
            frame = replace(turn.frame, usage=self._usage_of(answer, request))
            if not request.streaming:
                return shaped(frame.completion(answer), self._reply_type)
            chunks = self._chunks(answer, request, frame)
        stream = kind(chunks, self._reply_type)
        with self._lock:
            self._streams.append(stream)
        return stream

    def _refusing(self, refusal: ProviderError, frame: Frame) -> Iterator[dict[str, Any]]:
        if self._overflow_at == "first_event":
            raise refusal
        if self._overflow_at == "error_chunk":
            yield {**frame.housekeeping(), "error": error_body(refusal)}
            return
        yield frame.chunk({"role": "assistant", "content": ""})
        raise refusal

    def _finish_answer(self, answer: ParsedReply, request: Request) -> ParsedReply:
        """Return the answer, cut to the room left, with a finish reason; unchanged if the script
        states one.
        """
        if answer.finish_reason:
            return answer
        room = max(1, self.window - request.tokens)
        if request.max_tokens is not None:
            room = min(room, request.max_tokens)
        if answer.content and self._output(answer.content) > room:
            lengths = range(len(answer.content) + 1)
            fitting = bisect.bisect(
                lengths, room, key=lambda length: self._output(str(answer.content)[:length])
            )
            return replace(
                answer, content=answer.content[: fitting - 1], tool_calls=(), finish_reason="length"
            )
        return replace(answer, finish_reason="tool_calls" if answer.tool_calls else "stop")

    def _output(self, text: str) -> int:
        return self.count(({"role": "assistant", "content": text},), {})

    def _usage_of(self, answer: ParsedReply, request: Request) -> Mapping[str, Any] | None:
        if answer.whole is not None:
            return answer.whole.get("usage")
        if not isinstance(self._usage, bool):
            return self._usage
        if not self._usage:
            return None
        read = min(request.tokens, self.window) if self._truncates else request.tokens
        written = self.count((answer.message,), {})
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": min(request.cached_tokens, read)},
        }

    def _chunks(
        self, answer: ParsedReply, request: Request, frame: Frame
    ) -> Iterator[dict[str, Any]]:
        asked = request.options.get("stream_options") or {}
        wanted = frame.chunks(
            answer, size=self._chunk_size, with_usage=bool(asked.get("include_usage"))
        )
        yield from itertools.islice(wanted, answer.fail_after)
        if answer.fail_after is not None:
            raise answer.error or token_limit_error(
                self.style,
                limit=self.window,
                input_tokens=request.tokens,
                output_tokens=max(1, self.window - request.tokens + 1),
            )
