"""Read replies and the chunks of streams, which are dicts or objects of an SDK: text, finish
reason, content, usage, and refusals, at the paths of each kind of API.

A refusal inside HTTP 200 says "too long" and is not an answer. It comes as an error (``{"error":
...}``, a flat event, ``response.failed``), as a stop reason, or as an answer that was cut off after
a few tokens. ``tests/kit/refusals.py`` has every form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compacter.messages.fields import Json, dig, field, first, listed, text_of, word
from compacter.overflow import TokenLimit, explain, is_sealed


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply of the wrapped function or a summarizer."""

    text: str = ""
    """Text of a summarizer's reply; like the tokens, empty for the wrapped function."""
    input_tokens: int = 0
    """Input tokens in the reply's usage, cached ones included; 0 if it has none."""
    output_tokens: int = 0
    finish: str | None = None
    """Finish reason in lower case, such as ``stop`` or ``length``."""
    refused: bool = False
    called_tool: bool = False
    cost: float | None = None
    """Cost in USD; ``None`` if the price is unknown."""
    token_limit: TokenLimit | None = None
    """Token limit, if the request was refused as too long."""
    error: Exception | None = None
    """Exception with the token limit; ``None`` if it was in a reply with HTTP 200. Without
    ``token_limit``, the exception with which a Compacter inside the wrapped function has given up,
    which is raised unchanged."""
    raw: object = None
    """The reply as the function returned it."""


# Paths to the object with the content; the first that exists is read. The order is: OpenAI's chat
# completions, and the many servers that answer like them; Cohere's stream; Ollama's chat; Gemini's;
# Bedrock's Converse; all others, with the content at the top.
_HOLDERS = (
    *("choices.0.delta", "choices.0.message", "choices.0", "delta.message", "message"),
    *("candidates.0.content", "candidates.0", "output.message", "contentBlockDelta", ""),
)
# Members of that object with the content; the first that exists is read.
_CONTENT = ("content", "parts", "output", "text", "response", "delta")
# Paths of the finish reason.
_FINISHES = (
    *("choices.0.finish_reason", "stop_reason", "delta.stop_reason", "messageStop.stop_reason"),
    *("response.incomplete_details.reason", "incomplete_details.reason"),
    *("done_reason", "candidates.0.finish_reason"),
)
# Members of replies and chunks that have content if their parts have it, whatever their type is.
_WITH_PARTS = ("choices", "done", "candidates", "usage_metadata", "prompt_feedback")
# Paths to other content of such a chunk that a user sees.
_SHOWN = (
    *("done", "thinking", "message.thinking", "prompt_feedback"),
    *(
        f"choices.0.{holder}.{name}"
        for holder in ("delta", "message")
        for name in ("reasoning_content", "reasoning", "audio", "thinking_blocks", "images")
    ),
)
# Types of all other chunks without content; in Bedrock the one member of a chunk is its type.
_HOUSEKEEPING = frozenset(
    {
        *("response.created", "response.in_progress", "response.queued"),
        *("response.output_item.added", "response.content_part.added", "keepalive"),
        *("message_start", "content_block_start", "ping", "messageStart", "contentBlockStart"),
    }
)


def _parts(reply: object) -> Iterator[Json]:
    """Yield the parts of a reply or a chunk: texts, and objects such as tool calls and thoughts."""
    holder = first(reply, _HOLDERS)
    content = first(holder, _CONTENT)
    kind = word(reply, "type")
    # OpenAI's responses also have deltas of other texts.
    is_of_other = kind.startswith("response.") and not kind.endswith("output_text.delta")
    if is_of_other and isinstance(content, str):
        content = None
    for item in listed(content):
        inner = field(item, "content") if field(item, "type") in ("message", None) else None
        yield from listed(inner or item)
    if field(holder, "refusal"):
        yield {"type": "refusal"}
    for call in listed(field(holder, "tool_calls") or field(holder, "function_call")):
        yield {"function_call": call}


def read_reply(reply: object) -> Reply:
    """Return a summarizer's reply as a ``Reply``. The text of an unknown type is empty, which the
    checks refuse.
    """
    if isinstance(reply, str):
        return Reply(reply)
    parts = list(_parts(reply))
    finish = finish_of(reply)
    read, written = usage_of(reply)
    return Reply(
        "".join(map(_text, parts)),
        read,
        written,
        finish,
        refused=finish == "refusal" or any(field(part, "type") == "refusal" for part in parts),
        called_tool=any(
            first(part, ("function_call", "toolUse"))
            or word(part, "type").endswith(("tool_use", "_call"))
            for part in parts
        ),
    )


def finish_of(reply: object) -> str | None:
    """Return the finish reason of a reply in lower case; that of an enum is its name."""
    if field(reply, "status") == "completed":
        return None
    candidates = field(reply, "candidates")
    # If Gemini refuses a prompt, its reply has no candidate.
    if not candidates and (candidates is not None or dig(reply, "prompt_feedback")):
        return "refusal"
    reason = first(reply, _FINISHES)
    name = getattr(reason, "name", reason)
    return str(name).lower() if reason else None


