"""What one wrapped call does when the provider says that it is too long. Pure: it asks for effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.request import Request, pinned
from compacter.compaction.plan import MARGIN, Calibration, Job, most_tokens, plan, target_characters
from compacter.compaction.run import compact
from compacter.compaction.task import CompactionPlan
from compacter.effects import Call, Flow, Quote, Remembered, Reply, Tell
from compacter.errors import CompactionError
from compacter.events import CompactionReused, MaxTokensAdjusted, MessageShortened, RetriesExhausted, Trigger
from compacter.options import Options
from compacter.overflow import NO_ROOM, TokenLimit

_LEAST_OUTPUT = 64
"""Smallest output limit, in tokens, worth retrying with; below it the history is compacted."""
_DENSE = 2.5
"""Characters per token from which on a stated size is believed without a look at the text."""
_FULL = 0.98
"""Share of the window that prompt and reply fill when there is no room left: servers keep a few tokens back."""
_MOST_RESERVED = 0.5
"""Share of the window that an output limit may take from quotes; many are set to all of it."""
_FEWEST_QUOTED = 300
"""Characters that quotes need to say anything, their frame included."""
_OUTPUT_MARGIN = 8
"""Tokens left free beside a lowered output limit, for what a chat template adds."""

Completed = tuple[object, Request]
"""The reply to a call, and the request that got it."""


def called(options: Options, request: Request, calibration: Calibration) -> Flow[Reply]:
    """Make the call. A token limit is in the reply; any other error is raised."""
    try:
        reply = yield from Call(request.sent, request.options)
    except Exception as error:
        found = options.detect(error)
        if found is None:
            raise
        return Reply(token_limit=found, error=error)
    if reply.error is not None and reply.token_limit is None:
        raise reply.error
    if reply.token_limit is not None and not confirmed(request, calibration, reply.token_limit):
        return replace(reply, token_limit=None)
    return reply


def quoted(request: Request, calibration: Calibration) -> Flow[Request]:
    """The request with the quotes that its question brings, where something was folded and there is room for them."""
    if request.recall is None or (request.messages is request.original and not request.archive):
        return request
    room = request.recall.room(calibration.window, calibration.chars_per_token)
    if calibration.window is not None:
        output = min(request.output_tokens or 0, int(calibration.window * _MOST_RESERVED))
        free = int((calibration.window - output) * MARGIN * calibration.chars_per_token) - request.size
        room = min(room, free)
    if room < _FEWEST_QUOTED or request.conversation.last_user is None:
        return request
    text = yield from Quote(request.original, request.conversation, room, request.archive, request.digest)
    return replace(request, quotes=text, read=request.conversation) if text else request


def recover(options: Options, request: Request, calibration: Calibration, refused: Reply) -> Flow[Completed]:
    """Compact and retry until a reply comes, another error, or nothing is left to try.

    ``refused`` is the answer that stated the token limit. Raises the provider's own last exception, with a note of what
    was tried, when the call is given up; ``CompactionError`` when no summary can be had and there is no fallback.
    """
    if refused.token_limit is None or not confirmed(request, calibration, refused.token_limit):
        return refused.raw, request
    limit = options.max_retries
    stop = stop_after_attempt(1 + limit) if isinstance(limit, int) else limit
    state = RetryCallState(Retrying(stop=stop), fn=None, args=(), kwargs={})
    tried: list[str] = []
    while refused.token_limit is not None:
        calibrate(request, calibration, refused.token_limit)
        error = refused.error or RuntimeError("the reply says that the request is too long")
        state.set_exception((type(error), error, error.__traceback__))
        if stop(state):
            reason = "no rounds are left" if tried else "max_retries=0"
            return (yield from _give_up(request, calibration, refused, tried, reason))
        state.prepare_for_next_attempt()
        try:
            smaller = yield from _reduced(options, request, calibration, refused.token_limit, tried)
        except CompactionError as failure:
            # Without a cause of its own: what the provider said is why a summary was wanted at all.
            raise failure from failure.__cause__ or refused.error
        if smaller is None:
            return (yield from _give_up(request, calibration, refused, tried, "nothing more can be reduced"))
        request = yield from quoted(smaller, calibration)
        refused = yield from called(options, request, calibration)
    return refused.raw, request


def confirmed(request: Request, calibration: Calibration, found: TokenLimit) -> bool:
    """Whether a reply that was cut short was cut for want of room; anything else a provider says needs no second look.

    It was, if the caller had allowed more, and prompt and reply fill the known window; with no window known, if there
    was no room for so much as a second token.
    """
    if found.source != NO_ROOM:
        return True
    written = found.output_tokens or 0
    if request.output_tokens is not None and written >= request.output_tokens:
        return False
    if calibration.window is None:
        return written <= 1
    return (found.input_tokens or 0) + written >= calibration.window * _FULL


def _reduced(
    options: Options, request: Request, calibration: Calibration, found: TokenLimit, tried: list[str]
) -> Flow[Request | None]:
    """The request made smaller, or ``None``; what was done is added to ``tried``."""
    attempt = len(tried) + 1
    if request.quotes:
        request = replace(request, quotes="", recall=None, read=request.conversation)
        target = target_characters(found, calibration, overhead=request.overhead, output_tokens=request.output_tokens)
        if target is not None and target >= request.conversation.size:
            tried.append("quotes left out")
            return request
    lowered = lower_output(options, request, found)
    if lowered is not None:
        tried.append(f"{request.output_option} lowered from {request.output_tokens} to {lowered.output_tokens}")
        before, after = request.output_tokens or 0, lowered.output_tokens or 0
        event = MaxTokensAdjusted(before=before, after=after, limit=found.limit, attempt=attempt, **request.named)
        yield from Tell(event)
        return lowered
    if options.retrieved is not None:
        shorter = yield from _shortened(options, request, calibration, found, attempt)
        if shorter is not None:
            tried.append(f"the last user message shortened by {shorter.saved:,} characters")
            return shorter
    job = job_of(request, calibration, attempt=attempt, found=found)
    planned = plan(options, job)
    reused = yield from reuse(options, request, job, planned)
    if reused is not None:
        tried.append("a compaction that another call had just made")
        return reused
    made = yield from compact(options, job, original=request.original, planned=planned)
    if made is None:
        return None
    before, after = made.event.original_data_size, made.event.compacted_data_size
    tried.append(f"{before:,} to {after:,} characters ({made.event.strategy})")
    return replace(request, messages=made.messages, read=made.conversation)


def _shortened(
    options: Options, request: Request, calibration: Calibration, found: TokenLimit, attempt: int
) -> Flow[Request | None]:
    """The request with less retrieved text; ``None`` where the last user message is not what makes it too long."""
    at, read = request.conversation.last_user, request.conversation
    if options.retrieved is None or at is None:
        return None
    target = target_characters(found, calibration, overhead=request.overhead, output_tokens=request.output_tokens)
    size, now = read.sizes[at], read.sizes[at] - request.saved
    # It may have what the others leave, and half of the room in any case; where no limit is known, half of what it has.
    allowed = max(target - (read.size - size), target // 2) if target is not None else now // 2
    if now <= allowed or (target is None and 2 * now < read.size - request.saved):
        return None
    from compacter.call.unfoldable import shortened

    message = shortened(read.format, read.messages[at], options.retrieved, size - allowed)
    saved = size - read.format.size(message)
    if saved <= request.saved:
        return None
    yield from Tell(
        MessageShortened(
            model=request.model,
            attempt=attempt,
            conversation=request.digest,
            before=size,
            after=size - saved,
            limit=found.limit,
        )
    )
    return replace(request, shortened=message, saved=saved)


def reuse(options: Options, request: Request, job: Job, planned: CompactionPlan) -> Flow[Request | None]:
    """Wait for another call that folds the same head right now, and use what it made.

    Memory is asked in any case: the other one may have finished after this call looked and before it was refused.
    """
    if options.memory is None or not planned.head:
        return None
    view = yield from Remembered(request.original, planned.head)
    if view is None or not keeps_pins(request, view):
        return None
    smaller = replace(request, messages=tuple(view), read=None)
    if smaller.size >= request.size:
        return None
    before, after = len(request.messages), len(smaller.messages)
    yield from Tell(CompactionReused(messages_before=before, messages_after=after, **job.named))
    return smaller


def job_of(
    request: Request,
    calibration: Calibration,
    *,
    attempt: int = 1,
    found: TokenLimit | None = None,
    trigger: Trigger = "token_limit",
    target: int | None = None,
) -> Job:
    """The compaction that this request needs."""
    if target is None:
        target = target_characters(found, calibration, overhead=request.overhead, output_tokens=request.output_tokens)
    size = request.conversation.size
    if target is not None:
        target += request.saved
    if target is not None and target >= size:
        # By its characters it fits, the provider says that it does not: then only the proportion of its numbers counts.
        target = _in_proportion(request, found, size)
    recall, window, conversation = request.recall, calibration.window, request.conversation
    # In the middle of an agent's work nothing new is asked: its steps are worth more than quotes (issue 10).
    asked = trigger == "token_limit" and conversation.last_user == len(conversation.messages) - 1
    return Job(
        conversation=request.conversation,
        reserved=recall.room(window, calibration.chars_per_token) if recall and asked else 0,
        trigger=trigger,
        calibration=calibration,
        model=request.model,
        attempt=attempt,
        digest=request.digest,
        target=target,
        found=found,
        must=trigger == "token_limit",
    )


def _in_proportion(request: Request, found: TokenLimit | None, size: int) -> int | None:
    """The target by which the request shrinks as its stated tokens must; ``None`` where that tells nothing."""
    used = _input_stated(request, found) if found else None
    if not found or not found.limit or not used:
        return None
    limit = found.limit - (request.output_tokens or 0 if found.kind == "input_plus_output" else 0)
    target = int((size + request.overhead) * limit / used * MARGIN) - request.overhead
    return target if 0 < target < size else None


def keeps_pins(request: Request, view: Sequence[object]) -> bool:
    """Whether a remembered view holds all that is pinned now: it may have been made before something was."""
    wanted = pinned(request.pin, request.original, request.pinned_by_history)
    present = set(map(id, view)) if wanted else ()
    return all(id(request.original[index]) in present for index in wanted)


def lower_output(options: Options, request: Request, found: TokenLimit) -> Request | None:
    """The request with a lower output limit, where the input alone fits; ``None`` where that does not help."""
    before = request.output_tokens
    if not options.adjust_max_tokens or found.kind != "input_plus_output" or not found.limit or not before:
        return None
    used = found.input_tokens
    if used is None:
        if found.requested is None:
            return None
        used = found.requested - before
    left = found.limit - used - _OUTPUT_MARGIN
    if used <= 0 or left < _LEAST_OUTPUT or left >= before:
        return None
    return replace(request, options={**request.options, request.output_option: left}, output_tokens=left)


def calibrate(request: Request, calibration: Calibration, found: TokenLimit) -> None:
    """Learn the window and the characters per token from what the error states."""
    calibration.window = found.limit or calibration.window
    used = _input_stated(request, found)
    if used:
        size = request.size
        if size >= used * _DENSE or used <= _most_tokens(request, size):
            calibration.learn(size, used)


def _input_stated(request: Request, found: TokenLimit) -> int | None:
    """Input tokens of the request as the error states them."""
    if found.input_tokens is not None or not found.requested:
        return found.input_tokens
    return found.requested - (request.output_tokens or 0 if found.kind == "input_plus_output" else 0)


def _most_tokens(request: Request, size: int) -> int:
    """Upper bound on the messages' tokens. A larger stated size also counts something else, and is ignored."""
    conversation = request.conversation
    texts = [
        part.text
        for index in range(conversation.start, len(conversation.messages))
        for part in conversation.format.parts(conversation.messages[index], index)
        if part.kind != "media"
    ]
    return most_tokens(texts) + max(0, size - sum(map(len, texts)))


def _give_up(
    request: Request, calibration: Calibration, refused: Reply, tried: Sequence[str], reason: str
) -> Flow[Completed]:
    found = refused.token_limit
    facts: dict[str, Any] = {"limit": found.limit, "requested": found.requested} if found else {}
    rounds = len(tried)
    yield from Tell(RetriesExhausted(rounds=rounds, reason=reason, attempt=rounds, **facts, **request.named))
    if refused.error is None:
        return refused.raw, request
    steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(tried, 1)) or "nothing was tried"
    from compacter.call.unfoldable import advice

    helps = advice(request, calibration, found.limit if found else None)
    refused.error.add_note(f"compacter gave up: {reason} ({steps}).{helps}")
    raise refused.error
