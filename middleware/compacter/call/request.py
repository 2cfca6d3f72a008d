"""A request as the policy sees it, and what is read of a reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as member
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation
from compacter.effects import Reply
from compacter.messages.fields import field, listed
from compacter.messages.format import Message, MessageFormat
from compacter.recall.passages import Quotes

if TYPE_CHECKING:
    from compacter.recall.archive import Archive

_LARGE = 200_000
"""Characters of a history from which on an event loop does not wait for what is worked out about it."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call of the wrapped function, as the policy sees it. Sizes in characters, limits in tokens."""

    format: MessageFormat
    original: Sequence[Message]
    """The caller's own messages."""
    messages: Sequence[Message]
    """What is sent: the original, or a compacted view of it."""
    overhead: int = 0
    """Size of what is sent beside the messages: tools, a system prompt outside the list."""
    output_tokens: int | None = None
    """The request's output limit."""
    output_option: str = "max_tokens"
    """The option that sets it."""
    options: Mapping[str, object] = member(default_factory=dict)
    """Options changed so far."""
    model: str | None = None
    digest: str = ""
    """Digest of the conversation that is the same for every call of one conversation."""
    pin: Callable[[Message], object] | None = None
    """The option ``pin``."""
    pinned_by_history: frozenset[int] = frozenset()
    """``id`` of messages that a ``History`` has pinned."""
    watched: bool = True
    """Whether there are hooks for events, or a trigger: then the usage of every reply is read."""
    rules: tuple[str, ...] = ()
    """Declared rules: of the option ``rules`` and of a ``History``."""
    read: Conversation | None = None
    """``messages``, where they were read already."""
    recall: Quotes | None = None
    """The option ``recall``; ``None`` also where quotes were refused."""
    archive: Archive | None = None
    """What was folded of the ``History`` that was passed."""
    alternate: bool | None = None
    """The option ``alternate_roles``."""
    quotes: str = ""
    """Quotes that are sent with the messages, and are none of them."""
    shortened: Message | None = None
    """What is sent in place of the last user message; ``messages`` has the whole one."""
    saved: int = 0
    """Characters by which that is shorter."""

    @property
    def conversation(self) -> Conversation:
        """What is sent, read once."""
        read = self.read
        if read is None:
            # Not a ``functools.cached_property``: until Python 3.12 it has a lock, which a fork may copy locked.
            pins = pinned(self.pin, self.messages, self.pinned_by_history)
            read = Conversation.of(self.messages, self.format, pinned=pins, rules=self.rules)
            object.__setattr__(self, "read", read)
        return read

    @property
    def size(self) -> int:
        """Size of what is sent, the overhead and quotes included."""
        return self.conversation.size + self.overhead + len(self.quotes) - self.saved

    @property
    def sent(self) -> Sequence[Message]:
        """The messages, a shortened one among them, and the quotes right before the last user message."""
        if self.shortened is None and not self.quotes:
            return self.messages  # Not read for that: a proxy asks it of each call's whole history.
        messages, at = self.messages, self.conversation.last_user
        if self.shortened is not None and at is not None:
            messages = [*messages[:at], self.shortened, *messages[at + 1 :]]
        if not self.quotes:
            return messages
        from compacter.recall.quotes import place

        return place(messages, self.format, self.quotes, at=at, alternate=self.alternate)

    @property
    def named(self) -> dict[str, Any]:
        """What names it in events."""
        return {"model": self.model, "conversation": self.digest}


@dataclass(slots=True)
class ConversationState:
    """What is known of one conversation between its calls."""

    calls: int = 0
    tokens: int = 0
    """Input tokens of the last reply, as its usage states them; 0 when unknown."""
    characters: int = 0
    """Size of the request that those tokens belong to."""
    tried: int | None = None
    """The call, counted from 1, that compacted last or tried to; ``None`` before the first."""
    stuck: int = 0
    """Size of a history that stayed above the threshold; it is not tried again until it has grown."""


def pinned(
    pin: Callable[[Message], object] | None, messages: Sequence[Message], by_history: frozenset[int] = frozenset()
) -> tuple[int, ...]:
    """Indexes of pinned messages. A predicate that raises pins what it was asked about: losing a pin is worse."""
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


def is_large(messages: Sequence[Message]) -> bool:
    """Whether an event loop should not wait for what is worked out about these messages. A quick estimate."""
    return weight(list(messages), _LARGE) >= _LARGE


