"""What every message format promises, held against all of them with one set of tests."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Literal

import pytest
from tests.dialects import parts_of

from compacter.messages import parts
from compacter.messages.format import FILLERS, FORMATS, get_format
from compacter.messages.parts import Kind, tools_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dialects import Call, Dialect, Result

    from compacter.messages.format import Message

LOOK: Call = ("c1", "look", {"at": "sky"})
SEEN: Result = ("c1", "look", "blue")


def test_each_name_has_its_wire_format() -> None:
    assert [get_format(name).name for name in FORMATS] == list(FORMATS)


def test_an_unknown_name_is_told_which_there_are() -> None:
    with pytest.raises(
        ValueError,
        match=(
            r"'smoke'.*'openai', 'anthropic', 'responses', 'gemini', "
            r"'bedrock'"
        ),
    ):
        get_format("smoke")


@pytest.mark.parametrize(
    ("name", "alternates"),
    [
        ("openai", False),
        ("anthropic", True),
        ("responses", False),
        ("gemini", True),
        ("bedrock", True),
    ],
)
def test_turns_alternate_where_the_provider_demands_it(name: str, alternates: bool) -> None:
    assert get_format(name).alternates is alternates


def test_texts_weigh_their_characters(dialect: Dialect) -> None:
    messages = [dialect.user("héllo"), dialect.answer("日本語")]

    assert dialect.format.outline(messages).sizes == [5, 3]
    assert [dialect.format.size(message) for message in messages] == [5, 3]


def test_names_arguments_and_results_weigh_too(dialect: Dialect) -> None:
    long: Call = ("c1", "look", {"at": "s" * 500})
    call = dialect.calls([long])
    answer = dialect.results([("c1", "look", "r" * 700)])

    assert 500 + len("look") + len("at") <= sum(dialect.format.outline(call).sizes) <= 530
    assert 700 <= sum(dialect.format.outline(answer).sizes) <= 725


def test_reasoning_weighs_and_is_never_shown(dialect: Dialect) -> None:
    messages = dialect.thought("t" * 300, "said")
    entries = [entry for message in messages for entry in parts_of(dialect.format, message)]

    assert 304 <= sum(dialect.format.outline(messages).sizes) <= 310
    assert [(entry.role, entry.kind, entry.text) for entry in entries] == [
        ("assistant", "text", "said")
    ]


@pytest.mark.parametrize(
    "beside",
    [
        {"reasoning_content": "t" * 300},
        {"refusal": "t" * 300},
        {"audio": {"transcript": "t" * 300}},
    ],
)
def test_what_a_chat_message_has_beside_its_calls_weighs_too(beside: dict[str, Any]) -> None:
    form = get_format("openai")
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": "said", "tool_calls": [call]}

    assert form.size({**message, **beside}) == form.size(message) + 300
    assert list(form.read({**message, **beside})[2]) == ["1"]


def test_a_large_picture_weighs_as_a_picture_and_shows_as_a_placeholder(
    dialect: Dialect,
) -> None:
    picture = dialect.picture()
    (entry,) = parts_of(dialect.format, picture, 7)

    assert dialect.format.size(picture) == parts.IMAGE
    assert (entry.role, entry.kind, entry.index) == ("user", "media", 7)
    assert entry.text.startswith("[image/png, 4,000,0")
    assert len(entry.text) < 60


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


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_it_says_reads_as_said(dialect: Dialect, role: Literal["user", "assistant"]) -> None:
    said = dialect.format.say(role, "a\n\nb")
    (entry,) = parts_of(dialect.format, said)

    assert dialect.format.speaker(said) == role
    assert (entry.role, entry.kind, entry.text) == (role, "text", "a\n\nb")
    assert dialect.format.size(said) == 4
    assert dialect.format.plain_text(said) == ("a\n\nb" if role == "user" else None)


@pytest.mark.parametrize("name", ["anthropic", "gemini", "bedrock"])
def test_no_blank_text_is_said_where_the_provider_refuses_one(name: str) -> None:
    (entry,) = parts_of(get_format(name), get_format(name).say("user", " \n"))

    assert entry.text.strip()


def test_a_text_in_parts_weighs_beside_calls_as_one_string_does() -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    texts = ("Aye aye.", [{"type": "text", "text": "Aye "}, {"type": "text", "text": "aye."}])
    read = [
        get_format("openai").read({"role": "assistant", "content": text, "tool_calls": calls})
        for text in texts
    ]

    assert [size for _, size, _, _ in read] == [8 + 4 + 2] * 2
    assert [tuple(made) for _, _, made, _ in read] == [("c",)] * 2


def test_what_fills_a_gap_is_no_users_message(dialect: Dialect) -> None:
    form = dialect.format
    sent = form.filler("user")
    stored = json.loads(json.dumps(sent))
    asked = form.say("user", "".ljust(len(FILLERS["user"]), "x"))

    assert form.outline([sent, stored, asked]).kinds == [Kind.INSERTED, Kind.INSERTED, Kind.USER]
    assert [form.read(message)[0] for message in (sent, stored, asked)] == [
        Kind.INSERTED,
        Kind.INSERTED,
        Kind.USER,
    ]


def test_a_user_message_with_more_than_text_has_no_plain_text(dialect: Dialect) -> None:
    assert dialect.format.plain_text(dialect.picture()) is None
    assert dialect.format.plain_text(dialect.results([SEEN])[0]) is None


def test_rewriting_nothing_gives_the_very_same_objects(dialect: Dialect) -> None:
    messages = dialect.one_of_each()

    assert all(dialect.format.rewrite(m, lambda _kind, text, _name: text) is m for m in messages)


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


def test_results_know_their_tools_by_position(dialect: Dialect) -> None:
    again: Call = ("c1", "listen", {})
    messages = [
        dialect.user("a"),
        *dialect.calls([LOOK]),
        *dialect.results([SEEN]),
        *dialect.calls([again]),
        *dialect.results([("c1", "listen", "hum")]),
    ]

    assert tools_of(dialect.format.parts_of_each(messages)) == {2: {"look"}, 4: {"listen"}}


def test_a_result_that_names_no_tool_is_its_calls() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        {"role": "tool", "tool_call_id": "stray", "content": "?"},
    ]

    assert tools_of(get_format("openai").parts_of_each(messages)) == {1: {"look"}, 2: {""}}


def test_an_edited_text_leaves_calls_as_they_are(dialect: Dialect) -> None:
    def shout(kind: str, text: str, _name: str) -> str:
        return text.upper() if kind == "text" else text

    call = dialect.calls([LOOK])[0]
    text = dialect.format.rewrite(dialect.user("hush"), shout)

    assert dialect.format.rewrite(call, shout) is call
    assert dialect.format.plain_text(text) == "HUSH"


def test_a_cache_mark_is_no_content(dialect: Dialect) -> None:
    marked, bare = dialect.marked

    assert dialect.format.content(marked) == dialect.format.content(bare)
    assert dialect.format.content(marked) != dialect.format.content(dialect.user("b"))


def test_content_is_json_and_tells_messages_apart(dialect: Dialect) -> None:
    texts = [json.dumps(dialect.format.content(m), sort_keys=True) for m in dialect.one_of_each()]

    assert len(set(texts)) == len(texts)


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


def test_a_prompt_keeps_who_speaks(dialect: Dialect) -> None:
    talk = [{"role": role, "content": "Yes?"} for role in ("user", "assistant", "user")]
    messages, options = dialect.format.prompt(talk)

    assert options == {}
    assert [dialect.format.speaker(message) for message in messages] == [
        "user",
        "assistant",
        "user",
    ]


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
