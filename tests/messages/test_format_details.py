"""What is peculiar to one message format."""

from __future__ import annotations

import json
from collections import UserDict
from dataclasses import dataclass
from enum import Enum

import pytest
from tests.dialects import parts_of

from compacter.messages.format import FORMATS, get_format
from compacter.messages.parts import Kind

# Which message is what


@pytest.mark.parametrize(
    ("name", "message", "kind", "speaker"),
    [
        ("openai", {"role": "developer", "content": "a"}, Kind.SYSTEM, "system"),
        ("openai", {"role": "function", "name": "f", "content": "a"}, Kind.RESULT, "tool"),
        ("anthropic", {"role": "system", "content": "a"}, Kind.SYSTEM, "system"),
        ("responses", {"role": "developer", "content": "a"}, Kind.SYSTEM, "system"),
        ("responses", {"type": "reasoning", "summary": []}, Kind.OTHER, "assistant"),
        ("responses", {"type": "item_reference", "id": "msg_1"}, Kind.OTHER, "assistant"),
        ("responses", {"type": "web_search_call", "id": "ws_1"}, Kind.ASSISTANT, "assistant"),
        (
            "responses",
            {"type": "compaction", "encrypted_content": "QUJD"},
            Kind.COMPACTED,
            "assistant",
        ),
        (
            "gemini",
            {"role": "function", "parts": [{"functionResponse": {"name": "f"}}]},
            Kind.RESULT,
            "user",
        ),
        (
            "gemini",
            {"role": "tool", "parts": [{"function_response": {"name": "f"}}]},
            Kind.RESULT,
            "user",
        ),
        ("gemini", {"parts": [{"text": "a"}]}, Kind.USER, "user"),
    ],
)
def test_roles_and_types_are_kinds(name: str, message: object, kind: Kind, speaker: str) -> None:
    reader = get_format(name)

    assert reader.outline([message]).kinds == [kind]
    assert reader.speaker(message) == speaker


class Speaker(Enum):
    """Roles as an enumeration that is no text itself."""

    USER = "user"
    ASSISTANT = "assistant"


def test_a_role_may_be_a_member_of_any_enumeration() -> None:
    reader = get_format("openai")
    said = [
        {"role": Speaker.USER, "content": "Hello."},
        {"role": Speaker.ASSISTANT, "content": "Hi."},
    ]
    assert reader.outline(said).kinds == [Kind.USER, Kind.ASSISTANT]
    assert said[0] == {"role": Speaker.USER, "content": "Hello."}


# OpenAI


def test_the_form_of_calls_before_ids_pairs_by_name() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "look", "arguments": "{}"},
        },
        {"role": "function", "name": "look", "content": "blue"},
    ]
    outline = get_format("openai").outline(messages)

    assert (outline.steps, outline.broken, outline.open) == ([0, 1], (), None)


def test_a_custom_tools_input_is_shown_as_its_call() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    (entry,) = parts_of(
        get_format("openai"), {"role": "assistant", "content": None, "tool_calls": [call]}, 0
    )

    assert (entry.kind, entry.name, entry.text) == ("call", "sql", "select 1")


def test_an_edited_part_keeps_its_neighbours_and_its_mark() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    picture = {"type": "image_url", "image_url": {"url": "https://x.invalid/a.png"}}
    message = {"role": "user", "content": [{"type": "text", "text": "long", **mark}, picture]}
    edited = get_format("openai").rewrite(message, lambda _kind, _text, _name: "short")

    assert edited == {
        "role": "user",
        "content": [{"type": "text", "text": "short", **mark}, picture],
    }
    assert edited["content"][1] is picture


# Anthropic


