"""Promises of every message format, checked by one set of tests."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import DIALECTS, PICTURE, parts_of

from compacter.messages import parts
from compacter.messages.format import get_format
from compacter.messages.parts import tools_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dialects import Call, Dialect, Result

    from compacter.messages.format import Message

LOOK: Call = ("c1", "look", {"at": "sky"})
SEEN: Result = ("c1", "look", "blue")


def test_an_unknown_name_is_told_which_there_are() -> None:
    with pytest.raises(
        ValueError,
        match=(
            r"'smoke'.*'openai', 'anthropic', 'responses', 'gemini', "
            r"'bedrock'"
        ),
    ):
        get_format("smoke")


def test_names_arguments_and_results_weigh_too(dialect: Dialect) -> None:
    long: Call = ("c1", "look", {"at": "s" * 500})
    call = dialect.calls([long])
    answer = dialect.results([("c1", "look", "r" * 700)])

    assert 500 + len("look") + len("at") <= sum(dialect.format.outline(call).sizes) <= 530
    assert 700 <= sum(dialect.format.outline(answer).sizes) <= 725


def test_entries_tell_who_said_what(dialect: Dialect) -> None:
    messages = [
        dialect.user("look up"),
        *dialect.calls([LOOK]),
        *dialect.results([SEEN]),
        dialect.answer("ok"),
    ]
    entries = [
        entry
        for i, message in enumerate(messages)
        for entry in parts_of(dialect.format, message, i)
    ]

    assert [(entry.role, entry.kind, entry.index) for entry in entries] == [
        ("user", "text", 0),
        ("assistant", "call", 1),
        ("tool", "result", 2),
        ("assistant", "text", 3),
    ]
    assert entries[1].name == "look"
    assert json.loads(entries[1].text) == {"at": "sky"}
    assert "blue" in entries[2].text


def test_reading_and_rewriting_leave_the_message_as_it_was(dialect: Dialect) -> None:
    messages = dialect.one_of_each()
    before = copy.deepcopy(messages)
    dialect.format.outline(messages)
    for index, message in enumerate(messages):
        list(parts_of(dialect.format, message, index))
        dialect.format.content(message)
        dialect.format.plain_text(message)
        dialect.format.rewrite(message, lambda _kind, _text, _name: "changed")

    assert messages == before


def test_an_edited_result_keeps_its_pair(dialect: Dialect) -> None:
    messages = [
        *dialect.calls([LOOK]),
        *dialect.results([("c1", "look", "r" * 900)]),
        dialect.user("a"),
    ]
    edited = [
        dialect.format.rewrite(
            m, lambda kind, text, _name: "[cleared]" if kind == "result" else text
        )
        for m in messages
    ]

    assert [old is new for old, new in zip(messages, edited, strict=True)] == [True, False, True]
    assert dialect.format.outline(edited).broken == ()
    assert dialect.format.outline(edited).steps == [0, 2]
    (entry,) = parts_of(dialect.format, edited[1], 1)
    assert "[cleared]" in entry.text
    assert dialect.format.size(edited[1]) < 60


def test_a_result_that_names_no_tool_is_its_calls() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        {"role": "tool", "tool_call_id": "stray", "content": "?"},
    ]

    assert tools_of(get_format("openai").parts_of_each(messages)) == {1: {"look"}, 2: {""}}


def test_a_prompt_is_a_request_of_this_format(dialect: Dialect) -> None:
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Sum it up."}]
    messages, options = dialect.format.prompt(prompt)
    texts = [e.text for i, m in enumerate(messages) for e in parts_of(dialect.format, m, i)]
    expected = {
        "openai": {},
        "anthropic": {"system": "Be brief."},
        "responses": {"instructions": "Be brief."},
        "gemini": {"system_instruction": [{"text": "Be brief."}]},
        "bedrock": {"system": [{"text": "Be brief."}]},
    }

    assert options == expected[dialect.name]
    assert texts == (["Be brief.", "Sum it up."] if dialect.name == "openai" else ["Sum it up."])
    assert dialect.format.prompt([prompt[1]])[1] == {}


STRANGE: list[Message] = [
    None,
    7,
    "bare text",
    {},
    {"role": None},
    {"role": ["user"], "content": 3},
    {"role": "robot", "content": "beep"},
    {
        "role": "user",
        "content": [{"type": "hologram", "beam": {"x": [1, None]}}],
        "parts": [{"beam": 1}],
    },
    {
        "role": "user",
        "content": [None, 5, "text", {"text": None}],
        "parts": [None, 5, {"text": None}],
    },
    {"type": "new_call_kind_call", "action": {"do": "it"}},
    {
        "role": "assistant",
        "content": [{"toolUse": {}}, {"type": "tool_use"}],
        "parts": [{"functionCall": {"name": "f"}}],
    },
]


@pytest.mark.parametrize("message", STRANGE, ids=range(len(STRANGE)))
def test_a_stranger_is_read_without_harm(dialect: Dialect, message: Message) -> None:
    wire = dialect.format
    outline = wire.outline([message, dialect.user("a")])

    assert outline.steps == [0, 1]
    assert wire.size(message) >= 0
    assert all(isinstance(entry.text, str) for entry in parts_of(wire, message))
    assert wire.rewrite(message, lambda _kind, text, _name: text) is message
    assert isinstance(wire.speaker(message), str)
    assert wire.plain_text(message) is None or isinstance(wire.plain_text(message), str)
    json.dumps(wire.content(message))


def test_real_conversations_are_read_whole(data: Path) -> None:
    with (data / "conversations.jsonl").open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            reader = get_format(record["format"])
            messages = record["messages"]
            outline = reader.outline(messages)
            entries = [
                entry
                for i, message in enumerate(messages)
                for entry in parts_of(reader, message, i)
            ]

            # What is said is counted once, and besides only names, arguments, results, reasoning.
            shown = sum(len(entry.text) for entry in entries if entry.kind == "text")
            pictures = parts.IMAGE * sum(entry.kind == "media" for entry in entries)
            assert (
                shown
                <= sum(outline.sizes)
                <= len(json.dumps(messages, ensure_ascii=False)) + pictures
            )
            assert [reader.size(message) for message in messages] == outline.sizes
            assert all(reader.rewrite(m, lambda _kind, text, _name: text) is m for m in messages)
            assert outline.steps[0] == 0


@pytest.mark.parametrize("name", DIALECTS)
def test_media_are_replaced_by_notes_and_everything_else_stays(name: str) -> None:
    dialect = DIALECTS[name]
    form = dialect.format
    picture = dialect.picture()
    left = form.without_media(picture)
    assert PICTURE not in json.dumps(left, default=str)
    assert form.size(left) > 0
    assert form.kind(left) is form.kind(picture)
    for message in dialect.one_of_each():
        if not any(part.kind == "media" for part in form.all_parts(message, 0)):
            assert form.without_media(message) is message


def test_a_picture_in_a_result_is_replaced_and_its_text_stays() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    text = {"type": "text", "text": "page 1"}
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [text, {"type": "image", "source": source}],
    }
    left = get_format("anthropic").without_media({"role": "user", "content": [block]})
    (result,) = left["content"]
    assert result["tool_use_id"] == "c1"
    assert result["content"][0] is text
    assert result["content"][1]["type"] == "text"
    assert block["content"][1]["source"] is source