def has_content(chunk: object) -> bool:
    """Return whether a chunk has content that a user would see; True if unknown, so that it is
    passed on at once.
    """
    if isinstance(chunk, (str, bytes)):
        return bool(chunk)
    if all(dig(chunk, name) is None for name in _WITH_PARTS):
        names = chunk if isinstance(chunk, dict) and len(chunk) == 1 else ()
        return _HOUSEKEEPING.isdisjoint((word(chunk, "type"), *names))
    choices = field(chunk, "choices")
    each = [{"choices": [choice]} for choice in choices] if choices else [chunk]
    return any(first(one, (*_FINISHES, *_SHOWN)) or any(map(_shows, _parts(one))) for one in each)


def chunk_text(chunk: object) -> str:
    """Return the text of one chunk of a stream."""
    return chunk if isinstance(chunk, str) else "".join(map(_text, _parts(chunk)))


def _shows(part: object) -> bool:
    """Return whether a part has content; an empty text has none."""
    text = text_of(part)
    return bool(part) if text is None else text != ""


def _text(part: object) -> str:
    return "" if field(part, "thought") else text_of(part) or ""


# -- usage -----------------------------------------------------------------------------------------


HAS_USAGE = frozenset({"usage", "usage_metadata", "usageMetadata", "done"})
"""Members of a reply; with any of them it has counts of tokens."""
_READ = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheWriteInputTokens")
_WRITTEN = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count")
# Paths at which a provider reports that it has edited the request itself; litellm uses other
# fields.
_EDITED = (
    "context_management.applied_edits",
    "provider_specific_fields.context_management.applied_edits",
    "choices.0.message.provider_specific_fields.context_management.applied_edits",
    "choices.0.message.provider_specific_fields.compaction_blocks",
    "usage.iterations",
)


def usage_of(reply: object) -> tuple[int, int]:
    """Return the input and output tokens of a reply's usage, cached tokens included; zeros if it
    has none.
    """
    usage = field(reply, "usage") or dig(reply, "usage_metadata")
    if not usage:
        if not isinstance(field(reply, "done"), bool):
            return 0, 0
        usage = reply  # Ollama's counts are members of the reply.
    read = _count(usage, _READ)
    if field(usage, "prompt_tokens") is None and field(usage, "input_tokens_details") is None:
        # Anthropic and Bedrock count cached tokens apart from the input tokens, OpenAI and Gemini
        # among them.
        read += sum(_count(usage, (name,)) for name in _CACHED)
    return read, _count(usage, _WRITTEN)


def _count(usage: Json, names: Sequence[str]) -> int:
    """Return the first of these counts that is above 0, else 0."""
    value = first(usage, names)
    return value if type(value) is int and value > 0 else 0


def tokens_read(reply: object) -> int:
    """Return the input tokens in the usage of a reply; 0 if they are missing or not those of the
    request.
    """
    read, _ = usage_of(reply)
    return 0 if read and is_edited_by_provider(reply) else read


def is_edited_by_provider(reply: object) -> bool:
    """Return whether the provider has compacted or edited the conversation itself before it
    replied.

    Such a reply is a success. Its usage has fewer tokens than the request, which is not a silent
    truncation, and is useless for calibration. Signs of it: ``context_management.applied_edits``
    (Anthropic, https://platform.claude.com/docs/en/build-with-claude/context-editing), steps in
    ``usage.iterations``, a ``compaction`` block or item, and the stop reason ``compaction``.
    """
    items = (*listed(field(reply, "output")), *listed(field(reply, "content")))
    return bool(
        first(reply, _EDITED)
        or field(reply, "stop_reason") == "compaction"
        or any(field(item, "type") == "compaction" for item in items)
    )


# -- refusals inside HTTP 200 ----------------------------------------------------------------------


NO_ROOM = "no room for output"
"""Source of a limit that is only likely: a reply cut off after a few tokens. The request has to
confirm it."""
SEALED = "sealed"
"""Source of a refusal that is not a token limit: the request has something that only another model
can read. A call handles it like one, up to ``reduce_request`` in ``call/reduce.py``."""
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

    Every quiet call runs this, so functions that read any member of any object would be too slow.
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
        read = first(usage, _READ)
        written = first(usage, _WRITTEN)
        if isinstance(read, int) and isinstance(written, int) and written <= _FEW_TOKENS:
            return TokenLimit(None, None, "input_plus_output", read, written, NO_ROOM)
    return None


def error_of(reply: Json) -> Json:
    """Return the error in a reply; the reply itself if it is a flat error; ``None`` without an
    error.
    """
    error = first(reply, (*_ERRORS, "choices.0.error", "response.error"))
    if error:
        return error
    # A flat error; also an event named ``error``, whose name the SDK has dropped.
    names = (str(field(reply, name)).lower() for name in ("type", "__type", "object"))
    is_error = field(reply, "code") or any(name.endswith(("error", "exception")) for name in names)
    return reply if is_error and isinstance(field(reply, "message"), str) else None
