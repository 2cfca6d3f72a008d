"""Refusals inside HTTP 200 that are read through ``with_raw_response`` and
``with_streaming_response``.

A response that says "too long" gets the token limit as an attribute ``error``, where
``detect_in_reply`` finds it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from compacter.call.arguments import Options
from compacter.call.streams import look_into
from compacter.clients.copying import divert
from compacter.messages.fields import field
from compacter.runtime.io import IO

_RAW = "x-stainless-raw-response"


def looking_into_raw(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the SDK's method. If the call asks for a raw response, the
    function reads the beginning of its body, to find a refusal there.
    """

    async def call(io: IO, *args: Any, **kwargs: Any) -> Any:
        return await _mark(io, await io.call(function, *args, **kwargs))

    return divert(function, asks_for_raw, call)


def asks_for_raw(kwargs: Options) -> bool:
    """Return whether a call was made with ``with_raw_response`` or ``with_streaming_response``."""
    return without_raw(kwargs) is not kwargs


def parsing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the SDK's method, and parses its reply even if the call asks for
    a raw one.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **without_raw(kwargs))

    return call


def without_raw(kwargs: Options) -> Options:
    """Return a call's options without the header of ``with_raw_response``; the options themselves
    if they have none.
    """
    headers = kwargs.get("extra_headers")
    given = headers if isinstance(headers, Mapping) else {}
    kept = {name: given[name] for name in given if str(name).lower() != _RAW}
    return kwargs if len(kept) == len(given) else {**kwargs, "extra_headers": kept}


async def _mark(io: IO, reply: Any) -> Any:
    """Return the reply; a refusal gets an attribute ``error``, and can be closed."""
    response = field(reply, "http_response")
    body = await look_into(io, response)
    if body.found is not None:
        vars(reply)["error"] = body.found
        if not hasattr(reply, "close"):
            vars(reply)["close"] = response.aclose if io.asynchronous else response.close
    return reply
