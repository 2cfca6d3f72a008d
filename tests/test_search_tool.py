"""``recall_tool``: a model looks up what was said, in each format."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from compacter import Compacter, History, recall_tool
from compacter.errors import ConfigurationError
from compacter.messages.format import FORMATS, FormatName, get_format

FACT = "The spare valve is in cabinet K-7, behind the compressor."
QUESTION = "Where did I put the spare valve?"
ARGUMENTS = {"query": "spare valve"}
ENCODED = json.dumps(ARGUMENTS)
CALLS: dict[FormatName, Any] = {
    "openai": {
        "id": "c1",
        "type": "function",
        "function": {"name": "recall", "arguments": ENCODED},
    },
    "responses": {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "recall",
        "arguments": ENCODED,
    },
    "anthropic": {"type": "tool_use", "id": "c1", "name": "recall", "input": ARGUMENTS},
    "gemini": {"function_call": {"id": "c1", "name": "recall", "args": ARGUMENTS}},
    "bedrock": {"toolUse": {"toolUseId": "c1", "name": "recall", "input": ARGUMENTS}},
}


def message_of(wire: FormatName, call: Any) -> Any:
    """The message of a model that makes this call."""
    if wire == "openai":
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if wire == "responses":
        return call
    form = get_format(wire)
    return {"role": form.assistant, form.body: [call]}


def conversation(wire: FormatName) -> list[Any]:
    form = get_format(wire)
    said = [FACT, *(f"Hall {n}: the pump ran for {n * 7} hours." for n in range(30)), QUESTION]
    messages = []
    for text in said:
        messages += [form.say("user", text), form.say("assistant", "Noted.")]
    return messages[:-1]


@pytest.mark.parametrize("wire", FORMATS)
def test_a_call_is_answered_by_what_was_said(wire: FormatName) -> None:
    messages = conversation(wire)
    tool = recall_tool(messages, wire)
    messages.append(message_of(wire, CALLS[wire]))
    messages.append(tool.answer(CALLS[wire]))
    form = get_format(wire)
    text = "".join(part.text for part in form.all_parts(messages[-1], 0))
    assert FACT in text
    assert QUESTION not in text
    assert not form.outline(messages).broken  # the call has its result


@pytest.mark.parametrize("wire", FORMATS)
def test_a_definition_has_the_name_and_the_parameter(wire: FormatName) -> None:
    definition = json.dumps(recall_tool(conversation(wire), wire).definition)
    assert '"name": "recall"' in definition
    assert '"required": ["query"]' in definition


def test_definitions_stand_where_each_provider_reads_them() -> None:
    definitions = {wire: recall_tool([], wire).definition for wire in FORMATS}
    assert definitions["openai"]["function"]["parameters"]["properties"].keys() == {"query"}
    assert definitions["responses"]["name"] == "recall"
    assert definitions["anthropic"]["input_schema"]["type"] == "object"
    assert definitions["gemini"]["function_declarations"][0]["name"] == "recall"
    assert definitions["bedrock"]["toolSpec"]["inputSchema"]["json"]["type"] == "object"


def test_an_sdk_object_is_a_call() -> None:
    function = SimpleNamespace(name="recall", arguments=ENCODED)
    answer = recall_tool(conversation("openai")).answer(SimpleNamespace(id="c9", function=function))
    assert answer["tool_call_id"] == "c9"
    assert FACT in answer["content"]


def test_an_id_that_gemini_left_out_stays_out() -> None:
    call = {"functionCall": {"name": "recall", "args": ARGUMENTS}}
    answer = recall_tool(conversation("gemini"), "gemini").answer(call)
    assert "id" not in answer["parts"][0]["function_response"]


def test_a_history_answers_from_its_archive() -> None:
    history = History(compacter=Compacter(summarizer="extractive"))
    history.extend(conversation("openai"))
    history.compact(summary="They spoke of pumps.")
    assert FACT not in json.dumps(list(history))
    assert FACT in recall_tool(history).answer("spare valve")


def test_a_list_is_searched_as_it_is_at_the_call() -> None:
    messages = conversation("openai")
    tool = recall_tool(messages)
    assert "zeppelin" not in tool.answer("zeppelin hangar")
    messages.insert(3, {"role": "user", "content": "The zeppelin hangar has two doors."})
    assert "two doors" in tool.answer("zeppelin hangar")


def test_what_it_has_answered_before_is_not_quoted_again() -> None:
    messages = conversation("openai")
    tool = recall_tool(messages)
    for _ in range(4):
        messages.append(message_of("openai", CALLS["openai"]))
        messages.append(tool.answer(CALLS["openai"]))
    assert tool.answer("spare valve").count(FACT) == 1


@pytest.mark.parametrize(
    "arguments", ["{}", "not json", '{"query": ""}', '{"query": 7}', None, "[]"]
)
def test_a_call_without_a_query_is_told_so(arguments: str | None) -> None:
    call = {"id": "c1", "function": {"name": "recall", "arguments": arguments}}
    answer = recall_tool(conversation("openai")).answer(call)
    assert answer["tool_call_id"] == "c1"
    assert answer["content"].startswith("No query.")


def test_mistakes_name_the_argument() -> None:
    with pytest.raises(ConfigurationError, match="wire_format"):
        recall_tool([], "chat")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="messages"):
        recall_tool("text")
    with pytest.raises(ConfigurationError, match="limit"):
        recall_tool([], limit=0)
    with pytest.raises(ConfigurationError, match="'weather'"):
        recall_tool([]).answer({"id": "1", "function": {"name": "weather", "arguments": "{}"}})