def test_a_tool_that_the_server_ran_has_its_result_in_the_same_message() -> None:
    found = [
        {
            "type": "web_search_result",
            "title": "Sky",
            "url": "https://x.invalid",
            "encrypted_content": "QUJD" * 100,
        }
    ]
    message = {
        "role": "assistant",
        "content": [
            {
                "type": "server_tool_use",
                "id": "s1",
                "name": "web_search",
                "input": {"query": "sky"},
            },
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found},
            {"type": "text", "text": "Blue."},
        ],
    }
    outline = get_format("anthropic").outline(
        [{"role": "user", "content": "a"}, message, {"role": "user", "content": "b"}]
    )
    entries = list(parts_of(get_format("anthropic"), message, 1))

    assert (outline.broken, outline.steps, outline.kinds[1]) == ((), [0, 1, 2], Kind.ASSISTANT)
    assert [entry.kind for entry in entries] == ["call", "result", "text"]
    assert "Sky" in entries[1].text
    assert "QUJD" not in entries[1].text
    assert outline.sizes[1] > 300


def test_a_paused_turn_and_its_continuation_are_one_step() -> None:
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "sky"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [call]},
        {"role": "assistant", "content": [result, {"type": "text", "text": "Blue."}]},
        {"role": "user", "content": "b"},
    ]
    outline = get_format("anthropic").outline(messages)

    assert (outline.steps, outline.broken) == ([0, 1, 3], ())


def test_a_servers_result_is_a_record_and_not_edited() -> None:
    message = {
        "role": "assistant",
        "content": [
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s1",
                "content": [{"type": "web_search_result"}],
            }
        ],
    }

    assert get_format("anthropic").rewrite(message, lambda _kind, _text, _name: "gone") is message


@pytest.mark.parametrize(
    ("name", "message", "path"),
    [
        (
            "anthropic",
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "is_error": True,
                        "content": "x" * 90,
                    }
                ],
            },
            {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "gone"},
        ),
        (
            "bedrock",
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "c1",
                            "status": "error",
                            "content": [{"json": {"why": "x" * 90}}],
                        }
                    }
                ],
            },
            {"toolResult": {"toolUseId": "c1", "status": "error", "content": [{"text": "gone"}]}},
        ),
    ],
)
def test_an_edited_result_keeps_its_flags(name: str, message: object, path: object) -> None:
    assert get_format(name).rewrite(message, lambda _kind, _text, _name: "gone")["content"] == [
        path
    ]


def test_thinking_that_is_left_out_weighs_as_its_seal() -> None:
    block = {"type": "thinking", "thinking": "", "signature": "QUJD" * 100}

    assert get_format("anthropic").size({"role": "assistant", "content": [block]}) == 300
    assert list(parts_of(get_format("anthropic"), {"role": "assistant", "content": [block]})) == []


# Gemini


def test_what_is_sealed_in_a_block_of_a_new_type_weighs_as_its_bytes_and_is_not_shown() -> None:
    form = get_format("anthropic")
    block = {"type": "new", "title": "Ships"}
    bare, sealed = (
        {"role": "assistant", "content": [one]}
        for one in (block, {**block, "encrypted_data": "c2Vh" * 50})
    )

    assert form.size(sealed) == form.size(bare) + 150
    assert parts_of(form, sealed)[0].text == parts_of(form, bare, 0)[0].text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("anthropic", {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}),
        ("anthropic", {"role": "assistant", "content": [{"type": "redacted_thinking"}]}),
        ("bedrock", {"role": "assistant", "content": [{"reasoningContent": {}}]}),
        ("responses", {"type": "reasoning", "summary": [], "encrypted_content": None}),
        ("openai", {"role": "assistant", "content": "", "reasoning_content": None}),
    ],
)
def test_reasoning_of_which_nothing_is_there_weighs_nothing(name: str, message: object) -> None:
    assert get_format(name).size(message) == 0


def test_calls_without_ids_pair_by_name_in_order() -> None:
    call = {"functionCall": {"name": "look", "args": {}}}
    other = {"functionCall": {"name": "listen", "args": {}}}
    answer = {"functionResponse": {"name": "look", "response": {}}}
    messages = [
        {"role": "model", "parts": [call, other, call]},
        {"role": "user", "parts": [answer, answer]},
        {"role": "user", "parts": [{"text": "never mind"}]},
    ]
    outline = get_format("gemini").outline(messages)

    assert [(half.what, half.call_id) for half in outline.broken] == [("unanswered call", "listen")]
    assert outline.steps == [0, 2]


