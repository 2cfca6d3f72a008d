"""Peculiarities of each message format."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass
from typing import Any

import pytest
from tests.dialects import parts_of

from compacter.messages.format import FORMATS, get_format
from compacter.messages.parts import Kind


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def answers(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def text(words: Any) -> dict[str, Any]:
    return {"type": "text", "text": words}


ASK = {"role": "user", "content": "a"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "sky"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
LOOK = {"functionCall": {"name": "look", "args": {}}}
LISTEN = {"functionCall": {"name": "listen", "args": {}}}
LOOKED = {"functionResponse": {"name": "look", "response": {}}}
REFERENCE = {"type": "item_reference", "id": "fc_1"}
OUTPUT = {"type": "function_call_output", "call_id": "x", "output": "done"}


# Which message is what


@pytest.mark.parametrize(
    ("name", "message", "kind", "speaker"),
    [
        ("openai", {"role": "developer", "content": "a"}, Kind.SYSTEM, "system"),
        ("openai", {"role": "function", "name": "f", "content": "a"}, Kind.RESULT, "tool"),
        ("openai", {"role": "critic", "content": "a"}, Kind.OTHER, "critic"),
        ("openai", {"content": "a"}, Kind.UNKNOWN, "assistant"),
        ("anthropic", {"role": "system", "content": "a"}, Kind.SYSTEM, "system"),
        ("anthropic", assistant(FOUND), Kind.ASSISTANT, "assistant"),
        ("responses", {"role": "developer", "content": "a"}, Kind.SYSTEM, "system"),
        ("responses", {"type": "reasoning", "summary": []}, Kind.OTHER, "assistant"),
        ("responses", REFERENCE, Kind.OTHER, "assistant"),
        ("responses", {"type": "web_search_call", "id": "ws_1"}, Kind.ASSISTANT, "assistant"),
        (
            "responses",
            {"type": "compaction", "encrypted_content": "QUJD"},
            Kind.COMPACTED,
            "assistant",
        ),
        ("gemini", {"role": "function", "parts": [LOOKED]}, Kind.RESULT, "user"),
        (
            "gemini",
            {"role": "tool", "parts": [{"function_response": {"name": "f"}}]},
            Kind.RESULT,
            "user",
        ),
        ("gemini", {"parts": [{"text": "a"}]}, Kind.USER, "user"),
        ("gemini", {"role": "model"}, Kind.ASSISTANT, "assistant"),
    ],
)
def test_roles_and_types_are_kinds(name: str, message: object, kind: Kind, speaker: str) -> None:
    """A message is of a kind by its role or its type, and speaks for alternation."""
    reader = get_format(name)

    assert reader.outline([message]).kinds == [kind]
    assert reader.speaker(message) == speaker


def test_system_messages_are_found_wherever_they_stand() -> None:
    """System and developer messages are found at any place, also in a mapping that is not a
    dict.
    """
    system = {"role": "system", "content": "a"}
    others = [
        {"role": role, "name": "f", "content": "a"} for role in ("function", "critic", "zealot")
    ]
    talk = [system, ASK, {"role": "developer", "content": "c"}, *others, UserDict(ASK)]

    assert get_format("openai").systems([*talk, UserDict(system)]) == [0, 2, 7]


# Which calls and results belong together


@pytest.mark.parametrize(
    ("name", "messages", "steps", "broken"),
    [
        pytest.param(
            "openai",
            [
                ASK,
                {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}},
                {"role": "function", "name": "look", "content": "blue"},
            ],
            [0, 1],
            [],
            id="calls-before-ids-pair-by-name",
        ),
        pytest.param(
            "anthropic",
            [ASK, assistant(SEARCH, FOUND, text("Blue.")), ASK],
            [0, 1, 2],
            [],
            id="a-server-tool-has-its-result-in-the-message",
        ),
        pytest.param(
            "anthropic",
            [ASK, assistant(SEARCH), assistant(FOUND, text("Blue.")), ASK],
            [0, 1, 3],
            [],
            id="a-paused-turn-and-its-continuation-are-one-step",
        ),
        pytest.param(
            "anthropic",
            [assistant(SEARCH, SEARCH, FOUND, FOUND)],
            [0],
            [],
            id="two-calls-of-one-id-with-both-results",
        ),
        pytest.param(
            "gemini",
            [model(LOOK, LISTEN, LOOK), answers(LOOKED, LOOKED), answers({"text": "never mind"})],
            [0, 2],
            ["listen"],
            id="calls-without-ids-pair-by-name-in-order",
        ),
        pytest.param(
            "gemini",
            [model(LOOK, LOOK), answers(LOOKED), answers(LOOKED), answers({"text": "so"})],
            [0, 3],
            [],
            id="responses-in-messages-of-their-own",
        ),
        pytest.param(
            "gemini",
            [
                model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
                answers({"text": "a"}),
            ],
            [0, 1],
            [],
            id="code-needs-no-partner",
        ),
        pytest.param(
            "responses",
            [REFERENCE, {"role": "developer", "content": "Be brief."}, OUTPUT],
            [0],
            [],
            id="an-instruction-does-not-part-an-output-from-a-reference",
        ),
        pytest.param(
            "responses", [REFERENCE, ASK, OUTPUT], [0, 1, 2], ["x"], id="a-user-message-does"
        ),
        *(
            pytest.param("responses", [before, OUTPUT, ASK], steps, ["x"], id="only-a-reference")
            for before, steps in (
                ({"type": "reasoning", "summary": []}, [0, 1, 2]),
                ({"type": "web_search_call", "id": "ws_1"}, [0, 1, 2]),
            )
        ),
    ],
)
def test_calls_and_results_are_paired(
    name: str, messages: list[Any], steps: list[int], broken: list[str]
) -> None:
    """Each call stays with its results in one step; what has no partner is reported by its id."""
    outline = get_format(name).outline(messages)

    assert outline.steps == steps
    assert [half.call_id for half in outline.broken] == broken
    assert outline.open is None


@pytest.mark.parametrize(
    ("call_id", "response_id"), [("x", "x"), ("x", None), (None, "x"), ("x", "y")]
)
def test_a_name_pairs_whatever_the_ids_are(call_id: str | None, response_id: str | None) -> None:
    """Gemini's calls and responses are paired by name, in order."""
    call: Any = {"function_call": {"id": call_id, "name": "look", "args": {}}}
    answer: Any = {"function_response": {"id": response_id, "name": "look", "response": {}}}
    messages = [model(call), answers(answer), answers({"text": "never mind"})]

    assert not get_format("gemini").outline(messages).broken


