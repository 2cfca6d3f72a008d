"""``Quotes(tool=True)``: the model looks up what was compacted, the caller gets its last reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.kit.searching import (
    FACT,
    FORMATS,
    MESSAGES,
    TALK,
    WEATHER,
    Model,
    client_of,
    compacter,
    names,
    reply,
    talk,
)

from compacter import Compacter, History, Quotes
from compacter.errors import ConfigurationError
from compacter.events import Event, PassagesRecalled
from compacter.testing import token_limit_error


def wrapped(model: Model, wire: str, by: Compacter | None = None) -> Any:
    return (by or compacter()).wrap(model.completion, wire_format=wire)


@pytest.mark.parametrize("wire", FORMATS)
def test_a_call_of_recall_is_answered_by_what_was_compacted(wire: str) -> None:
    """The caller gets the reply that follows, as the provider has written it."""
    told: list[Event] = []
    last = reply(wire, tokens=77)
    model = Model(reply(wire, "recall"), last)

    answer = wrapped(model, wire, compacter(told.append))(
        messages=talk(wire), model="m", tools=[WEATHER[wire]]
    )

    assert answer is last
    asked, again = model.requests
    assert names(asked) == names(again) == ["weather", "recall"]
    assert again["messages"][: len(asked["messages"])] == asked["messages"]
    call, result = again["messages"][len(asked["messages"]) :]
    assert call.get("role", "assistant") in ("assistant", "model")
    assert "c0" in json.dumps(call)
    assert "c0" in json.dumps(result)
    assert FACT not in json.dumps(asked["messages"])
    assert FACT in json.dumps(result)
    assert [event.passages > 0 for event in told if isinstance(event, PassagesRecalled)] == [True]


async def test_async_calls_are_answered_alike() -> None:
    """Sync and async programs have one logic."""
    model = Model(reply("openai", "recall"), reply("openai"))
    call = compacter().wrap(model.acompletion)
    answer = await call(messages=TALK, model="m")
    assert answer["choices"][0]["message"]["content"] == "K-7."
    assert FACT in json.dumps(model.requests[-1]["messages"])


@pytest.mark.parametrize("wire", FORMATS)
def test_a_model_that_searches_on_is_asked_once_without_the_tool(wire: str) -> None:
    """A call has three rounds of searches at most, and the caller's own tools stay."""
    model = Model(*(reply(wire, "recall") for _ in range(4)), reply(wire, "weather"))
    answer = wrapped(model, wire)(messages=talk(wire), model="m", tools=[WEATHER[wire]])
    assert "weather" in json.dumps(answer)
    assert [len(names(request)) for request in model.requests] == [2, 2, 2, 2, 1]
    assert model.requests[-1]["messages"] == model.requests[0]["messages"]
    assert "last search" in json.dumps(model.requests[3]["messages"][-1])


@pytest.mark.parametrize("wire", FORMATS)
def test_a_call_beside_it_waits_until_the_model_has_read_the_result(wire: str) -> None:
    """The caller cannot carry out ``recall``, so it gets no reply that calls it."""
    last = reply(wire, "weather")
    model = Model(reply(wire, "weather", "recall"), last)
    assert wrapped(model, wire)(messages=talk(wire), model="m", tools=[WEATHER[wire]]) is last
    exchanged = model.requests[1]["messages"][len(model.requests[0]["messages"]) :]
    results = json.dumps(exchanged)
    assert "Not carried out" in results
    assert FACT in results
    assert results.count('"c1"') == results.count('"c0"') == 2  # Each call has its result.


@pytest.mark.parametrize("wire", FORMATS)
def test_a_call_of_another_tool_is_the_callers(wire: str) -> None:
    """Other tools work as before."""
    last = reply(wire, "weather")
    model = Model(last)
    assert wrapped(model, wire)(messages=talk(wire), model="m", tools=[WEATHER[wire]]) is last