@pytest.mark.parametrize(
    ("call_id", "response_id"), [("x", "x"), ("x", None), (None, "x"), ("x", "y")]
)
def test_a_name_pairs_whatever_the_ids_are(call_id: str | None, response_id: str | None) -> None:
    messages = [
        {
            "role": "model",
            "parts": [{"function_call": {"id": call_id, "name": "look", "args": {}}}],
        },
        {
            "role": "user",
            "parts": [{"function_response": {"id": response_id, "name": "look", "response": {}}}],
        },
        {"role": "user", "parts": [{"text": "never mind"}]},
    ]

    assert not get_format("gemini").outline(messages).broken


def test_a_call_that_was_answered_by_its_id_is_not_answered_again_by_its_name() -> None:
    form = get_format("gemini")
    calls = [
        {"functionCall": {"id": str(number), "name": "look", "args": {}}} for number in range(3)
    ]
    answers = [
        {"functionResponse": {"name": "look", "response": {"output": "seen"}, **given}}
        for given in ({"id": "0"}, {"id": "1"}, {})
    ]
    talk = [
        form.say("user", "Look."),
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
    ]

    assert form.outline(talk).broken == ()
    assert form.outline(talk).open is None


def test_code_that_gemini_ran_is_shown_and_needs_no_partner() -> None:
    message = {
        "role": "model",
        "parts": [
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        ],
    }

    assert (
        get_format("gemini").outline([message, {"role": "user", "parts": [{"text": "a"}]}]).broken
        == ()
    )
    assert [(e.kind, e.text) for e in parts_of(get_format("gemini"), message)] == [
        ("call", "print(1)"),
        ("result", "1\n"),
    ]


@pytest.mark.parametrize(
    ("response", "read", "edited"),
    [
        ({"error": "x" * 90}, "x" * 90, {"error": "gone"}),
        ({"result": "x" * 90}, "x" * 90, {"result": "gone"}),
        ({"rows": [1, 2]}, '{"rows": [1, 2]}', {"output": "gone"}),
        ({"rows": 1, "note": "a"}, '{"rows": 1, "note": "a"}', {"output": "gone"}),
    ],
)
def test_a_response_is_read_and_edited_as_its_one_text(
    response: object, read: str, edited: object
) -> None:
    message = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]}
    (entry,) = parts_of(get_format("gemini"), message)
    new = get_format("gemini").rewrite(message, lambda _kind, _text, _name: "gone")

    assert (entry.kind, entry.name, entry.text) == ("result", "f", read)
    assert new["parts"] == [{"functionResponse": {"name": "f", "response": edited}}]


def test_names_in_arguments_are_the_tools_own() -> None:
    def call(args: dict[str, int]) -> object:
        return get_format("gemini").content(
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": args}}]}
        )

    assert call({"aB": 1}) != call({"a_b": 1})


# Bedrock


def test_guarded_and_cited_text_is_text() -> None:
    message = {
        "role": "assistant",
        "content": [
            {"guardContent": {"text": {"text": "careful"}}},
            {
                "citationsContent": {
                    "content": [{"text": "it says"}, {"text": " so"}],
                    "citations": [],
                }
            },
            {"cachePoint": {"type": "default"}},
        ],
    }

    assert [entry.text for entry in parts_of(get_format("bedrock"), message)] == [
        "careful",
        "it says so",
    ]
    assert get_format("bedrock").size(message) == len("careful") + len("it says so")


# Texts that lie deeper


@pytest.mark.parametrize(
    ("name", "message", "shown"),
    [
        (
            "anthropic",
            {
                "role": "user",
                "content": [
                    {
                        "type": "search_result",
                        "title": "Sky",
                        "source": "https://x.invalid",
                        "content": [{"type": "text", "text": "It is blue."}],
                    }
                ],
            },
            "Sky\nIt is blue.",
        ),
        ("openai", {"role": "assistant", "content": None, "refusal": "I will not."}, "I will not."),
        (
            "openai",
            {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "Hi."}},
            "Hi.",
        ),
        ("openai", {"role": "user", "content": ["plain part"]}, "plain part"),
        (
            "responses",
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
            "I will not.",
        ),
    ],
)
def test_words_are_found_wherever_they_are(name: str, message: object, shown: str) -> None:
    (entry,) = parts_of(get_format(name), message)

    assert entry.text == shown
    assert get_format(name).size(message) >= len(shown.replace("\n", ""))


