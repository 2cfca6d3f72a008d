"""One call with a proactive trigger: compact before calling when the request has grown to the threshold."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from compacter.call.recover import Completed, called, job_of, keeps_pins, quoted, recover, reuse
from compacter.call.request import ConversationState, Request
from compacter.compaction.plan import Calibration, plan
from compacter.compaction.run import compact
from compacter.effects import Flow, Remembered, Reply, Tell
from compacter.errors import CompactionError
from compacter.events import CompactionFailed, CompactionSkipped, SilentTruncation
from compacter.options import Options

_FAR_OVER = 1.5
"""Times the threshold at which the cool-down no longer holds back."""
_TARGET_SHARE = 0.9
"""Share of the threshold that a proactive compaction aims below: the next message shall not trigger again."""
_MOST_RESERVED = 0.5
"""Share of the window that an output limit may take from the threshold; many are set to all of it."""
_GROWN = 1.25
"""Times its size to which a history that stayed above the threshold must have grown to be tried again."""
_CUT_SHARE = 0.6
"""A prompt of which the server read less than this share, by what was learnt of the model, was cut."""
_MOST_CHARACTERS = 7.0
"""Characters per token that hardly any text has: what is still more was not read. English has 4 to 5."""


def complete(options: Options, request: Request, calibration: Calibration, state: ConversationState) -> Flow[Completed]:
    """One call: the remembered view, the trigger, the request itself, and recovery from a token limit."""
    state.calls += 1
    if options.memory is not None:
        view = yield from Remembered(request.original)
        if view is not None and keeps_pins(request, view):
            request = replace(request, messages=tuple(view), read=None)
    if options.trigger_tokens is not None:
        request = yield from _ahead(options, request, calibration, state)
    request = yield from quoted(request, calibration)
    reply = yield from called(options, request, calibration)
    if reply.token_limit is not None:
        state.tried = state.calls
        return (yield from recover(options, request, calibration, reply))
    return (yield from _checked(options, request, calibration, state, reply))


def silently_cut(request: Request, size: int, calibration: Calibration, tokens: int) -> Tell[SilentTruncation] | None:
    """The event that a server which read ``tokens`` of this request has cut it silently; ``None`` where it did not.

    ``size`` is the request's, in characters. The second look is at words alone: what media weigh is a guess, and old
    reasoning is not always read.
    """
    if not tokens or expected_tokens(size, tokens, calibration) is None:
        return None
    expected = expected_tokens(_readable(request), tokens, calibration)
    if expected is None:
        return None
    return Tell(SilentTruncation(expected_tokens=expected, prompt_tokens=tokens, **request.named))


def threshold_of(options: Options, calibration: Calibration, output_tokens: int | None) -> int | None:
    """Input tokens at which the trigger fires; room for the output is left. ``None``: no window is known."""
    trigger, window = options.trigger_tokens, calibration.window
    if trigger is None or (isinstance(trigger, float) and not window):
        return None
    if not window:
        return int(trigger)
    room = window - min(output_tokens or 0, int(window * _MOST_RESERVED))
    return max(1, min(int(trigger * window) if isinstance(trigger, float) else trigger, room))


def estimate(options: Options, request: Request, calibration: Calibration, state: ConversationState) -> int:
    """Input tokens of this request, with all that is sent beside the messages.

    What the last usage stated and what was added since; or the user's own counter's word for the messages.
    Raises what that counter raises.
    """
    if options.token_counter is not None:
        return options.token_counter(list(request.messages)) + calibration.tokens(request.overhead)
    size = request.size
    if state.tokens and size >= state.characters:
        return state.tokens + calibration.tokens(size - state.characters)
    return calibration.tokens(size)


def _estimated(options: Options, request: Request, calibration: Calibration, state: ConversationState) -> Flow[int]:
    try:
        return estimate(options, request, calibration, state)
    except Exception as error:  # noqa: BLE001 - a counter that raises must not break the call
        yield from _failed(request, "token_counter raised", error)
        return estimate(options.model_copy(update={"token_counter": None}), request, calibration, state)


def _ahead(options: Options, request: Request, calibration: Calibration, state: ConversationState) -> Flow[Request]:
    threshold = threshold_of(options, calibration, request.output_tokens)
    if threshold is None:
        if not calibration.warned:
            calibration.warned = True
            yield from _skip(request, "unknown_window")
        return request
    if state.calls == 1:
        return request
    tokens = yield from _estimated(options, request, calibration, state)
    size = request.size
    if tokens < threshold or (state.stuck and size <= state.stuck * _GROWN):
        return request
    held_back = state.tried is not None and state.calls - state.tried <= options.min_calls_between
    if held_back and tokens < threshold * _FAR_OVER:
        yield from _skip(request, "cool_down")
        return request
    target = max(1, int(size * threshold * _TARGET_SHARE / tokens) - request.overhead)
    smaller = yield from _compacted(options, request, calibration, state, target)
    if smaller is not request and not state.stuck:
        left = yield from _estimated(options, smaller, calibration, state)
        state.stuck = smaller.size if left >= threshold else 0
    return smaller


def _compacted(
    options: Options, request: Request, calibration: Calibration, state: ConversationState, target: int
) -> Flow[Request]:
    """The request compacted, or as it was when that did not succeed."""
    job = job_of(request, calibration, trigger="threshold", target=target)
    state.tried = state.calls
    planned = plan(options, job)
    reused = yield from reuse(options, request, job, planned)
    if reused is not None:
        state.tokens = state.stuck = 0
        return reused
    try:
        made = yield from compact(options, job, original=request.original, planned=planned)
    except CompactionError as error:
        yield from _failed(request, "no summary could be had", error.__cause__)
        return request
    if made is None:
        state.stuck = request.size
        return request
    state.tokens = state.stuck = 0
    return replace(request, messages=made.messages, read=made.conversation)


def _checked(
    options: Options, request: Request, calibration: Calibration, state: ConversationState, reply: Reply
) -> Flow[Completed]:
    """Take in the reply's usage; a prompt that the server cut silently is compacted and sent once more."""
    tokens = reply.input_tokens
    if not tokens or (calibration.learnt and not request.watched):
        return reply.raw, request
    size = request.size  # Once: with a long history it is most of what such a call costs.
    truncated = silently_cut(request, size, calibration, tokens)
    if truncated is None:
        _learn(calibration, state, request, tokens)
        return reply.raw, request
    yield from truncated
    if options.trigger_tokens is None:
        return reply.raw, request
    target = max(1, int(tokens * _TARGET_SHARE * calibration.chars_per_token) - request.overhead)
    bare = replace(request, quotes="", read=request.conversation)
    smaller = yield from _compacted(options, bare, calibration, state, target)
    if smaller is bare:
        return reply.raw, request
    smaller = yield from quoted(smaller, calibration)
    try:
        again = yield from called(options, smaller, calibration)
    except Exception:  # noqa: BLE001 - the call has succeeded before: its reply is what the caller gets
        return reply.raw, request
    if again.token_limit is not None:
        return reply.raw, request
    read = again.input_tokens
    if read and silently_cut(smaller, smaller.size, calibration, read) is None:
        _learn(calibration, state, smaller, read)
    return again.raw, smaller


