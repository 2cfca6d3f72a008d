"""Blocks of a user message, and the texts that an edit may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import parts_of

from compacter.messages.format import get_format

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.dialects import Dialect, Result

    from compacter.messages.format import FormatName, Message

SEEN: Result = ("c1", "look", "blue")


def _gone(_kind: str, _text: str, _name: str) -> str:
    return "gone"


def _told(kind: str, text: str, name: str) -> str:
    return f"[{kind} {name}: {text}]"


def _blank(_kind: str, _text: str, _name: str) -> str:
    return " "


# A text put before a user's own


def test_a_text_is_put_before_the_users_own_words(dialect: Dialect) -> None:
    form = dialect.format
    said = {**dialect.user("own"), "id": "kept"}
    made = form.with_text(said, "before")

    assert [part.text for part in parts_of(form, made)] == ["before", "own"]
    assert form.plain_text(made) == "beforeown"
    assert made == {**said, form.body: form.blocks(made)}
    before, own = form.blocks(made)
    assert before == {**own, "text": "before"}


def test_a_text_is_put_behind_the_results_of_tools(mixing: Dialect) -> None:
    assert mixing.mixed
    form = mixing.format
    given = mixing.mixed([SEEN, ("c2", "look", "red")], "and now?")
    shown = [(part.role, part.text) for part in parts_of(form, form.with_text(given, "before"))]
    only_results = parts_of(form, form.with_text(mixing.results([SEEN])[0], "before"))

    assert [role for role, _ in shown] == ["tool", "tool", "user", "user"]
    assert [text for _, text in shown[2:]] == ["before", "and now?"]
    assert [part.role for part in only_results] == ["tool", "user"]


# Editing


def test_an_edit_is_told_what_it_edits_and_of_which_tool(dialect: Dialect) -> None:
    form = dialect.format
    result = dialect.results([SEEN])[0]
    (before,) = parts_of(form, result)
    (shown,) = parts_of(form, form.rewrite(result, _told))

    assert shown.text == f"[result {before.name}: blue]"
    assert form.plain_text(form.rewrite(dialect.user("own"), _told)) == "[text : own]"


@pytest.mark.parametrize("name", ["anthropic", "gemini", "bedrock"])
def test_an_edit_leaves_no_blank_text_where_the_provider_refuses_one(name: str) -> None:
    form = get_format(name)

    for said in (form.say("user", "a"), {"role": "user", "content": ["a"], "parts": ["a"]}):
        (part,) = parts_of(form, form.rewrite(said, _blank))
        assert part.text.strip()


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("openai", {"type": "image_url", "image_url": {"url": "https://x.invalid/a.png"}}),
        ("openai", {"type": "thinking", "thinking": "hm"}),
        ("openai", {"type": "refusal", "refusal": "a"}),
        ("openai", {"type": "new", "data": "a"}),
        ("openai", {"type": "text", "text": ""}),
        ("anthropic", {"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
        ("anthropic", {"type": "tool_use", "id": "c", "name": "f", "input": {"text": "a"}}),
        ("anthropic", {"type": "image", "source": {"type": "url", "url": "https://x.invalid/a"}}),
        ("anthropic", {"text": "of no type"}),
        (
            "anthropic",
            {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {"content": "page"}},
        ),
        ("responses", {"type": "input_image", "image_url": "https://x.invalid/a.png"}),
        ("responses", {"type": "refusal", "refusal": "I will not."}),
        ("bedrock", {"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}),
        ("bedrock", {"cachePoint": {"type": "default"}}),
        ("gemini", {"text": "hm", "thought": True}),
        ("gemini", {"functionCall": {"name": "f", "args": {}}}),
        ("gemini", {"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
    ],
)
def test_what_is_neither_text_nor_result_is_never_edited(name: str, block: Message) -> None:
    message = {"role": "assistant", "content": [block], "parts": [block]}

    assert get_format(name).rewrite(message, _gone) is message


def test_the_parts_of_a_chat_result_are_edited_as_one_text() -> None:
    parts = [
        {"type": "text", "text": "one "},
        "two",
        {"type": "image_url", "image_url": {"url": "https://x.invalid"}},
    ]
    message = {"role": "tool", "tool_call_id": "c", "name": "look", "content": parts}

    assert get_format("openai").rewrite(message, _told) == {
        **message,
        "content": "[result look: one two]",
    }
    assert get_format("openai").rewrite(message, lambda _kind, text, _name: text) is message


# Results of tools that the provider ran: beside their call, in the assistant's own message

RAN: dict[str, tuple[FormatName, Callable[[Any], Message], Any, Any]] = {
    "code execution": (
        "anthropic",
        lambda ran: {
            "role": "assistant",
            "content": [{"type": "bash_code_execution_tool_result", "content": ran}],
        },
        {"type": "result", "stdout": "one", "stderr": "two", "return_code": 0},
        {
            "type": "result",
            "stdout": "[result : one]",
            "stderr": "[result : two]",
            "return_code": 0,
        },
    ),
    "mcp": (
        "anthropic",
        lambda ran: {
            "role": "assistant",
            "content": [{"type": "mcp_tool_result", "tool_use_id": "s", **ran}],
        },
        {"content": [{"type": "text", "text": "one"}]},
        {"content": "[result : one]"},
    ),
    "code interpreter": (
        "responses",
        lambda ran: {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "1",
            "outputs": [ran, ran],
        },
        {"type": "logs", "logs": "one"},
        {"type": "logs", "logs": "[result code_interpreter: one]"},
    ),
    "file search": (
        "responses",
        lambda ran: {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "results": [ran]},
        {"file_id": "f", "text": "one"},
        {"file_id": "f", "text": "[result file_search: one]"},
    ),
    "gemini": (
        "gemini",
        lambda ran: {"role": "model", "parts": [{"codeExecutionResult": ran}]},
        {"outcome": "OUTCOME_OK", "output": "one"},
        {"outcome": "OUTCOME_OK", "output": "[result code_execution: one]"},
    ),
}


@pytest.mark.parametrize(("name", "message", "ran", "edited"), RAN.values(), ids=list(RAN))
def test_what_a_providers_own_tool_printed_is_edited_where_it_is(
    name: FormatName, message: Callable[[Any], Message], ran: Any, edited: Any
) -> None:
    form = get_format(name)
    kept = message(ran)

    assert form.rewrite(message(ran), _told) == message(edited)
    assert form.rewrite(kept, lambda _kind, text, _name: text) is kept


@pytest.mark.parametrize(
    "item",
    [
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "1",
            "outputs": [{"type": "image", "url": "x"}],
        },
        {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": None},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a", "stderr": ""}]},
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": "x"},
        },
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
    ],
)
def test_an_item_without_a_free_text_is_never_edited(item: Message) -> None:
    assert get_format("responses").rewrite(item, _gone) is item