def test_the_callers_own_tools_are_counted_once() -> None:
    """A refusal calibrates equally with the tool and without it."""
    weather = {**WEATHER["openai"], "note": "w" * 4_000}
    estimates = []
    for tool in (True, False):
        by = compacter(tool=tool)
        wrapped(Model(reply("openai")), "openai", by)(messages=TALK, model="m", tools=[weather])
        estimates.append(by.estimate_tokens(TALK, model="m"))
    assert estimates[0] == pytest.approx(estimates[1], rel=0.1)


def test_results_that_do_not_fit_are_left_out() -> None:
    """A search never makes a call fail that would have succeeded."""
    last = reply("openai")
    model = Model(reply("openai", "recall"), last)

    def full(messages: list[Any], **options: Any) -> Any:
        if messages[-1]["role"] == "tool":
            raise token_limit_error(limit=1_500, input_tokens=1_600)
        return model.completion(messages, **options)

    assert compacter().wrap(full)(messages=TALK, model="m") is last
    assert names(model.requests[-1]) == []


@pytest.mark.parametrize(
    ("quotes", "options"),
    [
        ({"tool": False}, {}),
        ({}, {"tools": [{"type": "function", "function": {"name": "recall"}}]}),
        ({}, {"extra_headers": {"X-Stainless-Raw-Response": "raw"}}),
    ],
    ids=["off", "a tool of that name", "a raw response"],
)
def test_there_is_no_tool_if_its_calls_could_not_be_answered(
    quotes: dict[str, Any], options: dict[str, Any]
) -> None:
    """It is off by default, and never in a request whose reply is not read here."""
    last = reply("openai", "recall")
    model = Model(last)
    call = wrapped(model, "openai", compacter(**quotes))
    assert call(messages=TALK, model="m", **options) is last
    assert model.requests[0].get("tools") == options.get("tools")
    assert not Quotes().tool


def test_nothing_is_added_before_a_compaction() -> None:
    """Text in the request need not be searched."""
    model = Model(reply("openai"))
    wrapped(model, "openai")(messages=TALK[:3], model="m")
    assert names(model.requests[0]) == []


def test_a_history_is_searched_with_its_archive() -> None:
    """Messages that a ``History`` no longer has are found."""
    by = compacter()
    history = History(TALK, compacter=by)
    history.compact(summary="They spoke.")
    history.append({"role": "user", "content": "Where is the valve?"})
    count = len(history)
    model = Model(reply("openai", "recall"), reply("openai"))
    wrapped(model, "openai", by)(messages=history, model="m")
    assert FACT in json.dumps(model.requests[1]["messages"][-1])
    assert len(history) == count


def test_redacted_text_stays_redacted() -> None:
    """The option ``redact`` is applied to what is found."""
    model = Model(reply("openai", "recall"), reply("openai"))
    Compacter(
        summarizer=lambda messages: "They spoke of the pump hours of each hall.",
        recall=Quotes(tool=True),
        redact=lambda text: text.replace("K-7", "[removed]"),
    ).wrap(model.completion)(messages=TALK, model="m")
    result = model.requests[1]["messages"][-1]["content"]
    assert "[removed]" in result
    assert "K-7" not in result


def test_other_formats_and_functions_are_refused_by_name() -> None:
    """The error says which formats can have the tool, and what to do instead."""

    def plain(messages: list[Any]) -> str:
        return ""

    for target, wire in ((plain, None), (Model().completion, "bedrock")):
        with pytest.raises(ConfigurationError, match="Gemini's contents"):
            compacter().wrap(target, wire_format=wire)
    Compacter(recall=Quotes()).wrap(plain)


@pytest.mark.parametrize("wire", FORMATS)
def test_an_sdk_sends_its_own_objects_again(wire: str) -> None:
    """Replies are the SDK's objects, which it can put into the next request."""
    model = Model(reply(wire, "recall", text="Let me look."), reply(wire))
    told = asked_of(compacter().wrap(client_of(wire, model)), wire)
    assert "K-7." in told.model_dump_json()
    *_, call, result = map(json.dumps, model.requests[1]["messages"])
    assert FACT in result
    assert "recall" in call
    assert names(model.requests[1]) == ["weather", "recall"]


