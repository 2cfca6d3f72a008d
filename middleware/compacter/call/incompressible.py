"""Parts of a request that no compaction can shrink: shorten the last user message, or advise the
caller when the request is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from compacter.call.request import Request
from compacter.compaction.calibration import Calibration
from compacter.compaction.strategies import shorten_message
from compacter.messages.parts import Kind
from compacter.options import Retrieved
from compacter.summary.message import FRAME
from compacter.text.shorten import shorten

_RECEIPT = "\n[shortened from {before:,} to {after:,} characters]"


def shorten_last_message(
    request: Request, how: Retrieved | None, target: int | None
) -> Request | None:
    """Return the request with less retrieved text in the last user message; ``None`` if that
    message is not too long, or nothing in it may be shortened.

    The last user message may use what the other messages leave of the target, and at least half of
    the target; if no limit is known, half of its present size. Raises the ``FunctionError`` of the
    user's function.

    Args:
        request: The request that was refused.
        how: The option ``retrieved``; ``None`` to shorten the results of tools that stand in that
            message beside the user's own text, as in Anthropic's and Gemini's formats, but never
            those of a pinned message.
        target: Largest size of all messages, in characters.
    """
    read = request.conversation
    at = read.last_user
    if at is None or (how is None and at in read.pinned):
        return None
    message = read.messages[at]
    size = before = read.sizes[at]
    now = size - request.saved
    others = read.size - size
    allowed = now // 2 if target is None else max(target - others, target // 2)
    if now <= allowed or (target is None and now < others):
        return None
    if how is None and request.shortened is not None:
        message = request.shortened
        before = now
    message = shorten_message(
        read.format,
        message,
        before - allowed,
        partial(_cut_by, how) if callable(how) else shorten,
        partial(_spans, how),
        ("result" if how is None else "text",),
    )
    left = read.format.size(message)
    return replace(request, shortened=message, saved=size - left) if left < now else None


def _cut_by(function: Callable[[str, int], str], text: str, size: int) -> str:
    if size >= len(text):
        return text
    short = function(text, size - len(_RECEIPT) - 20)
    return short + _RECEIPT.format(before=len(text), after=len(short))


def _spans(how: Retrieved | None, text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each text between a pair of marks; without marks, of the whole
    text.
    """
    if not isinstance(how, tuple):
        yield 0, len(text)
        return
    end = 0
    while (begin := text.find(how[0], end)) >= 0:
        begin += len(how[0])
        end = text.find(how[1], begin)
        if end < 0:
            return
        yield begin, end
        end += len(how[1])


def advice(
    request: Request, calibration: Calibration, limit: int | None, *, is_hopeless: bool = False
) -> str:
    """Return a sentence for the note of an exception, which says what makes the request too large,
    and what the program can do about it. It names the largest part of the request, or the declared
    rules if there is no room for them. If the messages that must stay are too large by themselves,
    or if the request ``is_hopeless`` for another reason, it names the largest of these messages.
    """
    read = request.conversation
    declared = read.rules_size
    staying = request.overhead + read.size - read.free - request.saved
    left = int((limit or 0) * calibration.chars_per_token) - staying
    if limit and 0 < left < declared + FRAME:
        return (
            f" The declared rules take {declared:,} characters, and beside what must stay there is "
            f"room for {max(0, left - FRAME):,}. What helps: declare fewer rules (option rules), "
            "or shorter ones; or a larger window."
        )
    counts: Sequence[int] = range(len(read.messages))
    if is_hopeless or (limit and left <= 0):
        counts = [index for index in counts if read.protected[index]] or counts
    index = max(counts, key=read.sizes.__getitem__)
    size = read.sizes[index] - (request.saved if index == read.last_user else 0)
    kind, remedy = _kind(request, index)
    what = f"message {index + 1} of {len(read.messages)}, {kind}"
    if request.overhead > size:
        size = request.overhead
        what = "tools and other options beside the messages"
        remedy = "send fewer tools"
    if declared > size:
        size = declared
        what = "the declared rules"
        remedy = "declare fewer rules (option rules), or shorter ones"
    window = f" of {limit:,} allowed" if limit else ""
    return (
        f" The largest part is {what}: {size:,} characters, about {calibration.tokens(size):,} "
        f"tokens{window}. What helps: {remedy}; or a larger window."
    )


def _kind(request: Request, index: int) -> tuple[str, str]:
    """Return what a message is, and the remedy if it is too large."""
    read = request.conversation
    kind = read.kinds[index]
    if index == read.last_user:
        remedy = "send less of it"
        if not request.saved:
            remedy += (
                ', or set retrieved=("<context>", "</context>"), so that text between these marks '
                "and the results of tools in it may be shortened"
            )
        return "the last user message", remedy
    if kind is Kind.SYSTEM:
        return "a system prompt", "make it shorter"
    if index in read.pinned:
        return "a pinned one", "remove its pin"
    if kind is Kind.RESULT:
        remedy = "have the tool return less, or strategy=[ClearToolResults(), Summarize()]"
        return "a tool result", remedy
    remedy = "a larger max_retries or compact_ratio, or a smaller preserve_recent_turns"
    return "which may be compacted", remedy
