"""Reading replies and the chunks of streams: text, usage, finish reason, content.

The shapes that the kinds of API give to their replies are in ``reply_formats.py``, their counts of
tokens in ``usage.py``, and what says "too long" in ``refusals.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from compacter.messages.fields import field
from compacter.messages.reply_formats import format_of, lower_word
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


def read_reply(reply: object) -> Reply:
    """Return a summarizer's reply as a ``Reply``. The text of an unknown type is empty, which the
    checks refuse.
    """
    if isinstance(reply, str):
        return Reply(reply)
    reader = format_of(reply)
    parts = list(reader.parts(reply))
    finish = lower_word(reader.finish(reply))
    read, written = usage_of(reply)
    return Reply(
        "".join(map(_text, parts)),
        read,
        written,
        finish,
        refused=finish == "refusal" or any(_is(part, "refusal") for part in parts),
        called_tool=any(map(_is_call, parts)),
    )


def has_content(chunk: object) -> bool:
    """Return whether a chunk has content that a user would see; True if unknown, so that it is
    passed on at once.
    """
    if isinstance(chunk, (str, bytes)):
        return bool(chunk)
    return format_of(chunk).has_content(chunk)


def chunk_text(chunk: object) -> str:
    """Return the text of one chunk of a stream."""
    return chunk if isinstance(chunk, str) else "".join(map(_text, format_of(chunk).parts(chunk)))


def _text(part: object) -> str:
    if isinstance(part, str):
        return part
    text = field(part, "text")
    return text if isinstance(text, str) else ""


def _is(part: object, kind: str) -> bool:
    return bool(field(part, "type") == kind)


def _is_call(part: object) -> bool:
    """Return whether a part of a reply is a tool call, in any vendor's format."""
    calls = any(field(part, name) for name in ("function_call", "functionCall", "toolUse"))
    return calls or _is(part, "tool_use") or str(field(part, "type")).endswith("_call")
