"""The rules by which the scripted model accepts a list of messages, and how it counts it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter.testing import CharacterCount, chat_fault

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}
ANSWER = {"role": "assistant", "content": "hello"}


def asks(*ids: str) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": "{}"}
    calls = [{"id": call, "type": "function", "function": function} for call in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def gives(call: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": "found"}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([SYSTEM, USER, ANSWER, SYSTEM, USER], id="a system message in the middle"),
        pytest.param([USER, asks("a", "b"), gives("b"), gives("a"), USER], id="calls in any order"),
        pytest.param([USER, asks("a"), gives("a"), asks("a"), gives("a")], id="an id comes again"),
        pytest.param([USER, USER, ANSWER, ANSWER], id="equal roles in a row"),
        pytest.param([{"role": "user", "content": ""}], id="an empty text"),
        pytest.param([{"role": "user", "content": [{"type": "text", "text": "hi"}]}], id="parts"),
        pytest.param([USER, {"role": "assistant", "content": None, "refusal": "no"}], id="refusal"),
        pytest.param([SimpleNamespace(**USER)], id="an object"),
    ],
)
def test_valid(messages: list[Any]) -> None:
    """A valid list has no fault."""
    assert chat_fault(messages) is None


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ("hi", "array"),
        ([], "at least one"),
        (["hi"], "messages[0] must be an object"),
        ([{"role": "narrator", "content": "x"}], "unknown role 'narrator'"),
        ([{"role": "user"}], "no content"),
        ([{"role": "user", "content": 7}], "content of type int"),
        ([USER, {"role": "assistant", "content": None}], "no content"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": []}], "empty array"),
        ([USER, gives("a")], "messages[1]: the tool result 'a'"),
        ([USER, asks("a"), gives("b")], "'b' answers no call"),
        ([USER, asks("a"), gives("a"), gives("a")], "messages[3]: the tool result 'a'"),
        ([USER, asks("a"), USER, gives("a")], "messages[1]: no tool result follows"),
        ([USER, asks("a", "b"), gives("a"), USER], "tool call 'b'"),
        ([USER, asks("a")], "tool call 'a'"),
        ([USER, asks("a", "a"), gives("a"), gives("a")], "same id"),
    ],
)
def test_fault(messages: Any, fault: str) -> None:
    """The fault of a broken list names its place."""
    assert fault in (chat_fault(messages) or "")


STEPS = st.lists(
    st.one_of(
        st.just([USER]),
        st.just([ANSWER]),
        st.lists(st.sampled_from("abc"), min_size=1, unique=True).map(
            lambda ids: [asks(*ids), *map(gives, reversed(ids))]
        ),
    ),
    min_size=1,
    max_size=6,
)


@given(steps=STEPS, data=st.data())
def test_halves(steps: list[list[Any]], data: st.DataObject) -> None:
    """No call and no result can be taken away alone."""
    messages = [message for step in steps for message in step]
    assert chat_fault(messages) is None
    halves = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "tool" or message.get("tool_calls")
    ]
    if halves:
        index = data.draw(st.sampled_from(halves))
        assert chat_fault(messages[:index] + messages[index + 1 :]) is not None


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9999}}


@pytest.mark.parametrize(
    ("message", "options", "size"),
    [
        pytest.param({"content": "abc", "audio": None}, {}, 3, id="text"),
        pytest.param({"content": [{"type": "text", "text": "abc"}, "de"]}, {}, 5, id="parts"),
        pytest.param({"tool_call_id": "call_1", "content": "abc"}, {}, 3, id="a result"),
        pytest.param(asks("a"), {}, len("look_up") + 2, id="name and arguments of a call"),
        pytest.param({"name": "find", "input": {"q": 1}}, {}, 4 + 8, id="arguments as an object"),
        pytest.param({"content": [PICTURE]}, {}, 1000, id="a picture has a fixed price"),
        pytest.param({}, {"tools": [{"a": 1}]}, 10, id="tools"),
        pytest.param({}, {"system": "be brief"}, 8, id="a system prompt"),
        pytest.param({}, {"temperature": 1, "user": "someone", "tools": None}, 0, id="others"),
    ],
)
def test_characters(message: dict[str, Any], options: dict[str, Any], size: int) -> None:
    """Everything that the model reads counts: texts, names, arguments, media, and the options of a
    prompt.
    """
    assert CharacterCount(chars_per_token=1, media_tokens=1000)([message], options) == size


@given(st.lists(st.text()), st.integers(1, 9))
def test_rounding(texts: list[str], ratio: int) -> None:
    """Characters are rounded up to tokens once."""
    total = sum(map(len, texts))
    messages = [{"role": "user", "content": text} for text in texts]
    tokens = CharacterCount(ratio)(messages, {})
    assert total <= tokens * ratio < total + ratio


@pytest.mark.parametrize("ratio", [0, -1, float("nan")])
def test_ratio(ratio: float) -> None:
    """A ratio that no text can have is refused."""
    with pytest.raises(ValueError, match="chars_per_token"):
        CharacterCount(ratio)
