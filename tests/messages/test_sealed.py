"""Blocks that only the model that made them can read, left out of a conversation for another
one.
"""

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
SUMMARY = {"type": "compaction", "content": "They met."}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QUJD"}
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "blue"}
ANSWER = {"type": "message", "role": "assistant", "content": "Blue."}
LOOK = {"functionCall": {"name": "look", "args": {}}}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def said(*blocks: Any) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def text(note: str) -> dict[str, str]:
    return {"type": "text", "text": note}


def chat(**members: Any) -> Message:
    return {"role": "assistant", "content": "Let me see.", **members}


@pytest.mark.parametrize("name", FORMATS)
def test_messages_with_nothing_sealed_are_the_very_same(name: str) -> None:
    """Nothing is copied or counted where nothing is sealed."""
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


@pytest.mark.parametrize(
    ("name", "talk", "left", "counted"),
    [
        pytest.param(
            "anthropic",
            [ASK, said(THINKING, CALL), RESULT, said(REDACTED, text("Blue."))],
            [ASK, said(CALL), RESULT, said(text("Blue."))],
            {"thinking": 1, "redacted_thinking": 1},
            id="signed-thinking",
        ),
        pytest.param(
            "anthropic",
            [ASK, said(REDACTED), ASK],
            [ASK, said(text("[compacter: thinking, left out]")), ASK],
            {"redacted_thinking": 1},
            id="a-message-of-nothing-but-thinking-keeps-its-turn",
        ),
        pytest.param("anthropic", [said(SUMMARY)], [said(SUMMARY)], {}, id="a-readable-summary"),
        pytest.param(
            "anthropic",
            [said({**SUMMARY, "encrypted_content": "QUJD"})],
            [said(text("[compacter: summary of earlier messages: They met.]"))],
            {"compaction": 1},
            id="a-sealed-summary-with-its-text",
        ),
        pytest.param(
            "responses",
            [ASK, REASONING, {**ITEM}, OUTPUT, REASONING, {**ANSWER, "id": "msg_1"}],
            [ASK, {name: ITEM[name] for name in ITEM if name != "id"}, OUTPUT, ANSWER],
            {"reasoning": 2},
            id="reasoning-with-the-ids-of-what-was-made-with-it",
        ),
        pytest.param(
            "responses",
            [ASK, {"type": "compaction", "encrypted_content": "QUJD"}],
            [ASK],
            {"compaction": 1},
            id="a-compaction-that-cannot-be-read",
        ),
        *(
            pytest.param(
                "gemini",
                [
                    {
                        "role": "model",
                        "parts": [
                            {"text": "Hm.", "thoughtSignature": "QUJD"},
                            {"text": "", "thoughtSignature": "QUJD"},
                            call,
                        ],
                    }
                ],
                [
                    {
                        "role": "model",
                        "parts": [{"text": "Hm."}, {**LOOK, "thoughtSignature": ANY_SIGNATURE}],
                    }
                ],
                {"thought_signature": 3},
                id="each-call-of-gemini-has-the-signature-that-any-model-takes",
            )
            for call in (LOOK, {**LOOK, "thoughtSignature": "Q0JB"})
        ),
        pytest.param(
            "bedrock",
            [
                said(
                    THOUGHT, {"reasoningContent": {"redactedContent": b"sealed"}}, {"text": "Blue."}
                )
            ],
            [said({"text": "Blue."})],
            {"reasoningContent": 2},
            id="reasoning-of-bedrock",
        ),
        pytest.param(
            "openai",
            [
                chat(
                    reasoning_content="A look is needed.",
                    thinking_blocks=[THINKING],
                    tool_calls=[
                        {**CHAT_CALL, "extra_content": {"google": {"thought_signature": "QUJD"}}}
                    ],
                )
            ],
            [
                chat(
                    reasoning_content="A look is needed.",
                    tool_calls=[
                        {
                            **CHAT_CALL,
                            "extra_content": {"google": {"thought_signature": ANY_SIGNATURE}},
                        }
                    ],
                )
            ],
            {"thinking_blocks": 1},
            id="what-litellm-and-google-keep-beside-a-chats-content",
        ),
    ],
)
def test_what_is_sealed_is_left_out_and_counted(
    name: str, talk: list[Any], left: list[Any], counted: dict[str, int]
) -> None:
    """Pairs stay whole, no message is left empty, and the caller's list is not changed."""
    form = get_format(name)
    before = copy.deepcopy(talk)
    sent, kinds = form.without_sealed(talk)

    assert sent == left
    assert kinds == counted
    assert talk == before
    assert form.outline(sent).broken == ()
    assert form.without_sealed(sent) == (sent, {})


def test_blocks_of_the_sdk_go_too() -> None:
    """Objects of Anthropic's SDK are left out as dicts are."""
    blocks = [
        ThinkingBlock(type="thinking", thinking="", signature="c2ln"),
        TextBlock(type="text", text="Blue."),
    ]
    sent, kinds = get_format("anthropic").without_sealed([said(*blocks)])

    assert sent[0]["content"] == blocks[1:]
    assert kinds == {"thinking": 1}


def test_a_call_of_the_sdk_has_bytes_that_arrive_as_that_signature() -> None:
    """Google's SDK encodes bytes as base64, and the text must arrive unchanged."""
    part = genai.Part(
        function_call=genai.FunctionCall(name="look", args={}), thought_signature=b"sealed"
    )
    talk = [genai.Content(role="model", parts=[part])]
    ((content,), _) = get_format("gemini").without_sealed(talk)
    signature = content.parts[0].thought_signature

    assert isinstance(content.parts[0], genai.Part)
    assert base64.urlsafe_b64encode(signature).decode() == ANY_SIGNATURE
    assert part.thought_signature == b"sealed"
