"""Responses that continue one which the server keeps: only the server can compact what came before.

A call with ``previous_response_id`` sends only what is new. Where the server refuses it as too long, the server is
asked to compact the past (https://platform.openai.com/docs/api-reference/responses/compact), and the call is made once
more with what comes of that in front of what is new. Function calls that are still waiting for their results are inside
the past, where the results could not refer to them: they are taken from the last response and sent along.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from compacter.call import streams
from compacter.call.arguments import parsed_reply
from compacter.call.io import ASYNC, IO, SYNC, run
from compacter.call.perform import tell
from compacter.call.request import usage_of
from compacter.call.state import State
from compacter.effects import Reply
from compacter.events import CompactionEvent
from compacter.messages.fields import field, listed
from compacter.overflow import detect_in_reply

_SHARED = (
    "model", "instructions", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier",
    "extra_query", "timeout", "betas",
)  # fmt: skip
"""Arguments that ``responses.compact`` takes over from the call, where the installed SDK's has them."""
_NAME = "responses.compact"


@dataclass(frozen=True, slots=True)
class ServerSide:
    """The methods of a ``responses`` resource that a compaction by the server takes."""

    compact: Callable[..., Any]
    retrieve: Callable[..., Any]


def compacting(
    state: State, function: Callable[..., Any], server: ServerSide | None, *, asynchronous: bool
) -> Callable[..., Any]:
    """The function; a call with ``previous_response_id`` that is too long goes on from a compacted past.

    Once, and only where the SDK has ``responses.compact``. What that returns is opaque, so the event has sizes and no
    summary. Whatever fails after the first refusal, the first refusal is what the caller gets.
    """
    if server is None or state.options.max_retries == 0:
        return function
    if asynchronous:

        @functools.wraps(function)
        async def acall(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("previous_response_id"):
                return await function(self, *args, **kwargs)
            return await _continue(ASYNC, state, partial(function, self, *args), server, self, kwargs)

        return acall

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("previous_response_id"):
            return function(self, *args, **kwargs)
        return run(_continue(SYNC, state, partial(function, self, *args), server, self, kwargs))

    return call


# -- one call ----------------------------------------------------------------------------------------------------------


async def _continue(
    io: IO, state: State, send: Callable[..., Any], server: ServerSide, resource: Any, kwargs: dict[str, Any]
) -> Any:
    """The call; and, if it is refused, the compaction by the server and the call that goes on from there."""
    first = await _attempt(io, state, send, kwargs)
    if first.token_limit is None:
        return first.raw
    try:
        compacted = await io.call(server.compact, resource, **_request(kwargs, server.compact))
    except Exception as error:  # noqa: BLE001 - the server's first answer is the one to raise
        return _given_up(first, _CANNOT_COMPACT + type(error).__name__)
    await tell(state, io, _event(state, kwargs, compacted))
    try:
        waiting = _waiting(kwargs, compacted)
        last = await io.call(server.retrieve, resource, kwargs["previous_response_id"]) if waiting else None
        second = await _attempt(io, state, send, _continued(kwargs, compacted, _calls(last, waiting)))
    except Exception as error:  # noqa: BLE001 - as above
        return _given_up(first, _CANNOT_CONTINUE + type(error).__name__)
    dropped = first if second.token_limit is None else second
    if dropped.raw is not None:
        await streams.close(io, dropped.raw)
    return second.raw if dropped is first else _given_up(first, _STILL_TOO_LONG)


def _given_up(refused: Reply, note: str) -> Any:
    """Raise the refusal's exception, with a note, or give the reply that says so."""
    if refused.error is None:
        return refused.raw
    refused.error.add_note(f"compacter {note}")
    raise refused.error from None


async def _attempt(io: IO, state: State, send: Callable[..., Any], kwargs: Mapping[str, Any]) -> Reply:
    """The reply. A stream is looked into until its first content."""
    try:
        raw = await io.call(send, **kwargs)
    except Exception as error:
        found = state.detect(error)
        if found is None:
            raise
        return Reply(token_limit=found, error=error)
    if streams.can_be_opened(io, raw):
        return await streams.opened(io, raw, state.detect)
    return Reply(raw=raw, token_limit=detect_in_reply(raw))


# -- what is sent ------------------------------------------------------------------------------------------------------


def _request(kwargs: Mapping[str, Any], compact: Callable[..., Any]) -> dict[str, Any]:
    known = inspect.signature(compact).parameters
    request = {name: kwargs[name] for name in _SHARED if name in kwargs and name in known}
    if isinstance(kwargs.get("extra_headers"), Mapping):
        request["extra_headers"] = parsed_reply(kwargs["extra_headers"])
    return {**request, "previous_response_id": kwargs["previous_response_id"]}


def _waiting(kwargs: Mapping[str, Any], compacted: object) -> frozenset[str]:
    """Ids of the calls that the new items answer and that stand neither among these nor in what was compacted."""
    new = kwargs.get("input")
    items = [*listed(field(compacted, "output")), *(listed(new) if not isinstance(new, str) else ())]
    answered = {field(item, "call_id") for item in items if str(field(item, "type")).endswith("_output")}
    called = {field(item, "call_id") for item in items if str(field(item, "type")).endswith("_call")}
    return frozenset(answered - called - {None})


def _calls(response: object, waiting: frozenset[str]) -> list[Any]:
    """The waiting calls as the last response has them, with the reasoning that belongs to them.

    Raises ``LookupError`` where one is not in it: its result could not be sent.
    """
    items = listed(field(response, "output"))
    calls = [item for item in items if field(item, "call_id") in waiting]
    if not waiting <= {field(item, "call_id") for item in calls}:
        raise LookupError("a call that waits for its result is not in the last response")
    return [item for item in items if item in calls or field(item, "type") == "reasoning"] if calls else []


def _continued(kwargs: Mapping[str, Any], compacted: object, calls: list[Any]) -> dict[str, Any]:
    """The call with the compacted past in front of what is new, in place of the reference to the past."""
    new = kwargs.get("input")
    items = [{"role": "user", "content": new}] if isinstance(new, str) else listed(new)
    kept = {name: value for name, value in kwargs.items() if name != "previous_response_id"}
    return {**kept, "input": [*listed(field(compacted, "output")), *calls, *items]}


# -- what is told ------------------------------------------------------------------------------------------------------

_CANNOT_COMPACT = f"asked the server to compact its history, and {_NAME} failed: "
_CANNOT_CONTINUE = f"had the server compact its history ({_NAME}), and the request that went on from there failed: "
_STILL_TOO_LONG = f"had the server compact its history ({_NAME}), and the request was still too long"


def _event(state: State, kwargs: Mapping[str, Any], compacted: object) -> CompactionEvent:
    """Sizes are the server's token counts, in characters by what was learnt of the model."""
    before, after = usage_of(compacted)
    model = kwargs.get("model")
    model = model if isinstance(model, str) else None
    ratio = state.calibration(model).chars_per_token
    return CompactionEvent(
        model=model,
        attempt=1,
        conversation=str(kwargs["previous_response_id"]),
        trigger="token_limit",
        strategy=_NAME,
        original_data_size=int(before * ratio),
        compacted_data_size=int(after * ratio),
        original_tokens=before,
        compacted_tokens=after,
        input_tokens=before,
        output_tokens=after,
        summarizer_calls=1,
        ratio=1.0,
        messages_before=0,
        messages_after=len(listed(field(compacted, "output"))),
    )