def _learn(calibration: Calibration, state: ConversationState, request: Request, tokens: int) -> None:
    size, quotes = request.size, len(request.quotes)
    calibration.learn(size, tokens)
    # The next request may bring other quotes, or none.
    state.tokens, state.characters = tokens - calibration.tokens(quotes), size - quotes


def expected_tokens(characters: int, tokens: int, calibration: Calibration) -> int | None:
    """The tokens that a request must have had, if the server read clearly fewer; ``None`` if it read all."""
    learnt = calibration.chars_per_token / _CUT_SHARE if calibration.learnt else 0.0
    return calibration.tokens(characters) if characters > tokens * max(learnt, _MOST_CHARACTERS) else None


def _skip(request: Request, reason: Literal["cool_down", "unknown_window"]) -> Flow[None]:
    yield from Tell(CompactionSkipped(trigger="threshold", reason=reason, **request.named))


def _failed(request: Request, reason: str, cause: BaseException | None) -> Flow[None]:
    error = type(cause).__name__ if cause else ""
    yield from Tell(CompactionFailed(trigger="threshold", reason=reason, error=error, **request.named))


def _readable(request: Request) -> int:
    """Size of what is sent, in characters, without media and reasoning."""
    conversation = request.conversation
    parts = (
        part
        for index in range(conversation.start, len(conversation.messages))
        for part in conversation.format.parts(conversation.messages[index], index)
        if part.kind != "media"
    )
    return sum(len(part.text) for part in parts) + request.overhead
