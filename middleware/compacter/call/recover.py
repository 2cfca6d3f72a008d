"""What one wrapped call does when the provider says that it is too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tenacity import BaseRetrying, DoAttempt, DoSleep, RetryCallState

from compacter.call.effects import Call, Claim, Flow, Recall, Sleep, Tell
from compacter.compaction.calibration import Calibration, most_tokens
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import MARGIN, Job, plan, target_characters
from compacter.compaction.run import compact
from compacter.errors import CompactionError
from compacter.events import CompactionReused, MaxTokensAdjusted, RetriesExhausted
from compacter.messages.format import Message, Wire
from compacter.options import Options
from compacter.overflow import NO_ROOM, TokenLimit

_LEAST_OUTPUT = 64
"""Tokens of output below which an answer is none: then the history is compacted instead."""
_DENSE = 2.5
"""Characters per token from which on a stated size is believed without a look at the text."""
_FULL = 0.98
"""Share of the window that prompt and reply fill when there is no room left: servers keep a few tokens back."""
_OUTPUT_MARGIN = 8
"""Tokens left free beside a lowered output limit, for what a chat template adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of the wrapped function, as the flow sees it."""

    wire: Wire
    original: Sequence[Message]
    """The caller's own messages."""
    messages: Sequence[Message]
    """What is sent: the original, or a compacted view of it."""
    overhead: int = 0
    """Size of what is sent beside the messages, in characters: tools, a system prompt outside the list."""
    output_tokens: int | None = None
    """The request's output limit."""
    output_option: str = "max_tokens"
    """The option that sets it."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Options changed so far."""
    model: str | None = None
    conversation: str = ""
    pinned_by_history: frozenset[int] = frozenset()
    """``id`` of messages that a ``History`` has pinned."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The provider's "too long": an exception, or a reply that came with HTTP 200 and says so."""

    found: TokenLimit
    error: Exception | None = None
    reply: object = None


def recover(options: Options, request: Request, calibration: Calibration, refusal: Refusal) -> Flow[object]:
    """Compact and retry until a reply comes, another error, or nothing is left to try.

    Raises the provider's own last exception, with a note of what was tried, when the call is given up.
    """
    if not confirmed(request, calibration, refusal.found):
        return refusal.reply
    retrying = options.retrying.copy()
    retrying.begin()
    state = RetryCallState(retrying, fn=None, args=(), kwargs={})
    tried: list[str] = []
    while True:
        calibrate(request, calibration, refusal.found)
        if (yield from _stopped(retrying, state, refusal)):
            return (yield from _give_up(request, refusal, tried, "no rounds are left" if tried else "max_retries=0"))
        try:
            smaller = yield from _reduced(options, request, calibration, refusal.found, state.attempt_number - 1, tried)
        except CompactionError as error:
            # Without a cause of its own: what the provider said is why a summary was wanted at all.
            raise error from error.__cause__ or refusal.error
        if smaller is None:
            return (yield from _give_up(request, refusal, tried, "nothing more can be reduced"))
        request = smaller
        try:
            outcome = yield from Call(request.messages, request.options)
        except Exception as error:
            found = options.detector(error)
            if found is None:
                raise
            refusal = Refusal(found, error)
            continue
        if outcome.found is None or not confirmed(request, calibration, outcome.found):
            return outcome.reply
        refusal = Refusal(outcome.found, None, outcome.reply)


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


def _stopped(retrying: BaseRetrying, state: RetryCallState, refusal: Refusal) -> Flow[bool]:
    """Let tenacity decide whether another attempt is made, and wait as long as it says."""
    error = refusal.error or RuntimeError("the reply says that the request is too long")
    state.set_exception((type(error), error, error.__traceback__))
    trace = error.__traceback__
    try:
        step = retrying.iter(state)
    except Exception as raised:
        if raised is error:
            # The provider's error goes to the caller: how tenacity gave it back is no part of its story.
            error.__traceback__ = trace
            return True
        raise
    if isinstance(step, DoSleep):
        state.prepare_for_next_attempt()
        if float(step) > 0:
            yield from Sleep(float(step))
    return not isinstance(retrying.iter(state), DoAttempt)


def _reduced(
    options: Options,
    request: Request,
    calibration: Calibration,
    found: TokenLimit,
    attempt: int,
    tried: list[str],
) -> Flow[Request | None]:
    """The request made smaller, or ``None``."""
    lowered = lower_output(options, request, found)
    if lowered is not None:
        tokens = int(lowered.options[request.output_option])  # type: ignore[call-overload]
        tried.append(f"{request.output_option} lowered from {request.output_tokens} to {tokens}")
        yield from Tell(
            MaxTokensAdjusted(
                model=request.model,
                attempt=attempt,
                conversation=request.conversation,
                before=request.output_tokens or 0,
                after=tokens,
                limit=found.limit,
            )
        )
        return lowered
    job = job_of(options, request, calibration, attempt=attempt, found=found)
    if options.memory is not None:
        reused = yield from reuse(options, request, job)
        if reused is not None:
            tried.append("a compaction that another call had just made")
            return reused
    made = yield from compact(options, job, original=request.original)
    if made is None:
        return None
    tried.append(
        f"{made.event.original_data_size:,} to {made.event.compacted_data_size:,} characters ({made.event.strategy})"
    )
    return replace(request, messages=made.messages)


