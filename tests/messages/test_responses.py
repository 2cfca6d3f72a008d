"""Peculiarities of the items of the Responses API."""

from __future__ import annotations

import base64

import pytest
from tests.dialects import parts_of

from compacter import Compacter
from compacter.compaction.conversation import Conversation
from compacter.messages import parts
from compacter.messages.format import get_format

_PICTURE = base64.b64encode(bytes(150_000)).decode()
_SHOT = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{_PICTURE}"}
_ASK = {"role": "user", "content": "a"}
_REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "QUJD" * 100}


def _call(call_id: str) -> dict[str, str]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def _output(call_id: str) -> dict[str, str]:
    return {"type": "function_call_output", "call_id": call_id, "output": "done"}


def _say(text: str) -> dict[str, str]:
    return {"type": "message", "role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("items", "steps"),
    [
        pytest.param([_ASK, _REASONING, _say("b"), _ASK], [0, 1, 3], id="reasoning-and-its-answer"),
        pytest.param(
            [_ASK, _REASONING, _call("x"), _output("x"), _ASK],
            [0, 1, 4],
            id="reasoning-and-its-call",
        ),
        pytest.param(
            [_REASONING, _call("x"), _output("x"), _REASONING, _call("x"), _output("x"), _say("b")],
            [0, 3, 6],
            id="two-responses",
        ),
        pytest.param(
            [_REASONING, _say("b"), _call("x"), _call("y"), _output("y"), _output("x"), _ASK],
            [0, 6],
            id="reasoning-and-parallel-calls",
        ),
        pytest.param(
            [_call("x"), _call("y"), _output("x"), _ASK, _output("y"), _ASK],
            [0, 5],
            id="a-late-output",
        ),
        pytest.param([_say("b"), _call("x"), _output("x")], [0, 1], id="no-reasoning"),
        pytest.param(
            [_ASK, {"type": "item_reference", "id": "rs_1"}, _call("x"), _output("x"), _ASK],
            [0, 1, 4],
            id="a-reference-may-be-reasoning",
        ),
    ],
)
def test_a_step_spans_what_openai_wants_together(items: list[object], steps: list[int]) -> None:
    outline = get_format("responses").outline(items)

    assert outline.steps == steps
    assert outline.broken == ()


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (
            {"type": "custom_tool_call", "call_id": "x", "name": "sql", "input": "select 1"},
            {"type": "custom_tool_call_output", "call_id": "x", "output": "1"},
        ),
        (
            {"type": "local_shell_call", "id": "l1", "call_id": "x", "action": {"command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "x", "output": "a.txt"},
        ),
        (
            {"type": "computer_call", "call_id": "x", "action": {"type": "screenshot"}},
            {"type": "computer_call_output", "call_id": "x", "output": _SHOT},
        ),
        (
            {"type": "mcp_approval_request", "id": "x", "name": "send", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "x", "approve": True},
        ),
        (
            {"type": "shell_call", "call_id": "x", "action": {"commands": ["ls"]}},
            {
                "type": "shell_call_output",
                "call_id": "x",
                "output": [{"stdout": "a", "stderr": ""}],
            },
        ),
    ],
)
def test_every_sort_of_call_has_its_output(call: object, output: object) -> None:
    reader = get_format("responses")
    outline = reader.outline([_ASK, call, output, _ASK])

    assert (outline.steps, outline.broken) == ([0, 1, 3], ())
    assert [entry.kind for entry in parts_of(reader, call, 1)] == ["call"]
    assert [(entry.role, entry.kind) for entry in parts_of(reader, output, 2)] in (
        [("tool", "result")],
        [("tool", "media")],
    )
    assert outline.sizes[2] < 2 * parts.IMAGE


def test_a_call_that_openai_ran_itself_needs_no_output() -> None:
    picture = {"type": "image_generation_call", "id": "ig_1", "result": _PICTURE}
    search = {"type": "file_search_call", "queries": ["sky"], "results": [{"text": "blue"}]}
    reader = get_format("responses")

    assert reader.outline([_ASK, picture, search, _ASK]).broken == ()
    assert [entry.kind for entry in parts_of(reader, picture, 1)] == ["media"]
    assert parts.IMAGE <= reader.size(picture) < parts.IMAGE + 50
    assert ["blue" in entry.text for entry in parts_of(reader, search, 2)] == [False, True]


def test_sealed_reasoning_weighs_and_a_reference_hardly() -> None:
    assert get_format("responses").size(_REASONING) == 300
    assert get_format("responses").size({"type": "item_reference", "id": "rs_1"}) == 4
    assert list(parts_of(get_format("responses"), _REASONING)) == []


def test_an_edited_answer_loses_annotations_that_point_into_the_old_text() -> None:
    part = {
        "type": "output_text",
        "text": "long",
        "annotations": [{"type": "url_citation", "start_index": 2}],
    }
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    edited = get_format("responses").rewrite(message, lambda _kind, _text, _name: "s")

    assert edited == {
        **message,
        "content": [{"type": "output_text", "text": "s", "annotations": []}],
    }


def test_what_a_tool_search_has_found_has_a_size() -> None:
    """The definitions in a ``tool_search_output`` are read by the model, so they count."""
    form = get_format("responses")
    tools = [{"type": "function", "name": "look", "description": "Look at the sky. " * 9}]
    item = {"type": "tool_search_output", "call_id": "x", "tools": tools}
    assert form.size(item) > 150
    assert form.outline([{**_call("x"), "type": "tool_search_call"}, item]).broken == ()


def test_what_stands_before_a_compaction_of_codex_is_sent_and_counts() -> None:
    """``/responses/compact`` returns the user's messages before its item, and all of them are sent:
    they can be compacted, and the item stays.
    """
    kept = [{"role": "user", "content": f"Request {number}. " * 40} for number in range(8)]
    item = {"type": "compaction", "encrypted_content": "QUJD" * 300}
    items = [*kept, item, _say("Barn 7 is dry now."), _ASK]
    made = Compacter(summarizer="extractive").compact(items, wire_format="responses", budget=4_000)
    assert sum(Conversation(items, get_format("responses")).sizes) > 8 * 400
    assert made.changed
    assert item in made.messages
    assert len(made.messages) < len(items)


def test_what_stands_before_a_responses_own_compaction_is_not_read() -> None:
    """Where the model's items stand before it too, the server drops what is before the item."""
    item = {"type": "compaction", "encrypted_content": "QUJD" * 300}
    items = [_ASK, _say("b " * 900), item, _ASK]
    outline = get_format("responses").outline(items)
    assert outline.kinds[2] is parts.Kind.COMPACTED
