"""Policy of one wrapped call: the remembered view, the trigger, the request, and the rounds after a token limit.

Pure: a `Policy` yields effects and continues with their results. In the order of a call: `complete` begins it,
`recover` makes the request smaller until it is answered or given up; then the ways to make it smaller, the trigger, the
usage of replies, and the numbers in the provider's errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.request import ConversationState, Request, advice, pinned, tokens_read, with_less_retrieved
from compacter.compaction.plan import MARGIN, Calibration, Job, most_tokens, plan, target_characters
from compacter.compaction.run import compact
from compacter.effects import Call, Emit, Flow, Quote, Remembered, Reply
from compacter.errors import CompactionError, FunctionError, add_note
from compacter.events import (
    CompactionFailed,
    CompactionReused,
    CompactionSkipped,
    MaxTokensAdjusted,
    MessageShortened,
    RetriesExhausted,
    SilentTruncation,
)
from compacter.messages.format import Message
from compacter.options import Options, Retrieved
from compacter.overflow import NO_ROOM, TokenLimit

_LEAST_OUTPUT = 64
"""Smallest output limit, in tokens, worth retrying with; below it the history is compacted."""
_DENSE = 2.5
"""Characters per token from which a stated size is accepted without checking it against the text."""
_FULL = 0.98
"""Share of the window from which prompt and reply count as filling it; servers reserve a few tokens."""
_MOST_RESERVED = 0.5
"""Largest share of the window that is reserved for the output; many programs set the limit to the whole window."""
_FEWEST_QUOTED = 300
"""Least room for quotes, in characters with their frame; with less, none are sent."""
_OUTPUT_MARGIN = 8
"""Tokens left free when the output limit is lowered, for those that a chat template adds."""
_FAR_OVER = 1.5
"""Multiple of the threshold from which the cool-down is ignored."""
_TARGET_SHARE = 0.9
"""Target of a proactive compaction, as a share of the threshold, so that the next message does not trigger again."""
_GROWN = 1.25
"""Growth after which a history that stayed above the threshold is compacted again, as a multiple of its size."""
_CUT_SHARE = 0.6
"""Largest share of its expected tokens, by the model's calibration, that a truncated prompt has."""
_MOST_CHARACTERS = 7.0
"""Fewest characters per token that a truncated prompt seems to have. English has 4 to 5."""


