from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from compacter.testing import ChatRules

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}
ANSWER = {"role": "assistant", "content": "hello"}


def asks(*ids: str) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call, "type": "function", "function": function} for call in ids],
    }


def gives(call: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": "found"}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([USER], id="one message"),
        pytest.param([SYSTEM, USER, ANSWER, SYSTEM, USER], id="a system message in the middle"),
        pytest.param(
            [USER, asks("a", "b"), gives("b"), gives("a"), USER], id="parallel calls in any order"
        ),
        pytest.param(
            [USER, asks("a"), gives("a"), asks("a"), gives("a")], id="an id that comes again"
        ),
        pytest.param([USER, USER, ANSWER, ANSWER], id="equal roles in a row"),
        pytest.param([{"role": "user", "content": ""}], id="an empty text"),
        pytest.param(
            [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], id="content as parts"
        ),
        pytest.param(
            [USER, {"role": "assistant", "content": None, "refusal": "no"}], id="a refusal"
        ),
        pytest.param(
            [
                USER,
                {
                    "role": "assistant",
                    "content": None,
                    "function_call": {"name": "f", "arguments": "{}"},
                },
                {"role": "function", "name": "f", "content": "1"},
            ],
            id="a call in the old form",
        ),
    ],
)
def test_a_sound_list_has_no_fault(messages: list[Any]) -> None:
    assert ChatRules()(messages) is None


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([], "at least one"),
        (["hi"], r"messages[0] must be an object"),
        ([{"role": "narrator", "content": "x"}], "unknown role 'narrator'"),
        ([{"role": "user"}], "no content"),
        ([{"role": "user", "content": 7}], "content of type int"),
        ([USER, {"role": "assistant", "content": None}], "no content"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": []}], "empty array"),
        ([USER, gives("a")], "messages[1]: the tool result 'a'"),
        ([USER, ANSWER, gives("a")], "answers no call"),
        ([USER, asks("a"), gives("b")], "'b' answers no call"),
        ([USER, asks("a"), gives("a"), gives("a")], "messages[3]: the tool result 'a'"),
        (
            [USER, asks("a"), USER, gives("a")],
            ("messages[1]: no tool result follows for the tool call 'a'"),
        ),
        ([USER, asks("a", "b"), gives("a"), USER], "tool call 'b'"),
        ([USER, asks("a")], "tool call 'a'"),
        ([USER, asks("a", "a"), gives("a"), gives("a")], "same id"),
        (
            [USER, {"role": "function", "name": "f", "content": "1"}],
            "'f' answers no preceding call",
        ),
    ],
)
def test_a_broken_list_is_told_with_its_place(messages: list[Any], fault: str) -> None:
    assert fault in (ChatRules()(messages) or "")


@pytest.mark.parametrize(
    ("rules", "messages", "fault"),
    [
        (ChatRules(alternate_roles=True), [SYSTEM, USER, ANSWER, USER], ""),
        (ChatRules(alternate_roles=True), [USER, asks("a"), gives("a"), ANSWER, USER], ""),
        (ChatRules(alternate_roles=True), [SYSTEM, USER, USER], "user after user"),
        (ChatRules(alternate_roles=True), [USER, SYSTEM, USER], "user after user"),
        (
            ChatRules(alternate_roles=True),
            [USER, ANSWER, asks("a"), gives("a")],
            "assistant after assistant",
        ),
        (ChatRules(alternate_roles=True), [SYSTEM, ANSWER], "must be the user's"),
        (ChatRules(user_first=True), [SYSTEM, USER, USER], ""),
        (ChatRules(user_first=True), [SYSTEM, ANSWER, USER], "must be the user's, got assistant"),
        (ChatRules(user_first=True), [SYSTEM], "must be a user message"),
    ],
)
def test_stricter_rules(rules: ChatRules, messages: list[Any], fault: str) -> None:
    found = rules(messages)
    assert found is None if not fault else fault in (found or "")


def test_objects_are_read_like_dicts() -> None:
    class Said(BaseModel):
        role: str
        content: str | None

    class Plain:
        def __init__(self) -> None:
            self.role = "user"
            self.content = "hi"

    assert ChatRules()([Plain(), Said(role="assistant", content="x")]) is None
    assert "no content" in (ChatRules()([Said(role="user", content=None)]) or "")


steps = st.lists(
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


@given(steps=steps, data=st.data())
def test_no_call_and_no_result_can_be_taken_away_alone(
    steps: list[list[Any]], data: st.DataObject
) -> None:
    messages = [message for step in steps for message in step]
    assert ChatRules()(messages) is None
    halves = [
        index
        for index, message in enumerate(messages)
        if message["role"] == "tool" or message.get("tool_calls")
    ]
    if halves:
        index = data.draw(st.sampled_from(halves))
        assert ChatRules()(messages[:index] + messages[index + 1 :]) is not None
