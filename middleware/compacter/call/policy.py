"""The policy of a call, from top to bottom: begin, compact if that is due, send, make the request
smaller after a refusal and send it again, give up, learn from the reply.

Pure: generators that yield the effects of ``effects.py``. The ways to make a request smaller are
in ``reduce.py``; how small, the ``Call`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from math import inf

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.call import Call
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
)
from compacter.memory.record import UNBOUND
from compacter.messages.refusals import CUT, LOST, NO_ROOM, SEALED, UNSAID
from compacter.messages.replies import Reply, tokens_read
from compacter.options import TriggerFacts
from compacter.overflow import TokenLimit
from compacter.overflow.signals import signals_of

_REFUSED = (400, 422)
"""Statuses of a request that has a fault."""
_CUT_OFF = TokenLimit(source=CUT)
_FULL = 0.98
"""Share of the window from which prompt and reply count as filling it, as servers reserve a few
tokens."""
_FAR_OVER = 1.5
"""Multiple of the threshold from which the cool-down is ignored."""
_ENOUGH = 1_000
"""Room in characters that is enough for the best passage and its answer, with their frame. If more
room stays without quotes, no passage fits the question."""


def complete(call: Call) -> Flow[object]:
    """Return the reply. Raises the exceptions of the call and those of ``recover``."""
    state = call.state
    state.calls += 1
    yield from _begin(call)
    if state.late is None:
        yield from _compact_if_due(call)
    else:
        yield from _compact_late(call, state.late)
    reply = yield from _send_with_quotes(call)
    if _limit_of(call, reply) is None:
        return (yield from accept(call, answer_of(reply)))
    state.last_attempt_at_call = state.calls
    return (yield from recover(call, reply))


def answer_of(reply: Reply) -> object:
    """Return the value that the wrapped function has returned, or raise the exception that it has
    raised.
    """
    if reply.error is not None:
        raise reply.error
    return reply.raw


# -- before the request ----------------------------------------------------------------------------


def _begin(call: Call) -> Flow[None]:
    """Begin with the remembered view, and emit the event of a call that begins from a summary;
    so does one whose ``History`` was compacted. Raises ``SpendingError`` if all is spent and
    that was asked for.
    """
    request = call.request
    view = (yield from Find()) if call.options.memory is not None else None
    smaller = request.with_view(view)
    archive = request.archive
    if call.options.spending is not None:
        call.state.spent.check(call.options.spending)
    if view is not None and smaller is not request:
        yield from reuse(call, smaller, view.record, began=True)
    elif archive:
        saved = max(0, archive.characters - request.conversation.prior_size)
        yield from call.emit(
            CompactionReused,
            messages_before=len(request.messages) + archive.removed,
            messages_after=len(request.messages),
            tokens_saved=call.calibration.tokens(saved),
            began=True,
        )


def _compact_late(call: Call, limit: TokenLimit) -> Flow[None]:
    """Compact because the previous call's stream ended in a token limit."""
    call.state.late = None
    if limit.limit and not call.calibration.state_window(limit.limit):
        limit = replace(limit, limit=None)
    call.limit = limit
    target = call.target()
    fits = target is not None and call.request.conversation.size <= target
    if not fits and call.options.max_retries != 0:
        yield from compact_early(call, target, "token_limit")


def _compact_if_due(call: Call) -> Flow[None]:
    """Compact if the request has reached the threshold. Use a compaction made ahead also if the
    request would exceed the window.
    """
    trigger = call.options.trigger_tokens
    if trigger is None and call.options.prepare_tokens is None:
        return
    state = call.state
    limit = call.sizes.trigger
    calibration = call.calibration
    window = inf if call.sizes.tries_window else calibration.window or inf
    if isinstance(trigger, float) and calibration.window is None:
        yield from call.warn_of_unknown_window("threshold")
    if state.calls == 1:
        return
    tokens = yield from call.estimate_tokens()
    if callable(trigger) and (yield from _decides(call, trigger, tokens)):
        limit = tokens
    due = min(limit or inf, window * MARGIN)
    if tokens >= due and (yield from enforce_prepared(call)):
        calibration.compactions += 1
        tokens = yield from call.estimate_tokens()
    if limit is None:
        return
    target = call.sizes.below(limit, call.request.size, tokens, state.stuck_size)
    if target is None:
        return
    if call.in_cool_down and tokens < limit * _FAR_OVER:
        yield from call.emit(CompactionSkipped, trigger="threshold", reason="cool_down")
    elif (yield from compact_early(call, max(1, target - call.request.overhead), "threshold")):
        # An option below the window never tries it.
        calibration.compactions += not isinstance(trigger, int) or limit < trigger
        left = yield from call.estimate_tokens()
        state.stuck_size = call.request.size if left >= limit else 0


