"""The message formats as dialects: how each of them writes what all of them can say. A new format
gets its own here.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compacter.messages.format import FormatName, MessageFormat, get_format

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter.messages.format import Message
    from compacter.messages.parts import Part

Call = tuple[str, str, dict[str, str]]
Result = tuple[str, str, str]
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x80\x00\x00\x01\xe0" + bytes(4_000_000)
PICTURE = base64.b64encode(PNG).decode()


def parts_of(form: MessageFormat, message: Message, index: int = 0) -> tuple[Part, ...]:
    """The parts of the message at this place that a summarizer reads."""
    return form.parts_of_each([message] * (index + 1))[index].readable


@dataclass(frozen=True)
class Dialect:
    """How one message format writes what all of them can say; lists where it may take several
    items.
    """

    name: FormatName
    user: Callable[[str], Message]
    answer: Callable[[str], Message]
    calls: Callable[[list[Call]], list[Message]]
    results: Callable[[list[Result]], list[Message]]
    picture: Callable[[], Message]
    thought: Callable[[str, str], list[Message]]
    mixed: Callable[[list[Result], str], Message] | None = None
    marked: list[Message] = field(kw_only=True)
    """A message that carries a cache mark, and the same one without it."""

    @property
    def format(self) -> MessageFormat:
        return get_format(self.name)

    def broken(self, messages: list[Message]) -> list[tuple[str, str]]:
        """Half pairs: what is wrong, and what pairs them."""
        return [(half.what, half.call_id) for half in self.format.outline(messages).broken]

    def key(self, half: Call | Result) -> str:
        """Value that pairs a call with its result: the id, or Gemini's name."""
        return half[1] if self.name == "gemini" else half[0]

    def one_of_each(self) -> list[Message]:
        """Messages of every sort that the format has."""
        look: Call = ("c1", "look", {"at": "sky"})
        seen: Result = ("c1", "look", "blue")
        return [
            self.user("a"),
            self.answer("b"),
            *self.calls([look]),
            *self.results([seen]),
            *self.thought("hm", "c"),
            self.picture(),
            *([self.mixed([seen], "d")] if self.mixed else []),
        ]


def _openai() -> Dialect:
    return Dialect(
        "openai",
        lambda text: {"role": "user", "content": text},
        lambda text: {"role": "assistant", "content": text},
        lambda calls: [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": i,
                        "type": "function",
                        "function": {"name": name, "arguments": json.dumps(args)},
                    }
                    for i, name, args in calls
                ],
            }
        ],
        lambda results: [
            {"role": "tool", "tool_call_id": i, "name": name, "content": text}
            for i, name, text in results
        ],
        lambda: {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
            ],
        },
        lambda thought, text: [
            {"role": "assistant", "reasoning_content": thought, "content": text}
        ],
        marked=[
            {
                "role": "user",
                "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
            },
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
        ],
    )


def _anthropic() -> Dialect:
    def results(results: list[Result]) -> list[Message]:
        return [
            {"type": "tool_result", "tool_use_id": i, "content": text} for i, _, text in results
        ]

    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    return Dialect(
        "anthropic",
        lambda text: {"role": "user", "content": [{"type": "text", "text": text}]},
        lambda text: {"role": "assistant", "content": text},
        lambda calls: [
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": i, "name": name, "input": args}
                    for i, name, args in calls
                ],
            }
        ],
        lambda answers: [{"role": "user", "content": results(answers)}],
        lambda: {"role": "user", "content": [{"type": "image", "source": source}]},
        lambda thought, text: [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": thought, "signature": "c2ln"},
                    {"type": "text", "text": text},
                ],
            }
        ],
        lambda answers, text: {
            "role": "user",
            "content": [*results(answers), {"type": "text", "text": text}],
        },
        marked=[
            {
                "role": "user",
                "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
            },
            {"role": "user", "content": "a"},
        ],
    )


def _responses() -> Dialect:
    return Dialect(
        "responses",
        lambda text: {"role": "user", "content": [{"type": "input_text", "text": text}]},
        lambda text: {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        },
        lambda calls: [
            {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(args)}
            for i, name, args in calls
        ],
        lambda results: [
            {"type": "function_call_output", "call_id": i, "output": text} for i, _, text in results
        ],
        lambda: {
            "role": "user",
            "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}],
        },
        lambda thought, text: [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]},
            {"type": "message", "role": "assistant", "content": text},
        ],
        marked=[
            {"role": "user", "content": "a", "cache_control": {"type": "ephemeral"}},
            {"role": "user", "content": "a"},
        ],
    )


def _gemini() -> Dialect:
    def results(results: list[Result]) -> list[Message]:
        return [
            {"functionResponse": {"id": i, "name": name, "response": {"output": text}}}
            for i, name, text in results
        ]

    return Dialect(
        "gemini",
        lambda text: {"role": "user", "parts": [{"text": text}]},
        lambda text: {"role": "model", "parts": [{"text": text}]},
        lambda calls: [
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"id": i, "name": name, "args": args}}
                    for i, name, args in calls
                ],
            }
        ],
        lambda answers: [{"role": "user", "parts": results(answers)}],
        lambda: {
            "role": "user",
            "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}],
        },
        lambda thought, text: [
            {"role": "model", "parts": [{"text": thought, "thought": True}, {"text": text}]}
        ],
        lambda answers, text: {"role": "user", "parts": [*results(answers), {"text": text}]},
        marked=[
            {"role": "user", "parts": [{"text": "a", "cache_control": {"type": "ephemeral"}}]},
            {"role": "user", "parts": [{"text": "a"}]},
        ],
    )


def _bedrock() -> Dialect:
    def results(results: list[Result]) -> list[Message]:
        return [
            {"toolResult": {"toolUseId": i, "content": [{"text": text}]}} for i, _, text in results
        ]

    return Dialect(
        "bedrock",
        lambda text: {"role": "user", "content": [{"text": text}]},
        lambda text: {"role": "assistant", "content": [{"text": text}]},
        lambda calls: [
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": i, "name": name, "input": args}}
                    for i, name, args in calls
                ],
            }
        ],
        lambda answers: [{"role": "user", "content": results(answers)}],
        lambda: {
            "role": "user",
            "content": [{"image": {"format": "png", "source": {"bytes": PNG}}}],
        },
        lambda thought, text: [
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": thought, "signature": "c2ln"}}},
                    {"text": text},
                ],
            }
        ],
        lambda answers, text: {"role": "user", "content": [*results(answers), {"text": text}]},
        marked=[
            {"role": "user", "content": [{"text": "a"}, {"cachePoint": {"type": "default"}}]},
            {"role": "user", "content": [{"text": "a"}]},
        ],
    )


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (_openai(), _anthropic(), _responses(), _gemini(), _bedrock())
}


def retold(name: str, chat: list[Message]) -> list[Message]:
    """A chat in OpenAI's form in another format, without its system prompt."""
    form = DIALECTS[name]
    called: dict[str, Call] = {}
    found: list[Message] = []
    for message in chat:
        text = message["content"]
        if message.get("tool_calls"):
            functions = [(call["id"], call["function"]) for call in message["tool_calls"]]
            calls = [(i, one["name"], json.loads(one["arguments"])) for i, one in functions]
            called.update((call[0], call) for call in calls)
            found += form.calls(calls)
        elif message["role"] == "tool":
            call = called[message["tool_call_id"]]
            found += form.results([(call[0], call[1], text)])
        elif message["role"] != "system":
            found.append((form.user if message["role"] == "user" else form.answer)(text))
    return found
