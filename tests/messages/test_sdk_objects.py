"""A message is the same message, whether it comes as a dict or as the object of its SDK."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, MagicMock, Mock

import litellm
import pytest
from anthropic.types import RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock
from google.genai import types as genai
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from tests.dialects import parts_of

from compacter.messages import parts
from compacter.messages.format import get_format
from compacter.messages.replies import usage_of

if TYPE_CHECKING:
    from compacter.messages.format import Message

_FUNCTION = {"name": "look", "arguments": '{"at": "sky"}'}
_CALLS = [{"id": "c1", "type": "function", "function": _FUNCTION}]
_PIXELS = b"\xff\xd8\xff" + bytes(90_000)


@dataclass(frozen=True)
class Twins:
    format: str
    item: Message
    data: Message


def twins_of(name: str, kind: Any, data: dict[str, Any]) -> Twins:
    """The object that the SDK makes of a dict, and the dict."""
    return Twins(name, kind.model_validate(data), data)


def said(blocks: list[Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": blocks}


THINKING: list[tuple[Any, dict[str, Any]]] = [
    (ThinkingBlock, {"type": "thinking", "thinking": "hm" * 40, "signature": "c2ln"}),
    (RedactedThinkingBlock, {"type": "redacted_thinking", "data": "QUJD" * 30}),
    (TextBlock, {"type": "text", "text": "hello"}),
    (ToolUseBlock, {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "sky"}}),
]
OUTPUT = {"type": "output_text", "text": "hello", "annotations": []}
JPEG = {"mimeType": "image/jpeg", "data": base64.b64encode(_PIXELS).decode()}
LOOK = {"id": "c1", "name": "look", "args": {"lookAt": "sky"}}
BLUE = {"name": "look", "response": {"theOutput": "blue"}}
HELLO = {"role": "assistant", "content": "hello"}
CALLING = {"role": "assistant", "content": None, "tool_calls": _CALLS}
TWINS = {
    "openai text": twins_of("openai", ChatCompletionMessage, HELLO),
    "openai calls": twins_of("openai", ChatCompletionMessage, CALLING),
    "openai legacy call": twins_of(
        "openai",
        ChatCompletionMessage,
        {"role": "assistant", "content": None, "function_call": _FUNCTION},
    ),
    "litellm text": Twins("openai", litellm.Message(role="assistant", content="hello"), HELLO),
    "litellm calls": Twins(
        "openai", litellm.Message(role="assistant", content=None, tool_calls=_CALLS), CALLING
    ),
    "anthropic blocks": Twins(
        "anthropic",
        said([kind.model_validate(data) for kind, data in THINKING]),
        said([data for _, data in THINKING]),
    ),
    "responses message": twins_of(
        "responses",
        ResponseOutputMessage,
        {"id": "msg_1", "type": "message", "status": "completed", **said([OUTPUT])},
    ),
    "responses call": twins_of(
        "responses",
        ResponseFunctionToolCall,
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "sky"}'},
    ),
    "responses reasoning": twins_of(
        "responses",
        ResponseReasoningItem,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QUJD" * 50},
    ),
    "gemini text": twins_of(
        "gemini",
        genai.Content,
        {"role": "model", "parts": [{"text": "hello"}, {"text": "hm", "thought": True}]},
    ),
    "gemini call": twins_of(
        "gemini",
        genai.Content,
        {"role": "model", "parts": [{"functionCall": LOOK, "thoughtSignature": "c2VhbGVk"}]},
    ),
    "gemini response": twins_of(
        "gemini", genai.Content, {"role": "user", "parts": [{"functionResponse": BLUE}]}
    ),
    "gemini picture": twins_of(
        "gemini", genai.Content, {"role": "user", "parts": [{"inlineData": JPEG}]}
    ),
    "gemini bare part": Twins(
        "gemini", genai.Part(text="hello"), {"role": "user", "parts": [{"text": "hello"}]}
    ),
    "gemini bare string": Twins("gemini", "hello", {"role": "user", "parts": [{"text": "hello"}]}),
    "gemini list of parts": Twins(
        "gemini",
        ["a", genai.Part(text="b")],
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
    ),
    "gemini bare call": Twins(
        "gemini",
        genai.Part(function_call=genai.FunctionCall(name="look", args={})),
        {"role": "model", "parts": [{"function_call": {"name": "look", "args": {}}}]},
    ),
}
twins = pytest.mark.parametrize("pair", TWINS.values(), ids=list(TWINS))


@twins
def test_both_are_read_alike(pair: Twins) -> None:
    reader = get_format(pair.format)

    assert reader.outline([pair.item]) == reader.outline([pair.data])
    assert list(parts_of(reader, pair.item, 3)) == list(parts_of(reader, pair.data, 3))
    assert reader.speaker(pair.item) == reader.speaker(pair.data)
    assert reader.plain_text(pair.item) == reader.plain_text(pair.data)


# Google's dicts may have other names than its objects, and a bare part no role.
@pytest.mark.parametrize(
    "name", [name for name in TWINS if name == "gemini text" or not name.startswith("gemini")]
)
def test_both_have_the_same_content(name: str) -> None:
    """A message of the SDK and the dict with the same fields have one digest."""
    pair = TWINS[name]
    assert get_format(pair.format).content(pair.item) == get_format(pair.format).content(pair.data)


@twins
def test_rewriting_nothing_gives_the_very_same_object(pair: Twins) -> None:
    assert get_format(pair.format).rewrite(pair.item, lambda _kind, text, _name: text) is pair.item


@pytest.mark.parametrize(
    "name", ["openai text", "litellm text", "gemini text", "gemini bare part", "responses message"]
)
def test_an_edited_object_keeps_its_class(name: str) -> None:
    pair = TWINS[name]
    edited = get_format(pair.format).rewrite(pair.item, lambda _kind, _text, _name: "bye")

    assert type(edited) is type(pair.item)
    assert [entry.text for entry in parts_of(get_format(pair.format), edited)] == ["bye"]
    assert [entry.text for entry in parts_of(get_format(pair.format), pair.item)] == ["hello"]


def test_an_edited_gemini_response_keeps_its_id_and_its_class() -> None:
    answer = genai.FunctionResponse(id="c1", name="look", response={"output": "blue" * 100})
    content = genai.Content(role="user", parts=[genai.Part(function_response=answer)])
    edited = get_format("gemini").rewrite(
        content, lambda kind, text, name: f"[{kind} of {name}: {len(text)}]"
    )

    assert isinstance(edited, genai.Content)
    assert edited.parts
    assert edited.parts[0].function_response == genai.FunctionResponse(
        id="c1", name="look", response={"output": "[result of look: 400]"}
    )


def test_an_edited_anthropic_block_leaves_its_neighbours_the_same_objects() -> None:
    message = TWINS["anthropic blocks"].item
    edited = get_format("anthropic").rewrite(
        message, lambda kind, text, _name: "bye" if kind == "text" else text
    )

    assert [new is old for new, old in zip(edited["content"], message["content"], strict=True)] == [
        True,
        True,
        False,
        True,
    ]
    assert isinstance(edited["content"][2], TextBlock)
    assert edited["content"][2].text == "bye"


def test_an_uploaded_file_weighs_by_its_type() -> None:
    file = genai.File(uri="https://example.invalid/files/x", mime_type="image/png", name="files/x")
    (entry,) = parts_of(get_format("gemini"), file)

    assert get_format("gemini").size(file) == parts.IMAGE
    assert entry.text == "[image/png]"


@pytest.mark.parametrize("kind", [Mock, MagicMock, AsyncMock])
def test_the_usage_of_a_mock_is_looked_for_once(kind: type[Mock]) -> None:
    """Each member of a mock is another one, so that nothing may follow them down."""
    reply = kind()
    assert usage_of(reply) == (0, 0)
    assert "iterations" not in reply.usage.iterations._mock_children