@pytest.mark.parametrize("name", FORMATS)
def test_a_part_that_nobody_knows_yet_is_shown_as_it_is(name: str) -> None:
    form = get_format(name)
    message = {"role": "user", form.body: [{"what": {"new": "b"}}]}
    (entry,) = parts_of(form, message)

    assert (entry.kind, entry.text) == ("text", '{"what": {"new": "b"}}')
    assert form.size(message) > 10


def test_gemini_shows_what_its_own_tools_did() -> None:
    message = {
        "role": "model",
        "parts": [
            {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "sky"}}},
            {
                "toolResponse": {
                    "id": "t1",
                    "toolType": "GOOGLE_SEARCH_WEB",
                    "response": {"text": "blue"},
                }
            },
        ],
    }
    entries = list(parts_of(get_format("gemini"), message))

    assert [(entry.kind, entry.name) for entry in entries] == [
        ("call", "GOOGLE_SEARCH_WEB"),
        ("result", "GOOGLE_SEARCH_WEB"),
    ]


def test_a_message_of_any_class_is_read_by_its_fields() -> None:
    @dataclass
    class Note:
        role: str
        content: str

    note = Note("user", "hello")
    edited = get_format("openai").rewrite(note, lambda _kind, _text, _name: "bye")

    assert get_format("openai").size(note) == 5
    assert get_format("openai").content(note) == {"role": "user", "content": "hello"}
    assert edited == {"role": "user", "content": "bye"}
    assert note.content == "hello"


# The provider's own compaction


def compaction(text: str | None, sealed: str | None = None) -> dict[str, str | None]:
    return {"type": "compaction", "content": text, "encrypted_content": sealed}


def by_litellm(*blocks: object) -> dict[str, object]:
    return {
        "role": "assistant",
        "content": "a",
        "provider_specific_fields": {"compaction_blocks": list(blocks)},
    }


def sealed(value: object) -> dict[str, object]:
    return {
        "type": "compaction",
        "encrypted_content": value if isinstance(value, str) else json.dumps(value),
    }


@pytest.mark.parametrize(
    ("name", "message", "summary"),
    [
        ("openai", by_litellm(compaction("old"), compaction("new"), compaction(None)), "new"),
        ("openai", by_litellm(compaction("old"), compaction(None, "c2VhbGVk")), ""),
        ("openai", by_litellm(compaction(None)), None),
        ("openai", {"role": "assistant", "content": "a", "provider_specific_fields": None}, None),
        ("openai", {"role": "assistant", "content": "a"}, None),
        (
            "anthropic",
            {
                "role": "assistant",
                "content": [compaction("old"), compaction("new"), compaction("")],
            },
            "new",
        ),
        (
            "anthropic",
            {"role": "assistant", "content": [compaction("old"), compaction(None, "c2VhbGVk")]},
            "",
        ),
        (
            "anthropic",
            {"role": "assistant", "content": [compaction(None), {"type": "text", "text": "a"}]},
            None,
        ),
        ("anthropic", {"role": "assistant", "content": "compaction"}, None),
        ("responses", sealed({"type": "compaction", "content": "new"}), "new"),
        ("responses", sealed([{"other": 1}, {"summary": "new"}, {"text": "older"}]), "new"),
        ("responses", sealed({"content": 1}), ""),
        ("responses", sealed("{no json"), ""),
        ("responses", sealed("[" * 100_000), ""),
        ("responses", sealed("c2VhbGVk"), ""),
        ("responses", {"type": "compaction_summary", "encrypted_content": "c2VhbGVk"}, ""),
        ("responses", {"type": "reasoning", "encrypted_content": "c2VhbGVk"}, None),
        ("gemini", {"role": "model", "parts": [compaction("new")]}, None),
    ],
)
def test_the_providers_own_summary_is_its_newest_one_that_did_not_fail(
    name: str, message: object, summary: str | None
) -> None:
    form = get_format(name)

    assert form.compacted(message) == summary
    assert (form.read(message)[0] is Kind.COMPACTED) is (summary is not None)


