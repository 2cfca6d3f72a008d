"""Refusals inside HTTP 200: replies and chunks that state "too long" and are not an answer.

A refusal comes as an error (``{"error": ...}``, a flat event, ``response.failed``), as a stop
reason, or as an answer that was cut off after a few tokens. ``tests/kit/refusals.py`` has each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from compacter.messages.fields import Json, field, first
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
# Finish reasons of complete chat completions, where some servers state none, and of complete
# replies of other kinds.
_ENDED = frozenset(("stop", "tool_calls", "function_call", None))
_FINISHED = frozenset(("end_turn", "tool_use", "stop_sequence", "completed"))
# Finish reasons of replies that may be empty as the request was too long.
_MAY_BE_EMPTY = frozenset((*_ENDED, *_FINISHED, *_CUT_OFF)) - {"tool_calls", "tool_use"}
# States of a response that is made in the background.
_UNFINISHED = ("queued", "in_progress", "cancelled", "failed")
# Members that only complete replies have.
_COMPLETE = frozenset(("stop_reason", "candidates", "output", "done", "stopReason"))
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
# The members that are read below: a reply without any of them is not a refusal.
_TELLING = frozenset(
    {
        *(*_ERRORS, "choices", "delta", "incomplete_details", "message", "messageStop"),
        *("response", "stopReason", "stop_reason"),
    }
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
    if reply is None or type(reply) is str:
        return None
    try:
        return _empty(usage_of(reply)[0]) if _is_empty(reply) else None
    except Exception:  # noqa: BLE001 - a reply of an unknown type is not one
        return None


def detect_empty_stream(chunks: Sequence[object]) -> TokenLimit | None:
    """Like ``detect_empty``, for all chunks of a stream that has ended without content."""
    try:
        read = read_stream(chunks)
        is_empty = not read.output_tokens and not any(map(counts_reasoning, chunks))
        return _empty(read.input_tokens) if is_empty and read.finish in _MAY_BE_EMPTY else None
    except Exception:  # noqa: BLE001 - chunks of an unknown type
        return None


def _empty(tokens: int) -> TokenLimit:
    return TokenLimit(input_tokens=tokens or None, source=EMPTY)


def _is_empty(reply: Json) -> bool:
    # Every quiet call runs this: the first lines are for the usual reply, which has content.
    members = _members(reply)
    choices = members.get("choices")
    if choices:
        choice = _members(choices[0])
        message = choice.get("message")
        if message is None or _members(message).get("content"):
            return False
        if choice.get("finish_reason") not in _MAY_BE_EMPTY:
            return False
    elif _is_partial(members) or _has_content(_first_blocks(members)):
        return False
    if finish_of(reply) not in _MAY_BE_EMPTY or not is_without_content(reply):
        return False
    return not usage_of(reply)[1] and not counts_reasoning(reply)


def _is_partial(members: Mapping[str, Json]) -> bool:
    return _COMPLETE.isdisjoint(members) or members.get("status") in _UNFINISHED


def _first_blocks(members: Mapping[str, Json]) -> Json:
    """Return the blocks of a reply of another kind than chat completions."""
    output = members.get("output")
    if type(output) is list:
        return output and (_members(output[-1]).get("content") or output)
    if output:
        return _members(_members(output)["message"]).get("content")
    candidates = members.get("candidates")
    if candidates:
        return _members(_members(candidates[0]).get("content") or {}).get("parts")
    return members.get("content")


def _has_content(blocks: Json) -> bool:
    return bool(blocks) and (type(blocks) is str or _members(blocks[0]).get("text") != "")


def detect_in_reply(reply: object) -> TokenLimit | None:
    """Return the token limit in a reply or a stream chunk that was received without an exception,
    or None.

    Reads a few members of a dict or an object; takes about a microsecond for one without an error.
    Never raises.
    """
    if reply is None or type(reply) is str:
        return None
    try:
        if type(reply) is list:  # Gemini's streams without ``alt=sse``.
            return _detect(reply[0])
        return None if _is_finished(reply) else _detect(reply)
    except Exception:  # noqa: BLE001 - a reply of an unknown type does not state a limit
        return None


def _is_finished(reply: Json) -> bool:
    """Return whether a reply is complete, by a few of its members.

    Each call runs this, so it must be fast.
    """
    members = _members(reply)
    choices = members.get("choices")
    choice = _members(choices[0]) if choices else {}
    if members.get("error") or choice.get("error"):
        return False
    if choices:
        return choice.get("finish_reason") in _ENDED
    return (
        type(members.get("done")) is bool
        or _TELLING.isdisjoint(members)
        or any(members.get(name) in _FINISHED for name in ("stop_reason", "stopReason", "status"))
    )


def _members(item: Json) -> Mapping[str, Json]:
    if isinstance(item, dict):
        return item
    extra = getattr(item, "__pydantic_extra__", None)
    return {**vars(item), **extra} if extra else vars(item)


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
