"""The chat-completions message format of OpenAI, litellm, and many other servers.

Source of the rules: OpenAI's API reference for chat completions, "messages". A tool message must
follow the assistant message whose ``tool_calls`` holds its ``tool_call_id``; ``function_call`` with
role ``function`` is the form before 2023-11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compacter.messages.blocks import ANY_SIGNATURE, COMPACTION, MEDIUM, TEXT, Row, edit_at
from compacter.messages.fields import without, word
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Kind, Outline

_REASONING = Row("reasoning", ("thinking", "reasoning"), sealed=("signature", "data"))
_RESULTS = {
    role: Row("result", ("content",), ("name",), (call_id,), edits=("content",))
    for role, call_id in (("tool", "tool_call_id"), ("function", "name"))
}
_CALL = Row(
    "call",
    ("function.arguments", "function.input", "custom.arguments", "custom.input"),
    ("function.name", "custom.name"),
    ("id",),
)

# Gemini's signature, as Google and litellm write it; Google documents a text that may replace it.
_SIGNATURES = (
    "tool_calls.extra_content.google.thought_signature",
    "tool_calls.provider_specific_fields.thought_signature",
)
_SEALED = ("thinking_blocks", "reasoning_details")


class OpenAIFormat(MessageFormat):
    """Chat completions: ``content`` is text or parts, calls are in ``tool_calls``, results have the
    role ``tool``.
    """

    name = "openai"
    plain = MessageFormat.roles
    own = frozenset({"arguments", "input"})
    roles = {**plain, "tool": Kind.RESULT, "function": Kind.RESULT}  # noqa: RUF012 - ClassVar in the base class
    table = {  # noqa: RUF012
        "thinking": _REASONING,
        "redacted_thinking": _REASONING,
        "reasoning": _REASONING,
        **dict.fromkeys(
            (
                *("image_url", "input_audio", "file", "image", "video_url", "audio_url"),
                *("input_image", "document"),
            ),
            MEDIUM,
        ),
    }
    beside = (
        ("refusal", TEXT),
        ("audio.transcript", TEXT),
        ("", Row("reasoning", ("reasoning_content", "reasoning"))),
        # Anthropic's, by litellm.
        ("provider_specific_fields.compaction_blocks", COMPACTION),
        ("tool_calls", _CALL),
        ("function_call", Row("call", ("arguments", "input"), ("name",), ("name",))),
    )
    other = Row("text", ("text", "refusal", "input_text", "output_text"), edits=("text",))

    def read(self, message: Message) -> Outline:
        """Return the outline of a message; calls and results in their common forms are read without
        making parts.
        """
        try:
            role = message["role"]
            content = message["content"]
            if role == "tool" and type(content) is str is type(message["tool_call_id"]):
                return Kind.RESULT, len(content), (), (message["tool_call_id"],)
            calls = message["tool_calls"]
            if role == "assistant" and len(message) == 3:  # It has no other members.
                ids = [call["id"] for call in calls]
                texts = [call["function"][name] for call in calls for name in ("name", "arguments")]
                texts.append(content or "")
                if {str}.issuperset(map(type, (*ids, *texts))):
                    return Kind.ASSISTANT, sum(map(len, texts)), ids, ()
        except Exception:  # noqa: BLE001, S110 - not of a common form
            pass
        return super().read(message)

    def whole(self, message: Message) -> Row | None:
        """Return the row of the whole message if it is a tool's result, else ``None``."""
        return _RESULTS.get(word(message, "role"))

    def without_sealed(self, messages: Sequence[Message]) -> tuple[list[Message], Counter[str]]:
        """Leave out also what litellm and OpenRouter keep beside the content."""
        sent, kinds = super().without_sealed(messages)
        for at, message in enumerate(sent):
            sent[at] = without(message, *_SEALED)
            for path in _SIGNATURES:
                sent[at] = edit_at(sent[at], path, _unsign)
            if sent[at] is not message:
                kinds["thinking_blocks"] += 1
        return sent, kinds


def _unsign(signature: str) -> str:
    return signature if signature == ANY_SIGNATURE else ANY_SIGNATURE


OPENAI = OpenAIFormat()
