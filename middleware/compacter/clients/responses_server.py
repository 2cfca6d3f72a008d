"""Responses that continue one which the server keeps: only the server can compact what came before.

A call with ``previous_response_id`` sends only what is new. Where the server refuses it as too long, the server is
asked to compact the past (https://platform.openai.com/docs/api-reference/responses/compact), and the call is made once
more with what comes of that in front of what is new. Function calls that are still waiting for their results are inside
the past, where the results could not refer to them: they are taken from the last response and sent along.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from compacter.call import streams
from compacter.call.arguments import parsed_reply
from compacter.call.effects import Tell
from compacter.call.perform import World
from compacter.call.request import tokens_of
from compacter.call.state import Engine
from compacter.events import CompactionEvent
from compacter.messages.fields import field, listed
from compacter.messages.format import wire
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
    engine: Engine, function: Callable[..., Any], server: ServerSide | None, *, asynchronous: bool
) -> Callable[..., Any]:
    """The function; a call with ``previous_response_id`` that is too long goes on from a compacted past.

    Once, and only where the SDK has ``responses.compact``. What that returns is opaque, so the event has sizes and no
    summary. Whatever fails after the first refusal, the first refusal is what the caller gets.
    """
    if server is None or engine.options.max_retries == 0:
        return function
    if asynchronous:

        @functools.wraps(function)
        async def acall(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("previous_response_id"):
                return await function(self, *args, **kwargs)
            return await _adrive(_continue(engine, partial(function, self, *args), server, self, kwargs, _ASYNC))

        return acall

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("previous_response_id"):
            return function(self, *args, **kwargs)
        return _drive(_continue(engine, partial(function, self, *args), server, self, kwargs, _SYNC))

    return call


# -- one call ----------------------------------------------------------------------------------------------------------

Steps = Generator[Callable[[], Any], Any, Any]
"""Yields calls to make, and gets what they return or raise."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What differs between sync and async programs."""

    is_stream: Callable[[object], bool]
    look: Callable[[Any], Any]
    shut: Callable[[Any], Any]
    perform: Callable[[World, Tell], Any]


_SYNC = Shape(streams.is_sync_stream, streams.look, streams.shut, World.perform)
_ASYNC = Shape(streams.is_async_stream, streams.alook, streams.ashut, World.aperform)


@dataclass(slots=True)
class Refusal:
    """A server's "too long": an exception, or a reply that says so."""

    error: Exception | None
    reply: Any = None

    def outcome(self, note: str) -> Any:
        """Raise the exception, with a note, or give the reply."""
        if self.error is None:
            return self.reply
        self.error.add_note(f"compacter {note}")
        raise self.error from None


def _continue(
    engine: Engine, send: Callable[..., Any], server: ServerSide, resource: Any, kwargs: dict[str, Any], shape: Shape
) -> Steps:
    """The call; and, if it is refused, the compaction by the server and the call that goes on from there."""
    first = yield from _attempt(engine, send, kwargs, shape)
    if not isinstance(first, Refusal):
        return first
    try:
        compacted = yield partial(server.compact, resource, **_request(kwargs, server.compact))
    except Exception as error:  # noqa: BLE001 - the server's first answer is the one to raise
        return first.outcome(_CANNOT_COMPACT + type(error).__name__)
    yield partial(shape.perform, _world(engine, kwargs), Tell(_event(engine, kwargs, compacted)))
    try:
        waiting = _waiting(kwargs, compacted)
        last = (yield partial(server.retrieve, resource, kwargs["previous_response_id"])) if waiting else None
        second = yield from _attempt(engine, send, _continued(kwargs, compacted, _calls(last, waiting)), shape)
    except Exception as error:  # noqa: BLE001 - as above
        return first.outcome(_CANNOT_CONTINUE + type(error).__name__)
    dropped = second if isinstance(second, Refusal) else first
    if dropped.reply is not None:
        yield partial(shape.shut, dropped.reply)
    return first.outcome(_STILL_TOO_LONG) if dropped is second else second


def _attempt(engine: Engine, send: Callable[..., Any], kwargs: Mapping[str, Any], shape: Shape) -> Steps:
    """A reply, or a ``Refusal``. A stream is looked into until its first content."""
    try:
        reply = yield partial(send, **kwargs)
    except Exception as error:
        if engine.detect(error) is None:
            raise
        return Refusal(error)
    if not shape.is_stream(reply):
        return reply if detect_in_reply(reply) is None else Refusal(None, reply)
    opening = yield partial(shape.look, reply)
    if opening.error is not None and engine.detect(opening.error) is not None:
        yield partial(shape.shut, reply)
        return Refusal(opening.error)
    stream = streams.replay(reply, opening)
    return stream if opening.found is None else Refusal(None, stream)


def _drive(steps: Steps) -> Any:
    try:
        step = next(steps)
        while True:
            try:
                outcome = step()
            except Exception as error:  # noqa: BLE001 - the steps decide what it means
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


async def _adrive(steps: Steps) -> Any:
    try:
        step = next(steps)
        while True:
            try:
                outcome = await step()
            except Exception as error:  # noqa: BLE001 - the steps decide what it means
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


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


def _event(engine: Engine, kwargs: Mapping[str, Any], compacted: object) -> CompactionEvent:
    """Sizes are the server's token counts, in characters by what was learnt of the model."""
    before, after = tokens_of(compacted)
    model = kwargs.get("model")
    model = model if isinstance(model, str) else None
    ratio = engine.calibration(model).chars_per_token
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


def _world(engine: Engine, kwargs: Mapping[str, Any]) -> World:
    model = kwargs.get("model")
    return World(engine, wire("responses"), model if isinstance(model, str) else None, None, None, (), {})
