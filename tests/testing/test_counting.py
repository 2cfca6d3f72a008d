from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter.testing import CharacterCount

characters = CharacterCount(chars_per_token=1, media_tokens=1000)


@pytest.mark.parametrize(
    ("message", "size"),
    [
        pytest.param({"role": "user", "content": "abc"}, 3, id="text"),
        pytest.param({"role": "assistant", "content": None}, 0, id="nothing"),
        pytest.param(
            {"role": "user", "content": [{"type": "text", "text": "abc"}, "de"]}, 5, id="parts"
        ),
        pytest.param(
            {
                "tool_calls": [
                    {"id": "call_1", "function": {"name": "find", "arguments": '{"q":1}'}}
                ]
            },
            4 + 7,
            id="the name and the arguments of a call",
        ),
        pytest.param(
            {"tool_calls": [{"function": {"name": "find", "arguments": {"q": 1}}}]},
            4 + 8,
            id="arguments as an object count as their JSON",
        ),
        pytest.param(
            {"role": "tool", "tool_call_id": "call_1", "content": "abc"}, 3, id="a result"
        ),
        pytest.param(
            {
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64," + "A" * 9999},
                    }
                ]
            },
            1000,
            id="a picture has a fixed price",
        ),
        pytest.param(
            {"content": [{"type": "tool_use", "id": "t", "name": "find", "input": {"q": 1}}]},
            4 + 8,
            id="a call of Anthropic",
        ),
        pytest.param(
            {"role": "user", "parts": [{"text": "abc"}, {"inline_data": {"data": "A" * 9999}}]},
            1003,
            id="parts of Gemini",
        ),
        pytest.param(
            {"content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "abc"}]}}]},
            4,
            id="a result of Bedrock",
        ),
        pytest.param(
            {"content": "abc", "audio": None, "function_call": None}, 3, id="an SDK's empty members"
        ),
    ],
)
def test_the_text_of_every_wire_format_counts(message: dict[str, Any], size: int) -> None:
    assert characters([message], {}) == size


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"tools": [{"a": 1}]}, 10),
        ({"system": "be brief"}, 8),
        ({"instructions": "be brief"}, 8),
        ({"temperature": 1, "user": "someone", "tools": None}, 0),
    ],
)
def test_options_that_the_model_reads_count(options: dict[str, Any], size: int) -> None:
    assert characters([], options) == size


@given(st.lists(st.text()), st.integers(1, 9))
def test_characters_are_rounded_up_once(texts: list[str], ratio: int) -> None:
    total = sum(map(len, texts))
    messages = [{"role": "user", "content": text} for text in texts]
    tokens = CharacterCount(ratio)(messages, {})
    assert total <= tokens * ratio < total + ratio


@pytest.mark.parametrize("ratio", [0, -1, float("nan")])
def test_a_ratio_that_no_text_can_have_is_refused(ratio: float) -> None:
    with pytest.raises(ValueError, match="chars_per_token"):
        CharacterCount(ratio)
