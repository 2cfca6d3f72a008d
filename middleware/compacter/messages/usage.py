"""The usage of a reply: input and output tokens, in the words of each kind of API."""

from __future__ import annotations

from collections.abc import Sequence

from compacter.messages.fields import Json, dig, field, first, listed


def tokens_read(reply: object) -> int:
    """Return the input tokens in the usage of a reply; 0 if they are missing or not those of the
    request.

    Always 0 for a stream, whose usage comes last.
    """
    if hasattr(type(reply), "__next__") or hasattr(type(reply), "__anext__"):
        return 0
    read, _ = usage_of(reply)
    return 0 if read and is_edited_by_provider(reply) else read


def is_edited_by_provider(reply: object) -> bool:
    """Return whether the provider has compacted or edited the conversation itself before it
    replied.

    Such a reply is a success. Its usage has fewer tokens than the request, which is not a silent
    truncation, and is useless for calibration. Signs of it: ``context_management.applied_edits``
    (Anthropic, https://platform.claude.com/docs/en/build-with-claude/context-editing), steps in
    ``usage.iterations``, a ``compaction`` block or item, and the stop reason ``compaction``;
    litellm has them in ``provider_specific_fields``.
    """
    return bool(
        first(reply, _EDITED)
        or field(reply, "stop_reason") == "compaction"
        or any(
            field(item, "type") == "compaction"
            for name in ("output", "content")
            for item in listed(field(reply, name))
        )
    )


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
    read = _first(usage, _READ)
    written = _first(usage, _WRITTEN)
    if field(usage, "prompt_tokens") is None and field(usage, "input_tokens_details") is None:
        # Anthropic and Bedrock count cached tokens apart from the input tokens, OpenAI and Gemini
        # among them.
        read += sum(_first(usage, (name,)) for name in _CACHED)
    return read, written


HAS_USAGE = frozenset({"usage", "usage_metadata", "usageMetadata", "done"})
"""Members of a reply of which one tells that it has counts of tokens."""
_READ = (
    "prompt_tokens",
    "input_tokens",
    "prompt_token_count",
    "prompt_eval_count",
)
_CACHED = (
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cacheWriteInputTokens",
)
_WRITTEN = (
    "completion_tokens",
    "output_tokens",
    "candidates_token_count",
    "eval_count",
)


def _first(usage: Json, names: Sequence[str]) -> int:
    """Return the first of these counts that is above 0; 0 if there is none."""
    value = first(usage, names)
    return value if type(value) is int and value > 0 else 0
