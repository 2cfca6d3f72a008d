"""Refusals inside HTTP 200: replies and stream chunks that say "too long" and are no answer.

They come as an error (``{"error": ...}``, a flat event, ``response.failed``), as a stop reason, or
as an answer that was cut off after a few tokens. ``tests/kit/refusals.py`` has every form.
"""

from __future__ import annotations

import re

from compacter.messages.fields import Json, field, first
from compacter.messages.replies import FINISHES
from compacter.overflow import TokenLimit, explain, is_sealed

# Stop reasons of a full window (Anthropic, Bedrock; Mistral's is `model_length`).
_WINDOW_FULL = re.compile(
    r"model_length|(?:model_|maximum_|max_)?context_(?:window|length|limit)(?:_exceeded|_reached)?"
)

NO_ROOM = "no room for output"
"""Source of a limit that is only likely: a reply cut off after a few tokens. The request has to
confirm it."""
SEALED = "sealed"
"""Source of what is no token limit: the request has something that only another model can read. It
goes the same way through a call, up to ``call.smaller.make_smaller``."""
_CUT_OFF = frozenset(("length", "max_tokens", "MAX_TOKENS", "max_output_tokens"))
# A reply of more tokens was not cut off by a full window: what is left of one is a few tokens.
_FEW_TOKENS = 16
# Finish reasons of complete chat completions; some servers state none.
_ENDED = frozenset(("stop", "tool_calls", "function_call", None))
# Anthropic's and Bedrock's stop reasons of complete replies; Ollama's say `done`.
_FINISHED = frozenset(("end_turn", "tool_use", "stop_sequence"))
# Members with the error of a reply; FastAPI's is `detail`.
_ERRORS = ("error", "errors", "detail")
# Endings of the type of a flat error, in lower case.
_ERROR_NAMES = ("error", "exception")

# Where a reply has an answer.
_ANSWERS = (
    *(
        f"choices.0.{holder}.{name}"
        for holder in ("message", "delta")
        for name in ("content", "tool_calls")
    ),
    *("content", "output", "candidates"),
)
# The members that are read below: a reply without any of them is no refusal.
_TELLING = frozenset(
    {
        *_ERRORS,
        "choices",
        "code",
        "delta",
        "incomplete_details",
        "message",
        "messageStop",
        "object",
        "response",
        "stopReason",
        "stop_reason",
        "type",
        "__type",
    }
)


def detect_sealed(error: object) -> TokenLimit | None:
    """Return the reason to leave out what only another model can read, if an exception or a body
    asks for that.
    """
    return TokenLimit(source=SEALED) if is_sealed(error) else None


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
    """Return whether a reply is a complete one by a few members.

    Every quiet call is looked at, so functions that read any member of any object would be
    too slow.
    """
    members: Json = reply if isinstance(reply, dict) else vars(reply)
    extra = getattr(reply, "__pydantic_extra__", None) or {}
    if members.get("error") or extra.get("error"):
        return False
    choices = members.get("choices")
    if choices:
        choice = choices[0]
        inner = choice if isinstance(choice, dict) else vars(choice)
        return inner.get("finish_reason") in _ENDED and not inner.get("error")
    return (
        (members.get("stop_reason") or members.get("stopReason")) in _FINISHED
        or type(members.get("done")) is bool
        or members.get("status") == "completed"
        or (not extra and _TELLING.isdisjoint(members))
    )


def _detect(reply: Json) -> TokenLimit | None:
    reason = first(reply, FINISHES)
    if isinstance(reason, str) and _WINDOW_FULL.fullmatch(reason):
        return TokenLimit(source="stop reason")
    error = error_of(reply)
    if isinstance(error, TokenLimit):  # A body that was read before: ``call/streams.py``.
        return error
    if error:
        return None if first(reply, _ANSWERS) else explain(error).limit or detect_sealed(error)
    if reason in _CUT_OFF:
        return _without_room(first(reply, ("response.usage", "usage")))
    return None


def error_of(reply: Json) -> Json:
    """Return the error in a reply; itself if it is a flat one; ``None`` if it has none."""
    error = first(reply, (*_ERRORS, "choices.0.error", "response.error"))
    if error:
        return error
    kind = first(reply, ("type", "__type"))
    if kind in ("error", "response.failed") or field(reply, "object") == "error":
        return reply
    # An event that was named ``error``, whose name the SDK has dropped.
    named = str(kind).lower().endswith(_ERROR_NAMES)
    is_flat = isinstance(field(reply, "message"), str) and (named or field(reply, "code"))
    return reply if is_flat else None


def _without_room(usage: Json) -> TokenLimit | None:
    """Return the limit of a reply that ended after a few tokens, as it fills the window together
    with the prompt.
    """
    read = first(usage, ("prompt_tokens", "input_tokens"))
    written = first(usage, ("completion_tokens", "output_tokens"))
    if isinstance(read, int) and isinstance(written, int) and written <= _FEW_TOKENS:
        return TokenLimit(None, None, "input_plus_output", read, written, NO_ROOM)
    return None
