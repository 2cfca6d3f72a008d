"""The forms that most messages have are read in a faster way, and as in any other."""

from __future__ import annotations

from collections import UserDict
from typing import TYPE_CHECKING

import pytest
from tests.dialects import parts_of

from compacter.messages.format import FILLERS, get_format
from compacter.messages.parts import Kind

if TYPE_CHECKING:
    from compacter.messages.format import Message

CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
OTHER = {"id": "b", "type": "function", "function": {"name": "listen", "arguments": '{"to": "a"}'}}
ASK = {"role": "user", "content": "words"}
OPENAI = get_format("openai")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "tool_call_id": "a", "content": "blue"},
        {"role": "tool", "tool_call_id": "a", "name": "look", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL, OTHER] * 20},
    ],
)
def test_calls_and_results_of_a_chat_are_read_at_once_and_as_in_any_other_form(
    message: Message,
) -> None:
    kind, size, made, answered = OPENAI.read(message)
    # Only dicts are read in the faster way.
    read = OPENAI.read(UserDict(message))

    assert (kind, size, sorted(made), list(answered)) == (
        read[0],
        read[1],
        sorted(read[2]),
        list(read[3]),
    )


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "tool_call_id": 7, "content": "blue"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "blue"}]},
        {"role": "user", "content": "blue", "tool_calls": [CALL]},
        {"role": "assistant", "content": "a", "tool_calls": None},
        {"role": "assistant", "content": "a", "tool_calls": (CALL,)},
        {"role": "assistant", "content": "a", "refusal": "b"},
        {"role": "assistant", "content": ["a"], "tool_calls": [CALL]},
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": 7}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {"to": "a"}}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"},
    ],
)
def test_any_other_form_is_read_by_its_parts(message: Message) -> None:
    assert OPENAI.read(message) == OPENAI.read(UserDict(message))


def test_a_plain_message_is_the_same_in_a_history_and_alone() -> None:
    talk: list[Message] = [
        ASK,
        {"role": "user", "content": FILLERS["user"]},
        {"role": "user", "content": None},
        {"role": "user", "content": ["words"]},
        {"role": "user", "content": "words", "name": "Ada"},
        {"role": "user", "text": "words"},
        {"role": ["user"], "content": "words"},
        {"role": "robot", "content": "words"},
    ]
    outline = OPENAI.outline(talk)

    assert list(zip(outline.kinds, outline.sizes, strict=True)) == [
        OPENAI.read(message)[:2] for message in talk
    ]
    assert outline.kinds[:2] == [Kind.USER, Kind.INSERTED]
    assert [len(parts_of(OPENAI, message)) for message in talk] == [1, 0, 0, 1, 1, 0, 1, 1]