# What is shown, and what it weighs


QUOTE = {
    "type": "search_result",
    "title": "Sky",
    "source": "https://x.invalid",
    "content": [text("It is blue.")],
}
APPROVAL = {"type": "mcp_approval_response", "approval_request_id": "x"}


@pytest.mark.parametrize(
    ("name", "message", "shown", "size"),
    [
        (
            "openai",
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
                ],
            },
            ["call sql select 1"],
            11,
        ),
        ("openai", {"role": "assistant", "refusal": "I will not."}, ["text  I will not."], 11),
        ("openai", {"role": "assistant", "audio": {"transcript": "Hi."}}, ["text  Hi."], 3),
        ("openai", user("plain part"), ["text  plain part"], 10),
        (
            "openai",
            assistant(
                {"type": "thinking", "thinking": "t" * 50},
                {"type": "reasoning", "reasoning": "r" * 60},
                {"type": "redacted_thinking", "data": "QUJD"},
            ),
            [],
            113,
        ),
        ("openai", {"role": "assistant", "content": "", "reasoning_content": None}, [], 0),
        ("anthropic", user(QUOTE), ["text  Sky\nIt is blue."], 15),
        (
            "anthropic",
            user({"type": "tool_result", "tool_use_id": "c", "content": [QUOTE, "bare"]}),
            ["result  Sky\nIt is blue.", "result  bare"],
            19,
        ),
        (
            "anthropic",
            assistant({"type": "thinking", "thinking": "", "signature": "QUJD" * 100}),
            [],
            300,
        ),
        ("anthropic", assistant({"type": "thinking", "thinking": ""}), [], 0),
        ("anthropic", assistant({"type": "redacted_thinking"}), [], 0),
        (
            "responses",
            assistant({"type": "refusal", "refusal": "I will not."}),
            ["text  I will not."],
            11,
        ),
        ("responses", {**APPROVAL, "approve": True}, ["result  True"], 4),
        ("responses", {**APPROVAL, "approve": False}, ["result  False"], 5),
        ("responses", {"content": "a"}, ['text  {"content": "a"}'], 16),
        ("responses", {"type": "reasoning", "summary": [], "encrypted_content": None}, [], 0),
        (
            "gemini",
            model(
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
            ),
            ["call code_execution print(1)", "result code_execution 1\n"],
            24,
        ),
        (
            "gemini",
            model(
                {"toolCall": {"toolType": "SEARCH", "args": {}}},
                {"toolResponse": {"toolType": "SEARCH", "response": {"text": "blue"}}},
            ),
            ["call SEARCH {}", "result SEARCH blue"],
            12,
        ),
        ("gemini", model({"thoughtSignature": "QUJD"}, {"thought": True}), [], 3),
        ("gemini", answers(5, "five"), ["text  5", "text  five"], 5),
        (
            "bedrock",
            assistant(
                {"guardContent": {"text": {"text": "careful"}}},
                {"citationsContent": {"content": [{"text": "it says"}, {"text": " so"}]}},
                {"cachePoint": {"type": "default"}},
            ),
            ["text  careful", "text  it says so"],
            17,
        ),
        (
            "bedrock",
            user(
                {"toolResult": {"toolUseId": "c", "content": [{"json": {"a": 1}}, {"text": "b"}]}}
            ),
            ['result  {"a": 1}', "result  b"],
            9,
        ),
        *(
            ("bedrock", assistant({"reasoningContent": reasoning}), [], size)
            for reasoning, size in (
                ({"reasoningText": {"text": "hm so", "signature": "QUJD"}}, 5),
                ({"reasoningText": {"text": "", "signature": "QUJD"}}, 3),
                ({"redactedContent": b"sealed"}, 6),
                ({}, 0),
            )
        ),
        *(
            (
                name,
                {"role": "user", get_format(name).body: [{"what": {"new": "b"}}]},
                ['text  {"what": {"new": "b"}}'],
                22,
            )
            for name in FORMATS
        ),
    ],
)
def test_words_are_shown_wherever_they_are_and_reasoning_only_weighs(
    name: str, message: object, shown: list[str], size: int
) -> None:
    """Each part is shown as kind, tool and text; the size counts what the provider reads."""
    form = get_format(name)

    assert [f"{part.kind} {part.name} {part.text}" for part in parts_of(form, message)] == shown
    assert form.size(message) == size


