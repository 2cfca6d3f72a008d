"""What is read of a reply, and the state of a call that has left the fast path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from compacter.call.effects import Answer
from compacter.call.recover import Request
from compacter.call.trigger import Pulse
from compacter.compaction.calibration import Calibration
from compacter.messages.fields import field
from compacter.messages.format import Message

if TYPE_CHECKING:
    from compacter.call.perform import World


def answer_of(reply: object) -> Answer:
    """What a summarizer answered. An unknown shape reads as empty text, which the gate refuses."""
    if isinstance(reply, str):
        return Answer(reply)
    if reply is None:
        return Answer("")
    read, written = tokens_of(reply)
    for reader in (_chat, _blocks, _responses, _gemini, _bedrock):
        found = reader(reply)
        if found is not None:
            text, finish, refused, called = found
            return Answer(text, read, written, finish, refused, called)
    text = field(reply, "text") or field(reply, "content")
    return Answer(text if isinstance(text, str) else "", read, written)


def tokens_of(reply: object) -> tuple[int, int]:
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


def model_of(reply: object) -> str | None:
    """The model that a reply says it is from."""
    model = field(reply, "model")
    return model if isinstance(model, str) else None


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


class Kept(Protocol):
    """What a ``History`` is to a call: something that takes over what the call's compactions made of it."""

    @property
    def version(self) -> int:
        """Counts changes."""
        ...

    def install(self, version: int, messages: Sequence[Message]) -> bool:
        """Take the list over, if ``version`` is still the present one."""
        ...


class Session:
    """Made when a call leaves the quiet path."""

    def __init__(
        self, world: World, request: Request, calibration: Calibration, pulse: Pulse, history: Kept | None
    ) -> None:
        self.world = world
        self.request = request
        self.calibration = calibration
        self.pulse = pulse
        self.history = history
        self._version = history.version if history is not None else 0

    def learn(self, messages: Sequence[Message], overhead: int, reply: Any) -> None:
        """Calibrate by an earlier reply, if its messages are a beginning of these."""
        own = self.request.original
        if (
            not messages
            or len(messages) > len(own)
            or own[0] is not messages[0]
            or own[len(messages) - 1] is not messages[-1]
        ):
            return
        tokens, _ = tokens_of(reply)
        self.calibration.learn(sum(map(self.request.wire.size, messages)) + overhead, tokens)

    def settled(self) -> None:
        """The call has succeeded: the History gets what the compactions made of it, unless it has changed meanwhile."""
        made = self.world.made
        if self.history is not None and made is not None and not self.history.install(self._version, made):
            self.world.engine.aborted(None)
