"""One call with a proactive trigger: compact before calling when the request has grown to the threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compacter.errors import CompactionError
from compacter.events import CompactionFailed, CompactionSkipped, SilentTruncation
from compacter.flow.calibration import Calibration
from compacter.flow.compaction import compact
from compacter.flow.effects import Call, Flow, Outcome, Remember, Tell, Usage
from compacter.flow.policy import Policy
from compacter.flow.recover import Refusal, Request, job_of, recover

_FAR_OVER = 1.5
"""Times the threshold at which the cool-down no longer holds back."""
_TARGET_SHARE = 0.9
"""Share of the threshold that a proactive compaction aims below, so that the next message does not trigger again."""
_CUT_SHARE = 0.6
"""A prompt of which the server read less than this share was cut."""
_MOST_CHARACTERS = 10.0
"""Characters per token that no text has: what is still more was not read."""


@dataclass(slots=True)
class Pulse:
    """What is known of one conversation between its calls."""

    calls: int = 0
    tokens: int = 0
    """Input tokens of the last reply, as its usage states them; 0 when unknown."""
    characters: int = 0
    """Size of the request that those tokens belong to."""
    since: int | None = None
    """Calls since the last proactive compaction, or try; ``None`` before the first."""
    stuck: int = 0
    """Size of a history that could not be reduced; it is not tried again until it has grown."""
    warned: bool = False


def converse(policy: Policy, request: Request, calibration: Calibration, pulse: Pulse) -> Flow[object]:
    """One call: the trigger, the request itself, and recovery from a token limit."""
    if policy.trigger is not None:
        request = yield from _ahead(policy, request, calibration, pulse)
    pulse.calls += 1
    if pulse.since is not None:
        pulse.since += 1
    try:
        outcome: Outcome = yield from Call(request.messages, request.options)
    except Exception as error:  # noqa: BLE001 - classified in the next line
        found = policy.detect(error)
        if found is None:
            raise
        return (yield from recover(policy, request, calibration, Refusal(found, error)))
    if outcome.found is not None:
        return (yield from recover(policy, request, calibration, Refusal(outcome.found, None, outcome.reply)))
    if policy.trigger is None:
        return outcome.reply
    return (yield from _checked(policy, request, calibration, pulse, outcome))


def threshold_of(policy: Policy, calibration: Calibration, output_tokens: int | None) -> int | None:
    """Input tokens at which the trigger fires; the room that the output needs lowers it. ``None`` without a known window."""
    trigger = policy.trigger
    if trigger is None:
        return None
    if isinstance(trigger, float):
        if not calibration.window:
            return None
        return max(1, min(int(trigger * calibration.window), calibration.window - (output_tokens or 0)))
    if calibration.window:
        return max(1, min(trigger, calibration.window - (output_tokens or 0)))
    return trigger


def estimate(policy: Policy, request: Request, calibration: Calibration, pulse: Pulse) -> int:
    """Input tokens of this request: what the last usage stated and what was added since, or the user's own counter's word."""
    if policy.token_counter is not None:
        return policy.token_counter(list(request.messages))
    size = _size(request)
    if pulse.tokens and size >= pulse.characters:
        return pulse.tokens + calibration.tokens(size - pulse.characters)
    return calibration.tokens(size)


def _ahead(policy: Policy, request: Request, calibration: Calibration, pulse: Pulse) -> Flow[Request]:
    threshold = threshold_of(policy, calibration, request.output_tokens)
    if threshold is None:
        if not pulse.warned:
            pulse.warned = True
            yield from _skip(request, "unknown_window")
        return request
    if pulse.calls == 0:
        return request
    tokens = estimate(policy, request, calibration, pulse)
    if tokens < threshold:
        return request
    size = _size(request)
    if pulse.stuck and size <= pulse.stuck * 1.1:
        return request
    if pulse.since is not None and pulse.since < policy.min_calls_between and tokens < threshold * _FAR_OVER:
        yield from _skip(request, "cool_down")
        return request
    return (
        yield from _compacted(policy, request, calibration, pulse, _target(threshold, calibration, request))
    )


def _target(threshold: int, calibration: Calibration, request: Request) -> int:
    return max(1, int(threshold * _TARGET_SHARE * calibration.chars_per_token) - request.overhead)


def _compacted(
    policy: Policy, request: Request, calibration: Calibration, pulse: Pulse, target: int
) -> Flow[Request]:
    """The request compacted, or as it was when that did not succeed."""
    job = replace(
        job_of(policy, request, calibration, attempt=1, found=None, trigger="threshold", target=target),
        must=False,
    )
    pulse.since = 0
    before = _size(request)
    try:
        made = yield from compact(policy, job)
    except CompactionError as error:
        yield from Tell(
            CompactionFailed(
                model=request.model,
                conversation=request.conversation,
                trigger="threshold",
                reason="no summary could be had",
                error=type(error.__cause__).__name__,
            )
        )
        return request
    if made is None:
        pulse.stuck = before
        return request
    pulse.tokens = pulse.stuck = 0
    yield from Remember(request.original, made.messages)
    return replace(request, messages=made.messages)


def _checked(
    policy: Policy, request: Request, calibration: Calibration, pulse: Pulse, outcome: Outcome
) -> Flow[object]:
    """Take in the reply's usage; a server that cut the prompt silently is answered by compacting and calling once more."""
    tokens = yield from Usage(outcome.reply)
    if not tokens:
        return outcome.reply
    size = _size(request)
    expected = silently_cut(size, tokens, calibration)
    if expected is None:
        calibration.learn(size, tokens)
        pulse.tokens, pulse.characters = tokens, size
        return outcome.reply
    yield from Tell(
        SilentTruncation(
            model=request.model,
            conversation=request.conversation,
            expected_tokens=expected,
            prompt_tokens=tokens,
        )
    )
    target = max(1, int(tokens * _TARGET_SHARE * calibration.chars_per_token) - request.overhead)
    smaller = yield from _compacted(policy, request, calibration, pulse, target)
    if smaller is request:
        return outcome.reply
    again: Outcome = yield from Call(smaller.messages, smaller.options)
    return again.reply


def silently_cut(characters: int, tokens: int, calibration: Calibration) -> int | None:
    """The tokens that a request must have had, when the server read clearly fewer; ``None`` when all was read."""
    ratio = calibration.chars_per_token / _CUT_SHARE if calibration.learnt else _MOST_CHARACTERS
    return calibration.tokens(characters) if characters > tokens * ratio else None


def _skip(request: Request, reason: str) -> Flow[None]:
    yield from Tell(
        CompactionSkipped(
            model=request.model, conversation=request.conversation, trigger="threshold", reason=reason
        )
    )  # type: ignore[arg-type]


def _size(request: Request) -> int:
    return sum(map(request.wire.size, request.messages)) + request.overhead
