"""Responses that continue one which the server keeps: only the server can compact what came before."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from compacter.call.arguments import parsed_reply
from compacter.call.io import ASYNC, SYNC, run
from compacter.call.perform import tell
from compacter.call.request import usage_of
from compacter.call.state import Engine
from compacter.events import CompactionEvent
from compacter.messages.fields import field, listed

_SHARED = ("model", "instructions", "prompt_cache_key", "extra_query", "extra_body", "timeout")
"""Arguments that ``responses.compact`` takes over from the call."""
_NAME = "responses.compact"


def compacting(
    engine: Engine, function: Callable[..., Any], compact: Callable[..., Any] | None, *, asynchronous: bool
) -> Callable[..., Any]:
    """The function; a call with ``previous_response_id`` that is too long goes on from a compacted past.

    Once, and only where the SDK has ``responses.compact``. What it returns is opaque, so the event has
    sizes and no summary. Raises the provider's own exception where that does not help.
    """
    if compact is None or engine.options.max_retries == 0:
        return function
    return (_asynchronous if asynchronous else _synchronous)(engine, function, compact)


def _synchronous(engine: Engine, function: Callable[..., Any], compact: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except Exception as error:
            if not _too_long(engine, kwargs, error):
                raise
            try:
                compacted = compact(self, **_request(kwargs))
            except Exception as other:  # noqa: BLE001 - the provider's first answer is the one to raise
                _note(error, other)
                raise error from None
        run(tell(engine, SYNC, _event(engine, kwargs, compacted)))
        return function(self, *args, **_continued(kwargs, compacted))

    return call


def _asynchronous(engine: Engine, function: Callable[..., Any], compact: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await function(self, *args, **kwargs)
        except Exception as error:
            if not _too_long(engine, kwargs, error):
                raise
            try:
                compacted = await compact(self, **_request(kwargs))
            except Exception as other:  # noqa: BLE001 - the provider's first answer is the one to raise
                _note(error, other)
                raise error from None
        await tell(engine, ASYNC, _event(engine, kwargs, compacted))
        return await function(self, *args, **_continued(kwargs, compacted))

    return call


def _too_long(engine: Engine, kwargs: Mapping[str, Any], error: Exception) -> bool:
    return bool(kwargs.get("previous_response_id")) and engine.detect(error) is not None


def _request(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    request = {name: kwargs[name] for name in _SHARED if name in kwargs}
    if isinstance(kwargs.get("extra_headers"), Mapping):
        request["extra_headers"] = parsed_reply(kwargs["extra_headers"])
    return {**request, "previous_response_id": kwargs["previous_response_id"]}


def _continued(kwargs: Mapping[str, Any], compacted: object) -> dict[str, Any]:
    """The call with the compacted past in front of what is new, in place of the reference to the past."""
    new = kwargs.get("input")
    items = [{"role": "user", "content": new}] if isinstance(new, str) else listed(new)
    kept = {name: value for name, value in kwargs.items() if name != "previous_response_id"}
    return {**kept, "input": [*listed(field(compacted, "output")), *items]}


def _event(engine: Engine, kwargs: Mapping[str, Any], compacted: object) -> CompactionEvent:
    """Sizes are the server's token counts, in characters by what was learnt of the model."""
    before, after = usage_of(compacted)
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


def _note(error: Exception, other: Exception) -> None:
    error.add_note(f"compacter asked the server to compact its history, and {_NAME} failed: {type(other).__name__}")