def weight(value: Any, enough: int, depth: int = 6) -> int:
    """Characters of the texts in a value, counted up to ``enough``."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if not inner:
        inner = getattr(value, "__dict__", {}).values()
    total = 0
    for one in inner if depth else ():
        total += weight(one, enough - total, depth - 1)
        if total >= enough:
            break
    return total


def read_reply(reply: object) -> Reply:
    """What a summarizer answered. An unknown shape reads as empty text, which the gate refuses."""
    if isinstance(reply, str):
        return Reply(reply)
    if reply is None:
        return Reply()
    read, written = usage_of(reply)
    for reader in (_chat, _blocks, _responses, _gemini, _bedrock):
        found = reader(reply)
        if found is not None:
            text, finish, refused, called = found
            return Reply(text, read, written, finish, refused, called)
    text = field(reply, "text") or field(reply, "content")
    return Reply(text if isinstance(text, str) else "", read, written)


def tokens_read(reply: object) -> int:
    """Input tokens of the request as the reply states them; 0 where it says nothing of the request's size."""
    return 0 if edited_by_provider(reply) else usage_of(reply)[0]


def edited_by_provider(reply: object) -> bool:
    """Whether the provider has compacted or edited the conversation by itself before it answered.

    Such a reply is a success. Its usage counts fewer tokens than the request had, which is no silent truncation, and
    says nothing of the request's characters per token. Signs of it: ``context_management.applied_edits`` (Anthropic,
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
    except Exception:  # noqa: BLE001 - an unknown type; a reply that cannot be read is a reply
        return False


def usage_of(reply: object) -> tuple[int, int]:
    """Input and output tokens of a reply, cache reads and writes counted as input; zeros where it states none."""
    usage = field(reply, "usage") or field(reply, "usage_metadata") or field(reply, "usageMetadata")
    if not usage:
        return 0, 0
    read = _first(usage, "prompt_tokens", "input_tokens", "prompt_token_count", "promptTokenCount", "inputTokens")
    if field(usage, "prompt_tokens") is None and field(usage, "input_tokens_details") is None:
        # Anthropic and Bedrock state cached tokens beside the input tokens, OpenAI and Gemini inside them.
        for extra in (
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "cacheReadInputTokens",
            "cacheWriteInputTokens",
        ):
            read += _first(usage, extra)
    written = _first(
        usage,
        "completion_tokens",
        "output_tokens",
        "candidates_token_count",
        "candidatesTokenCount",
        "outputTokens",
    )
    return read, written


_Read = tuple[str, str | None, bool, bool]
"""Text, finish reason, refused, called a tool."""


def _chat(reply: object) -> _Read | None:
    choices = field(reply, "choices")
    if not isinstance(choices, (list, tuple)):
        return None
    if not choices:
        return "", None, False, False
    choice = choices[0]
    message = field(choice, "message")
    text = _text(field(message, "content")) if message is not None else str(field(choice, "text") or "")
    called = bool(field(message, "tool_calls") or field(message, "function_call"))
    return text, _word(field(choice, "finish_reason")), bool(field(message, "refusal")), called


def _blocks(reply: object) -> _Read | None:
    content, reason = field(reply, "content"), field(reply, "stop_reason")
    if not isinstance(content, (list, tuple)) or field(reply, "output") is not None:
        return None
    called = any(field(block, "type") == "tool_use" for block in content)
    return _text(content), _word(reason), reason == "refusal", called


def _responses(reply: object) -> _Read | None:
    output = field(reply, "output")
    if not isinstance(output, (list, tuple)):
        return None
    texts, refused, called = [], False, False
    for item in output:
        kind = field(item, "type")
        called = called or str(kind).endswith("_call")
        for part in field(item, "content") or () if kind in ("message", None) else ():
            texts.append(str(field(part, "text") or ""))
            refused = refused or field(part, "type") == "refusal"
    finish = field(field(reply, "incomplete_details"), "reason") if field(reply, "status") == "incomplete" else None
    return "".join(texts), _word(finish), refused, called


def _gemini(reply: object) -> _Read | None:
    candidates = field(reply, "candidates")
    if not isinstance(candidates, (list, tuple)):
        return None
    if not candidates:
        return "", None, True, False
    parts = field(field(candidates[0], "content"), "parts") or ()
    called = any(field(part, "function_call") or field(part, "functionCall") for part in parts)
    texts = (str(field(part, "text") or "") for part in parts if not field(part, "thought"))
    finish = _word(field(candidates[0], "finish_reason") or field(candidates[0], "finishReason"))
    return "".join(texts), {"max_tokens": "length"}.get(str(finish).lower(), finish), False, called


def _bedrock(reply: object) -> _Read | None:
    output = field(reply, "output")
    message = field(output, "message") if isinstance(output, Mapping) else None
    if message is None:
        return None
    blocks = field(message, "content") or ()
    called = any(field(block, "toolUse") for block in blocks)
    return (
        "".join(str(field(block, "text") or "") for block in blocks),
        _word(field(reply, "stopReason")),
        False,
        called,
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return ""
    return "".join(part if isinstance(part, str) else str(field(part, "text") or "") for part in content)


def _word(value: Any) -> str | None:
    """A finish reason as a plain word; enums by their name."""
    if value is None:
        return None
    name = getattr(value, "name", None)
    return (name if isinstance(name, str) else str(value)).lower()


def _first(usage: Any, *names: str) -> int:
    for name in names:
        value = field(usage, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0