def test_a_summary_by_the_provider_weighs_what_the_model_reads_of_it() -> None:
    readable = {"role": "assistant", "content": [compaction("x" * 50)]}
    unreadable = {"role": "assistant", "content": [compaction(None, "A" * 400)]}

    assert get_format("anthropic").size(readable) == 50
    assert get_format("anthropic").size(unreadable) == 300
    assert get_format("openai").size(by_litellm(compaction("x" * 50))) == 51
    assert get_format("responses").size(sealed("A" * 400)) == 300


def test_system_messages_are_found_wherever_they_stand() -> None:
    system = {"role": "system", "content": "a"}
    user = {"role": "user", "content": "b"}

    others = [
        {"role": role, "name": "f", "content": "a"} for role in ("function", "critic", "zealot")
    ]
    talk = [
        system,
        user,
        {"role": "developer", "content": "c"},
        *others,
        UserDict(user),
        UserDict(system),
    ]

    assert get_format("openai").systems(talk) == [0, 2, 7]


def test_the_texts_of_a_bedrock_result_are_edited_as_one() -> None:
    answer = {"toolUseId": "c", "content": [{"text": "one "}, {"text": "two"}]}
    edited = get_format("bedrock").rewrite(
        {"role": "user", "content": [{"toolResult": answer}]},
        lambda _kind, text, _name: text.upper(),
    )

    assert edited["content"][0]["toolResult"] == {
        "toolUseId": "c",
        "content": [{"text": "ONE TWO"}],
    }


# What must not be taken for something else


def test_reasoning_among_the_parts_of_a_chat_message_weighs_and_is_not_shown() -> None:
    kinds = [
        {"type": "thinking", "thinking": "t" * 50},
        {"type": "reasoning", "reasoning": "r" * 60},
    ]
    message = {
        "role": "assistant",
        "content": [*kinds, {"type": "redacted_thinking", "data": "QUJD"}],
    }

    assert get_format("openai").size(message) == 113
    assert parts_of(get_format("openai"), message) == ()


def test_a_users_message_is_no_compaction_by_the_provider() -> None:
    assert (
        get_format("anthropic").read({"role": "user", "content": [compaction("a")]})[0] is Kind.USER
    )


def test_an_assistants_message_with_nothing_but_results_is_the_assistants() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}

    assert (
        get_format("anthropic").read({"role": "assistant", "content": [found]})[0] is Kind.ASSISTANT
    )


def test_two_calls_of_one_id_with_both_results_in_their_own_message_are_paired() -> None:
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    form = get_format("anthropic")
    pairs = {"role": "assistant", "content": [call, call, found, found]}

    assert form.outline([pairs]).broken == ()
    assert form.read({"role": "assistant", "content": [call, call, found]})[2:] == (("s1",), ())


def test_two_text_blocks_are_not_the_content_of_the_first() -> None:
    form = get_format("anthropic")
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    contents = [
        form.content({"role": "user", "content": said})
        for said in (texts, texts[:1], texts[1:], "a", "b")
    ]

    assert contents[0] not in contents[1:]
    assert contents[1:3] == contents[3:]


def test_responses_without_ids_in_messages_of_their_own_are_those_of_the_calls_in_order() -> None:
    calls = [{"functionCall": {"id": number, "name": "look", "args": {}}} for number in "xy"]
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]}

    assert (
        get_format("gemini").outline([{"role": "model", "parts": calls}, answer, answer]).broken
        == ()
    )


def test_a_signature_alone_in_a_part_of_gemini_weighs_and_is_not_shown() -> None:
    message = {"role": "model", "parts": [{"thoughtSignature": "QUJD"}, {"thought": True}]}

    assert get_format("gemini").size(message) == 3
    assert parts_of(get_format("gemini"), message) == ()