@dataclass(eq=False)
class Policy:
    """Decisions of one wrapped call."""

    options: Options
    """Options of the Compacter."""
    request: Request
    """Request that is sent next; at first the caller's own."""
    calibration: Calibration
    """Calibration of the model; updated by this call."""
    state: ConversationState = field(default_factory=ConversationState)
    """The conversation's state between calls, for the trigger."""
    detect: Callable[[BaseException], TokenLimit | None] | None = None
    """Detector of token limits; ``None`` for the one of the options."""
    watched: bool = True
    """Whether the usage of every reply is read, for event hooks or the trigger."""
    quotes: bool = True
    """Whether quotes may be sent; not after a request with quotes was refused."""
    tried: list[str] = field(default_factory=list)
    """Descriptions of the steps that made the request smaller."""

    # -- one call ------------------------------------------------------------------------------------------------------

    def complete(self) -> Flow[object]:
        """Return the reply to the call. Raises the exceptions of the call and those of ``recover``."""
        state, original = self.state, self.request.original
        state.calls += 1
        if self.options.memory is not None:
            view = yield from Remembered(original)
            if view is not None and self._keeps_pins(view):
                self.request = replace(self.request, messages=tuple(view), read=None)
        if self.options.trigger_tokens is not None:
            yield from self._fold_ahead()
        reply = yield from self._send()
        if reply.token_limit is not None:
            state.tried = state.calls
            return (yield from self.recover(reply))
        return (yield from self._checked(reply))

    def recover(self, refused: Reply) -> Flow[object]:
        """Make the request smaller and call again, until there is a reply, another error, or nothing left to try.

        ``refused`` is the reply with the token limit. Raises the provider's own last exception, with a note that lists
        the rounds, if the call is given up; ``CompactionError`` if there is neither a summary nor a fallback.
        """
        if refused.token_limit is None or not self.confirmed(refused.token_limit):
            return refused.raw
        limit = self.options.max_retries
        stop = stop_after_attempt(1 + limit) if isinstance(limit, int) else limit
        rounds = RetryCallState(Retrying(stop=stop), fn=None, args=(), kwargs={})
        while refused.token_limit is not None:
            found = self.calibrate(refused.token_limit)
            error = refused.error or RuntimeError("the reply says that the request is too long")
            rounds.set_exception((type(error), error, error.__traceback__))
            if stop(rounds):
                return (yield from self._give_up(refused, "no rounds are left" if self.tried else "max_retries=0"))
            rounds.prepare_for_next_attempt()
            try:
                done = yield from self._make_smaller(found)
            except CompactionError as failure:
                # If it has no cause of its own, the provider's error, for which the summary was needed.
                raise failure from failure.__cause__ or refused.error
            if not done:
                return (yield from self._give_up(refused, "nothing more can be reduced"))
            self.tried.append(done)
            refused = yield from self._send()
        return refused.raw

    def _send(self) -> Flow[Reply]:
        """Send the request, with quotes for its question if messages were folded, and return the reply.

        A token limit is in the reply; any other error is raised.
        """
        request = self.request
        room = self._room_for_quotes()
        if room >= _FEWEST_QUOTED and request.conversation.last_user is not None:
            text = yield from Quote(request.original, request.conversation, room, request.archive, request.digest)
            if text:
                self.request = request = replace(request, quotes=text)
        try:
            reply = yield from Call(request.sent, request.options)
        except Exception as error:
            found = (self.detect or self.options.detect)(error)
            if found is None:
                raise
            return Reply(token_limit=found, error=error)
        if reply.error is not None and reply.token_limit is None:
            raise reply.error
        if reply.token_limit is not None and not self.confirmed(reply.token_limit):
            return replace(reply, token_limit=None)
        return reply

    def _room_for_quotes(self) -> int:
        """Return the room for quotes, in characters; 0 if no messages were folded or quotes are off."""
        request, calibration = self.request, self.calibration
        recall = self.options.recall
        if recall is None or not self.quotes or (request.messages is request.original and not request.archive):
            return 0
        window = calibration.window or self.threshold()
        text_per_token = calibration.text_per_token or calibration.chars_per_token
        room = recall.room(window, text_per_token)
        if window is None:  # They may be refused; after the last round the request could not be sent without them.
            return 0 if self.tried and len(self.tried) == self.options.max_retries else room
        output = min(request.output_tokens or 0, int(window * _MOST_RESERVED))
        free = int((window - output) * MARGIN * calibration.chars_per_token) - request.size
        return min(room, int(free * text_per_token / calibration.chars_per_token))

    def _give_up(self, refused: Reply, reason: str) -> Flow[object]:
        """Raise the provider's own exception, with a note; return the reply if the refusal was one."""
        found, rounds = refused.token_limit, len(self.tried)
        facts: dict[str, Any] = {"limit": found.limit, "requested": found.requested} if found else {}
        yield from Emit(RetriesExhausted(rounds=rounds, reason=reason, attempt=rounds, **facts, **self.request.named))
        if refused.error is None:
            return refused.raw
        steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(self.tried, 1))
        helps = advice(self.request, self.calibration, found.limit if found else None)
        add_note(refused.error, f"compacter gave up: {reason} ({steps or 'nothing was tried'}).{helps}")
        raise refused.error

    # -- ways to make the request smaller ------------------------------------------------------------------------------

    def _make_smaller(self, found: TokenLimit) -> Flow[str]:
        """Make the request smaller, and return a description of the step; empty if there is no way to."""
        request, target = self.request, self.target(found)
        if request.quotes:
            self.quotes = False
            self.request = request = replace(request, quotes="")
            if target is not None and target >= request.conversation.size:
                return "quotes left out"
        lowered = self.lowered_output(found) if found.kind == "input_plus_output" else None
        if lowered is not None:
            before = request.output_tokens or 0
            self.request = replace(
                request, options={**request.options, request.output_option: lowered}, output_tokens=lowered
            )
            event = MaxTokensAdjusted(
                before=before, after=lowered, limit=found.limit, attempt=len(self.tried) + 1, **request.named
            )
            yield from Emit(event)
            return f"{request.output_option} lowered from {before} to {lowered}"
        read, step = request.conversation, ""
        if self.options.retrieved is not None:
            step = yield from self._shorten_message(self.options.retrieved, target, found)
            if not step and (target is None or read.size - read.free - request.saved > target):
                # To fold all that may be folded would not suffice, as far as is known.
                step = yield from self._shorten_message(None, target, found)
        return step or (yield from self._fold(self.job(target, found)))

    def _shorten_message(self, how: Retrieved | None, target: int | None, found: TokenLimit) -> Flow[str]:
        """Shorten retrieved text, or tool results, in the last user message; return what was done, if anything."""
        try:
            shorter = with_less_retrieved(self.request, how, target)
        except FunctionError as error:
            yield from self._failed("token_limit", str(error), error)
            return ""
        if shorter is None:
            return ""
        self.request, read = shorter, shorter.conversation
        size = read.sizes[read.last_user or 0]
        facts = {"limit": found.limit, "attempt": len(self.tried) + 1, **shorter.named}
        yield from Emit(MessageShortened(before=size, after=size - shorter.saved, **facts))
        return f"the last user message shortened by {shorter.saved:,} characters"

    def _fold(self, job: Job) -> Flow[str]:
        """Compact the messages, or use another call's compaction of them; return a description, empty if unchanged.

        The memory is always read again: another call may have stored a record since this one began. Raises
        ``CompactionError`` if there is neither a summary nor a fallback.
        """
        request, planned = self.request, plan(self.options, job)
        if self.options.memory is not None and planned.head:
            view = yield from Remembered(request.original, planned.head)
            if view is not None and self._keeps_pins(view):
                smaller = replace(request, messages=tuple(view), read=None)
                if smaller.size < request.size:
                    self.request = smaller
                    before, after = len(request.messages), len(smaller.messages)
                    yield from Emit(CompactionReused(messages_before=before, messages_after=after, **job.named))
                    return "a compaction that another call had just made"
        made = yield from compact(self.options, job, original=request.original, planned=planned)
        if made is None:
            return ""
        self.request = replace(request, messages=made.messages, read=made.conversation)
        before, after = made.event.original_data_size, made.event.compacted_data_size
        return f"{before:,} to {after:,} characters ({made.event.strategy})"

    def job(self, target: int | None, found: TokenLimit | None = None) -> Job:
        """Return the job of compacting the messages to a target size, in characters.

        ``found`` is the token limit that requires it; ``None`` for the trigger.
        """
        request, recall, calibration = self.request, self.options.recall, self.calibration
        conversation, refused = request.conversation, found is not None
        if target is not None:
            target += request.saved
        if target is not None and target >= conversation.size:
            # It fits by its characters, and was refused all the same: use the ratio of the provider's numbers.
            target = self._in_proportion(found)
        # Between an agent's steps there is no new question, so its steps need the room more than quotes (issue 10).
        asked = refused and conversation.last_user == len(conversation.messages) - 1
        quotes = 0
        if recall is not None and self.quotes and asked and target is not None:
            room = max(0, target - conversation.size + conversation.free)
            quotes = recall.room(calibration.tokens(room), calibration.chars_per_token)
        return Job(
            conversation=conversation,
            reserved=quotes if quotes >= _FEWEST_QUOTED else 0,
            trigger="token_limit" if refused else "threshold",
            calibration=calibration,
            model=request.model,
            attempt=len(self.tried) + 1,
            digest=request.digest,
            target=target,
            found=found,
            must=refused,
        )

    def lowered_output(self, found: TokenLimit) -> int | None:
        """Return a lower output limit, in tokens, if the input alone fits; ``None`` if that does not help."""
        before = self.request.output_tokens
        if not self.options.adjust_max_tokens or not found.limit or not before:
            return None
        used = found.input_tokens or 0
        left = found.limit - used - _OUTPUT_MARGIN
        return left if used > 0 and _LEAST_OUTPUT <= left < before else None

    def _keeps_pins(self, view: Sequence[Message]) -> bool:
        """Return whether a remembered view contains all pinned messages; some may have been pinned since."""
        request = self.request
        wanted = pinned(request.pin, request.original, request.pinned_by_history)
        present = set(map(id, view)) if wanted else ()
        return all(id(request.original[index]) in present for index in wanted)

    # -- the trigger ---------------------------------------------------------------------------------------------------

    def _fold_ahead(self) -> Flow[None]:
        """Compact before the call if the request has reached the threshold."""
        state, request, threshold = self.state, self.request, self.threshold()
        if threshold is None:
            if not self.calibration.warned:
                self.calibration.warned = True
                yield from self._skipped("unknown_window")
            return
        if state.calls == 1:
            return
        tokens, size = (yield from self._estimated()), request.size
        if tokens < threshold or (state.stuck and size <= state.stuck * _GROWN):
            return
        held_back = state.tried is not None and state.calls - state.tried <= self.options.min_calls_between
        if held_back and tokens < threshold * _FAR_OVER:
            yield from self._skipped("cool_down")
            return
        target = max(1, int(size * threshold * _TARGET_SHARE / tokens) - request.overhead)
        if (yield from self._folded_to(target)):
            left = yield from self._estimated()
            state.stuck = self.request.size if left >= threshold else 0

    def _folded_to(self, target: int) -> Flow[bool]:
        """Compact the messages to this size, in characters, and return whether it succeeded.

        A failure is sent as an event, not raised.
        """
        state = self.state
        state.tried = state.calls
        try:
            done = yield from self._fold(self.job(target))
        except CompactionError as error:
            yield from self._failed("threshold", "no summary could be had", error.__cause__)
            return False
        if done:
            state.tokens = state.stuck = 0
        else:
            state.stuck = self.request.size
        return bool(done)

    def threshold(self) -> int | None:
        """Return the input tokens from which the trigger compacts, with room for the output.

        ``None`` without the option ``trigger_tokens``, or if it is a share of an unknown window.
        """
        trigger, window = self.options.trigger_tokens, self.calibration.window
        if trigger is None or (isinstance(trigger, float) and not window):
            return None
        if not window:
            return int(trigger)
        room = window - min(self.request.output_tokens or 0, int(window * _MOST_RESERVED))
        return max(1, min(int(trigger * window) if isinstance(trigger, float) else trigger, room))

    def _estimated(self) -> Flow[int]:
        """Return the estimated input tokens of the request, tools and other options included.

        The count of ``token_counter``; else the last usage, plus an estimate of the messages added since.
        """
        request, state, tokens = self.request, self.state, self.calibration.tokens
        if self.options.token_counter is not None:
            try:
                return self.options.token_counter(list(request.messages)) + tokens(request.overhead)
            except FunctionError as error:
                yield from self._failed("threshold", str(error), error)
        size = request.size
        if state.tokens and size >= state.characters:
            return state.tokens + tokens(size - state.characters)
        return tokens(size)

    def _skipped(self, reason: Literal["cool_down", "unknown_window"]) -> Flow[None]:
        yield from Emit(CompactionSkipped(trigger="threshold", reason=reason, **self.request.named))

    def _failed(
        self, trigger: Literal["token_limit", "threshold"], reason: str, cause: BaseException | None
    ) -> Flow[None]:
        raised = cause.__cause__ if isinstance(cause, FunctionError) else cause
        error = type(raised).__name__ if raised is not None else ""
        why = cause if isinstance(cause, Exception) else None
        yield from Emit(CompactionFailed(trigger=trigger, reason=reason, error=error, cause=why, **self.request.named))

    # -- usage of a reply, and prompts that the server has silently truncated ------------------------------------------

    def _checked(self, reply: Reply) -> Flow[object]:
        """Learn from the reply's usage, and return the reply.

        With a trigger, a prompt that the server has truncated is compacted and sent once more, if a round is allowed.
        """
        tokens = 0 if self.calibration.learnt and not self.watched else tokens_read(reply.raw)
        if not tokens:
            return reply.raw
        if not (yield from self.cut_silently(tokens)):
            self._learn(tokens)
            return reply.raw
        whole = self.request
        if self.options.trigger_tokens is None or self.options.max_retries == 0:
            return reply.raw
        target = max(1, int(tokens * _TARGET_SHARE * self.calibration.chars_per_token) - whole.overhead)
        self.request = replace(whole, quotes="")
        if (yield from self._folded_to(target)):
            try:
                again = yield from self._send()
            except Exception:  # noqa: BLE001 - the first call has succeeded; its reply is returned
                again = reply
            if again is not reply and again.token_limit is None:
                read = tokens_read(again.raw)
                if read and self._missing(read) is None:
                    self._learn(read)
                return again.raw
        self.request = whole
        return reply.raw

    def cut_silently(self, tokens: int) -> Flow[bool]:
        """Return whether a server that read ``tokens`` has silently truncated the prompt, and send an event if so."""
        expected = self._missing(tokens)
        if expected is None:
            return False
        yield from Emit(SilentTruncation(expected_tokens=expected, prompt_tokens=tokens, **self.request.named))
        return True

    def _missing(self, tokens: int) -> int | None:
        """Return the request's own tokens if a server that read ``tokens`` has truncated it, else ``None``.

        Checked again by its texts alone: sizes of media are estimates, and old reasoning is not always read.
        """
        if expected_tokens(self.request.size, tokens, self.calibration) is None:
            return None
        words = sum(map(len, self.request.texts)) + self.request.overhead
        return expected_tokens(words, tokens, self.calibration)

    def _learn(self, tokens: int) -> None:
        size, quotes, state = self.request.size, len(self.request.quotes), self.state
        self.calibration.learn(size, tokens)
        # Without the quotes: the next request may have others, or none.
        state.tokens, state.characters = tokens - self.calibration.tokens(quotes), size - quotes

    # -- the provider's numbers ----------------------------------------------------------------------------------------

    def confirmed(self, found: TokenLimit) -> bool:
        """Return whether a reply that was cut off has filled the window; True for any other sign of a token limit.

        It has if it is below the caller's output limit, and prompt and reply fill the window; if the window is unknown,
        if the reply has one token at most.
        """
        if found.source != NO_ROOM:
            return True
        written, allowed, window = found.output_tokens or 0, self.request.output_tokens, self.calibration.window
        if allowed is not None and written >= allowed:
            return False
        if window is None:
            return written <= 1
        return (found.input_tokens or 0) + written >= window * _FULL

    def calibrate(self, found: TokenLimit) -> TokenLimit:
        """Calibrate by the error's numbers, and return the token limit with its input tokens filled in."""
        calibration, used = self.calibration, found.input_tokens
        if used is None and found.requested:
            used = found.requested - (self.request.output_tokens or 0 if found.kind == "input_plus_output" else 0)
        calibration.window = found.limit or calibration.window
        if not used:
            return found
        size = self.request.size
        believed = size >= used * _DENSE
        if not believed:
            # A number larger than the texts can have in tokens also counts something else.
            texts = self.request.texts
            believed = used <= most_tokens(texts) + max(0, size - sum(map(len, texts)))
        if believed:
            calibration.learn(size, used)
        return replace(found, input_tokens=used)

    def target(self, found: TokenLimit) -> int | None:
        """Return the largest size of the messages, in characters; ``None`` if no limit is known."""
        overhead, output_tokens = self.request.overhead, self.request.output_tokens
        return target_characters(found, self.calibration, overhead=overhead, output_tokens=output_tokens)

    def _in_proportion(self, found: TokenLimit | None) -> int | None:
        """Return the target size, in characters, by the ratio of limit to stated tokens; ``None`` if it is useless."""
        if not found or not found.limit or not found.input_tokens:
            return None
        request, size = self.request, self.request.conversation.size
        limit = found.limit - (request.output_tokens or 0 if found.kind == "input_plus_output" else 0)
        target = int((size + request.overhead) * limit / found.input_tokens * MARGIN) - request.overhead
        return target if 0 < target < size else None


def expected_tokens(characters: int, tokens: int, calibration: Calibration) -> int | None:
    """Return the expected tokens of a request if the server read clearly fewer; ``None`` if it read all."""
    learnt = calibration.chars_per_token / _CUT_SHARE if calibration.learnt else 0.0
    return calibration.tokens(characters) if characters > tokens * max(learnt, _MOST_CHARACTERS) else None
