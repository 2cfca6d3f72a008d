"""One call of a wrapped function, step by step.

A `Call` looks up the remembered view, compacts if that is due, and sends its request with quotes.
After a refusal it makes the request smaller (``reduce.py``) and sends it again, until the model
answers or the call gives up. It calibrates the model by the reply. It is pure: it yields the
effects of ``effects.py``.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.attempt import Attempt
from compacter.call.effects import Find, Forget, Prepare, Send
from compacter.call.incompressible import advice
from compacter.call.reduce import (
    compact_early,
    compact_for_quotes,
    enforce_prepared,
    reduce_request,
    reuse,
)
from compacter.call.request import LEAST_CUT, calibrate, expected_tokens
from compacter.call.thinking import with_standing
from compacter.call.unsaid import is_believed, make_smaller
from compacter.compaction.sizes import MARGIN
from compacter.effects import Flow
from compacter.errors import CompactionError, FunctionError, add_note
from compacter.events import (
    CompactionReused,
    CompactionSkipped,
    RetriesExhausted,
    SilentTruncation,
    Trigger,
)
from compacter.memory.record import UNBOUND
from compacter.messages.refusals import CUT, LOST, NO_ROOM, SEALED, UNSAID
from compacter.messages.replies import Reply, tokens_read
from compacter.options import TriggerFacts
from compacter.overflow import TokenLimit
from compacter.overflow.signals import signals_of

if TYPE_CHECKING:
    from collections.abc import Callable

_REFUSED = (400, 422)
"""Statuses of a request that has a fault."""
CUT_OFF = TokenLimit(source=CUT)
_FULL = 0.98
"""Share of the window from which prompt and reply count as filling it, as servers reserve a few
tokens."""
_FAR_OVER = 1.5
"""Multiple of the threshold from which the cool-down is ignored."""
_ENOUGH = 1_000
"""Room in characters that is enough for the best passage and its answer, with their frame. If more
room stays without quotes, no passage fits the question."""


@dataclass(eq=False)
class Call(Attempt):
    """One call from its first request to its reply."""

    def complete(self) -> Flow[object]:
        """Return the reply. Raises the exceptions of the call and those of ``recover``."""
        state = self.state
        state.calls += 1
        yield from self._begin()
        if state.late is None:
            yield from self._compact_if_due()
        else:
            self.limit = state.late
            state.late = None
            yield from self._compact_late()
        reply = yield from self._send_with_quotes()
        if self._limit_of(reply) is None:
            if reply.error is not None:
                raise reply.error
            return (yield from self.accept(reply.raw))
        state.last_attempt_at_call = state.calls
        return (yield from self.recover(reply))

    def recover(self, reply: Reply) -> Flow[object]:
        """Make the request smaller and call again, as long as the ``reply`` is a token limit and
        another round can help and is allowed.

        Raises the provider's own last exception, with a note that lists the rounds, if the call is
        given up; ``CompactionError`` if there is neither a summary nor a fallback.
        """
        most = self.options.max_retries
        stop = stop_after_attempt(1 + most) if isinstance(most, int) else most
        rounds = RetryCallState(Retrying(stop=stop), fn=None, args=(), kwargs={})
        while (limit := self._limit_of(reply)) is not None:
            if limit.source in UNSAID:
                return (yield from self._try_smaller(reply, limit))
            self.refused = self.request.size
            self.limit = calibrate(self.request, self.calibration, limit)
            error = reply.error or RuntimeError("the reply says that the request is too long")
            rounds.set_exception((type(error), error, error.__traceback__))
            if stop(rounds):
                reason = "no rounds are left" if self.tried else "max_retries=0"
                return (yield from self._give_up(reply, reason))
            self.is_last = _stops_after(stop, rounds)
            rounds.prepare_for_next_attempt()
            try:
                done = yield from reduce_request(self, error)
            except CompactionError as failure:
                # If it has no cause, name the error that made the summary necessary.
                raise failure from failure.__cause__ or reply.error
            if not done:
                reason = "nothing more can be reduced"
                if self.is_hopeless(self.target()):
                    reason = "what must stay is too large by itself"
                return (yield from self._give_up(reply, reason))
            self.tried.append(done)
            reply = yield from self._send_with_quotes()
        if reply.error is not None:
            raise reply.error
        self.calibration.take(tokens_read(reply.raw))
        self.note_answer(reply.raw)
        return reply.raw

    def _try_smaller(self, first: Reply, limit: TokenLimit) -> Flow[object]:
        """Send a smaller request once after a sign that the first one may have been too long.

        If it does not help, return the first reply, or raise its exception with a note, and forget
        the compaction. No window is learnt.
        """
        request = self.request
        self.state.doubted_size = request.size
        self.limit = limit
        done = yield from make_smaller(self, limit)
        if done:
            self.tried.append(done)
            with suppress(Exception):  # The first one is raised.
                reply = yield from self._send_with_quotes()
                if reply.token_limit is None or reply.token_limit.source not in UNSAID:
                    self.state.doubted_size = 0
                    return (yield from self.recover(reply))
            yield from Forget()
            reason = f"{limit.source}; a smaller request did not help"
            yield from self.emit(RetriesExhausted, rounds=1, reason=reason, attempt=1)
        self.request = request
        if first.error is None:
            return first.raw
        if done:
            add_note(
                first.error,
                f"compacter tried a smaller request, as {limit.source} may mean that this one is "
                f"too long, and that did not help ({done}). If it does mean that, say so with the "
                "option detect.",
            )
        raise first.error

    def _limit_of(self, reply: Reply) -> TokenLimit | None:
        """Return the token limit of a reply; ``None`` without one, or if the reply was cut off for
        another reason than a full window.

        The window is full if the reply is below the caller's output limit, and prompt and reply
        fill the window. If the window is unknown, it counts as full when the reply has one token at
        most. If no output limit was asked for, it may be full, see ``unsaid.py``.
        """
        limit = reply.token_limit
        if limit is not None and limit.source in UNSAID:
            return limit if is_believed(self, limit) else None
        if limit is not None and limit.source == LOST:
            return None if self.request.conversation.last_user is None else limit
        if limit is None or limit.source != NO_ROOM:
            return limit
        written = limit.output_tokens or 0
        used = written + (limit.input_tokens or 0)
        window = self.calibration.window
        is_full = used >= window * _FULL if window else written <= 1
        if is_full and written < (self.request.output_tokens or inf):
            return limit
        may_be = not window and not self.request.output_tokens
        return CUT_OFF if may_be and is_believed(self, CUT_OFF) else None

    def _give_up(self, refused: Reply, reason: str) -> Flow[object]:
        """Raise the provider's own exception, with a note; return the reply if it stated the
        refusal.
        """
        limit = self.limit
        is_sealed = limit.source == SEALED
        rounds = len(self.tried)
        if self.is_vetoed:
            reason = "before_compaction vetoed the compaction"
        if refused.error and is_sealed and not rounds:
            raise refused.error
        if rounds:
            self.give_up()
        yield from self.emit(
            RetriesExhausted,
            rounds=rounds,
            reason=reason,
            attempt=rounds,
            limit=limit.limit,
            requested=limit.requested,
        )
        if rounds:
            yield from Forget()
        if refused.error is None:
            return refused.raw
        steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(self.tried, 1))
        is_hopeless = self.is_hopeless(self.target())
        helps = ""
        if not is_sealed:
            helps = advice(self.request, self.calibration, limit.limit, is_hopeless=is_hopeless)
        if self.is_vetoed:
            helps = " What helps: let before_compaction return the plan, or no value."
        add_note(
            refused.error, f"compacter gave up: {reason} ({steps or 'nothing was tried'}).{helps}"
        )
        raise refused.error

    # -- before the request ------------------------------------------------------------------------

    def _begin(self) -> Flow[None]:
        """Begin with the remembered view, and emit the event of a call that begins from a summary;
        so does one whose ``History`` was compacted. Raises ``SpendingError`` if all is spent and
        that was asked for.
        """
        request = self.request
        view = (yield from Find()) if self.options.memory is not None else None
        smaller = request.with_view(view)
        archive = request.archive
        if self.options.spending is not None:
            self.state.spent.check(self.options.spending)
        if view is not None and smaller is not request:
            yield from reuse(self, smaller, view.record, began=True)
        elif archive:
            saved = max(0, archive.characters - request.conversation.prior_size)
            yield from self.emit(
                CompactionReused,
                messages_before=len(request.messages) + archive.removed,
                messages_after=len(request.messages),
                tokens_saved=self.calibration.tokens(saved),
                began=True,
            )

    def _compact_late(self) -> Flow[None]:
        """Compact because the previous call's stream ended in a token limit."""
        limit = self.limit
        if limit.limit and not self.calibration.state_window(limit.limit):
            self.limit = replace(limit, limit=None)
        target = self.target()
        fits = target is not None and self.request.conversation.size <= target
        if not fits and self.options.max_retries != 0:
            yield from compact_early(self, target, "token_limit")

    def _compact_if_due(self) -> Flow[None]:
        """Compact if the request has reached the threshold. Use a compaction made ahead also if the
        request would exceed the window.
        """
        trigger = self.options.trigger_tokens
        if trigger is None and self.options.prepare_tokens is None:
            return
        state = self.state
        limit = self.sizes.trigger
        calibration = self.calibration
        window = inf if self.sizes.tries_window else calibration.window or inf
        if isinstance(trigger, float) and calibration.window is None:
            yield from self._warn_of_unknown_window("threshold")
        if state.calls == 1:
            return
        tokens = yield from self._estimate_tokens()
        if callable(trigger) and (yield from self._decides(trigger, tokens)):
            limit = tokens
        due = min(limit or inf, window * MARGIN)
        if tokens >= due and (yield from enforce_prepared(self)):
            calibration.compactions += 1
            tokens = yield from self._estimate_tokens()
        if limit is None:
            return
        target = self.sizes.below(limit, self.request.size, tokens, state.stuck_size)
        if target is None:
            return
        if self.in_cool_down and tokens < limit * _FAR_OVER:
            yield from self.emit(CompactionSkipped, trigger="threshold", reason="cool_down")
        elif (yield from compact_early(self, max(1, target - self.request.overhead), "threshold")):
            # An option below the window never tries it.
            calibration.compactions += not isinstance(trigger, int) or limit < trigger
            left = yield from self._estimate_tokens()
            state.stuck_size = self.request.size if left >= limit else 0

    def _decides(self, trigger: Callable[[TriggerFacts], bool], tokens: int) -> Flow[bool]:
        """Return whether the user's function wants a compaction; False if it fails."""
        state = self.state
        facts = TriggerFacts(
            tokens=tokens,
            window=self.calibration.window,
            messages=len(self.request.messages),
            calls=state.calls - state.last_attempt_at_call,
        )
        try:
            return trigger(facts)
        except FunctionError as error:
            yield from self.emit_failure(error, trigger="threshold")
            return False

    def _estimate_tokens(self) -> Flow[int]:
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

    def _warn_of_unknown_window(self, trigger: Trigger) -> Flow[None]:
        """Emit, once per model, the event that the option is a share of an unknown window."""
        if not self.calibration.warned:
            self.calibration.warned = True
            yield from self.emit(CompactionSkipped, trigger=trigger, reason="unknown_window")

    # -- the request and its reply -----------------------------------------------------------------

    def _send_with_quotes(self) -> Flow[Reply]:
        """Send the request, with quotes for its question if messages were compacted, and return the
        reply.

        A token limit is in the reply; any other error is raised. Quotes only use free room. If
        there are quotes for a question or an agent's step but no room, compact now: the next
        compaction is due soon, as the request fills the window.
        """
        if self.calibration.wants_thinking:
            self.request = replace(self.request, bound=UNBOUND)
        if self.quotes:
            self.request = with_standing(self.request, self.state)
        request = self.request
        room = self.sizes.room
        if (
            self.quotes
            and self.options.recall is not None
            and request.is_compacted
            # If the last try is refused because of quotes, the request cannot be sent again without
            # them.
            and not (self.is_last and (room is None or self.calibration.is_bracketed))
            and request.conversation.last_user is not None
        ):
            wanted, free = self.room_for_quotes()
            free = min(wanted, free)
            text = yield from self.quote(free)
            is_full = room is not None and free < min(wanted, _ENOUGH)
            if not text and is_full and not self.sizes.tries_window:
                yield from compact_for_quotes(self, free)
        request = self.request
        try:
            return (yield from Send(request.sent, request.options_sent))
        except Exception as error:
            if not (self.may_want_thinking and signals_of(error).status in _REFUSED):
                raise
            return Reply(token_limit=TokenLimit(source=SEALED), error=error)

    def accept(self, raw: object) -> Flow[object]:
        """Calibrate by the usage of the reply, and return the reply."""
        request = self.request
        calibration = self.calibration
        calibration.take(tokens_read(raw))
        self.note_answer(raw)
        # Calibration decides what is sent, so it must not depend on whether there is a hook. Once
        # the model is known, a history is not read for its size alone: that takes too long.
        options = self.options
        prepares = options.prepare_tokens is not None
        needs_size = prepares or options.trigger_tokens is not None
        learns = needs_size or not calibration.learnt or request.read is not None
        tokens = (yield from self.read_usage(raw)) if learns or self.watched else 0
        if tokens and learns:
            calibration.learn(request.size, tokens, request.tokens_of_one)
            # Without the quotes: the next request may have others, or no quotes.
            quotes = len(request.quotes)
            self.state.tokens = tokens - calibration.tokens(quotes)
            self.state.characters = request.size - quotes
        if self.watched:
            yield from self.tell_filling(tokens)
        if prepares:
            yield from self._begin_ahead(tokens)
        return raw

    def inspect(self, raw: object) -> Flow[None]:
        """Read the reply to a call that was sent unread."""
        if self.options.prepare_tokens is None:
            yield from self.tell_filling((yield from self.read_usage(raw)))
        else:
            self.state.calls += 1
            yield from self.accept(raw)

    def read_usage(self, raw: object) -> Flow[int]:
        """Return the tokens that the server has read. Return 0 if the reply does not state them, or
        if the server has silently truncated the prompt; that emits an event.
        """
        tokens = tokens_read(raw)
        request = self.request
        expected = tokens and expected_tokens(request.size, tokens, self.calibration)
        if expected:
            # Check again by the texts alone: sizes of media are estimates, and servers do not
            # always read old reasoning.
            words = sum(map(len, request.conversation.texts())) + request.overhead
            expected = expected_tokens(words, tokens, self.calibration)
        if not expected:
            return tokens
        if tokens >= LEAST_CUT:
            self.calibration.truncated = tokens
            yield from self.emit(SilentTruncation, expected_tokens=expected, prompt_tokens=tokens)
        return 0

    def _begin_ahead(self, tokens: int) -> Flow[None]:
        """Start the next compaction in the background if the request, of ``tokens`` input tokens,
        is large enough. If not yet, note the request, so that the next one can be recognised as its
        continuation.
        """
        quotes = len(self.request.quotes)
        tokens = tokens or self.calibration.tokens(self.request.size)
        ahead = self.sizes.ahead(tokens - self.calibration.tokens(quotes))
        if ahead is None:
            yield from self._warn_of_unknown_window("prepared")
        else:
            yield from Prepare(self.request, *ahead)


def _stops_after(stop: Callable[[RetryCallState], bool], rounds: RetryCallState) -> bool:
    """Return whether tenacity would stop if the next request was refused too."""
    following = copy(rounds)
    following.attempt_number += 1
    return bool(stop(following))
