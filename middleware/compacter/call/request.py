"""The request of one call, what helps where nothing can be folded, and the reading of replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as member
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import Calibration
from compacter.compaction.strategies import shorten
from compacter.effects import Reply
from compacter.messages.fields import field, listed
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Kind
from compacter.options import Retrieved
from compacter.summary.message import FRAME, rule_lines

if TYPE_CHECKING:
    from compacter.recall.index import Archive


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
    """Archive of the folded messages of a ``History``."""
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
            # Not a ``functools.cached_property``: before Python 3.12 it has a lock, which a fork may copy locked.
            pins = pinned(self.pin, self.messages, self.pinned_by_history)
            read = Conversation.of(self.messages, self.format, pinned=pins, rules=self.rules)
            object.__setattr__(self, "read", read)
        return read

    @property
    def size(self) -> int:
        """Size of the whole request, with overhead and quotes."""
        return self.conversation.size + self.overhead + len(self.quotes) - self.saved

    @property
    def texts(self) -> list[str]:
        """Texts of the messages, without media and reasoning."""
        read = self.conversation
        return [
            part.text
            for index in range(read.start, len(read.messages))
            for part in read.format.parts(read.messages[index], index)
            if part.kind != "media"
        ]

    @property
    def sent(self) -> Sequence[Message]:
        """Messages as they are sent: with the shortened message, and the quotes before the last user message."""
        if self.shortened is None and not self.quotes:
            return self.messages  # Without reading them, which takes long for a whole history.
        messages, at = self.messages, self.conversation.last_user
        if self.shortened is not None and at is not None:
            messages = [*messages[:at], self.shortened, *messages[at + 1 :]]
        if not self.quotes or at is None:
            return messages
        from compacter.recall.quotes import place

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
    """Size of a history that stayed above the threshold, in characters; it is compacted again once it has grown."""


def pinned(
    pin: Callable[[Message], object] | None, messages: Sequence[Message], by_history: frozenset[int] = frozenset()
) -> tuple[int, ...]:
    """Return the indexes of pinned messages."""
    if pin is None and not by_history:
        return ()
    return tuple(
        index
        for index, message in enumerate(messages)
        if id(message) in by_history or (pin is not None and pin(message))
    )


# -- what cannot be folded ---------------------------------------------------------------------------------------------

_LEAST = 100
"""Least size of a shortened text between marks, in characters with its receipt."""
_RECEIPT = "\n[shortened from {before:,} to {after:,} characters]"


def with_less_retrieved(request: Request, how: Retrieved | None, target: int | None) -> Request | None:
    """Return the request with less retrieved text; ``None`` if its last user message is not too long.

    Without ``how``, what is shortened are the results of tools that stand in that message beside the user's own text,
    as in Anthropic's and Gemini's formats; never those of a pinned message. ``target`` is the largest size of all
    messages, in characters. The last user message may have what the others leave of it, and at least half; if no limit
    is known, half of its present size.
    """
    read, saved = request.conversation, request.saved
    at = read.last_user
    if at is None or (how is None and at in read.pinned):
        return None
    size, now = read.sizes[at], read.sizes[at] - saved
    allowed = max(target - (read.size - size), target // 2) if target is not None else now // 2
    if now <= allowed or (target is None and 2 * now < read.size - saved):
        return None
    if how is None:
        message = shortened(read.format, request.shortened or read.messages[at], None, now - allowed)
    else:
        message = shortened(read.format, read.messages[at], how, size - allowed)
    less = size - read.format.size(message)
    return replace(request, shortened=message, saved=less) if less > saved else None


def shortened(form: MessageFormat, message: Message, how: Retrieved | None, excess: int) -> Message:
    """Return a copy of a user message, shorter by up to ``excess`` characters; itself if it cannot be shortened.

    With a pair of marks, each text between them keeps its beginning and end, with a receipt in its middle. A function
    is called with each text and its largest size, in characters; a receipt is added to the result. ``None`` shortens
    the results of tools, and no text.
    """
    texts: list[str] = []
    edited = "result" if how is None else "text"

    def collect(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - every edit is called like this
        texts.extend([text] if kind == edited else [])
        return text

    form.rewrite(message, collect)
    sizes = [b - a for t in texts for a, b in _spans(t, how)] if isinstance(how, tuple) else [*map(len, texts)]
    total = sum(sizes)

    def share(size: int) -> int:
        return max(_LEAST, size * (total - excess) // total) if total else size

    def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001
        if kind != edited:
            return text
        if how is None:
            short = shorten(text, share(len(text)))
        else:
            short = _by_function(text, share(len(text)), how) if callable(how) else _by_marks(text, share, how)
        return short if len(short) < len(text) else text

    return form.rewrite(message, edit)


def _by_function(text: str, size: int, function: Callable[[str, int], str]) -> str:
    if size >= len(text):
        return text
    short = function(text, size - len(_RECEIPT) - 20)
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
    """Return a sentence on the largest part of a request that is given up, or on rules without room, and the remedy."""
    read = request.conversation
    if not read.messages:
        return ""
    declared = sum(len(line) + 1 for line in rule_lines(read.rules))
    left = int((limit or 0) * calibration.chars_per_token) - request.overhead - (read.size - read.free) - FRAME
    if declared and 0 < left < declared:
        what = f"The declared rules take {declared:,} characters, and beside what must stay there is room for {left:,}."
        return f" {what} What helps: declare fewer rules (option rules), or shorter ones; or a larger window."
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
        if any(part.kind == "result" for part in read.format.parts(read.messages[index], index)):
            marks = 'set retrieved=("<context>", "</context>"), so that the results of tools in it may be shortened'
        return "the last user message", "send less of it" if request.saved else f"send less of it, or {marks}"
    if read.kinds[index] is Kind.SYSTEM:
        return "a system prompt", "make it shorter"
    if index in read.pinned:
        return "a pinned one", "remove its pin"
    if read.kinds[index] is Kind.RESULT:
        return "a tool result", "have the tool return less, or strategy=[ClearToolResults(), Summarize()]"
    return "which may be folded", "a larger max_retries or compact_ratio, or a smaller preserve_recent_turns"


# -- replies -----------------------------------------------------------------------------------------------------------


def read_reply(reply: object) -> Reply:
    """Return a summarizer's reply as a ``Reply``. The text of an unknown type is empty, which the checks refuse."""
    if isinstance(reply, str):
        return Reply(reply)
    read, written = usage_of(reply)
    choices, candidates, output = (field(reply, name) for name in ("choices", "candidates", "output"))
    content, finish, message = field(reply, "content"), field(reply, "stop_reason"), None
    items: list[Any] = []
    if isinstance(choices, (list, tuple)):  # Chat completions.
        choice = choices[0] if choices else None
        message, finish = field(choice, "message"), field(choice, "finish_reason")
        content = field(message, "content") if message is not None else field(choice, "text")
    elif isinstance(candidates, (list, tuple)):  # Gemini; a refusal has no candidate.
        first = candidates[0] if candidates else None
        content = [part for part in listed(field(field(first, "content"), "parts")) if not field(part, "thought")]
        finish = field(first, "finish_reason") or field(first, "finishReason") if candidates else "refusal"
        finish = "length" if _word(finish) == "max_tokens" else finish
    elif isinstance(output, (list, tuple)):  # Responses.
        items = list(output)
        said = [item for item in items if field(item, "type") in ("message", None)]
        content = [part for item in said for part in listed(field(item, "content"))]
        finish = field(field(reply, "incomplete_details"), "reason") if field(reply, "status") == "incomplete" else None
    elif isinstance(output, Mapping):  # Bedrock.
        content, finish = field(field(output, "message"), "content"), field(reply, "stopReason")
    elif not content:
        content = field(reply, "text")
    parts = listed(content) if not isinstance(content, str) else ()
    return Reply(
        content if isinstance(content, str) else "".join(map(_text, parts)),
        read,
        written,
        _word(finish),
        refused=bool(field(message, "refusal")) or finish == "refusal" or any(_is(part, "refusal") for part in parts),
        called_tool=bool(field(message, "tool_calls") or field(message, "function_call"))
        or any(map(_is_call, (*parts, *items))),
    )


