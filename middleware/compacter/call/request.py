"""The request of one call, and the reading of replies: text, usage, finish reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as member
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation
from compacter.effects import Reply
from compacter.messages.fields import field, listed
from compacter.messages.format import Message, MessageFormat

if TYPE_CHECKING:
    from compacter.recall.index import Archive

_LARGE, _MANY = 200_000, 4_000
"""Size of a history, in characters and in messages, from which computations on it run outside the event loop."""


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
    """Return the indexes of pinned messages. If the predicate raises, the message is pinned, to be safe."""
    if pin is None and not by_history:
        return ()
    found = []
    for index, message in enumerate(messages):
        wanted = id(message) in by_history
        if not wanted and pin is not None:
            try:
                wanted = bool(pin(message))
            except Exception:  # noqa: BLE001
                wanted = True
        if wanted:
            found.append(index)
    return tuple(found)


def is_large(messages: object) -> bool:
    """Return whether computations on these messages should not block an event loop. A quick estimate."""
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return False
    return len(messages) >= _MANY or weight(list(messages), _LARGE) >= _LARGE


def weight(value: Any, enough: int, depth: int = 6) -> int:
    """Return the number of characters of all texts in a value, counted up to ``enough``."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if not inner:
        inner = getattr(value, "__dict__", {}).values()
    total = 0
    for one in inner if depth else ():
        total += len(one) if type(one) is str else weight(one, enough - total, depth - 1)
        if total >= enough:
            break
    return total


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