def _decides(call: Call, trigger: Callable[[TriggerFacts], bool], tokens: int) -> Flow[bool]:
    """Return whether the user's function wants a compaction; False if it fails."""
    state = call.state
    facts = TriggerFacts(
        tokens=tokens,
        window=call.calibration.window,
        messages=len(call.request.messages),
        calls=state.calls - state.last_attempt_at_call,
    )
    try:
        return trigger(facts)
    except FunctionError as error:
        yield from call.emit_failure(error, trigger="threshold")
        return False


# -- send ------------------------------------------------------------------------------------------


def _send_with_quotes(call: Call) -> Flow[Reply]:
    """Send the request, with quotes for its question if messages were compacted, and return the
    reply.

    A token limit is in the reply; any other error is raised. Quotes only use free room. If
    there are quotes for a question or an agent's step but no room, compact now: the next
    compaction is due soon, as the request fills the window.
    """
    if call.calibration.wants_thinking:
        call.request = replace(call.request, bound=UNBOUND)
    if call.quotes:
        call.request = with_standing(call.request, call.state)
    request = call.request
    room = call.sizes.room
    if (
        call.quotes
        and call.options.recall is not None
        and request.is_compacted
        # If the last try is refused because of quotes, the request cannot be sent again without
        # them.
        and not (call.is_last and (room is None or call.calibration.is_bracketed))
        and request.conversation.last_user is not None
    ):
        wanted, free = call.room_for_quotes()
        free = min(wanted, free)
        text = yield from call.quote(free)
        is_full = room is not None and free < min(wanted, _ENOUGH)
        if not text and is_full and not call.sizes.tries_window:
            yield from compact_for_quotes(call, free)
    request = call.request
    try:
        return (yield from Send(request.sent, request.options_sent))
    except Exception as error:
        if not (call.may_want_thinking and signals_of(error).status in _REFUSED):
            raise
        return Reply(token_limit=TokenLimit(source=SEALED), error=error)


# -- after a refusal -------------------------------------------------------------------------------


def recover(call: Call, reply: Reply) -> Flow[object]:
    """Make the request smaller and call again, as long as the ``reply`` is a token limit and
    another round can help and is allowed.

    Raises the provider's own last exception, with a note that lists the rounds, if the call is
    given up; ``CompactionError`` if there is neither a summary nor a fallback.
    """
    most = call.options.max_retries
    stop = stop_after_attempt(1 + most) if isinstance(most, int) else most
    rounds = RetryCallState(Retrying(stop=stop), fn=None, args=(), kwargs={})
    while (limit := _limit_of(call, reply)) is not None:
        if limit.source in UNSAID:
            return (yield from _try_smaller(call, reply, limit))
        call.refused = call.request.size
        call.limit = calibrate(call.request, call.calibration, limit)
        error = reply.error or RuntimeError("the reply says that the request is too long")
        rounds.set_exception((type(error), error, error.__traceback__))
        if stop(rounds):
            reason = "no rounds are left" if call.tried else "max_retries=0"
            return (yield from _give_up(call, reply, reason))
        call.is_last = _stops_after(stop, rounds)
        rounds.prepare_for_next_attempt()
        try:
            done = yield from reduce_request(call, error)
        except CompactionError as failure:
            # If it has no cause, name the error that made the summary necessary.
            raise failure from failure.__cause__ or reply.error
        if not done:
            reason = "nothing more can be reduced"
            if call.is_hopeless(call.target()):
                reason = "what must stay is too large by itself"
            return (yield from _give_up(call, reply, reason))
        call.tried.append(done)
        reply = yield from _send_with_quotes(call)
    call.note_answer(answer_of(reply))
    return reply.raw


def _stops_after(stop: Callable[[RetryCallState], bool], rounds: RetryCallState) -> bool:
    """Return whether tenacity would stop if the next request was refused too."""
    following = copy(rounds)
    following.attempt_number += 1
    return bool(stop(following))


def _limit_of(call: Call, reply: Reply) -> TokenLimit | None:
    """Return the token limit of a reply; ``None`` without one, or if the reply was cut off for
    another reason than a full window.

    The window is full if the reply is below the caller's output limit, and prompt and reply
    fill the window. If the window is unknown, it counts as full when the reply has one token at
    most. If no output limit was asked for, it may be full, see ``unsaid.py``.
    """
    limit = reply.token_limit
    if limit is not None and limit.source in UNSAID:
        return limit if is_believed(call, limit) else None
    if limit is not None and limit.source == LOST:
        return None if call.request.conversation.last_user is None else limit
    if limit is None or limit.source != NO_ROOM:
        return limit
    written = limit.output_tokens or 0
    used = written + (limit.input_tokens or 0)
    window = call.calibration.window
    is_full = used >= window * _FULL if window else written <= 1
    if is_full and written < (call.request.output_tokens or inf):
        return limit
    may_be = not window and not call.request.output_tokens
    return _CUT_OFF if may_be and is_believed(call, _CUT_OFF) else None