def asked_of(client: Any, wire: str, **options: Any) -> Any:
    """The reply of the vendor's client."""
    if wire == "gemini":
        config = {"tools": [WEATHER[wire]], **options}
        return client.models.generate_content(model="m", contents=talk(wire), config=config)
    given = {MESSAGES.get(wire, "messages"): talk(wire), "tools": [WEATHER[wire]], **options}
    if wire == "anthropic":
        return client.messages.create(model="m", max_tokens=99, **given)
    method = client.chat.completions if wire == "openai" else client.responses
    return method.create(model="m", **given)


@pytest.mark.parametrize(
    ("wire", "options"),
    [
        ("openai", {"n": 2}),
        ("responses", {"background": True}),
        ("responses", {"store": False}),
        ("gemini", {"candidate_count": 2}),
        ("gemini", {"response_mime_type": "application/json"}),
        ("gemini", {"cached_content": "cachedContents/1"}),
        ("gemini", {"tools": [{"google_search": {}}]}),
    ],
)
def test_there_is_no_tool_beside_what_excludes_it(wire: str, options: dict[str, Any]) -> None:
    """The provider would refuse it, or the reply has several answers or none yet."""
    model = Model(reply(wire))
    asked_of(compacter().wrap(client_of(wire, model)), wire, **options)
    assert "recall" not in json.dumps(model.requests[0])


def test_a_function_with_geminis_config_gets_no_tool() -> None:
    """It would pass ``tools`` on, which ``generate_content`` does not take."""
    model = Model(reply("gemini"))
    call = wrapped(model, "gemini")
    assert "K-7." in json.dumps(call(messages=talk("gemini"), model="m", config={}))
    assert "tools" not in model.requests[0]


def test_a_response_that_is_not_stored_needs_its_reasoning() -> None:
    """Then the call goes back with it."""
    model = Model(reply("responses", "recall"), reply("responses"))
    client = compacter().wrap(client_of("responses", model))
    options = {"store": False, "include": ["reasoning.encrypted_content"]}
    assert "K-7." in asked_of(client, "responses", **options).output_text


def test_a_result_is_of_its_call() -> None:
    """Gemini pairs by names, and a custom tool of OpenAI's has results of its own type."""
    model = Model(reply("gemini", "weather", "recall"), reply("gemini"))
    wrapped(model, "gemini")(messages=talk("gemini"), model="m", tools=[WEATHER["gemini"]])
    parts = model.requests[1]["messages"][-1]["parts"]
    assert [part["function_response"]["name"] for part in parts] == ["weather", "recall"]

    first = reply("responses", "recall")
    custom = {"type": "custom_tool_call", "id": "x", "call_id": "x1", "name": "sh", "input": "ls"}
    first["output"].append(custom)
    model = Model(first, reply("responses"))
    wrapped(model, "responses")(messages=TALK, model="m")
    result = model.requests[1]["messages"][-1]
    assert (result["type"], result["call_id"]) == ("custom_tool_call_output", "x1")


def test_a_call_that_a_text_cannot_answer_is_asked_for_again() -> None:
    """The model is asked once more without the tool, and the caller gets that call."""
    first = reply("responses", "recall")
    shell = {"type": "local_shell_call", "id": "s", "call_id": "s1", "action": {}}
    first["output"].append(shell)
    last = reply("responses", "weather")
    model = Model(first, last)
    assert wrapped(model, "responses")(messages=TALK, model="m") is last
    assert model.requests[1]["messages"] == model.requests[0]["messages"]
    assert names(model.requests[1]) == []


def test_an_api_whose_replies_are_not_read_gets_no_tool() -> None:
    """Its calls are compacted and sent as without the tool."""
    model = Model(reply("responses"))
    client = compacter().wrap(client_of("responses", model))
    client.responses.parse(model="m", input=talk("responses"))
    assert len(model.requests[0]["messages"]) < len(TALK)
    assert names(model.requests[0]) == []
