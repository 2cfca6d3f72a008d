"""Refusals inside HTTP 200: replies and chunks that state "too long" and are not an answer.

A refusal comes as an error (``{"error": ...}``, a flat event, ``response.failed``), as a stop
reason, or as an answer that was cut off after a few tokens. ``tests/kit/refusals.py`` has each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from compacter.messages.fields import Json, dig, field, first
from compacter.messages.replies import (
    READ,
    WRITTEN,
    counts_reasoning,
    finish_of,
    is_without_content,
    read_stream,
    usage_of,
)
from compacter.overflow import TokenLimit, explain, is_sealed
from compacter.overflow.unsaid import sign_of

NO_ROOM = "no room for output"
"""Source of a limit that is only likely: a reply cut off after a few tokens. The request has to
confirm it."""
SEALED = "sealed"
"""Source of a refusal that is not a token limit: the request has something that only another model
can read. A call handles it like one, up to ``reduce_request`` in ``call/reduce.py``."""
BARE = "a refusal without a reason"
BYTES = "too many bytes"
EMPTY = "an answer without text"
CUT = "an answer that was cut off after a few tokens"
LOST = "a user's message that the server has lost"
"""Source of a limit that a server states by missing what the request has."""
_SIGNS = {"bare": BARE, "bytes": BYTES, "lost": LOST}
UNSAID = (BARE, BYTES, EMPTY, CUT)
"""Sources of what is only a sign that the request may be too long, as nothing says so. A call
decides by the conversation whether to try a smaller request, once."""
# Finish reasons of a full window (Anthropic, Bedrock; Mistral's is `model_length`).
_WINDOW_FULL = re.compile(
    r"model_length|(?:model_|maximum_|max_)?context_(?:window|length|limit)(?:_exceeded|_reached)?"
)
_CUT_OFF = ("length", "max_tokens", "max_output_tokens")
# A full window did not cut off a longer reply, as it leaves room for a few tokens only.
_FEW_TOKENS = 16
# Finish reasons of complete chat completions, where some servers state none, and of replies that
# may be empty as the request was too long.
_ENDED = frozenset(("stop", "tool_calls", "function_call", None))
_MAY_BE_EMPTY = frozenset(("stop", None, "end_turn", "stop_sequence", "completed", *_CUT_OFF))
# States of a response that is made in the background.
_UNFINISHED = ("queued", "in_progress", "cancelled", "failed")
# Paths to members that only complete replies have.
_COMPLETE = ("choices.0.message", "stop_reason", "candidates", "output", "done")
# Members with the error of a reply; FastAPI's is `detail`.
_ERRORS = ("error", "errors", "detail")
# Paths to the answer of a reply.
_ANSWERS = (
    *(
        f"choices.0.{holder}.{name}"
        for holder in ("message", "delta")
        for name in ("content", "tool_calls")
    ),
    *("content", "output", "candidates"),
)


def detect_sealed(error: object) -> TokenLimit | None:
    """Return the reason to leave out blocks that only another model can read, if an exception or a
    body states one.
    """
    return TokenLimit(source=SEALED) if is_sealed(error) else None


def detect_unsaid(error: BaseException) -> TokenLimit | None:
    """Return a sign that the request may be too long, if an exception gives one without words."""
    with suppress(Exception):  # An exception of an unknown object must not hide the provider's.
        sign = sign_of(error)
        if sign:
            return TokenLimit(source=_SIGNS[sign])
    return None


def detect_empty(reply: object) -> TokenLimit | None:
    """Return a sign that the request may be too long, if a complete reply has neither text nor
    calls nor reasoning, and counts no output. Never raises.
    """
    if reply is None or type(reply) is str or _is_answer(reply):
        return None
    with suppress(Exception):  # A reply of an unknown type.
        read, written = usage_of(reply)
        is_complete = any(dig(reply, path) is not None for path in _COMPLETE)
        is_known = is_complete and field(reply, "status") not in _UNFINISHED
        is_silent = is_known and not written and finish_of(reply) in _MAY_BE_EMPTY
        if is_silent and not counts_reasoning(reply) and is_without_content(reply):
            return _empty(read)
    return None


def detect_empty_stream(chunks: Sequence[object]) -> TokenLimit | None:
    """Like ``detect_empty``, for all chunks of a stream that has ended without content."""
    with suppress(Exception):  # Chunks of an unknown type.
        read = read_stream(chunks)
        is_empty = not read.output_tokens and not any(map(counts_reasoning, chunks))
        return _empty(read.input_tokens) if is_empty and read.finish in _MAY_BE_EMPTY else None
    return None


def _empty(tokens: int) -> TokenLimit:
    return TokenLimit(input_tokens=tokens or None, source=EMPTY)


def detect_in_reply(reply: object) -> TokenLimit | None:
    """Return the token limit in a reply or a stream chunk that was received without an exception,
    or None. Never raises.
    """
    if reply is None or type(reply) is str or _is_answer(reply):
        return None
    with suppress(Exception):  # A reply of an unknown type does not state a limit.
        # Gemini's streams without ``alt=sse`` are lists.
        return _detect(reply[0] if isinstance(reply, list) else reply)
    return None


def _is_answer(reply: Json) -> bool:
    """Return whether a reply is a chat completion with words or calls and without an error, as
    nearly all are. Each call runs this, so it must be fast.
    """
    get: Any = dict.get if type(reply) is dict else getattr
    try:
        choice = get(reply, "choices")[0]
        message = get(choice, "message")
        if not (get(message, "content") or get(message, "tool_calls", None)):
            return False
        has_ended = get(choice, "finish_reason") in _ENDED
        return has_ended and not (field(reply, "error") or field(choice, "error"))
    except Exception:  # noqa: BLE001 - another kind of reply
        return False


def _detect(reply: Json) -> TokenLimit | None:
    reason = finish_of(reply) or ""
    if _WINDOW_FULL.fullmatch(reason):
        return TokenLimit(source="stop reason")
    error = error_of(reply)
    if isinstance(error, TokenLimit):  # A body that was read before: ``call/streams.py``.
        return error
    if error:
        return None if first(reply, _ANSWERS) else explain(error).limit or detect_sealed(error)
    if reason in _CUT_OFF:
        # A reply that ended after a few tokens fills the window together with the prompt.
        usage = first(reply, ("response.usage", "usage"))
        read = first(usage, READ)
        written = first(usage, WRITTEN)
        if isinstance(read, int) and isinstance(written, int) and written <= _FEW_TOKENS:
            return TokenLimit(None, None, "input_plus_output", read, written, NO_ROOM)
    return None


def error_of(reply: Json) -> Json:
    """Return the error in a reply; the reply itself if its own members are the error's; ``None``
    without an error.
    """
    error = first(reply, (*_ERRORS, "choices.0.error", "response.error"))
    if error:
        return error
    # A flat error; also an event named ``error``, whose name the SDK has dropped.
    names = (str(field(reply, name)).lower() for name in ("type", "__type", "object"))
    is_error = field(reply, "code") or any(name.endswith(("error", "exception")) for name in names)
    return reply if is_error and isinstance(field(reply, "message"), str) else None
