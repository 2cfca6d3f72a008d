"""One call: its request, its refusals, and the size of its next request. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compacter.call.request import FEWEST_QUOTED, ConversationState, Request
from compacter.call.thinking import leaves_out_thinking, note_standing, with_quotes
from compacter.compaction.calibration import CHARS_PER_TOKEN, Calibration
from compacter.compaction.sizes import CAREFUL_MARGIN, FILLING, LEAST_SUMMARY, MARGIN, Sizes
from compacter.effects import Ask, Emit, Flow, Quote
from compacter.errors import CompactionError, FunctionError
from compacter.events import CompactionFailed, CompactionSkipped, Event, Trigger, WindowFilling
from compacter.messages.format import Message
from compacter.messages.replies import is_cached, tokens_read, usage_in
from compacter.options import Options
from compacter.overflow import TokenLimit

_FAR = 2
"""Multiple of a limit from which messages are too large for sure: a character of one text may take
twice the tokens of another's."""


@dataclass(eq=False)
class Call:
    """One call, and the request that it sends next."""

    options: Options
    """Options of the Compacter."""
    request: Request
    """Request that is sent next; at first the caller's own."""
    calibration: Calibration
    """Calibration of the model; updated by this call."""
    state: ConversationState = field(default_factory=ConversationState)
    """The conversation's state between calls."""
    watched: bool = True
    """Whether a hook or a log receives events, such as that of a truncated prompt."""
    limit: TokenLimit = field(default_factory=TokenLimit)
    """Token limit of the last refusal; an empty one before the first."""
    quotes: bool = True
    """Whether quotes may be sent; False after a request with quotes was refused."""
    tried: list[str] = field(default_factory=list)
    """Descriptions of the steps that made the request smaller."""
    is_vetoed: bool = False
    """Whether ``before_compaction`` has prevented the last compaction."""
    sought: bool = False
    """Whether this call has already looked for quotes although there was no room for them."""
    refused: int = 0
    """Size of the request that was refused last, in characters."""
    is_harder: bool = False
    """Whether to compact all that can be compacted, as the round reduces nothing otherwise."""
    is_last: bool = False
    """Whether no round is left after this one."""
    is_smallest: bool = False
    """Whether the request was made as small as a compaction can make it."""
    puts_back: bool = False
    """Whether it sends the thinking that the compaction has left out, after a refusal."""

    @property
    def sizes(self) -> Sizes:
        """A calculator of the sizes, in characters and tokens, that the request of this call and
        its summary may have. It uses the options, what is known of the model's window, the size of
        the tools, and the output limit of the request.
        """
        request = self.request
        return Sizes(self.options, self.calibration, request.overhead, request.output_tokens or 0)

    @property
    def staying(self) -> int:
        """Size of the messages that no compaction removes, such as the system prompt, pins and the
        last user message, in characters.
        """
        read = self.request.conversation
        return read.size - read.free - self.request.saved

    @property
    def smallest(self) -> int:
        """Smallest size of the messages that a compaction can leave, in characters."""
        read = self.request.conversation
        left = read.size - read.heads[read.end] - self.request.saved
        return left + read.rules_size + LEAST_SUMMARY

    @property
    def attempt(self) -> int:
        """Number of the present round in this call, from 1."""
        return len(self.tried) + 1

    @property
    def in_cool_down(self) -> bool:
        """Whether the last compaction of this conversation is so recent that the next one waits."""
        state = self.state
        return 0 < state.last_attempt_at_call >= state.calls - self.options.min_calls_between

    def target(self, chars_per_token: float = 0.0) -> int | None:
        """Return the largest size of the messages, in characters, with which the request fits;
        ``None`` if no limit is known.

        Uses the calibration's characters per token, unless ``chars_per_token`` is given.
        """
        limit = self.limit
        request = self.request
        calibration = self.calibration
        if not limit.limit and calibration.is_bracketed and not chars_per_token:
            # In the unit in which the refused requests were estimated.
            chars_per_token = 1 / calibration.tokens_of_one(request.tokens_of_one)
        output = request.output_that_counts(limit)
        return self.sizes.target(limit.limit, output, chars_per_token)

    @property
    def is_measured(self) -> bool:
        """Whether the refusal states both the limit and the size of the request."""
        return bool(self.limit.limit and self.limit.input_tokens)

    @property
    def is_later(self) -> bool:
        """Whether an earlier round, or the last round of an earlier call, was refused too, or this
        one reduces nothing otherwise.
        """
        known = self.state.refused_size
        return self.is_harder or bool(self.tried) or self._still_refused(known)

    @property
    def is_halved(self) -> bool:
        """Whether the next request has to be at most half as large as the refused one."""
        return self.is_later and not self.is_measured

    @property
    def size(self) -> int:
        """Size of the messages as they are sent, without quotes, in characters."""
        return self.request.conversation.size - self.request.saved

    @property
    def may_want_thinking(self) -> bool:
        """Whether the request was sent without the thinking of older messages. Some models refuse
        such a request.
        """
        is_unknown = self.calibration.wants_thinking is None
        return is_unknown and not self.puts_back and leaves_out_thinking(self.request)

    def next_target(self) -> int | None:
        """Return the largest size of the messages in the next request, in characters; ``None`` if
        only the ratio decides.

        What the numbers of a refusal allow. Without numbers the first round is the ratio's. Each
        later one sends at most half of what was refused, and the last of several no more than was
        answered before, or the smallest request that there is: each round that is refused costs a
        summary, and a call that ends although half of its request fits is lost.
        """
        target = self.target()
        if self.is_measured:
            return self._measured_target(target or 0)
        if not self.is_later:
            return target
        request = self.request
        most = min(self.refused, self.state.refused_size or self.refused) // 2
        if self.is_last:
            each = self.calibration.tokens_of_one(request.tokens_of_one)
            most = min(most, int(self.calibration.taken * CAREFUL_MARGIN / each))
        most = max(0, most - request.overhead)
        return most if target is None else min(most, target)

    def _measured_target(self, target: int) -> int:
        """Return the target by the numbers of a refusal; less if a request that had been made by
        numbers was still a little too large: the server also counts what is not in the request.
        """
        limit = self.limit.limit or 0
        used = self.limit.input_tokens or 0
        if self.is_harder:
            return min(target, self.smallest)
        if not self.tried or used > limit * _FAR:
            return target
        excess = used + self.request.output_that_counts(self.limit) - int(limit * MARGIN)
        most = self.refused - int(excess * CHARS_PER_TOKEN) - self.request.overhead
        return max(0, min(target, most))

    def is_hopeless(self, target: int | None) -> bool:
        """Return whether no compaction helps, as far as is known: what must stay was refused, with
        nothing but a short summary beside it, or is far larger than the limit.
        """
        known = self.state.incompressible_size
        is_known = self._still_refused(known) and known <= self.staying + self.request.overhead
        if not self.is_measured or target is None:
            return is_known or self.is_smallest
        # Not the target, of which tools and an output limit take a part that is only estimated.
        limit = (self.limit.limit or 0) * self.calibration.chars_per_token
        return self.staying > (target if is_known else limit * _FAR)

    def give_up(self) -> None:
        """Record the size of the request that was refused although its history was compacted. Later
        calls of the conversation then do not try the same again.
        """
        state = self.state
        staying = self.staying
        state.refused_by = self.calibration
        state.refused_size = 0 if self.is_measured else self.refused
        target = self.target() if self.is_measured else None
        if staying > target if target is not None else self.is_smallest:
            state.incompressible_size = staying + self.request.overhead

    def note_answer(self, raw: object) -> None:
        """Note that the request was answered."""
        state = self.state
        calibration = self.calibration
        calibration.take(tokens_read(raw))
        # What it has just read it keeps for the next request.
        if usage := usage_in(raw):
            calibration.caches = calibration.caches or is_cached(usage)
        state.is_cached = bool(calibration.caches)
        note_standing(self.request, state)
        if calibration.wants_thinking is None and self.request.bound.older:
            last = self.request.conversation.last_user or 0
            if leaves_out_thinking(self.request, last):
                calibration.wants_thinking = False
        if self.puts_back:
            calibration.wants_thinking = self.request.sealed
        state.refused_size = 0
        if state.incompressible_size and self.request.size >= state.incompressible_size:
            state.incompressible_size = 0

    def tell_filling(self, tokens: int) -> Flow[None]:
        """Emit the event of a request that fills a known window, once; ``tokens`` of 0 are
        estimated.
        """
        window = self.calibration.window
        if not window:
            return
        tokens = tokens or self.calibration.tokens(self.request.size)
        fills = tokens >= window * FILLING
        if fills and not self.state.fills:
            share = tokens / window
            yield from self.emit(WindowFilling, share=share, tokens=tokens, window=window)
        self.state.fills = fills

    def estimate_tokens(self) -> Flow[int]:
        """Return the estimated input tokens of the request, tools and other options included.

        Uses the count of ``token_counter``; else the last usage, plus an estimate of the messages
        added since.
        """
        request = self.request
        state = self.state
        tokens = self.calibration.tokens
        if self.options.token_counter is not None:
            try:
                return self.options.token_counter(list(request.messages)) + tokens(request.overhead)
            except FunctionError as error:
                yield from self.emit_failure(error, trigger="threshold")
        size = request.size
        if state.tokens and size >= state.characters:
            return state.tokens + tokens(size - state.characters)
        return tokens(size)

    def estimate(self, messages: Sequence[Message]) -> int:
        """Return the estimated size of ``messages`` in tokens."""
        return self.calibration.tokens(sum(map(self.request.format.size, messages)))

    def check_share(self, question: Ask) -> None:
        """Raise ``FunctionError`` if the summaries have had their share of the option
        ``spending``.
        """
        spending = self.options.spending
        if spending is not None:
            size = sum(len(str(message.get("content"))) for message in question.messages)
            prompt = self.calibration.tokens(size)
            prompt += self.estimate(question.prefix or ()) * question.by_provider
            self.state.spent.check_share(spending, prompt, self.estimate(self.request.original))

    def warn_of_unknown_window(self, trigger: Trigger) -> Flow[None]:
        """Emit, once per model, the event that the option is a share of an unknown window."""
        if not self.calibration.warned:
            self.calibration.warned = True
            yield from self.emit(CompactionSkipped, trigger=trigger, reason="unknown_window")

    def _still_refused(self, size: int) -> bool:
        """Return whether the model has refused so many characters of this conversation, and has
        answered no request as large since.
        """
        calibration = self.calibration
        if not size or self.state.refused_by is not calibration:
            return False
        each = calibration.tokens_of_one(self.request.tokens_of_one)
        return calibration.taken < size * each

    def room_for_quotes(self) -> tuple[int, int]:
        """Return the largest size that quotes may have, and how many characters are free (negative
        if the request is too large), counted in characters of the request's own script.
        """
        return self.sizes.quotes(self.request.size, self.request.tokens_of_one)

    def quote(self, room: int, *, sent: bool = True, query: str = "") -> Flow[str]:
        """Return quotes of compacted messages, and add them to the request if they are ``sent``.

        Args:
            room: Their largest size, in characters.
            sent: Whether to add them to the request; otherwise they are only searched.
            query: A query of the model's, in place of the newest message's question; its answer
                may be of any size.
        """
        if room < FEWEST_QUOTED and not query:
            return ""
        request = self.request
        text = yield from Quote(
            request.original,
            request.conversation,
            room,
            request.archive,
            request.digest,
            request.tokens_of_one,
            sent,
            query,
            request.quotes,
        )
        if text and sent and not query:
            self.request = with_quotes(request, text)
        return text

    def emit(self, kind: type[Event], **facts: Any) -> Flow[None]:
        """Emit an event of this kind, with the names of model and conversation."""
        yield from Emit(kind(**facts, **self.request.named))

    def emit_failure(
        self, error: Exception, kind: type[Event] = CompactionFailed, **facts: Any
    ) -> Flow[None]:
        """Emit the event of a failure: of a user's function, which a ``FunctionError`` describes,
        or else of the summary.
        """
        cause = error.__cause__ if isinstance(error, CompactionError) else error
        raised = cause.__cause__ if isinstance(cause, FunctionError) else cause
        yield from self.emit(
            kind,
            reason=str(error) if isinstance(error, FunctionError) else "no summary could be had",
            error="" if raised is None else type(raised).__name__,
            cause=cause if isinstance(cause, Exception) else None,
            **facts,
        )