def test_a_part_of_gemini_that_is_no_object_is_shown_in_its_message() -> None:
    message = {"role": "user", "parts": [5, "five"]}

    assert get_format("gemini").read(message)[:2] == (Kind.USER, 5)
    assert [part.text for part in parts_of(get_format("gemini"), message)] == ["5", "five"]


def test_a_role_that_nobody_knows_is_its_own_speaker() -> None:
    assert get_format("openai").speaker({"role": "critic", "content": "a"}) == "critic"
    assert get_format("openai").speaker({"content": "a"}) == "assistant"
    assert get_format("openai").kind({"role": "critic", "content": "a"}) is Kind.OTHER
    assert get_format("openai").kind({"content": "a"}) is Kind.UNKNOWN
    assert get_format("gemini").kind({"role": "model"}) is Kind.ASSISTANT


@pytest.mark.parametrize("approve", [True, False])
def test_an_approval_is_shown_as_what_the_user_decided(*, approve: bool) -> None:
    item = {"type": "mcp_approval_response", "approval_request_id": "x", "approve": approve}

    assert [part.text for part in parts_of(get_format("responses"), item)] == [str(approve)]


def test_an_item_without_role_and_type_is_shown_as_data() -> None:
    form = get_format("responses")
    item = {"content": "a"}

    assert form.read(item)[0] is Kind.UNKNOWN
    assert [part.text for part in parts_of(form, item)] == ['{"content": "a"}']


def test_an_instruction_does_not_part_an_output_from_the_reference_to_its_call() -> None:
    items = [
        {"type": "item_reference", "id": "fc_1"},
        {"role": "developer", "content": "Be brief."},
        {"type": "function_call_output", "call_id": "x", "output": "done"},
    ]
    form = get_format("responses")

    assert form.outline(items).broken == ()
    assert len(form.outline([items[0], {"role": "user", "content": "a"}, items[2]]).broken) == 1


@pytest.mark.parametrize(
    "before",
    [
        [{"type": "reasoning", "summary": []}],
        [{"type": "function_call", "call_id": "y", "name": "f", "arguments": "{}"}],
        [{"type": "web_search_call", "id": "ws_1"}],
    ],
)
def test_only_a_reference_may_stand_for_the_call_of_an_output(before: list[object]) -> None:
    output = {"type": "function_call_output", "call_id": "x", "output": "done"}
    broken = (
        get_format("responses").outline([*before, output, {"role": "user", "content": "a"}]).broken
    )

    assert (len(before), "x", "orphan result") in [
        (half.index, half.call_id, half.what) for half in broken
    ]


@pytest.mark.parametrize(
    ("reasoning", "size"),
    [
        ({"reasoningText": {"text": "hm", "signature": "QUJD"}}, 2),
        ({"reasoningText": {"text": "", "signature": "QUJD"}}, 3),
        ({"redactedContent": b"sealed"}, 6),
    ],
)
def test_reasoning_of_bedrock_weighs_its_text_or_its_seal(reasoning: object, size: int) -> None:
    message = {"role": "assistant", "content": [{"reasoningContent": reasoning}]}

    assert get_format("bedrock").size(message) == size


def test_results_are_shown_as_text_or_as_the_data_that_they_are() -> None:
    found = {
        "type": "search_result",
        "title": "Sky",
        "content": [{"type": "text", "text": "It is blue."}],
    }
    blocks = {
        "anthropic": {"type": "tool_result", "tool_use_id": "c", "content": [found, "bare"]},
        "bedrock": {
            "toolResult": {
                "toolUseId": "c",
                "content": [{"json": {"sky": "blue"}}, {"text": "seen"}],
            }
        },
    }
    shown = {
        name: [
            part.text for part in parts_of(get_format(name), {"role": "user", "content": [block]})
        ]
        for name, block in blocks.items()
    }

    assert shown == {
        "anthropic": ["Sky\nIt is blue.", "bare"],
        "bedrock": ['{"sky": "blue"}', "seen"],
    }


def test_a_text_that_is_no_string_is_not_the_content_of_its_message() -> None:
    contents = [
        get_format("anthropic").content({"role": "user", "content": said})
        for said in ([{"type": "text", "text": ["a"]}], ["a"])
    ]

    assert contents[0] != contents[1]