def reuse(options: Options, request: Request, job: Job) -> Flow[Request | None]:
    """Wait for another call that folds the same head right now, and use what it made.

    Memory is asked in any case: the other one may have finished after this call looked and before it was refused.
    """
    head = plan(options, job).head
    if not head:
        return None
    yield from Claim(head)
    view = yield from Recall(request.original)
    if view is not None and not keeps_pins(options, request, view):
        view = None
    size = request.wire.size
    if view is None or sum(map(size, view)) >= sum(map(size, request.messages)):
        return None
    yield from Tell(
        CompactionReused(
            model=request.model,
            attempt=job.attempt,
            conversation=request.conversation,
            messages_before=len(request.messages),
            messages_after=len(view),
        )
    )
    return replace(request, messages=view)


def job_of(
    options: Options,
    request: Request,
    calibration: Calibration,
    *,
    attempt: int,
    found: TokenLimit | None,
    trigger: str = "token_limit",
    target: int | None = None,
) -> Job:
    """The compaction that this request needs."""
    messages = tuple(request.messages)
    conversation = Conversation.of(
        messages, request.wire, pinned=pinned(options, messages, request.pinned_by_history)
    )
    if target is None:
        target = target_characters(found, calibration, overhead=request.overhead, output_tokens=request.output_tokens)
    size = conversation.size
    if target is not None and target >= size:
        # By its characters it fits, the provider says that it does not: then only the proportion of its numbers counts.
        target = _in_proportion(request, found, size)
    return Job(
        conversation=conversation,
        trigger=trigger,  # type: ignore[arg-type]
        calibration=calibration,
        model=request.model,
        attempt=attempt,
        digest=request.conversation,
        target=target,
        found=found,
        must=True,
    )


def _in_proportion(request: Request, found: TokenLimit | None, size: int) -> int | None:
    """The target by which the request shrinks as its stated tokens must; ``None`` where that tells nothing."""
    used = _input_stated(request, found) if found else None
    if not found or not found.limit or not used:
        return None
    limit = found.limit - (request.output_tokens or 0 if found.kind == "input_plus_output" else 0)
    target = int((size + request.overhead) * limit / used * MARGIN) - request.overhead
    return target if 0 < target < size else None


def pinned(options: Options, messages: Sequence[Message], by_history: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Indexes of pinned messages. A predicate that raises pins what it was asked about: losing a pin is worse."""
    if options.pin is None and not by_history:
        return ()
    found = []
    for index, message in enumerate(messages):
        if id(message) in by_history:
            found.append(index)
        elif options.pin is not None:
            try:
                wanted = bool(options.pin(message))
            except Exception:  # noqa: BLE001
                wanted = True
            if wanted:
                found.append(index)
    return tuple(found)


def keeps_pins(options: Options, request: Request, view: Sequence[Message]) -> bool:
    """Whether a remembered view holds all that is pinned now: it may have been made before something was."""
    wanted = pinned(options, request.original, request.pinned_by_history)
    if not wanted:
        return True
    present = set(map(id, view))
    return all(id(request.original[index]) in present for index in wanted)


def lower_output(options: Options, request: Request, found: TokenLimit) -> Request | None:
    """The request with a lower output limit, where the input alone fits; ``None`` where that does not help."""
    if (
        not options.adjust_max_tokens
        or found.kind != "input_plus_output"
        or not found.limit
        or not request.output_tokens
    ):
        return None
    used = found.input_tokens
    if used is None:
        if found.requested is None:
            return None
        used = found.requested - request.output_tokens
    left = found.limit - used - _OUTPUT_MARGIN
    if used <= 0 or left < min(_LEAST_OUTPUT, request.output_tokens) or left >= request.output_tokens:
        return None
    return replace(request, options={**request.options, request.output_option: left}, output_tokens=left)


def calibrate(request: Request, calibration: Calibration, found: TokenLimit) -> None:
    """Learn the window and the characters per token from what the error states."""
    calibration.learn_limit(found)
    used = _input_stated(request, found)
    if used:
        size = sum(map(request.wire.size, request.messages)) + request.overhead
        if size >= used * _DENSE or used <= _most_tokens(request, size):
            calibration.learn(size, used)


def _input_stated(request: Request, found: TokenLimit) -> int | None:
    """Input tokens of the request as the error states them."""
    if found.input_tokens is not None or not found.requested:
        return found.input_tokens
    return found.requested - (request.output_tokens or 0 if found.kind == "input_plus_output" else 0)


def _most_tokens(request: Request, size: int) -> int:
    """More tokens than these messages can have; an error that states more counts something that is not in them."""
    texts = [
        entry.text
        for index, message in enumerate(request.messages)
        for entry in request.wire.entries(message, index)
        if entry.kind != "media"
    ]
    return most_tokens(texts) + max(0, size - sum(map(len, texts)))


def _give_up(request: Request, refusal: Refusal, tried: Sequence[str], reason: str) -> Flow[object]:
    yield from Tell(
        RetriesExhausted(
            model=request.model,
            attempt=len(tried),
            conversation=request.conversation,
            rounds=len(tried),
            reason=reason,
            limit=refusal.found.limit,
            requested=refusal.found.requested,
        )
    )
    if refusal.error is None:
        return refusal.reply
    steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(tried, 1)) or "nothing was tried"
    refusal.error.add_note(f"compacter gave up: {reason} ({steps}).")
    raise refusal.error
