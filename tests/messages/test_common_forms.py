"""The forms that most messages have are read in a few calls, as histories of thousands are read
before each request.

Calls are counted, not timed.
"""

from __future__ import annotations

import gc
import sys
from collections import UserDict
from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import parts_of

from compacter.messages.format import FILLERS, get_format
from compacter.messages.parts import Kind
from compacter.messages.recognise import recognise

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter.messages.format import Message

CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
OTHER = {"id": "b", "type": "function", "function": {"name": "listen", "arguments": '{"to": "a"}'}}
ASK = {"role": "user", "content": "words"}
OPENAI = get_format("openai")


def calls(work: Callable[..., object], *given: Any) -> int:
    """How many Python functions are called while this is done; once before, for what is kept."""
    found = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal found
        found += event == "call"

    work(*given)
    before = sys.getprofile()
    gc.disable()  # What other tests left behind may call functions when it is collected.
    sys.setprofile(count)
    try:
        work(*given)
    finally:
        sys.setprofile(before)
        gc.enable()
    return found


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
    assert calls(OPENAI.read, message) <= 4


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


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_plain_message_costs_a_history_no_call(name: str) -> None:
    form = get_format(name)
    talk = [{"role": role, "content": "words"} for role in ("user", "assistant", "system")]

    assert form.outline(talk).kinds == [Kind.USER, Kind.ASSISTANT, Kind.SYSTEM]
    assert calls(form.outline, talk * 100) == calls(form.outline, talk)


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


@pytest.mark.parametrize("param", ["messages", "contents"])
def test_a_format_is_recognised_without_reading_each_plain_message(param: str) -> None:
    def work(messages: list[Message]) -> str:
        return recognise(messages, param=param)

    assert calls(work, [ASK] * 2_000) == calls(work, [ASK] * 50)


def test_messages_that_are_known_are_not_read_again() -> None:
    strange = {"role": "user", "content": [{"type": "text", "text": "words"}]}
    talk = [ASK] * 50 + [strange] * 300

    assert calls(lambda: recognise(talk, since=349)) < calls(lambda: recognise(talk, since=50)) / 2