def _text(part: object) -> str:
    return part if isinstance(part, str) else str(field(part, "text") or "")


def _is(part: object, kind: str) -> bool:
    return bool(field(part, "type") == kind)


def _is_call(part: object) -> bool:
    """Return whether a part of a reply is a tool call, in any vendor's format."""
    calls = any(field(part, name) for name in ("function_call", "functionCall", "toolUse"))
    return calls or _is(part, "tool_use") or str(field(part, "type")).endswith("_call")


def tokens_read(reply: object) -> int:
    """Return the input tokens in the usage of a reply; 0 if they are missing or not those of the request.

    Always 0 for a stream, whose usage comes last.
    """
    if reply is None or type(reply) is str or hasattr(type(reply), "__next__") or hasattr(type(reply), "__anext__"):
        return 0
    read, _ = usage_of(reply)
    return 0 if read and edited_by_provider(reply) else read


def edited_by_provider(reply: object) -> bool:
    """Return whether the provider has compacted or edited the conversation itself before it replied.

    Such a reply is a success. Its usage has fewer tokens than the request, which is not a silent truncation, and is
    useless for calibration. Signs of it: ``context_management.applied_edits`` (Anthropic,
    https://platform.claude.com/docs/en/build-with-claude/context-editing), steps in ``usage.iterations``, a
    ``compaction`` block or item, and the stop reason ``compaction``; litellm has them in ``provider_specific_fields``.
    """
    if reply is None or isinstance(reply, (str, bytes)):
        return False
    try:
        choices = field(reply, "choices")
        first = field(choices[0], "message") if isinstance(choices, (list, tuple)) and choices else None
        places = [reply, *(field(one, "provider_specific_fields") for one in (reply, first))]
        items = [item for name in ("output", "content") for item in listed(field(reply, name))]
        return bool(
            any(field(field(place, "context_management"), "applied_edits") for place in places)
            or field(field(reply, "usage"), "iterations")
            or field(reply, "stop_reason") == "compaction"
            or any(field(item, "type") == "compaction" for item in items)
            or field(places[-1], "compaction_blocks")
        )
    except Exception:  # noqa: BLE001 - an unknown type
        return False


