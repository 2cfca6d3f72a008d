"""The ways to make the request of a call smaller.

Pure. `reduce_request` takes the next way after a refusal: without quotes, with a lower output
limit, with a shorter last user message, or with the history compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from compacter.call.attempt import Attempt
from compacter.call.request import FEWEST_QUOTED, Request, facts_of
from compacter.compaction.cut import plan_compaction
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.run import compact
from compacter.compaction.sizes import GROWN, MOST_RESERVED, Calibration
from compacter.compaction.strategies import shorten_message
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
from compacter.messages.parts import Kind
from compacter.messages.replies import SEALED
from compacter.options import Retrieved
from compacter.summary.message import FRAME, rule_lines
from compacter.text.shorten import shorten

if TYPE_CHECKING:
    from compacter.overflow import TokenLimit

WORTH = 0.9
"""Largest size of a request with the prepared compaction, as a share of the one without it: a
larger one is left of an earlier preparation, and the request contains it already."""
_RECEIPT = "\n[shortened from {before:,} to {after:,} characters]"
_LEAST_OUTPUT = 64
"""Smallest output limit, in tokens, worth retrying with; below it the history is compacted."""
_OUTPUT_MARGIN = 8
"""Tokens left free when the output limit is lowered, for those that a chat template adds."""


async def reduce_request(call: Attempt, limit: TokenLimit, error: Exception) -> str:
    """Make the request smaller, and return a description of the step; empty if there is no way to.

    ``error`` is the provider's. Raises ``CompactionError`` if there is neither a summary nor a
    fallback.
    """
    if limit.source == SEALED:
        return await _leave_out_sealed(call, error)
    request = call.request
    target = call.target(limit)
    if request.quotes:
        call.quotes = False
        call.request = request = replace(request, quotes="")
        # Without a number, the request is first sent without them, unless it is the last try.
        last = call.attempt == call.options.max_retries
        if not last if target is None else target >= request.conversation.size:
            return "quotes left out"
    lowered, fits = await _lower_output(call, limit)
    if fits:
        return lowered
    target = call.target(limit)
    # Whether compacting all that may be compacted would not suffice, as far as is known.
    is_hopeless = target is None or call.staying > target
    step = ""
    if call.options.retrieved is not None:
        step = await shorten_last_message(call, call.options.retrieved, target, limit)
        if not step and is_hopeless:
            step = await shorten_last_message(call, None, target, limit)
    # Otherwise it was too much before, although all else was compacted.
    if not step and not (is_hopeless and 0 < call.state.incompressible_size <= call.staying):
        step = await compact_history(call, target, "token_limit", limit)
    return ", ".join(filter(None, (lowered, step)))


async def _leave_out_sealed(call: Attempt, error: Exception) -> str:
    """Leave out of the request what only another model can read, once; return what was done, if
    anything.
    """
    request = call.request
    _, kinds = request.format.without_sealed(request.sent)
    if not kinds:
        return ""
    call.request = replace(request, sealed=False)
    removed = kinds.total()
    names = tuple(sorted(kinds))
    await call.emit(
        SealedContentRemoved,
        attempt=call.attempt,
        removed=removed,
        kinds=names,
        error=type(error).__name__,
    )
    return f"{removed} sealed blocks left out ({', '.join(names)})"


async def _lower_output(call: Attempt, limit: TokenLimit) -> tuple[str, bool]:
    """Lower the output limit, and return what was done, if anything, and whether the request then
    fits.

    It is lowered to what the input leaves. An input of unknown size counts by its characters, once:
    if the request is refused again, the history is compacted. If the input leaves nothing, an
    output limit of most of the window is lowered to half of it, as no history that is compacted
    would fit beside it.
    """
    request = call.request
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
    await call.emit(
        MaxTokensAdjusted, attempt=call.attempt, before=before, after=after, limit=window
    )
    return f"{request.output_option} lowered from {before} to {after}", fits


async def compact_history(
    call: Attempt,
    target: int | None,
    trigger: Trigger,
    limit: TokenLimit | None = None,
    quotes: int = 0,
) -> str:
    """Compact the messages, or use a compaction that was made ahead or by another call; return a
    description, empty if unchanged.

    ``limit`` and ``quotes`` are why it is made, see ``plan_of``. The memory is always read again:
    another call may have stored a record since this one began. Raises ``CompactionError`` if there
    is neither a summary nor a fallback.
    """
    options = call.options
    prepared = options.prepare_tokens is not None and await enforce_prepared(call)
    if prepared and (target is None or call.request.conversation.size <= target):
        return "a compaction that was made ahead"
    planned = plan_of(call, target, trigger, limit, quotes)
    request = call.request
    if options.memory is not None and planned.cut:
        messages = planned.conversation.messages
        smaller = request.with_view(
            await call.world.look_up([messages[index] for index in planned.compacted])
        )
        if smaller is not None and smaller.size < request.size:
            await _reuse(call, smaller, attempt=call.attempt)
            return "a compaction that another call had just made"
    made = await compact(planned, call.world)
    if made is None:
        return ""
    after, event = made
    if not (event.fallback and "truncate" in event.strategy.split("+")):
        await call.world.remember(after.messages)
    await call.world.emit(event)
    call.request = replace(request, messages=after.messages, read=after)
    sizes = f"{event.original_data_size:,} to {event.compacted_data_size:,} characters"
    return f"{sizes} ({event.strategy})"


async def compact_to(call: Attempt, target: int, trigger: Trigger, quotes: int = 0) -> bool:
    """Compact the messages to this size, in characters, before any refusal, and return whether it
    succeeded.

    A failure is sent as an event, not raised. ``quotes`` is the room for quotes that it is made
    for, in characters.
    """
    state = call.state
    state.last_attempt_at_call = state.calls
    try:
        done = await compact_history(call, target, trigger, quotes=quotes)
    except CompactionError as error:
        await call.emit_failure(trigger, error.__cause__, "no summary could be had")
        return False
    if done:
        state.tokens = state.size_above_threshold = 0
    elif not quotes:
        state.size_above_threshold = call.request.size
    return bool(done)


async def compact_for_quotes(call: Attempt, wanted: int, free: int) -> None:
    """Compact the history and add quotes, if there are any for the question; send an event if that
    cannot be.

    ``wanted`` is the room for quotes, ``free`` what the request leaves free, in characters.
    """
    state = call.state
    if call.sought or wanted < FEWEST_QUOTED:
        return
    call.sought = True
    if not await call.quote(wanted, sent=False):
        return
    reason = ""
    if call.tried or call.in_cool_down:
        reason = "cool_down"
    elif call.request.size <= state.size_without_quotes * GROWN:
        reason = "no_progress"
    else:
        target = max(1, call.request.conversation.size + free)
        done = await compact_to(call, target, "quotes", wanted)
        text = await call.quote(min(call.room_for_quotes()))
        state.size_without_quotes = 0 if text else call.request.size
        if done and not text:
            reason = "no_progress"
    if reason:
        await call.emit(CompactionSkipped, trigger="quotes", reason=reason)


def plan_of(
    call: Attempt,
    target: int | None,
    trigger: Trigger,
    limit: TokenLimit | None = None,
    quotes: int = 0,
) -> CompactionPlan:
    """Return the plan of compacting the messages of a call to a target size, in characters.

    ``limit`` is the token limit that requires it, ``quotes`` the room for quotes, in characters,
    that it is made for.
    """
    request = call.request
    conversation = request.conversation
    if target is not None:
        target += request.saved
    if limit is not None:
        if target is not None and target >= conversation.size:
            # It fits by its characters, and was refused all the same: use the ratio of the
            # provider's numbers.
            used = limit.input_tokens
            target = call.target(limit, request.size / used) if used else None
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
        )
    )


async def enforce_prepared(call: Attempt) -> bool:
    """Use the compaction of this conversation that was made ahead, and return whether there is
    one.
    """
    request = call.request
    smaller = request.with_view(await call.world.find_prepared(request))
    if smaller is None or smaller.size >= request.size * WORTH:
        return False
    call.state.tokens = call.state.size_above_threshold = 0
    # First, as with a new one: a hook that repeats the call finds it.
    await call.world.remember(smaller.messages)
    await _reuse(call, smaller, prepared=True)
    return True


async def _reuse(call: Attempt, smaller: Request, **facts: Any) -> None:
    """Take a request with a view that was there already, and send the event."""
    before = len(call.request.messages)
    after = len(smaller.messages)
    call.request = smaller
    await call.emit(CompactionReused, messages_before=before, messages_after=after, **facts)


async def compact_ahead(call: Attempt, world: Any, ratio: float, target: int) -> None:
    """Make a compaction ahead, unless another process has stored one that fits. Raises no
    ``Exception``.

    There is no fallback: a failing summarizer is asked again when the compaction is due.

    Args:
        call: A call with a copy of the conversation.
        world: Its world, a `Performer` for what is not in force yet.
        ratio: Share of the compactable size.
        target: Largest size of the messages afterwards, in characters.
    """
    request = call.request
    # What is in the memory, or made ahead, is looked at here.
    update: dict[str, object] = {"prepare_tokens": None, "memory": None}
    update |= {"compact_ratio": ratio, "fallback": ()}
    call.options = call.options.model_copy(update=update)
    try:
        view = await world.view()
        size = request.conversation.size
        if view is None or sum(map(request.format.size, view)) >= size * WORTH:
            await world.conduct(compact_history(call, target, "prepared"))
    except Exception as error:  # noqa: BLE001 - the call that is due takes the normal way
        cause = error.__cause__ if isinstance(error, CompactionError) else error
        reason = str(error) if isinstance(error, FunctionError) else "no summary could be had"
        facts = {**facts_of(cause), **request.named}
        await world.emit(PreparationFailed(reason=reason, **facts))


# -- where nothing can be compacted: a shorter last user message, or advice ------------------------


async def shorten_last_message(
    call: Attempt, how: Retrieved | None, target: int | None, limit: TokenLimit
) -> str:
    """Shorten retrieved text in the last user message if it is too long; return what was done, if
    anything.

    Without ``how``, what is shortened are the results of tools that stand in that message beside
    the user's own text, as in Anthropic's and Gemini's formats; never those of a pinned message.
    ``target`` is the largest size of all messages, in characters. The last user message may have
    what the others leave of it, and at least half; if no limit is known, half of its present size.
    """
    request = call.request
    read = request.conversation
    at = read.last_user
    if at is None or (how is None and at in read.pinned):
        return ""
    size = read.sizes[at]
    now = size - request.saved
    allowed = now // 2 if target is None else max(target - (read.size - size), target // 2)
    if now <= allowed or (target is None and 2 * now < read.size - request.saved):
        return ""
    message = read.messages[at]
    excess = size - allowed
    if how is None and request.shortened is not None:
        message = request.shortened
        excess = now - allowed
    try:
        message = shorten_message(
            read.format,
            message,
            excess,
            partial(_cut_by, how) if callable(how) else shorten,
            partial(_spans, how),
            ("result" if how is None else "text",),
        )
    except FunctionError as error:
        await call.emit_failure("token_limit", error)
        return ""
    left = read.format.size(message)
    if left >= now:
        return ""
    call.request = replace(request, shortened=message, saved=size - left)
    await call.emit(
        MessageShortened, attempt=call.attempt, before=size, after=left, limit=limit.limit
    )
    return f"the last user message shortened by {size - left:,} characters"


def _cut_by(function: Callable[[str, int], str], text: str, size: int) -> str:
    if size >= len(text):
        return text
    short = function(text, size - len(_RECEIPT) - 20)
    return short + _RECEIPT.format(before=len(text), after=len(short))


def _spans(how: Retrieved | None, text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each text between a pair of marks; of all without one."""
    if not isinstance(how, tuple):
        yield 0, len(text)
        return
    end = 0
    while (begin := text.find(how[0], end)) >= 0:
        begin += len(how[0])
        end = text.find(how[1], begin)
        if end < 0:
            return
        yield begin, end
        end += len(how[1])


