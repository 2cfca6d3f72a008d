"""The ways to make the request of a call smaller.

Pure. After a refusal, `reduce_request` tries the next way: remove the quotes, lower the output
limit, shorten the last user message, or compact the history.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from compacter.call.call import Call
from compacter.call.effects import Find
from compacter.call.incompressible import shorten_last_message
from compacter.call.request import FEWEST_QUOTED, Request
from compacter.call.thinking import begin_anew, last_thinking
from compacter.compaction.cut import plan_compaction
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.run import compact
from compacter.compaction.sizes import GROWN, LEAST_SUMMARY, MOST_RESERVED
from compacter.effects import Emit, Flow
from compacter.errors import CompactionError, FunctionError
from compacter.events import (
    CompactionReused,
    CompactionSkipped,
    MaxTokensAdjusted,
    MessageShortened,
    PreparationFailed,
    SealedContentRemoved,
    Trigger,
)
from compacter.memory.record import UNBOUND
from compacter.messages.refusals import SEALED

_WORTH = 0.9
"""Largest size of a request with the prepared compaction, as a share of the one without it: a
larger one is left from an earlier preparation, and the request contains it already."""
_LEAST_OUTPUT = 64
"""Smallest output limit, in tokens, worth retrying with; below it the history is compacted."""
_OUTPUT_MARGIN = 8
"""Tokens left free when the output limit is lowered, for those that a chat template adds."""


# -- after a refusal -------------------------------------------------------------------------------


def reduce_request(call: Call, error: Exception) -> Flow[str]:
    """Make the request smaller, and return a description of the step; empty if nothing can be
    reduced.

    ``error`` is the provider's. Raises ``CompactionError`` if there is neither a summary nor a
    fallback.
    """
    if call.limit.source == SEALED:
        return (yield from _leave_out_sealed(call, error))
    if call.request.quotes and (yield from _leave_out_quotes(call)):
        return "quotes left out"
    lowered, fits = yield from _lower_output(call)
    if fits:
        return lowered
    call.is_harder = False
    step = yield from _reduce_messages(call)
    # A hook that has prevented the compaction is not asked a second time.
    if not step and call.size > call.smallest and not call.is_vetoed:
        call.is_harder = True
        step = yield from _reduce_messages(call)
    return ", ".join(filter(None, (lowered, step)))


def _reduce_messages(call: Call) -> Flow[str]:
    """Shorten the last user message, or compact the history, or both. Return a description of the
    step; empty if nothing was reduced.
    """
    target = call.target()
    # Whether the request would be too large, as far as is known, even if all that may be compacted
    # was.
    is_helpless = call.is_halved or target is None or call.staying > target
    target = call.next_target()
    # Without numbers that message is halved, and in the last round as short as the target.
    allowed = None if call.is_halved and not call.is_last else target
    shortened = yield from _shorten_last_message(call, allowed, is_helpless=is_helpless)
    smallest = call.smallest
    is_least = target is not None and target <= smallest
    if target is not None and not call.is_measured:
        target = max(target, smallest)
    compacted = ""
    fits = bool(shortened) and (target is None or call.size <= target)
    if not fits and not call.is_hopeless(target):
        compacted = yield from compact_history(call, target, "token_limit")
    if call.is_halved:
        call.quotes = False
    elif compacted and call.is_measured and not call.is_last:
        call.quotes = True  # There may be room for them now.
    if compacted:
        call.is_smallest = is_least and call.size <= smallest + LEAST_SUMMARY
    return ", ".join(filter(None, (shortened, compacted)))


def _leave_out_quotes(call: Call) -> Flow[bool]:
    """Remove the quotes, and return whether to try the request without them before anything else:
    if it fits, or if the refusal states no number and this is neither a later round nor the last.
    """
    call.quotes = False
    request = call.request
    if min(request.places.values(), default=inf) <= last_thinking(request):
        call.request = yield from begin_anew(request, call.calibration, stores=request.bound.view)
    else:
        call.request = replace(request, quotes="", places={})
    target = call.target()
    fits = target is None or call.size <= target
    return fits and not call.is_halved and (bool(call.limit.limit) or not call.is_last)


def _leave_out_sealed(call: Call, error: Exception) -> Flow[str]:
    """Remove from the request, once, what only another model can read. Return a description of the
    step; empty if nothing was removed.

    If a compaction has left out older thinking, and the model may want it, put it back first.
    """
    request = call.request
    if call.may_want_thinking:
        call.puts_back = True
        call.request = replace(request, bound=UNBOUND)
        return "thinking put back"
    _, kinds = request.format.without_sealed(request.sent)
    if not kinds:
        return ""
    if request.bound.view:
        request = yield from begin_anew(request, call.calibration)
    call.request = replace(request, sealed=False)
    removed = kinds.total()
    names = tuple(sorted(kinds))
    yield from call.emit(
        SealedContentRemoved,
        attempt=call.attempt,
        removed=removed,
        kinds=names,
        error=type(error).__name__,
    )
    return f"{removed} sealed blocks left out ({', '.join(names)})"


def _lower_output(call: Call) -> Flow[tuple[str, bool]]:
    """Lower the output limit. Return a description of the step, empty if it stays, and whether the
    request then fits.

    The new limit is what the input leaves of the window. An input of unknown size is estimated by
    its characters, once: if the request is refused again, the history is compacted. If the input
    leaves nothing, an output limit of most of the window is lowered to half of the window, as not
    even a compacted history would fit beside it.
    """
    request = call.request
    limit = call.limit
    before = request.output_tokens
    window = limit.limit or 0
    if limit.kind != "input_plus_output" or not call.options.adjust_max_tokens or not before:
        return "", False
    used = limit.input_tokens
    if limit.is_bound and request.output_option not in request.options:
        used = int(request.size * call.calibration.tokens_of_one(request.tokens_of_one))
    after = window - used - _OUTPUT_MARGIN if used else 0
    fits = after >= _LEAST_OUTPUT
    if not fits:
        after = int(window * MOST_RESERVED)
    if not _LEAST_OUTPUT <= after < before:
        return "", False
    options = {**request.options, request.output_option: after}
    call.request = replace(request, options=options, output_tokens=after)
    yield from call.emit(
        MaxTokensAdjusted, attempt=call.attempt, before=before, after=after, limit=window
    )
    return f"{request.output_option} lowered from {before} to {after}", fits


def _shorten_last_message(call: Call, target: int | None, *, is_helpless: bool) -> Flow[str]:
    """Shorten retrieved text in the last user message, or, if the call ``is_helpless`` otherwise,
    results of tools in it. Return a description of the step; empty if nothing was shortened.
    """
    retrieved = call.options.retrieved
    if retrieved is None:
        return ""
    for how in (retrieved, None) if is_helpless else (retrieved,):
        try:
            shorter = shorten_last_message(call.request, how, target)
        except FunctionError as error:
            yield from call.emit_failure(error, trigger="token_limit")
            continue
        if shorter is not None:
            call.request = shorter
            after = shorter.format.size(shorter.shortened)
            before = after + shorter.saved
            yield from call.emit(
                MessageShortened,
                attempt=call.attempt,
                before=before,
                after=after,
                limit=call.limit.limit,
            )
            return f"the last user message shortened by {shorter.saved:,} characters"
    return ""


# -- compactions -----------------------------------------------------------------------------------


def compact_history(call: Call, target: int | None, trigger: Trigger) -> Flow[str]:
    """Compact the messages, or use a compaction that was made ahead or by another call; return a
    description, empty if unchanged.

    The memory is read again: another call may have stored a record since this one began. A call
    that makes a compaction ahead reads no memory, and uses no other prepared compaction. Raises
    ``CompactionError`` if there is neither a summary nor a fallback.
    """
    is_due = trigger != "prepared"
    if is_due and (yield from enforce_prepared(call)):
        size = call.request.conversation.size
        if target is None or size <= target:
            return "a compaction that was made ahead"
    planned = plan_of(call, target, trigger)
    request = call.request
    if is_due and call.options.memory is not None and planned.cut:
        messages = planned.conversation.messages
        view = yield from Find([messages[index] for index in planned.compacted])
        smaller = request.with_view(view)
        if smaller.size < request.size:
            yield from reuse(call, smaller, attempt=call.attempt)
            return "a compaction that another call had just made"
    made = yield from compact(planned)
    if made is None:
        call.is_vetoed = "vetoed" in planned.tally
        return ""
    after, event = made
    request = replace(request, messages=after.messages, read=after, bound=UNBOUND)
    is_cut = event.fallback and "truncate" in event.strategy.split("+")
    request = yield from begin_anew(request, call.calibration, stores=not is_cut)
    call.state.is_cached = False
    yield from Emit(event)
    call.state.fills = False
    call.request = request
    sizes = f"{event.original_data_size:,} to {event.compacted_data_size:,} characters"
    return f"{sizes} ({event.strategy})"


def compact_early(call: Call, target: int | None, trigger: Trigger) -> Flow[bool]:
    """Compact the messages before any refusal of the request, and return whether that succeeded.

    Like ``compact_history``, but a failure is emitted as an event, not raised.
    """
    state = call.state
    state.last_attempt_at_call = state.calls
    try:
        done = yield from compact_history(call, target, trigger)
    except CompactionError as error:
        yield from call.emit_failure(error, trigger=trigger)
        return False
    if done:
        state.tokens = state.stuck_size = 0
    elif trigger != "quotes":
        state.stuck_size = call.request.size
    return bool(done)


def compact_for_quotes(call: Call, free: int) -> Flow[None]:
    """Compact the history and add quotes, if there are any for the question; emit an event if that
    is impossible.

    ``free`` is what the request leaves free, in characters.
    """
    if call.sought:
        return
    call.sought = True
    if not (yield from call.quote(call.room_for_quotes()[0], sent=False)):
        return
    state = call.state
    reason = ""
    if call.tried or call.in_cool_down:
        reason = "cool_down"
    elif call.request.size <= state.stuck_size * GROWN:
        reason = "no_progress"
    else:
        target = max(1, call.request.conversation.size + free)
        done = yield from compact_early(call, target, "quotes")
        call.calibration.compactions += done
        text = yield from call.quote(min(call.room_for_quotes()))
        state.stuck_size = 0 if text else call.request.size
        if done and not text:
            reason = "no_progress"
    if reason:
        yield from call.emit(CompactionSkipped, trigger="quotes", reason=reason)


def plan_of(call: Call, target: int | None, trigger: Trigger) -> CompactionPlan:
    """Return the plan of compacting the messages of a call to a target size, in characters."""
    request = call.request
    conversation = request.conversation
    limit = call.limit if trigger == "token_limit" else None
    quotes = call.room_for_quotes()[0] if trigger == "quotes" else 0
    if target is not None:
        target += request.saved
    if limit is not None:
        if target is not None and target >= conversation.size:
            # It fits by the calibration, yet the provider refused it: use the ratio of the
            # provider's numbers.
            used = limit.input_tokens
            target = call.target(request.size / used) if used else None
            if not target or target >= conversation.size:
                target = None
        # Between an agent's steps there is no new question, so its steps need the room more than
        # quotes (issue 10): the last message has to be the user's.
        begins_turn = conversation.last_user == len(conversation.messages) - 1
        if call.quotes and target is not None and begins_turn:
            quotes = call.sizes.quotes_in(target - conversation.size + conversation.free)
    return plan_compaction(
        CompactionPlan(
            conversation=conversation,
            options=call.options,
            sizes=call.sizes,
            reserved=quotes if quotes >= FEWEST_QUOTED else 0,
            trigger=trigger,
            model=request.model,
            attempt=0 if trigger == "prepared" else call.attempt,
            digest=request.digest,
            target=target,
            token_limit=limit,
            is_required=limit is not None,
            is_cached=call.state.is_cached,
            older=request.bound.older,
        )
    )


def enforce_prepared(call: Call) -> Flow[bool]:
    """Use the compaction that was made ahead for this conversation; return whether there is one."""
    if call.options.prepare_tokens is None:
        return False
    request = call.request
    smaller = request.with_view((yield from Find(is_prepared=True)))
    if smaller.size >= request.size * _WORTH:
        return False
    call.state.tokens = call.state.stuck_size = 0
    yield from reuse(call, smaller, prepared=True)
    return True


def reuse(call: Call, smaller: Request, record: str = "", **facts: Any) -> Flow[None]:
    """Continue with a request whose view was stored already, and emit the event.

    The whole history is measured once for each ``record``, an id.
    """
    if not facts.get("began"):
        # Store it first, as with a new compaction: a hook that repeats the call then finds it.
        if facts.get("prepared") or smaller.bound.older < len(smaller.messages):
            smaller = yield from begin_anew(smaller, call.calibration)
        call.state.is_cached = False
    saved = call.state.left_out
    if not record or saved[0] != record:
        saved = record, max(0, call.request.size - smaller.size)
        call.state.left_out = saved
    yield from call.emit(
        CompactionReused,
        messages_before=len(call.request.messages),
        messages_after=len(smaller.messages),
        tokens_saved=call.calibration.tokens(saved[1]),
        **facts,
    )
    call.request = smaller


def compact_ahead(call: Call, target: int) -> Flow[None]:
    """Make a compaction ahead, unless another process has stored one that fits. Raises no
    ``Exception``.

    Args:
        call: A call with a copy of the conversation, whose handlers are for compactions that are
            not in force yet.
        target: Largest size of the messages afterwards, in characters.
    """
    request = call.request
    try:
        view = (yield from Find(is_counted=False)) or request.messages
        if sum(map(request.format.size, view)) >= request.conversation.size * _WORTH:
            yield from compact_history(call, target, "prepared")
    except Exception as error:  # noqa: BLE001 - the call that is due takes the normal way
        yield from call.emit_failure(error, PreparationFailed)
