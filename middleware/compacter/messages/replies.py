"""Reading replies and the chunks of streams, which are dicts or objects of an SDK: text, finish
reason, content. ``FORMATS`` says where each kind of API has them.

Counts of tokens are read in ``usage.py``, and what says "too long" in ``refusals.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from compacter.messages.fields import Json, either, field, first, listed
from compacter.messages.usage import usage_of
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
    ``token_limit``, the exception with which a Compacter inside the wrapped function has given up:
    to be raised as it is."""
    raw: object = None
    """The reply as the function returned it."""


def _has_list(name: str) -> Callable[[object], bool]:
    return lambda reply: isinstance(field(reply, name), (list, tuple))


def _is_event_of_bedrock(chunk: object) -> bool:
    """Return whether a chunk is a dict with one member, named by its kind."""
    return isinstance(chunk, dict) and len(chunk) == 1 and not _EVENTS.isdisjoint(chunk)


_EVENTS = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "metadata"}
)


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """How one kind of API writes its replies and the chunks of its streams."""

    fits: Callable[[object], object]
    """Returns whether a reply or a chunk is in this format."""
    holders: tuple[str, ...]
    """Paths of what has the content; the first that is there is read."""
    finish: tuple[str, ...]
    """Paths of the finish reason."""
    shown: tuple[str, ...] = ()
    """Paths of what else a user sees of a chunk."""
    housekeeping: frozenset[str] | None = None
    """Types of the chunks without content; ``None`` if the type does not tell."""


FORMATS = (
    # OpenAI's chat completions, and the many servers that answer like them.
    ReplyFormat(
        _has_list("choices"),
        ("choices.0.delta", "choices.0.message", "choices.0"),
        ("choices.0.finish_reason",),
        tuple(
            f"choices.0.{holder}.{name}"
            for holder in ("delta", "message")
            for name in ("reasoning_content", "reasoning", "audio", "thinking_blocks", "images")
        ),
    ),
    # Ollama's chat and completions, whose last chunk is marked.
    ReplyFormat(
        lambda reply: isinstance(field(reply, "done"), bool),
        ("message", ""),
        ("done_reason",),
        ("done", "thinking", "message.thinking"),
    ),
    # Gemini's; where the prompt was refused there is no candidate.
    ReplyFormat(
        lambda reply: (
            _has_list("candidates")(reply)
            or either(reply, "usage_metadata")
            or either(reply, "prompt_feedback")
        ),
        ("candidates.0.content",),
        ("candidates.0.finish_reason",),
        ("prompt_feedback",),
    ),
    # OpenAI's responses, whose events carry the response in progress.
    ReplyFormat(
        lambda reply: (
            _has_list("output")(reply)
            or str(field(reply, "type")).startswith(("response.", "keepalive"))
        ),
        ("",),
        ("response.incomplete_details.reason", "incomplete_details.reason"),
        housekeeping=frozenset(
            {
                "response.created",
                "response.in_progress",
                "response.queued",
                "response.output_item.added",
                "response.content_part.added",
                "keepalive",
            }
        ),
    ),
    # Bedrock's Converse.
    ReplyFormat(
        lambda reply: isinstance(field(reply, "output"), Mapping) or _is_event_of_bedrock(reply),
        ("output.message", "contentBlockDelta"),
        ("messageStop.stopReason", "stopReason"),
        housekeeping=frozenset({"messageStart", "contentBlockStart"}),
    ),
    # Anthropic's messages, and replies of any other shape.
    ReplyFormat(
        lambda _: True,
        ("",),
        ("stop_reason", "delta.stop_reason"),
        housekeeping=frozenset({"message_start", "content_block_start", "ping"}),
    ),
)
"""The formats, those with a telling member first."""
# Members with the content of what holds it; the first that is there.
_CONTENT = ("content", "parts", "output", "text", "response", "delta")


def format_of(reply: object) -> ReplyFormat:
    """Return the format of a reply or of a chunk."""
    return next(each for each in FORMATS if each.fits(reply))


def _parts(reply: object) -> Iterator[Json]:
    """Yield the parts of a reply or a chunk: texts, and objects such as tool calls and thoughts."""
    holder = first(reply, format_of(reply).holders)
    content = first(holder, _CONTENT)
    # OpenAI's responses also have deltas of other texts.
    if isinstance(content, str) and not _is_delta_of_text(reply):
        content = None
    for item in listed(content):
        inner = field(item, "content") if field(item, "type") in ("message", None) else None
        yield from listed(inner or item)
    if field(holder, "refusal"):
        yield {"type": "refusal"}
    for call in listed(field(holder, "tool_calls") or field(holder, "function_call")):
        yield {"function_call": call}


def _is_delta_of_text(reply: object) -> bool:
    """Return whether an event of OpenAI's responses is text of the answer; True for any other."""
    kind = str(field(reply, "type"))
    return not kind.startswith("response.") or kind.endswith("output_text.delta")


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
        called_tool=any(map(_is_call, parts)),
    )


def finish_of(reply: object) -> str | None:
    """Return the finish reason of a reply in lower case; that of an enum is its name."""
    if field(reply, "status") == "completed":
        return None
    if _is_blocked(reply):
        return "refusal"
    reason = first(reply, format_of(reply).finish)
    name = getattr(reason, "name", reason)
    return None if reason is None else str(name).lower()


def _is_blocked(reply: object) -> bool:
    """Return whether Gemini has refused a prompt: its reply has no candidate then."""
    candidates = field(reply, "candidates")
    return not candidates and (candidates is not None or bool(either(reply, "prompt_feedback")))


def has_content(chunk: object) -> bool:
    """Return whether a chunk has content that a user would see; True if unknown, so that it is
    passed on at once.
    """
    if isinstance(chunk, (str, bytes)):
        return bool(chunk)
    style = format_of(chunk)
    if style.housekeeping is not None:
        members = next(iter(chunk), "") if isinstance(chunk, dict) and len(chunk) == 1 else ""
        return (field(chunk, "type") or members) not in style.housekeeping
    choices = field(chunk, "choices")
    each = [{"choices": [choice]} for choice in choices] if choices else [chunk]
    return any(
        first(one, (*style.finish, *style.shown)) or any(map(_shows, _parts(one))) for one in each
    )


def chunk_text(chunk: object) -> str:
    """Return the text of one chunk of a stream."""
    return chunk if isinstance(chunk, str) else "".join(map(_text, _parts(chunk)))


def _shows(part: object) -> bool:
    """Return whether a part has content; an empty text has none."""
    text = part if isinstance(part, str) else field(part, "text")
    return bool(part) if text is None else text != ""


def _text(part: object) -> str:
    text = part if isinstance(part, str) else field(part, "text")
    return text if isinstance(text, str) and not field(part, "thought") else ""


def _is_call(part: object) -> bool:
    """Return whether a part of a reply is a tool call, in any vendor's format."""
    kind = str(field(part, "type"))
    named = first(part, ("function_call", "toolUse"))
    return bool(named) or kind == "tool_use" or kind.endswith("_call")
