"""An overflow that comes as a reply: an ``error`` member under HTTP 200, or a reason to stop that says so."""

from __future__ import annotations

from typing import Any, Final

from compacter.overflow.detect import TokenLimit

STOP_REASONS: Final = frozenset(
    (
        "model_context_window_exceeded",
        "context_window_exceeded",
        "context_length_exceeded",
        "context_limit_exceeded",
        "model_length",
    )
)
"""Reasons to stop that mean the window is full (Anthropic, Bedrock; Mistral says ``model_length``)."""

NO_ROOM: Final = "no room for output"
"""The source of a limit that is only likely: a reply cut off after a few tokens. The request has to confirm it."""
_CUT_OFF: Final = frozenset(("length", "max_tokens", "MAX_TOKENS"))
_FEW_TOKENS: Final = 16

_ERROR_TYPES: Final = frozenset(("error", "response.failed"))


def detect_in_reply(reply: object) -> TokenLimit | None:
    """The token limit in a reply or a stream chunk that arrived as a success, or None.

    Reads a few members of a dict or an object; one without an error costs about a microsecond. Never raises.
    """
    try:
        return _detect(reply)
    except Exception:  # noqa: BLE001 - a reply of an unknown type is a success
        return None


def _members(thing: object) -> dict[str, Any] | None:
    if type(thing) is dict:
        return thing
    return getattr(thing, "__dict__", None)


def _detect(reply: object) -> TokenLimit | None:
    members = _members(reply)
    if not members:
        return None
    error = members.get("error")
    if error is None and "choices" in members:
        choices = members["choices"]
        if not choices:
            extra = getattr(reply, "__pydantic_extra__", None)
            return _from_error(extra["error"], reply) if extra and extra.get("error") else None
        choice = _members(choices[0]) or {}
        reason = choice.get("finish_reason")
        if reason is None or reason == "stop":
            extra = getattr(reply, "__pydantic_extra__", None)
            if not extra or not extra.get("error"):
                return None
            error = extra["error"]
        elif reason in STOP_REASONS:
            return TokenLimit(source="stop reason")
        else:
            error = choice.get("error") or (getattr(choices[0], "__pydantic_extra__", None) or {}).get("error")
            if error is None:
                return _without_room(members) if reason in _CUT_OFF else None
        return None if _has_content(choice) else _from_error(error, reply)
    if error is None:
        return _elsewhere(reply, members)
    return _from_error(error, reply)


def _elsewhere(reply: object, members: dict[str, Any]) -> TokenLimit | None:
    """MessageFormat formats without ``choices``: Anthropic, Responses, Bedrock."""
    reason = members.get("stop_reason") or members.get("stopReason")
    if reason is None and "delta" in members:
        reason = (_members(members["delta"]) or {}).get("stop_reason")
    if isinstance(reason, str) and reason in STOP_REASONS:
        return TokenLimit(source="stop reason")
    if isinstance(reason, str) and reason in _CUT_OFF:
        return _without_room(members)
    kind = members.get("type")
    if isinstance(kind, str) and kind in _ERROR_TYPES:
        inner = (_members(members.get("response")) or {}).get("error")
        return _from_error(inner if inner is not None else members, reply)
    extra = getattr(reply, "__pydantic_extra__", None)
    if extra and extra.get("error"):
        return _from_error(extra["error"], reply)
    return None


def _without_room(members: dict[str, Any]) -> TokenLimit | None:
    """A reply that ended after a few tokens, as it does where prompt and reply together fill the window."""
    usage = _members(members.get("usage")) or {}
    read = usage.get("prompt_tokens") or usage.get("input_tokens") or usage.get("inputTokens")
    written = usage.get("completion_tokens", usage.get("output_tokens", usage.get("outputTokens")))
    if not isinstance(read, int) or not isinstance(written, int) or written > _FEW_TOKENS:
        return None
    return TokenLimit(kind="input_plus_output", input_tokens=read, output_tokens=written, source=NO_ROOM)


def _has_content(choice: dict[str, Any]) -> bool:
    said = _members(choice.get("message") or choice.get("delta")) or {}
    return bool(said.get("content") or said.get("tool_calls"))


def _from_error(error: object, reply: object) -> TokenLimit | None:
    members = _members(reply) or {}
    choices = members.get("choices")
    if choices and _has_content(_members(choices[0]) or {}):
        return None
    if any(members.get(name) for name in ("content", "output", "output_text", "candidates")):
        return None
    from compacter.overflow.rules import judge
    from compacter.overflow.signals import signals_of_body

    return judge(signals_of_body(error)).limit
