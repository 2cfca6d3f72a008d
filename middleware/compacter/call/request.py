"""The request of one call, what helps where nothing can be compacted, and the reading of
replies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as member
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation, find_pinned
from compacter.compaction.plan import Calibration
from compacter.errors import FunctionError
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Kind
from compacter.options import Retrieved
from compacter.summary.message import FRAME, rule_lines
from compacter.text.shorten import shorten

if TYPE_CHECKING:
    from compacter.recall.archive import Archive


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request of one call of the wrapped function. Sizes in characters, limits in tokens."""

    format: MessageFormat
    original: Sequence[Message]
    """The caller's own messages."""
    messages: Sequence[Message]
    """Messages to send: the original ones, or a compacted view of them."""
    overhead: int = 0
    """Size of the tools, and of a system prompt outside the messages."""
    output_tokens: int | None = None
    """Output limit of the request."""
    output_option: str = "max_tokens"
    """Name of the option for the output limit."""
    options: Mapping[str, object] = member(default_factory=dict)
    """Options that replace the caller's."""
    model: str | None = None
    digest: str = ""
    """Digest of the conversation, the same for all of its calls."""
    pin: Callable[[Message], object] | None = None
    """The option ``pin``."""
    pinned_by_history: frozenset[int] = frozenset()
    """``id`` of each message that is pinned in a ``History``."""
    rules: tuple[str, ...] = ()
    """Rules of the option ``rules`` and of a ``History``."""
    read: Conversation | None = None
    """Conversation of ``messages``, once they have been read."""
    archive: Archive | None = None
    """Archive of the compacted messages of a ``History``."""
    alternate: bool | None = None
    """The option ``alternate_roles``."""
    quotes: str = ""
    """Text of the quotes, which ``messages`` does not contain."""
    shortened: Message | None = None
    """Message to send in place of the last user message; ``messages`` contains the whole one."""
    saved: int = 0
    """Characters saved by ``shortened``."""

    @property
    def conversation(self) -> Conversation:
        """The messages, read once."""
        read = self.read
        if read is None:
            # Not a ``functools.cached_property``: before Python 3.12 it has a lock, which a fork
            # may copy locked.
            has_pins = self.pin is not None or self.pinned_by_history
            pins = self.find_pinned(self.messages) if has_pins else ()
            read = Conversation.of(self.messages, self.format, pinned=pins, rules=self.rules)
            object.__setattr__(self, "read", read)
        return read

    def find_pinned(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the indexes of the pinned ones among ``messages``."""
        return find_pinned(self.pin, messages, self.format, self.pinned_by_history)

    @property
    def size(self) -> int:
        """Size of the whole request, with overhead and quotes."""
        return self.conversation.size + self.overhead + len(self.quotes) - self.saved

    @property
    def begins_turn(self) -> bool:
        """Whether the last message is the user's, so that it is no later step of a turn."""
        return self.conversation.last_user == len(self.conversation.messages) - 1

    @property
    def sent(self) -> Sequence[Message]:
        """Messages as they are sent: with the shortened message, and the quotes before the last
        user message.
        """
        if self.shortened is None and not self.quotes:
            return self.messages  # Without reading them, which takes long for a whole history.
        messages = self.messages
        at = self.conversation.last_user
        if self.shortened is not None and at is not None:
            messages = [*messages[:at], self.shortened, *messages[at + 1 :]]
        if not self.quotes or at is None:
            return messages
        from compacter.recall.frame import place

        return place(messages, self.format, self.quotes, at, alternate=self.alternate)

    @property
    def named(self) -> dict[str, Any]:
        """Model and conversation, as fields of an event."""
        return {"model": self.model, "conversation": self.digest}


@dataclass(slots=True)
class ConversationState:
    """State of one conversation between its calls."""

    calls: int = 0
    tokens: int = 0
    """Input tokens in the usage of the last reply; 0 if unknown."""
    characters: int = 0
    """Size of that request, in characters."""
    tried: int | None = None
    """Number, from 1, of the last call that tried to compact; ``None`` before the first."""
    stuck: int = 0
    """Size of a history that stayed above the threshold, in characters; it is compacted again once
    it has grown."""
    helpless: int = 0
    """Size of what had to stay, in characters, when a call was given up although its history was
    compacted; 0 if none was. Another compaction would not help while it is as large."""
    vain: int = 0
    """Number of compactions in a row for which the summarizer was asked in vain."""
    full: int = 0
    """The same of a history in which a compaction has made no room for quotes."""


def facts_of(cause: BaseException | None) -> dict[str, Any]:
    """Return an exception as fields of the event of a failure; of a ``FunctionError`` its cause is
    named.
    """
    raised = cause.__cause__ if isinstance(cause, FunctionError) else cause
    error = "" if raised is None else type(raised).__name__
    return {"error": error, "cause": cause if isinstance(cause, Exception) else None}


# -- what cannot be compacted ----------------------------------------------------------------------

# Least size of a shortened text between marks, in characters with its receipt.
_LEAST = 100
_RECEIPT = "\n[shortened from {before:,} to {after:,} characters]"


def with_less_retrieved(
    request: Request, how: Retrieved | None, target: int | None
) -> Request | None:
    """Return the request with less retrieved text; ``None`` if its last user message is not too
    long.

    Without ``how``, what is shortened are the results of tools that stand in that message beside
    the user's own text, as in Anthropic's and Gemini's formats; never those of a pinned message.
    ``target`` is the largest size of all messages, in characters. The last user message may have
    what the others leave of it, and at least half; if no limit is known, half of its present size.
    """
    read = request.conversation
    saved = request.saved
    at = read.last_user
    if at is None or (how is None and at in read.pinned):
        return None
    size = read.sizes[at]
    now = read.sizes[at] - saved
    allowed = max(target - (read.size - size), target // 2) if target is not None else now // 2
    if now <= allowed or (target is None and 2 * now < read.size - saved):
        return None
    if how is None:
        message = shorten_message(
            read.format, request.shortened or read.messages[at], None, now - allowed
        )
    else:
        message = shorten_message(read.format, read.messages[at], how, size - allowed)
    less = size - read.format.size(message)
    return replace(request, shortened=message, saved=less) if less > saved else None


def shorten_message(
    form: MessageFormat, message: Message, how: Retrieved | None, excess: int
) -> Message:
    """Return a copy of a user message, shorter by up to ``excess`` characters; itself if it cannot
    be shortened.

    With a pair of marks, each text between them keeps its beginning and end, with a receipt in its
    middle. A function is called with each text and its largest size, in characters; a receipt is
    added to the result. ``None`` shortens the results of tools, and no text.
    """
    texts: list[str] = []
    edited = "result" if how is None else "text"

    def collect(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - as every edit
        texts.extend([text] if kind == edited else [])
        return text

    form.rewrite(message, collect)
    sizes = (
        [b - a for t in texts for a, b in _spans(t, how)]
        if isinstance(how, tuple)
        else [*map(len, texts)]
    )
    total = sum(sizes)

    def share(size: int) -> int:
        return max(_LEAST, size * (total - excess) // total) if total else size

    def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001
        if kind != edited:
            return text
        if how is None:
            short = shorten(text, share(len(text)))
        else:
            short = (
                _by_function(text, share(len(text)), how)
                if callable(how)
                else _by_marks(text, share, how)
            )
        return short if len(short) < len(text) else text

    return form.rewrite(message, edit)


def _by_function(text: str, size: int, function: Callable[[str, int], str]) -> str:
    if size >= len(text):
        return text
    short = function(text, size - len(_RECEIPT) - 20)
    return short + _RECEIPT.format(before=len(text), after=len(short))


def _by_marks(text: str, share: Callable[[int], int], marks: tuple[str, str]) -> str:
    pieces = list[str]()
    at = 0
    for begin, end in _spans(text, marks):
        pieces += [text[at:begin], shorten(text[begin:end], share(end - begin))]
        at = end
    return "".join([*pieces, text[at:]])


def _spans(text: str, marks: tuple[str, str]) -> list[tuple[int, int]]:
    """Return start and end of each text between a pair of marks."""
    found = list[tuple[int, int]]()
    at = 0
    while (begin := text.find(marks[0], at)) >= 0:
        begin += len(marks[0])
        end = text.find(marks[1], begin)
        if end < 0:
            break
        found.append((begin, end))
        at = end + len(marks[1])
    return found


def advice(request: Request, calibration: Calibration, limit: int | None) -> str:
    """Return a sentence on the largest part of a request that is given up, or on rules without
    room, and the remedy.
    """
    read = request.conversation
    if not read.messages:
        return ""
    declared = sum(len(line) + 1 for line in rule_lines(read.rules))
    left = (
        int((limit or 0) * calibration.chars_per_token)
        - request.overhead
        - (read.size - read.free)
        - FRAME
    )
    if declared and 0 < left < declared:
        what = (
            f"The declared rules take {declared:,} characters, and beside what must stay "
            f"there is room for {left:,}."
        )
        return (
            f" {what} What helps: declare fewer rules (option rules), or shorter ones; or a "
            f"larger window."
        )
    index = max(range(len(read.messages)), key=read.sizes.__getitem__)
    size = read.sizes[index] - (request.saved if index == read.last_user else 0)
    if request.overhead > size:
        size = request.overhead
        what = "tools and other options beside the messages"
        remedy = "send fewer tools"
    else:
        what = f"message {index + 1} of {len(read.messages)}"
        kind, remedy = _kind(request, index)
        what = f"{what}, {kind}"
    window = f" of {limit:,} allowed" if limit else ""
    tokens = f"about {calibration.tokens(size):,} tokens{window}"
    return (
        f" The largest part is {what}: {size:,} characters, {tokens}. What helps: "
        f"{remedy}; or a larger window."
    )


def _kind(request: Request, index: int) -> tuple[str, str]:
    read = request.conversation
    if index == read.last_user:
        marks = (
            'mark what is retrieved and set retrieved=("<context>", "</context>"), so that '
            "it may be shortened"
        )
        if any(part.kind == "result" for part in read.parts(index)):
            marks = (
                'set retrieved=("<context>", "</context>"), so that the results of tools in '
                "it may be shortened"
            )
        return (
            "the last user message",
            "send less of it" if request.saved else f"send less of it, or {marks}",
        )
    if read.kinds[index] is Kind.SYSTEM:
        return "a system prompt", "make it shorter"
    if index in read.pinned:
        return "a pinned one", "remove its pin"
    if read.kinds[index] is Kind.RESULT:
        return "a tool result", (
            "have the tool return less, or strategy=[ClearToolResults(), Summarize()]"
        )
    return "which may be compacted", (
        "a larger max_retries or compact_ratio, or a smaller preserve_recent_turns"
    )