def usage_of(reply: object) -> tuple[int, int]:
    """Return the input and output tokens of a reply's usage, cached tokens included; zeros if it has none."""
    usage = field(reply, "usage") or field(reply, "usage_metadata") or field(reply, "usageMetadata")
    if not usage:
        return 0, 0
    read, written = _first(usage, _READ), _first(usage, _WRITTEN)
    if field(usage, "prompt_tokens") is None and field(usage, "input_tokens_details") is None:
        # Anthropic and Bedrock count cached tokens apart from the input tokens, OpenAI and Gemini among them.
        read += sum(_first(usage, (name,)) for name in _CACHED)
    return read, written


_READ = ("prompt_tokens", "input_tokens", "prompt_token_count", "promptTokenCount", "inputTokens")
_CACHED = (
    "cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens",
)  # fmt: skip
_WRITTEN = ("completion_tokens", "output_tokens", "candidates_token_count", "candidatesTokenCount", "outputTokens")


def _first(usage: Any, names: Sequence[str]) -> int:
    """Return the first of these counts that is above 0; 0 if there is none."""
    for name in names:
        value = field(usage, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0


def _word(value: Any) -> str | None:
    """Return a finish reason in lower case; that of an enum is its name."""
    if value is None:
        return None
    name = getattr(value, "name", None)
    return (name if isinstance(name, str) else str(value)).lower()
