"""What only the model that made it can read, left out of a conversation for another one."""

from __future__ import annotations

import base64
import copy
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import TextBlock, ThinkingBlock
from google.genai import types as genai
from tests.dialects import DIALECTS

from compacter.messages.blocks import ANY_SIGNATURE
from compacter.messages.format import FORMATS, get_format

if TYPE_CHECKING:
    from compacter.messages.format import Message

ASK = {"role": "user", "content": "Look up."}
CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "blue"}],
}
THINKING = {"type": "thinking", "thinking": "The sky  is\nto be looked at.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "QUJD" * 9}


def said(*blocks: Any) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def text(note: str) -> dict[str, str]:
    return {"type": "text", "text": note}


@pytest.mark.parametrize("name", FORMATS)
def test_messages_with_nothing_sealed_are_the_very_same(name: str) -> None:
    dialect = DIALECTS[name]
    talk = [
        dialect.user("a"),
        *dialect.calls([("c1", "look", {"at": "sky"})]),
        *dialect.results([("c1", "look", "blue")]),
        dialect.answer("b"),
        dialect.picture(),
    ]
    # A call in Gemini's format needs a signature, whoever made it.
    talk = talk[:1] + talk[3:] if name == "gemini" else talk
    sent, kinds = dialect.format.without_sealed(talk)

    assert all(new is old for new, old in zip(sent, talk, strict=True))
    assert not kinds


def test_signed_thinking_goes_and_its_text_is_quoted() -> None:
    talk = [ASK, said(THINKING, CALL), RESULT, said(REDACTED, text("Blue."))]
    before = copy.deepcopy(talk)
    sent, kinds = get_format("anthropic").without_sealed(talk)

    note = "[compacter: earlier thinking, left out, began: The sky is to be looked at.]"
    assert sent == [ASK, said(text(note), CALL), RESULT, said(text("Blue."))]
    assert kinds == {"thinking": 1, "redacted_thinking": 1}
    assert talk == before
    assert get_format("anthropic").outline(sent).broken == ()


def test_a_long_thought_is_quoted_by_its_beginning() -> None:
    block = {**THINKING, "thinking": "deep " * 900}
    ((message,), _) = get_format("anthropic").without_sealed([said(block)])

    assert 250 < len(message["content"][0]["text"]) < 400


def test_a_message_of_nothing_but_thinking_keeps_its_turn() -> None:
    sent, _ = get_format("anthropic").without_sealed([ASK, said(REDACTED), ASK])

    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1] == said(text("[compacter: thinking, left out]"))


def test_blocks_of_the_sdk_go_too() -> None:
    blocks = [
        ThinkingBlock(type="thinking", thinking="", signature="c2ln"),
        TextBlock(type="text", text="Blue."),
    ]
    sent, kinds = get_format("anthropic").without_sealed([said(*blocks)])

    assert sent[0]["content"] == blocks[1:]
    assert kinds == {"thinking": 1}


@pytest.mark.parametrize(
    ("block", "stays"),
    [
        ({"type": "compaction", "content": "They met."}, True),
        ({"type": "compaction", "content": "They met.", "encrypted_content": "QUJD"}, False),
    ],
)
def test_a_summary_by_the_provider_stays_unless_it_is_sealed(
    block: dict[str, str], *, stays: bool
) -> None:
    ((message,), kinds) = get_format("anthropic").without_sealed([said(block)])

    note = text("[compacter: summary of earlier messages: They met.]")
    assert message["content"] == [block if stays else note]
    assert bool(kinds) is not stays


REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "A look is needed."}],
    "encrypted_content": "QUJD",
}
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "blue"}


def test_sealed_reasoning_goes_with_the_ids_of_the_items_that_were_made_with_it() -> None:
    form = get_format("responses")
    answer = {"type": "message", "id": "msg_1", "role": "assistant", "content": "Blue."}
    talk = [ASK, REASONING, ITEM, OUTPUT, {**REASONING, "summary": []}, answer]
    sent, kinds = form.without_sealed(talk)

    note = "[compacter: earlier thinking, left out, began: A look is needed.]"
    assert sent == [
        ASK,
        form.say("assistant", note),
        {name: value for name, value in ITEM.items() if name != "id"},
        OUTPUT,
        {"type": "message", "role": "assistant", "content": "Blue."},
    ]
    assert kinds == {"reasoning": 2}
    assert form.outline(sent).broken == ()


def test_a_compaction_that_cannot_be_read_says_so() -> None:
    item = {"type": "compaction", "encrypted_content": "QUJD"}
    ((message,), kinds) = get_format("responses").without_sealed([item])

    assert "cannot be read" in message["content"]
    assert kinds == {"compaction": 1}


@pytest.mark.parametrize("signature", ["Q0JB", None])
def test_each_call_of_gemini_has_the_signature_that_any_model_takes(signature: str | None) -> None:
    form = get_format("gemini")
    call = {"functionCall": {"name": "look", "args": {}}}
    signed = {**call, "thoughtSignature": signature} if signature else call
    parts = [{"text": "Hm.", "thoughtSignature": "QUJD"}, {"text": "", "thoughtSignature": "QUJD"}]
    sent, kinds = form.without_sealed([{"role": "model", "parts": [*parts, signed]}])

    assert sent == [
        {"role": "model", "parts": [{"text": "Hm."}, {**call, "thoughtSignature": ANY_SIGNATURE}]}
    ]
    assert kinds == {"thought_signature": 3}
    assert form.without_sealed(sent) == (sent, {})


def test_a_call_of_the_sdk_has_bytes_that_arrive_as_that_signature() -> None:
    form = get_format("gemini")
    part = genai.Part(
        function_call=genai.FunctionCall(name="look", args={}), thought_signature=b"sealed"
    )
    ((content,), _) = form.without_sealed([genai.Content(role="model", parts=[part])])
    signature = content.parts[0].thought_signature

    assert isinstance(content.parts[0], genai.Part)
    assert base64.urlsafe_b64encode(signature).decode() == ANY_SIGNATURE
    assert part.thought_signature == b"sealed"


def test_reasoning_of_bedrock_goes() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
    sealed = {"reasoningContent": {"redactedContent": b"sealed"}}
    message = {"role": "assistant", "content": [thought, sealed, {"text": "Blue."}]}
    ((made,), kinds) = get_format("bedrock").without_sealed([message])

    note = "[compacter: earlier thinking, left out, began: Hm.]"
    assert made["content"] == [{"text": note}, {"text": "Blue."}]
    assert kinds == {"reasoningContent": 2}


def test_what_litellm_and_googles_compatible_server_keep_beside_a_chats_content_goes() -> None:
    function = {"name": "look", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    signed = {**call, "extra_content": {"google": {"thought_signature": "QUJD"}}}
    message = {
        "role": "assistant",
        "content": "Let me see.",
        "reasoning_content": "A look is needed.",
        "thinking_blocks": [THINKING],
        "tool_calls": [signed],
    }
    form = get_format("openai")
    sent, kinds = form.without_sealed([message])

    google = {"google": {"thought_signature": ANY_SIGNATURE}}
    assert sent == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": "A look is needed.",
            "tool_calls": [{**call, "extra_content": google}],
        }
    ]
    assert kinds == {"thinking_blocks": 1}
    assert form.without_sealed(sent) == (sent, {})