def test_what_a_server_tool_found_is_shown_without_what_is_sealed_in_it() -> None:
    """Encrypted content weighs as its bytes, and is not shown: in results, and in new blocks."""
    form = get_format("anthropic")
    page = {"type": "web_search_result", "title": "Sky", "encrypted_content": "QUJD" * 100}
    message = assistant(SEARCH, {**FOUND, "content": [page]}, text("Blue."))
    parts = parts_of(form, message)
    block = {"type": "new", "title": "Ships"}
    bare, sealed = assistant(block), assistant({**block, "encrypted_data": "c2Vh" * 50})

    assert [part.kind for part in parts] == ["call", "result", "text"]
    assert "Sky" in parts[1].text
    assert "QUJD" not in parts[1].text
    assert form.size(message) > 300
    assert form.size(sealed) == form.size(bare) + 150
    assert parts_of(form, sealed)[0].text == parts_of(form, bare)[0].text


# What is edited


def gone(_kind: str, _text: str, _name: str) -> str:
    return "gone"


MARK = {"cache_control": {"type": "ephemeral"}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://x.invalid/a.png"}}
FAILED = {"type": "tool_result", "tool_use_id": "c1", "is_error": True}
STATUS = {"toolUseId": "c1", "status": "error"}


@pytest.mark.parametrize(
    ("name", "message", "edited"),
    [
        ("openai", user({**text("long"), **MARK}, PICTURE), [{**text("gone"), **MARK}, PICTURE]),
        ("anthropic", user({**FAILED, "content": "x" * 90}), [{**FAILED, "content": "gone"}]),
        ("anthropic", assistant({**FOUND, "content": [QUOTE]}), [{**FOUND, "content": [QUOTE]}]),
        (
            "bedrock",
            user({"toolResult": {**STATUS, "content": [{"json": {"why": "x"}}, {"text": "y"}]}}),
            [{"toolResult": {**STATUS, "content": [{"text": "gone"}]}}],
        ),
    ],
)
def test_an_edited_block_keeps_its_flags_and_its_neighbours(
    name: str, message: Any, edited: list[Any]
) -> None:
    """Texts of a result are edited as one; what a server's tool found is a record, not edited."""
    assert get_format(name).rewrite(message, gone)["content"] == edited


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
    """A single text of Gemini's response keeps its key; anything else becomes ``output``."""
    message = answers({"functionResponse": {"name": "f", "response": response}})
    (entry,) = parts_of(get_format("gemini"), message)
    new = get_format("gemini").rewrite(message, gone)

    assert (entry.kind, entry.name, entry.text) == ("result", "f", read)
    assert new["parts"] == [{"functionResponse": {"name": "f", "response": edited}}]


def test_a_message_of_any_class_is_read_by_its_fields() -> None:
    """A dataclass is read like a dict, edited into one, and not changed itself."""

    @dataclass
    class Note:
        role: str
        content: str

    form = get_format("openai")
    note = Note("user", "hello")

    assert form.size(note) == 5
    assert form.content(note) == {"role": "user", "content": "hello"}
    assert form.rewrite(note, gone) == {"role": "user", "content": "gone"}
    assert note.content == "hello"


# What the digest tells apart


@pytest.mark.parametrize(
    ("name", "one", "other", "same"),
    [
        ("anthropic", user(text("a"), text("b")), user(text("a")), False),
        ("anthropic", user(text("a")), {"role": "user", "content": "a"}, True),
        ("anthropic", user(text(["a"])), user("a"), False),
        (
            "gemini",
            model({"functionCall": {"name": "f", "args": {"aB": 1}}}),
            model({"functionCall": {"name": "f", "args": {"a_b": 1}}}),
            False,
        ),
    ],
)
def test_contents_are_equal_only_if_the_provider_reads_the_same(
    name: str, one: object, other: object, *, same: bool
) -> None:
    """One text block is the text; names in arguments are the tool's own."""
    form = get_format(name)
    assert (form.content(one) == form.content(other)) is same


# The provider's own compaction


def compaction(words: str | None, sealed: str | None = None) -> dict[str, str | None]:
    return {"type": "compaction", "content": words, "encrypted_content": sealed}


def by_litellm(*blocks: object) -> dict[str, object]:
    fields = {"compaction_blocks": list(blocks)}
    return {"role": "assistant", "content": "a", "provider_specific_fields": fields}


def sealed(content: str) -> dict[str, str]:
    return {"type": "compaction", "encrypted_content": content}


@pytest.mark.parametrize(
    ("name", "message", "summary"),
    [
        ("openai", by_litellm(compaction("old"), compaction("new"), compaction(None)), "new"),
        ("openai", by_litellm(compaction("old"), compaction(None, "c2VhbGVk")), ""),
        ("openai", by_litellm(compaction(None)), None),
        ("openai", {"role": "assistant", "content": "a", "provider_specific_fields": None}, None),
        ("openai", {"role": "assistant", "content": "a"}, None),
        ("anthropic", assistant(compaction("old"), compaction("new"), compaction("")), "new"),
        ("anthropic", assistant(compaction("old"), compaction(None, "c2VhbGVk")), ""),
        ("anthropic", assistant(compaction(None), text("a")), None),
        ("anthropic", {"role": "assistant", "content": "compaction"}, None),
        ("responses", sealed("c2VhbGVk"), ""),
        ("responses", {"type": "compaction_summary", "encrypted_content": "c2VhbGVk"}, ""),
        ("responses", {"type": "reasoning", "encrypted_content": "c2VhbGVk"}, None),
        ("gemini", model(compaction("new")), None),
    ],
)
def test_the_providers_own_summary_is_its_newest_one_that_did_not_fail(
    name: str, message: object, summary: str | None
) -> None:
    """A readable compaction is returned, a sealed one is empty, and a failed one is ``None``."""
    form = get_format(name)

    assert form.compacted(message) == summary
    assert (form.read(message)[0] is Kind.COMPACTED) is (summary is not None)


def test_a_summary_by_the_provider_weighs_what_the_model_reads_of_it() -> None:
    """Its text counts, or the bytes of what is sealed; a user's message is never one."""
    anthropic = get_format("anthropic")

    assert anthropic.size(assistant(compaction("x" * 50))) == 50
    assert anthropic.size(assistant(compaction(None, "A" * 400))) == 300
    assert get_format("openai").size(by_litellm(compaction("x" * 50))) == 51
    assert get_format("responses").size(sealed("A" * 400)) == 300
    assert anthropic.read(user(compaction("a")))[0] is Kind.USER