def _try_smaller(call: Call, first: Reply, limit: TokenLimit) -> Flow[object]:
    """Send a smaller request once after a sign that the first one may have been too long.

    If it does not help, return the first reply, or raise its exception with a note, and forget
    the compaction. No window is learnt.
    """
    request = call.request
    call.state.doubted_size = request.size
    call.limit = limit
    done = yield from make_smaller(call, limit)
    if done:
        call.tried.append(done)
        with suppress(Exception):  # The first one is raised.
            reply = yield from _send_with_quotes(call)
            if reply.token_limit is None or reply.token_limit.source not in UNSAID:
                call.state.doubted_size = 0
                return (yield from recover(call, reply))
        yield from Forget()
        reason = f"{limit.source}; a smaller request did not help"
        yield from call.emit(RetriesExhausted, rounds=1, reason=reason, attempt=1)
    call.request = request
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


def _give_up(call: Call, refused: Reply, reason: str) -> Flow[object]:
    """Raise the provider's own exception, with a note; return the reply if it stated the
    refusal.
    """
    limit = call.limit
    is_sealed = limit.source == SEALED
    rounds = len(call.tried)
    if call.is_vetoed:
        reason = "before_compaction vetoed the compaction"
    if refused.error and is_sealed and not rounds:
        raise refused.error
    if rounds:
        call.give_up()
    yield from call.emit(
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
    steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(call.tried, 1))
    is_hopeless = call.is_hopeless(call.target())
    helps = ""
    if not is_sealed:
        helps = advice(call.request, call.calibration, limit.limit, is_hopeless=is_hopeless)
    if call.is_vetoed:
        helps = " What helps: let before_compaction return the plan, or no value."
    add_note(refused.error, f"compacter gave up: {reason} ({steps or 'nothing was tried'}).{helps}")
    raise refused.error


# -- after the reply -------------------------------------------------------------------------------


def accept(call: Call, raw: object) -> Flow[object]:
    """Calibrate by the usage of the reply, and return the reply."""
    request = call.request
    calibration = call.calibration
    call.note_answer(raw)
    # Calibration decides what is sent, so it must not depend on whether there is a hook. Once
    # the model is known, a history is not read for its size alone: that takes too long.
    options = call.options
    prepares = options.prepare_tokens is not None
    needs_size = prepares or options.trigger_tokens is not None
    learns = needs_size or not calibration.learnt or request.read is not None
    tokens = (yield from read_usage(call, raw)) if learns or call.watched else 0
    if tokens and learns:
        calibration.learn(request.size, tokens, request.tokens_of_one)
        # Without the quotes: the next request may have others, or no quotes.
        quotes = len(request.quotes)
        call.state.tokens = tokens - calibration.tokens(quotes)
        call.state.characters = request.size - quotes
    if call.watched:
        yield from call.tell_filling(tokens)
    if prepares:
        yield from _begin_ahead(call, tokens)
    return raw


def take_in(call: Call, raw: object) -> Flow[None]:
    """Calibrate the model's characters per token, and look for a silent truncation, after a call
    whose messages compacter had not read before it sent them.
    """
    if call.options.prepare_tokens is None:
        yield from call.tell_filling((yield from read_usage(call, raw)))
    else:
        call.state.calls += 1
        yield from accept(call, raw)


def read_usage(call: Call, raw: object) -> Flow[int]:
    """Return the number of input tokens that the reply states. Return 0 if it states none. Also
    return 0, and emit ``SilentTruncation``, if the server has truncated the prompt without an
    error.
    """
    tokens = tokens_read(raw)
    request = call.request
    expected = tokens and expected_tokens(request.size, tokens, call.calibration)
    if expected:
        # Check again by the texts alone: sizes of media are estimates, and servers do not
        # always read old reasoning.
        words = sum(map(len, request.conversation.texts())) + request.overhead
        expected = expected_tokens(words, tokens, call.calibration)
    if not expected:
        return tokens
    if tokens >= LEAST_CUT:
        call.calibration.truncated = tokens
        yield from call.emit(SilentTruncation, expected_tokens=expected, prompt_tokens=tokens)
    return 0


def _begin_ahead(call: Call, tokens: int) -> Flow[None]:
    """Start the next compaction in the background if the request, of ``tokens`` input tokens,
    is large enough. If not yet, note the request, so that the next one can be recognised as its
    continuation.
    """
    quotes = len(call.request.quotes)
    tokens = tokens or call.calibration.tokens(call.request.size)
    ahead = call.sizes.ahead(tokens - call.calibration.tokens(quotes))
    if ahead is None:
        yield from call.warn_of_unknown_window("prepared")
    else:
        yield from Prepare(*ahead)