def advice(request: Request, calibration: Calibration, limit: int | None) -> str:
    """Return a sentence on the largest part of a request that is given up, or on rules without
    room, and the remedy.
    """
    read = request.conversation
    declared = sum(len(line) + 1 for line in rule_lines(read.rules))
    allowed = int((limit or 0) * calibration.chars_per_token)
    left = allowed - request.overhead - (read.size - read.free) - FRAME
    if declared and 0 < left < declared:
        return (
            f" The declared rules take {declared:,} characters, and beside what must stay there "
            f"is room for {left:,}. What helps: declare fewer rules (option rules), or shorter "
            "ones; or a larger window."
        )
    index = max(range(len(read.messages)), key=read.sizes.__getitem__)
    size = read.sizes[index] - (request.saved if index == read.last_user else 0)
    kind, remedy = _kind(request, index)
    what = f"message {index + 1} of {len(read.messages)}, {kind}"
    if request.overhead > size:
        size = request.overhead
        what = "tools and other options beside the messages"
        remedy = "send fewer tools"
    window = f" of {limit:,} allowed" if limit else ""
    return (
        f" The largest part is {what}: {size:,} characters, about {calibration.tokens(size):,} "
        f"tokens{window}. What helps: {remedy}; or a larger window."
    )


def _kind(request: Request, index: int) -> tuple[str, str]:
    read = request.conversation
    if index == read.last_user:
        remedy = "send less of it"
        if not request.saved:
            marks = 'set retrieved=("<context>", "</context>"), so that'
            has_results = any(part.kind == "result" for part in read.parts(index))
            what = "the results of tools in it" if has_results else "it"
            mark = "" if has_results else "mark what is retrieved and "
            remedy = f"send less of it, or {mark}{marks} {what} may be shortened"
        return "the last user message", remedy
    if read.kinds[index] is Kind.SYSTEM:
        return "a system prompt", "make it shorter"
    if index in read.pinned:
        return "a pinned one", "remove its pin"
    if read.kinds[index] is Kind.RESULT:
        remedy = "have the tool return less, or strategy=[ClearToolResults(), Summarize()]"
        return "a tool result", remedy
    remedy = "a larger max_retries or compact_ratio, or a smaller preserve_recent_turns"
    return "which may be compacted", remedy
