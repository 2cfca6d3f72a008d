"""Requests in which the messages that cannot be folded are too long: shorter retrieved text, and advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compacter.call.request import Request
from compacter.compaction.plan import Calibration
from compacter.compaction.strategies import shorten
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Kind
from compacter.options import Retrieved

_LEAST = 100
"""Least size of a shortened text between marks, in characters with its receipt."""
_RECEIPT = "\n[shortened from {before:,} to {after:,} characters]"


def with_less_retrieved(request: Request, how: Retrieved, target: int | None) -> Request | None:
    """Return the request with less retrieved text; ``None`` if its last user message is not too long.

    ``target`` is the largest size of all messages, in characters. That message may have what the others leave of it,
    and at least half; if no limit is known, half of its present size.
    """
    read, saved = request.conversation, request.saved
    at = read.last_user
    if at is None:
        return None
    size, now = read.sizes[at], read.sizes[at] - saved
    allowed = max(target - (read.size - size), target // 2) if target is not None else now // 2
    if now <= allowed or (target is None and 2 * now < read.size - saved):
        return None
    message = shortened(read.format, read.messages[at], how, size - allowed)
    less = size - read.format.size(message)
    return replace(request, shortened=message, saved=less) if less > saved else None


def shortened(form: MessageFormat, message: Message, how: Retrieved, excess: int) -> Message:
    """Return a copy of a user message, shorter by up to ``excess`` characters; itself if it cannot be shortened.

    With a pair of marks, each text between them keeps its beginning and end, with a receipt in its middle. A function
    is called with each text and its largest size, in characters; a receipt is added to the result.
    """
    texts: list[str] = []

    def collect(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - every edit is called like this
        texts.extend([text] if kind == "text" else [])
        return text

    form.rewrite(message, collect)
    sizes = [len(text) for text in texts] if callable(how) else [b - a for t in texts for a, b in _spans(t, how)]
    total = sum(sizes)

    def share(size: int) -> int:
        return max(_LEAST, size * max(0, total - excess) // total) if total else size

    def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001
        if kind != "text":
            return text
        short = _by_function(text, share(len(text)), how) if callable(how) else _by_marks(text, share, how)
        return short if len(short) < len(text) else text

    return form.rewrite(message, edit)


def _by_function(text: str, size: int, function: Callable[[str, int], str]) -> str:
    if size >= len(text):
        return text
    short = function(text, max(0, size - len(_RECEIPT) - 20))
    return short + _RECEIPT.format(before=len(text), after=len(short))


def _by_marks(text: str, share: Callable[[int], int], marks: tuple[str, str]) -> str:
    pieces, at = list[str](), 0
    for begin, end in _spans(text, marks):
        pieces += [text[at:begin], shorten(text[begin:end], share(end - begin))]
        at = end
    return "".join([*pieces, text[at:]])


def _spans(text: str, marks: tuple[str, str]) -> list[tuple[int, int]]:
    """Return start and end of each text between a pair of marks."""
    found, at = list[tuple[int, int]](), 0
    while (begin := text.find(marks[0], at)) >= 0:
        begin += len(marks[0])
        end = text.find(marks[1], begin)
        if end < 0:
            break
        found.append((begin, end))
        at = end + len(marks[1])
    return found


def advice(request: Request, calibration: Calibration, limit: int | None) -> str:
    """Return a sentence on the largest part of a request that is given up: its size, and the remedy."""
    read = request.conversation
    if not read.messages:
        return ""
    index = max(range(len(read.messages)), key=read.sizes.__getitem__)
    size = read.sizes[index] - (request.saved if index == read.last_user else 0)
    if request.overhead > size:
        size, what, remedy = request.overhead, "tools and other options beside the messages", "send fewer tools"
    else:
        what = f"message {index + 1} of {len(read.messages)}"
        kind, remedy = _kind(request, index)
        what = f"{what}, {kind}"
    window = f" of {limit:,} allowed" if limit else ""
    tokens = f"about {calibration.tokens(size):,} tokens{window}"
    return f" The largest part is {what}: {size:,} characters, {tokens}. What helps: {remedy}; or a larger window."


def _kind(request: Request, index: int) -> tuple[str, str]:
    read = request.conversation
    if index == read.last_user:
        marks = 'mark what is retrieved and set retrieved=("<context>", "</context>"), so that it may be shortened'
        return "the last user message", "send less of it" if request.saved else f"send less of it, or {marks}"
    if read.kinds[index] is Kind.SYSTEM:
        return "a system prompt", "make it shorter"
    if index in read.pinned:
        return "a pinned one", "remove its pin"
    if read.kinds[index] is Kind.RESULT:
        return "a tool result", "have the tool return less, or strategy=[ClearToolResults(), Summarize()]"
    return "which may be folded", "a larger max_retries or compact_ratio, or a smaller preserve_recent_turns"
