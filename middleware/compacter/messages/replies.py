"""Read replies and the chunks of streams, which are dicts or objects of an SDK: text, finish
reason, content and usage, at the paths of each kind of API.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compacter.messages.fields import Json, dig, field, first, listed, text_of, word
from compacter.overflow import TokenLimit


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
# Paths that only the last chunk of a stream has.
_LAST = (*_FINISHES, "done", "prompt_feedback")
# Paths to content of a reply or a chunk beside its parts, and to the tokens of reasoning.
_BESIDE = (
    *("thinking", "message.thinking"),
    *(
        f"choices.0.{holder}.{name}"
        for holder in ("delta", "message")
        for name in ("reasoning_content", "reasoning", "audio", "thinking_blocks", "images")
    ),
)
_REASONED = (
    "usage.completion_tokens_details.reasoning_tokens",
    "usage.output_tokens_details.reasoning_tokens",
    "response.usage.output_tokens_details.reasoning_tokens",
    "usage_metadata.thoughts_token_count",
)
# Types of all other chunks without content; in Bedrock the one member of a chunk is its type.
_HOUSEKEEPING = frozenset(
    {
        *("response.created", "response.in_progress", "response.queued"),
        *("response.output_item.added", "response.content_part.added", "keepalive"),
        *("message_start", "content_block_start", "ping", "messageStart", "contentBlockStart"),
        *("content_block_stop", "contentBlockStop"),
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
        yield from listed(item if inner is None else inner)
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


def read_stream(chunks: Sequence[object]) -> Reply:
    """Return a summarizer's reply from all chunks of its stream."""
    reads = [read_reply(chunk) for chunk in chunks]
    finishes = [read.finish for read in reads if read.finish]
    # Anthropic's, OpenAI's and Bedrock's events have the usage in one of their members.
    names = ("message", "response", "metadata")
    holders = (field(chunk, name) for chunk in chunks for name in names)
    usages = [*map(usage_of, (*chunks, *filter(None, holders)))]
    return Reply(
        "".join(read.text for read in reads),
        max((read for read, _ in usages), default=0),
        max((written for _, written in usages), default=0),
        finishes[-1] if finishes else None,
        refused=any(read.refused for read in reads),
        called_tool=any(read.called_tool for read in reads),
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
    return any(first(one, _LAST) or not is_without_content(one) for one in each)


def ends_empty(chunk: object) -> bool:
    """Return whether a chunk ends a stream that has had no content."""
    reply = field(chunk, "response") if word(chunk, "type").startswith("response.") else chunk
    if not finish_of(chunk) and field(reply, "status") != "completed":
        return False
    return is_without_content(reply)


def is_without_content(reply: object) -> bool:
    """Return whether a reply or a chunk has neither text nor calls nor reasoning."""
    return not (first(reply, _BESIDE) or any(map(_shows, _parts(reply))))


def counts_reasoning(reply: object) -> bool:
    """Return whether the usage of a reply, or of a chunk, counts reasoning."""
    return bool(first(reply, _REASONED))


def _shows(part: object) -> bool:
    """Return whether a part has content; an empty text has none."""
    text = text_of(part)
    return bool(part) if text is None else text != ""


def _text(part: object) -> str:
    return "" if field(part, "thought") else text_of(part) or ""


# -- usage -----------------------------------------------------------------------------------------


HAS_USAGE = frozenset({"usage", "usage_metadata", "usageMetadata", "done"})
"""Members of a reply; with any of them it has counts of tokens."""
READ = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
_FROM_CACHE = (
    *("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
    *("cache_read_input_tokens", "cacheReadInputTokens", "cached_content_token_count"),
    "prompt_cache_hit_tokens",
)
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheWriteInputTokens")
WRITTEN = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count")
# Paths at which a provider reports that it has edited the request itself; litellm uses other
# fields.
_EDITED = (
    "context_management.applied_edits",
    "provider_specific_fields.context_management.applied_edits",
    "choices.0.message.provider_specific_fields.context_management.applied_edits",
    "choices.0.message.provider_specific_fields.compaction_blocks",
    "usage.iterations",
)


def stated_tokens(reply: object) -> int | None:
    """Return the input tokens that a reply of chat completions states; ``None`` for any other. Must
    be fast, as each call reads its reply.
    """
    raw: Any = reply
    try:
        usage = raw["usage"] if isinstance(raw, dict) else raw.usage
        tokens = usage["prompt_tokens"] if isinstance(usage, dict) else usage.prompt_tokens
    except Exception:  # noqa: BLE001 - another API's reply, or an unknown type
        return None
    return tokens if type(tokens) is int else None


def usage_in(reply: object) -> Json:
    """Return the usage of a reply as it stands there, or ``None``."""
    return field(reply, "usage") or dig(reply, "usage_metadata")


def is_cached(usage: Json) -> bool:
    """Return whether the provider has read a part of a prompt from its cache."""
    return _count(usage, _FROM_CACHE) > 0


def usage_of(reply: object) -> tuple[int, int]:
    """Return the input and output tokens of a reply's usage, cached tokens included; zeros if it
    has none.
    """
    usage = usage_in(reply)
    if not usage:
        if not isinstance(field(reply, "done"), bool):
            return 0, 0
        usage = reply  # Ollama's counts are members of the reply.
    steps = field(usage, "iterations")
    # A member of a ``MagicMock`` is another one, without end.
    if isinstance(steps, list) and steps and not _count(usage, READ):
        # Anthropic counts a compaction on demand there alone.
        counts = [usage_of({"usage": step}) for step in steps]
        return sum(read for read, _ in counts), sum(written for _, written in counts)
    read = _count(usage, READ)
    if field(usage, "prompt_tokens") is None and field(usage, "input_tokens_details") is None:
        # Anthropic and Bedrock count cached tokens apart from the input tokens, OpenAI and Gemini
        # among them.
        read += sum(_count(usage, (name,)) for name in _CACHED)
    return read, _count(usage, WRITTEN)


def _count(usage: Json, names: Sequence[str]) -> int:
    """Return the first of these counts that is above 0, else 0."""
    value = first(usage, names)
    return value if type(value) is int and value > 0 else 0


def compaction_in(reply: object) -> list[Json]:
    """Return the blocks of a reply with the provider's own compaction, exactly as they came, as
    they are signed; an empty list if it has none.
    """
    items = listed(field(reply, "output") or field(reply, "content"))
    is_made = any(
        field(item, "type") == "compaction" and first(item, ("content", "encrypted_content"))
        for item in items
    )
    return [
        item.model_dump(exclude_unset=True, warnings=False) if hasattr(item, "model_dump") else item
        for item in items
        if is_made
    ]


def tokens_read(reply: object) -> int:
    """Return the input tokens in the usage of a reply; 0 if they are missing or not those of the
    request.
    """
    read, _ = usage_of(reply)
    return 0 if read and is_edited_by_provider(reply) else read


def tokens_cached(reply: object) -> int:
    """Return the tokens that the provider has read from its prompt cache, by the usage of a reply;
    0 if that does not state them.
    """
    return _count(usage_in(reply), _FROM_CACHE)


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
