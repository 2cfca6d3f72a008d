"""Policy of one wrapped call: the remembered view, the trigger, the request, and the rounds after a
token limit.

Pure: a `Policy` yields effects and continues with their results. In the order of a call: `complete`
begins it, `recover` makes the request smaller until it is answered or given up; then the ways to
make it smaller, the trigger, the usage of replies, and the numbers in the provider's errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.prepare import WORTH, Prepared, ahead
from compacter.call.request import ConversationState, Request, advice, with_less_retrieved
from compacter.call.sizes import (
    FEWEST_QUOTED,
    Room,
    calibrate,
    fills_window,
    learn,
    missing_tokens,
    request_tokens,
    room_for_quotes,
    target_in_proportion,
)
from compacter.compaction.plan import MARGIN, Calibration, Job, plan, target_characters
from compacter.compaction.run import compact
from compacter.compaction.trigger import TARGET_SHARE, due, threshold
from compacter.effects import Call, Emit, Flow, Quote, Remember, Remembered
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
from compacter.messages.replies import Reply
from compacter.messages.usage import tokens_read
from compacter.options import Options, Retrieved
from compacter.overflow import TokenLimit

_LEAST_OUTPUT = 64
"""Smallest output limit, in tokens, worth retrying with; below it the history is compacted."""
_OUTPUT_MARGIN = 8
"""Tokens left free when the output limit is lowered, for those that a chat template adds."""
_FAR_OVER = 1.5
"""Multiple of the threshold from which the cool-down is ignored."""


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
    proactive: bool = True
    """Whether the size of every request is learnt, for the trigger."""
    watched: bool = True
    """Whether someone listens to events, such as that of a prompt that the server has truncated."""
    quotes: bool = True
    """Whether quotes may be sent; not after a request with quotes was refused."""
    tried: list[str] = field(default_factory=list)
    """Descriptions of the steps that made the request smaller."""

    # -- one call ----------------------------------------------------------------------------------

    def complete(self) -> Flow[object]:
        """Return the reply to the call. Raises the exceptions of the call and those of
        ``recover``.
        """
        state = self.state
        original = self.request.original
        state.calls += 1
        if self.options.memory is not None:
            view = yield from Remembered(original)
            if view is not None and self._keeps_pins(view):
                self.request = replace(self.request, messages=tuple(view), read=None)
        if self.options.trigger_tokens is not None:
            yield from self._fold_ahead()
        if self.options.prepare_tokens is not None:
            yield from self._keep_within_window()
        reply = yield from self._send()
        if reply.token_limit is not None:
            state.tried = state.calls
            return (yield from self.recover(reply))
        return (yield from self._checked(reply))

    def recover(self, refused: Reply) -> Flow[object]:
        """Make the request smaller and call again, until there is a reply, another error, or
        nothing left to try.

        ``refused`` is the reply with the token limit. Raises the provider's own last exception,
        with a note that lists the rounds, if the call is given up; ``CompactionError`` if there is
        neither a summary nor a fallback.
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
                return (
                    yield from self._give_up(
                        refused, "no rounds are left" if self.tried else "max_retries=0"
                    )
                )
            rounds.prepare_for_next_attempt()
            try:
                done = yield from self._make_smaller(found)
            except CompactionError as failure:
                # If it has no cause of its own, the provider's error, for which the summary was
                # needed.
                raise failure from failure.__cause__ or refused.error
            if not done:
                return (yield from self._give_up(refused, "nothing more can be reduced"))
            self.tried.append(done)
            refused = yield from self._send()
        return refused.raw

    def _send(self) -> Flow[Reply]:
        """Send the request, with quotes for its question if messages were folded, and return the
        reply.

        A token limit is in the reply; any other error is raised.
        """
        request = self.request
        room = self._room_for_quotes()
        if room is not None and request.conversation.last_user is not None:
            text = yield from Quote(
                request.original,
                request.conversation,
                room.characters,
                request.archive,
                request.digest,
                room.tokens_of_one,
            )
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

    def _room_for_quotes(self) -> Room | None:
        """Return the room for quotes; ``None`` if no messages were folded or quotes are off."""
        request = self.request
        recall = self.options.recall
        if (
            recall is None
            or not self.quotes
            or (request.messages is request.original and not request.archive)
        ):
            return None
        window = self.calibration.window or self.threshold()
        last_round = len(self.tried) == self.options.max_retries
        if window is None and self.tried and last_round:
            # They may be refused, and then the request could not be sent without them.
            return None
        return room_for_quotes(request, recall, self.calibration, window)

    def _give_up(self, refused: Reply, reason: str) -> Flow[object]:
        """Raise the provider's own exception, with a note; return the reply if the refusal
        was one.
        """
        found = refused.token_limit
        rounds = len(self.tried)
        facts: dict[str, Any] = (
            {"limit": found.limit, "requested": found.requested} if found else {}
        )
        yield from Emit(
            RetriesExhausted(
                rounds=rounds, reason=reason, attempt=rounds, **facts, **self.request.named
            )
        )
        if refused.error is None:
            return refused.raw
        steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(self.tried, 1))
        helps = advice(self.request, self.calibration, found.limit if found else None)
        add_note(
            refused.error, (f"compacter gave up: {reason} ({steps or 'nothing was tried'}).{helps}")
        )
        raise refused.error

    # -- ways to make the request smaller ----------------------------------------------------------

    def _make_smaller(self, found: TokenLimit) -> Flow[str]:
        """Make the request smaller, and return a description of the step; empty if there is no way
        to.
        """
        request = self.request
        target = self.target(found)
        if request.quotes:
            self.quotes = False
            self.request = request = replace(request, quotes="")
            if target is not None and target >= request.conversation.size:
                return "quotes left out"
        lowered = self.lowered_output(found) if found.kind == "input_plus_output" else None
        if lowered is not None:
            before = request.output_tokens or 0
            self.request = replace(
                request,
                options={**request.options, request.output_option: lowered},
                output_tokens=lowered,
            )
            event = MaxTokensAdjusted(
                before=before,
                after=lowered,
                limit=found.limit,
                attempt=len(self.tried) + 1,
                **request.named,
            )
            yield from Emit(event)
            return f"{request.output_option} lowered from {before} to {lowered}"
        read = request.conversation
        step = ""
        if self.options.retrieved is not None:
            step = yield from self._shorten_message(self.options.retrieved, target, found)
            if not step and (target is None or read.size - read.free - request.saved > target):
                # To fold all that may be folded would not suffice, as far as is known.
                step = yield from self._shorten_message(None, target, found)
        return step or (yield from self._fold(target, found))

    def _shorten_message(
        self, how: Retrieved | None, target: int | None, found: TokenLimit
    ) -> Flow[str]:
        """Shorten retrieved text, or tool results, in the last user message; return what was done,
        if anything.
        """
        try:
            shorter = with_less_retrieved(self.request, how, target)
        except FunctionError as error:
            yield from self._failed("token_limit", str(error), error)
            return ""
        if shorter is None:
            return ""
        self.request = shorter
        read = shorter.conversation
        size = read.sizes[read.last_user or 0]
        facts = {"limit": found.limit, "attempt": len(self.tried) + 1, **shorter.named}
        yield from Emit(MessageShortened(before=size, after=size - shorter.saved, **facts))
        return f"the last user message shortened by {shorter.saved:,} characters"

    def _fold(self, target: int | None, found: TokenLimit | None = None) -> Flow[str]:
        """Compact the messages, or use a compaction that was made ahead or by another call; return
        a description, empty if unchanged.

        The memory is always read again: another call may have stored a record since this one began.
        Raises ``CompactionError`` if there is neither a summary nor a fallback.
        """
        prepared = False
        if self.options.prepare_tokens is not None:
            prepared = yield from self.put_in_force()
        if prepared and (target is None or self.request.conversation.size <= target):
            return "a compaction that was made ahead"
        job = self.job(target, found)
        request = self.request
        planned = plan(self.options, job)
        folded = planned.folded
        if self.options.memory is not None and folded:
            messages = job.conversation.messages
            head = tuple(messages[index] for index in folded)
            view = yield from Remembered(request.original, head)
            if view is not None and self._keeps_pins(view):
                smaller = replace(request, messages=tuple(view), read=None)
                if smaller.size < request.size:
                    self.request = smaller
                    before = len(request.messages)
                    after = len(smaller.messages)
                    yield from Emit(
                        CompactionReused(messages_before=before, messages_after=after, **job.named)
                    )
                    return "a compaction that another call had just made"
        made = yield from compact(self.options, job, original=request.original, planned=planned)
        if made is None:
            return ""
        self.request = replace(request, messages=made.messages, read=made.conversation)
        before = made.event.original_data_size
        after = made.event.compacted_data_size
        return f"{before:,} to {after:,} characters ({made.event.strategy})"

    def job(self, target: int | None, found: TokenLimit | None = None) -> Job:
        """Return the job of compacting the messages to a target size, in characters.

        ``found`` is the token limit that requires it; ``None`` for the trigger.
        """
        request = self.request
        recall = self.options.recall
        calibration = self.calibration
        conversation = request.conversation
        refused = found is not None
        if target is not None:
            target += request.saved
        if target is not None and target >= conversation.size:
            # It fits by its characters, and was refused all the same: use the ratio of the
            # provider's numbers.
            target = target_in_proportion(request, found)
        # Between an agent's steps there is no new question, so its steps need the room more than
        # quotes (issue 10).
        asked = refused and conversation.last_user == len(conversation.messages) - 1
        quotes = 0
        if recall is not None and self.quotes and asked and target is not None:
            room = max(0, target - conversation.size + conversation.free)
            quotes = recall.room(calibration.tokens(room), calibration.chars_per_token)
        return Job(
            conversation=conversation,
            reserved=quotes if quotes >= FEWEST_QUOTED else 0,
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
        """Return a lower output limit, in tokens, if the input alone fits; ``None`` if that does
        not help.
        """
        before = self.request.output_tokens
        if not self.options.adjust_max_tokens or not found.limit or not before:
            return None
        used = found.input_tokens or 0
        left = found.limit - used - _OUTPUT_MARGIN
        return left if used > 0 and _LEAST_OUTPUT <= left < before else None

    def _keeps_pins(self, view: Sequence[Message]) -> bool:
        """Return whether a remembered view contains all pinned messages; some may have been pinned
        since.
        """
        request = self.request
        wanted = request.find_pinned(request.original)
        present = set(map(id, view)) if wanted else ()
        return all(id(request.original[index]) in present for index in wanted)

    # -- the trigger -------------------------------------------------------------------------------

    def _fold_ahead(self) -> Flow[None]:
        """Compact before the call if the request has reached the threshold."""
        state = self.state
        request = self.request
        limit = self.threshold()
        if limit is None:
            if not self.calibration.warned:
                self.calibration.warned = True
                yield from self._skipped("unknown_window")
            return
        if state.calls == 1:
            return
        tokens = yield from self._estimated()
        size = request.size
        if (
            tokens >= limit
            and self.options.prepare_tokens is not None
            and (yield from self.put_in_force())
        ):
            tokens = yield from self._estimated()
            size = self.request.size
        target = due(size=size, tokens=tokens, limit=limit, stuck=state.stuck)
        if target is None:
            return
        held_back = (
            state.tried is not None and state.calls - state.tried <= self.options.min_calls_between
        )
        if held_back and tokens < limit * _FAR_OVER:
            yield from self._skipped("cool_down")
            return
        if (yield from self._folded_to(max(1, target - request.overhead))):
            left = yield from self._estimated()
            state.stuck = self.request.size if left >= limit else 0

    # -- compactions made ahead --------------------------------------------------------------------

    def put_in_force(self) -> Flow[bool]:
        """Use the compaction of this conversation that was made ahead, and return whether there is
        one.
        """
        request = self.request
        view = yield from Prepared(request.original)
        if view is None or not self._keeps_pins(view):
            return False
        smaller = replace(request, messages=tuple(view), read=None, quotes="")
        if smaller.size >= request.size * WORTH:
            return False
        self.request = smaller
        self.state.tokens = self.state.stuck = 0
        # First, as with a new one: a hook that repeats the call finds it.
        yield from self._remember_view(view)
        yield from Emit(
            CompactionReused(
                messages_before=len(request.messages),
                messages_after=len(smaller.messages),
                prepared=True,
                **request.named,
            )
        )
        return True

    def _remember_view(self, view: Sequence[Message]) -> Flow[None]:
        if self.options.memory is not None:
            yield from Remember(self.request.original, view)

    def _keep_within_window(self) -> Flow[None]:
        """Put the compaction that was made ahead in force if the request would exceed the window:
        it is sure to be refused.
        """
        window = self.calibration.window
        if window is None or self.state.calls == 1:
            return
        tokens = yield from self._estimated()
        if tokens > window * MARGIN:
            yield from self.put_in_force()

    def prepare(self, tokens: int) -> Flow[None]:
        """Have the next compaction made ahead if the request, which had so many input tokens, has
        reached the size for it.
        """
        request = replace(self.request, quotes="")
        calibration = self.calibration
        tokens = (tokens or calibration.tokens(self.request.size)) - calibration.tokens(
            len(self.request.quotes)
        )
        if isinstance(self.options.prepare_tokens, float) and calibration.window is None:
            if not calibration.warned:
                calibration.warned = True
                yield from Emit(
                    CompactionSkipped(trigger="prepared", reason="unknown_window", **request.named)
                )
            return
        what = ahead(self.options, request, calibration, tokens)
        if what is not None:
            yield from what

    def _folded_to(self, target: int) -> Flow[bool]:
        """Compact the messages to this size, in characters, and return whether it succeeded.

        A failure is sent as an event, not raised.
        """
        state = self.state
        state.tried = state.calls
        try:
            done = yield from self._fold(target)
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
        trigger = self.options.trigger_tokens
        if trigger is None:
            return None
        return threshold(trigger, self.calibration.window, self.request.output_tokens or 0)

    def _estimated(self) -> Flow[int]:
        """Return the estimated input tokens of the request, tools and other options included.

        The count of ``token_counter``; else the last usage, plus an estimate of the messages added
        since.
        """
        request = self.request
        state = self.state
        tokens = self.calibration.tokens
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
        yield from Emit(
            CompactionFailed(
                trigger=trigger, reason=reason, error=error, cause=why, **self.request.named
            )
        )

    # -- the reply's usage, and the numbers of errors ----------------------------------------------

    def _checked(self, reply: Reply) -> Flow[object]:
        """Learn from the reply's usage, and return the reply.

        With a trigger, a prompt that the server has truncated is compacted and sent once more, if a
        round is allowed.
        """
        whole = self.request
        # What is learnt never depends on a hook, as it decides what is sent. To read a whole
        # history for its size alone would take too long once the model is known.
        learns = self.proactive or not self.calibration.learnt or whole.read is not None
        tokens = tokens_read(reply.raw) if learns or self.watched else 0
        if learns and whole.read is not None:
            self.calibration.accept(request_tokens(whole, self.calibration))
        if not tokens or not (yield from self.cut_silently(tokens)):
            if tokens and learns:
                self.note_usage(tokens)
            if self.options.prepare_tokens is not None:
                yield from self.prepare(tokens)
            return reply.raw
        if self.options.trigger_tokens is None or self.options.max_retries == 0:
            return reply.raw
        target = max(
            1, int(tokens * TARGET_SHARE * self.calibration.chars_per_token) - whole.overhead
        )
        self.request = replace(whole, quotes="")
        if (yield from self._folded_to(target)):
            try:
                again = yield from self._send()
            except Exception:  # noqa: BLE001 - the first call has succeeded; its reply is returned
                again = reply
            if again is not reply and again.token_limit is None:
                read = tokens_read(again.raw)
                if read and missing_tokens(self.request, read, self.calibration) is None:
                    self.note_usage(read)
                return again.raw
        self.request = whole
        return reply.raw

    def cut_silently(self, tokens: int) -> Flow[bool]:
        """Return whether a server that read ``tokens`` has silently truncated the prompt, and send
        an event if so.
        """
        expected = missing_tokens(self.request, tokens, self.calibration)
        if expected is None:
            return False
        yield from Emit(
            SilentTruncation(expected_tokens=expected, prompt_tokens=tokens, **self.request.named)
        )
        return True

    def note_usage(self, tokens: int) -> None:
        """Learn from the usage of a reply to the request."""
        learn(self.request, tokens, self.calibration)
        size = self.request.size
        quotes = len(self.request.quotes)
        # Without the quotes: the next request may have others, or none.
        self.state.tokens = tokens - self.calibration.tokens(quotes)
        self.state.characters = size - quotes

    def confirmed(self, found: TokenLimit) -> bool:
        """See ``sizes.fills_window``."""
        return fills_window(found, self.request.output_tokens, self.calibration.window)

    def calibrate(self, found: TokenLimit) -> TokenLimit:
        """See ``sizes.calibrate``."""
        return calibrate(self.request, found, self.calibration)

    def target(self, found: TokenLimit) -> int | None:
        """Return the largest size of the messages, in characters; ``None`` if no limit is known."""
        overhead = self.request.overhead
        output_tokens = self.request.output_tokens
        return target_characters(
            found, self.calibration, overhead=overhead, output_tokens=output_tokens
        )
