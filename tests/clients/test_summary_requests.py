"""A request for a summary is built from what it needs, whatever the call carries.

Every parameter of each installed SDK's method is fed in, found by introspection; the tables say
which come through.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anthropic
import litellm
import openai
import pytest
from google.genai import types
from pydantic import BaseModel
from tests.conversations import user

from compacter import Compacter
from compacter.call.arguments import bind
from compacter.call.option_names import LEFT_OUT
from compacter.clients.bedrock import Converse, Invoke
from compacter.clients.google import Contents
from compacter.messages.format import get_format
from compacter.testing import ScriptedModel, token_limit_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.loopback import Provider

PROMPT = [{"role": "system", "content": "Summarise."}, {"role": "user", "content": "The record."}]


class Colour(BaseModel):
    colour: str


SPECIAL: dict[str, Any] = {
    "stream": True,
    "max_tokens": 2000,
    "max_completion_tokens": 2000,
    "max_output_tokens": 2000,
    "timeout": 30.0,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [],
    "n": 1,
    "temperature": 0.5,
    "top_p": 0.5,
    "betas": ["sentinel-betas."],
    "extra_headers": {"x-mine": "sentinel-extra_headers."},
    "extra_query": {"mine": "sentinel-extra_query."},
    "extra_body": {"mine": "sentinel-extra_body."},
    "output_format": Colour,
    "text_format": Colour,
    "text": {"verbosity": "sentinel-text."},
    "output_config": {"effort": "sentinel-output_config."},
}
"""Values for parameters that the SDKs look into; the others get a text that tells them apart."""
SAMPLING = {"temperature", "top_p"}
OPENAI = {
    "model",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "extra_headers",
    "extra_query",
    "extra_body",
    "user",
}
ANTHROPIC = {
    "model",
    "service_tier",
    "inference_geo",
    "user_profile_id",
    "workspace_id",
    "extra_headers",
    "extra_query",
    "extra_body",
    "metadata",
}
CLIENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "openai": (
        "openai_server",
        lambda url: openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0),
    ),
    "anthropic": (
        "anthropic_server",
        lambda url: anthropic.Anthropic(base_url=url, api_key="none", max_retries=0),
    ),
}
"""Vendor -> the fixture that speaks its protocol, and how its client is made for an address."""
METHODS: dict[str, tuple[str, str, set[str]]] = {
    "chat.completions.create": ("openai", "messages", {*OPENAI, *SAMPLING, "seed"}),
    "chat.completions.parse": ("openai", "messages", {*OPENAI, *SAMPLING, "seed"}),
    "responses.create": ("openai", "input", {*OPENAI, *SAMPLING, "access_programs"}),
    "responses.parse": ("openai", "input", {*OPENAI, *SAMPLING, "access_programs"}),
    "beta.responses.create": ("openai", "input", {*OPENAI, *SAMPLING, "betas", "access_programs"}),
    "messages.create": ("anthropic", "messages", ANTHROPIC),
    "messages.parse": ("anthropic", "messages", ANTHROPIC),
    "messages.stream": ("anthropic", "messages", ANTHROPIC),
    "beta.messages.create": ("anthropic", "messages", {*ANTHROPIC, "betas", "billing_policy"}),
    "beta.messages.parse": ("anthropic", "messages", {*ANTHROPIC, "betas", "billing_policy"}),
    "beta.messages.stream": ("anthropic", "messages", {*ANTHROPIC, "betas", "billing_policy"}),
}
"""Method -> its vendor, its messages argument, and the parameters that a request for a summary
takes over."""
NOT_FED = {"previous_response_id", "conversation", "parse_as"}
"""With the first two there is nothing to summarise in the call; the last says how to read the
others."""
BODY = {
    "model",
    "messages",
    "input",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "system",
    "instructions",
    "mine",  # The member of `extra_body`.
}
HISTORIES = {
    ("openai", "messages"): "chat",
    ("openai", "input"): "items",
    ("anthropic", "messages"): "blocks",
}


def parameters(method: str) -> list[str]:
    _, make = CLIENTS[METHODS[method][0]]
    function: Any = functools.reduce(getattr, method.split("."), make("http://localhost"))
    return list(inspect.signature(function).parameters)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("method", METHODS)
def test_each_sdk_method_passes_on_what_the_table_says_and_nothing_else(
    method: str, request: pytest.FixtureRequest, compacter: Compacter
) -> None:
    vendor, param, carried = METHODS[method]
    fixture, make = CLIENTS[vendor]
    server: Provider = request.getfixturevalue(fixture)
    fed = {
        name: SPECIAL.get(name, f"sentinel-{name}.")
        for name in parameters(method)
        if name not in NOT_FED
    }
    if method.endswith("parse"):
        fed |= {
            name: value
            for name, value in {"response_format": Colour, "stream": False}.items()
            if name in fed
        }
    fed[param] = request.getfixturevalue(HISTORIES[vendor, param])
    with make(server.url) as client:
        call: Any = functools.reduce(getattr, method.split("."), compacter.wrap(client))
        reply = call(**fed)
        if hasattr(reply, "__enter__"):
            with reply:
                # The answer is no JSON, which a stream with a format could not be read to its end
                # with.
                pass

    summaries = range(1, len(server.bodies) - 1)
    assert summaries
    for index in summaries:
        body = server.bodies[index]
        sent = json.dumps(body) + server.paths[index] + json.dumps(server.headers[index])
        assert not body.get("stream")
        seen = {
            name
            for name in fed
            if f"sentinel-{name}." in sent or (name in SAMPLING and name in body)
        }
        assert seen == carried & set(fed)
        assert set(body) <= {*BODY, *carried}


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_of_an_sdk_has_been_decided_on(method: str) -> None:
    _, param, carried = METHODS[method]
    known = {*LEFT_OUT, *carried, param, "timeout", "metadata", "betas"}
    assert set(parameters(method)) <= known


def kept(binding: Any, kwargs: dict[str, Any], form: str) -> dict[str, Any]:
    _, sent = binding.summary_call((), kwargs, get_format(form), PROMPT, 200)
    return dict(sent)


def test_a_wrapped_litellm_function_carries_nothing_else() -> None:
    given: dict[str, Any] = {
        name: f"sentinel-{name}."
        for name in inspect.signature(litellm.completion).parameters
        if name != "kwargs"
    }
    given |= {
        "metadata": {},
        "fallbacks": [],
        "aws_region_name": "here",
        "vertex_project": "mine",
        "my_own": 1,
    }
    given["messages"] = []
    found = bind(litellm.completion, messages_param="messages")
    assert found is not None
    sent = kept(dataclasses.replace(found, vendors=True), given, "openai")
    assert (
        set(sent)
        == {
            "model",
            "messages",
            "timeout",
            "temperature",
            "top_p",
            "seed",
            "deployment_id",
            "extra_headers",
            "service_tier",
            "prompt_cache_key",
            "prompt_cache_retention",
            "base_url",
            "api_version",
            "api_key",
            "model_list",
            "shared_session",
            "max_tokens",
            "aws_region_name",
            "vertex_project",
            "my_own",
            "user",
        }
        & given.keys()
    )


@pytest.mark.parametrize("as_object", [False, True])
def test_geminis_config_is_built_anew(as_object: bool) -> None:
    config: Any = {name: f"sentinel-{name}." for name in types.GenerateContentConfig.model_fields}
    config["thinking_config"] = {"thinking_budget": 0}
    if as_object:
        config = types.GenerateContentConfig.model_construct(**config)
    sent = kept(
        Contents(messages_param="contents"),
        {"model": "m", "contents": [], "config": config},
        "gemini",
    )
    assert set(sent) == {"model", "contents", "config"}
    assert set(sent["config"]) == {
        "http_options",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "safety_settings",
        "service_tier",
        "model_armor_config",
        "thinking_config",
        "system_instruction",
        "max_output_tokens",
        "labels",
        "model_selection_config",
        "routing_config",
    }
    assert "sentinel" not in sent["config"]["system_instruction"]
    assert sent["config"]["max_output_tokens"] == 200


def test_bedrocks_converse_is_built_anew() -> None:
    client: Any = import_module("boto3").client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )
    shape = client.meta.service_model.operation_model("Converse").input_shape
    given: dict[str, Any] = {name: f"sentinel-{name}." for name in shape.members}
    given["messages"] = []
    given["inferenceConfig"] = {
        "maxTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["END"],
    }
    given["additionalModelRequestFields"] = {"thinking": {"type": "enabled"}}
    sent = kept(Converse(), given, "bedrock")
    assert set(sent) == {
        "modelId",
        "guardrailConfig",
        "performanceConfig",
        "serviceTier",
        "messages",
        "system",
        "inferenceConfig",
    } | ({"projectIdentifier"} & set(shape.members))  # newer versions have it
    assert sent["inferenceConfig"] == {"maxTokens": 200, "temperature": 0.5, "topP": 0.9}


def test_so_is_the_body_of_invoke_model() -> None:
    names = set(
        inspect.signature(anthropic.Anthropic(api_key="none").beta.messages.create).parameters
    )
    body: dict[str, Any] = {name: f"sentinel-{name}." for name in names} | {
        "anthropic_version": "bedrock-2023-05-31"
    }
    given = {"modelId": "m", "body": json.dumps({**body, "messages": []}), "trace": "ENABLED"}
    sent = kept(Invoke(messages_param="body"), given, "anthropic")
    assert set(sent) == {"modelId", "body"}
    assert set(json.loads(sent["body"])) == {
        "anthropic_version",
        "messages",
        "max_tokens",
        "system",
    } | (names - LEFT_OUT - {"betas", "extra_body", "timeout"} | {"betas", "extra_body", "timeout"})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("thinking", {"type": "disabled"}),
        ("reasoning_effort", "none"),
        ("reasoning_effort", "minimal"),
        ("reasoning", {"effort": "none"}),
        ("reasoning", {"enabled": False}),
        ("think", False),
        ("store", False),
    ],
)
def test_what_is_switched_off_stays_off(option: str, value: Any) -> None:
    found = bind(openai.OpenAI(api_key="none").responses.create)
    assert found is not None
    assert kept(found, {"input": [], option: value}, "responses")[option] == value


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("thinking", {"type": "adaptive"}),
        ("reasoning_effort", "high"),
        ("reasoning", {"effort": "low"}),
        ("think", "high"),
        ("store", True),
    ],
)
def test_what_is_switched_on_is_left_out(option: str, value: Any) -> None:
    def chat(messages: Any, **options: Any) -> None: ...

    found = bind(chat)
    assert found is not None
    assert option not in kept(found, {"messages": [], option: value}, "openai")


ROUTED: dict[str, dict[str, Any]] = {
    "hosts": {"provider": {"zdr": True, "data_collection": "deny", "only": ["eu-host"]}},
    "thinking off in the template": {"chat_template_kwargs": {"enable_thinking": False}},
    "thinking off by a flag": {"enable_thinking": False},
    "thinking off": {"thinking": {"type": "disabled"}},
    "reasoning off": {"reasoning": {"enabled": False}},
    "the window": {"options": {"num_ctx": 6_000}},
    "the user's project": {"metadata": {"project": "eu-1"}},
}
FORMED: dict[str, Any] = {
    "guided_json": {"type": "object"},
    "tools": [{"type": "function"}],
    "plugins": [{"id": "web"}],
    "thinking": {"type": "enabled"},
    "previous_response_id": "resp_1",
    "stream_options": {"include_usage": True},
    "max_tokens": 9,
}


@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize("extra", ROUTED.values(), ids=ROUTED)
def test_where_the_call_goes_its_summarys_request_goes(
    extra: dict[str, Any], is_native: bool
) -> None:
    found = bind(openai.OpenAI(api_key="none").chat.completions.create)
    assert found is not None
    binding = dataclasses.replace(found, vendors=True)
    prefix = [{"role": "user", "content": "Hello."}] if is_native else None
    given = {"model": "m", "messages": [], "extra_body": {**extra, "guided_json": {}}}
    _, sent = binding.summary_call((), given, get_format("openai"), PROMPT, 200, prefix)
    assert sent["extra_body"] == extra


def test_members_of_an_extra_body_are_left_out_by_their_names() -> None:
    found = bind(openai.OpenAI(api_key="none").chat.completions.create)
    assert found is not None
    binding = dataclasses.replace(found, vendors=True)
    given = {"model": "m", "messages": [], "extra_body": FORMED}
    assert "extra_body" not in kept(binding, given, "openai")


def test_bedrocks_fields_of_a_model_are_decided_on_each() -> None:
    fields = {"thinking": {"type": "enabled"}, "anthropic_beta": ["context-1m-2025-08-07"]}
    given = {"modelId": "m", "messages": [], "additionalModelRequestFields": fields}
    sent = kept(Converse(), given, "bedrock")
    assert sent["additionalModelRequestFields"] == {"anthropic_beta": ["context-1m-2025-08-07"]}
    only_thinking = {"thinking": {"type": "enabled"}}
    given["additionalModelRequestFields"] = only_thinking
    assert "additionalModelRequestFields" not in kept(Converse(), given, "bedrock")


# -- functions of the user's own -------------------------------------------------------------------


def summaries_of(model: ScriptedModel) -> list[Any]:
    return [
        request for request in model.requests if "record of a conversation" in str(request.messages)
    ]


def talk() -> list[Any]:
    return [*(user(f"Question {number}? ".ljust(160, "q")) for number in range(30)), user("Now?")]


@pytest.mark.parametrize(
    "bound",
    [
        {"tools": [{"type": "function"}], "tool_choice": "auto"},
        {"stop": ["END"], "temperature": 0.1},
        {"response_format": {"type": "json_object"}, "metadata": {"id": 1}, "store": True},
    ],
)
def test_what_a_partial_has_bound_reaches_the_summarizer_as_little_as_what_is_passed(
    bound: dict[str, Any],
) -> None:
    model = ScriptedModel(window=900)
    chat = Compacter(max_summary_tokens=100).wrap(functools.partial(model.completion, "m", **bound))
    chat(messages=talk())
    assert isinstance(chat, functools.partial)
    assert summaries_of(model)
    for request in summaries_of(model):
        assert set(request.options) == {"max_tokens", *(bound.keys() & {"temperature"})}
    assert all(name in model.requests[-1].options for name in bound)


def test_a_parameter_that_must_be_given_is_given_empty() -> None:
    model = ScriptedModel(window=900)
    seen: list[Any] = []

    def chat(messages: Any, tools: Any, session: str, *, stop: Any, stream: bool = False) -> Any:
        seen.append((tools, session, stop, stream))
        return model.completion("m", messages)

    Compacter().wrap(chat)(talk(), [{"type": "function"}], "mine", stop=["END"])
    assert ([{"type": "function"}], "mine", ["END"], False) in seen
    assert (None, "mine", None, False) in seen
    assert len(set(map(str, seen))) == 2


def test_a_function_that_streams_by_default_is_asked_not_to() -> None:
    model = ScriptedModel(window=900)
    seen: list[bool] = []

    def chat(messages: Any, stream: bool = True) -> Any:  # noqa: FBT002 - that default is the subject
        seen.append(stream)
        return model.completion("m", messages, stream=stream)

    list(Compacter().wrap(chat)(talk()))
    assert set(seen[1:-1]) == {False}


def test_arguments_that_no_vendor_has_are_the_functions_own() -> None:
    model = ScriptedModel(window=900)
    seen: list[Any] = []

    def chat(messages: Any, **options: Any) -> Any:
        seen.append(options.pop("tenant"))
        return model.completion("m", messages)

    Compacter().wrap(chat)(messages=talk(), tenant="harbour")
    assert set(seen) == {"harbour"}
    assert len(seen) > 2


@pytest.mark.parametrize("is_native", [False, True])
def test_options_are_known_by_position_as_by_name(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compacter.compaction.summarize.is_native", lambda task: is_native)

    def requests(*args: Any, **kwargs: Any) -> list[Any]:
        model = ScriptedModel(window=4_000)

        def chat(
            messages: Any,
            max_tokens: int = 9,
            tools: Any = None,
            stop: Any = None,
            temperature: float = 1.0,
        ) -> Any:
            return model.completion(
                "m",
                messages,
                max_tokens=max_tokens,
                tools=tools,
                stop=stop,
                temperature=temperature,
            )

        middle = Compacter()
        middle.wrap(chat)(*args, **kwargs)
        assert middle.totals.failures == 0
        return [(request.messages, request.options) for request in model.requests]

    messages = [*talk()[:-1] * 4, talk()[-1]]
    tools = [{"type": "function", "function": {"name": "look"}}]
    by_position = requests(messages, 50, tools, ["END"], 0.3)
    assert by_position == requests(
        messages, max_tokens=50, tools=tools, stop=["END"], temperature=0.3
    )
    assert len(by_position) > 2


def test_an_output_limit_that_was_passed_by_position_is_lowered_there() -> None:
    allowed: list[int] = []

    def chat(messages: Any, max_tokens: int = 0) -> dict[str, Any]:
        allowed.append(max_tokens)
        if 400 + max_tokens > 1_000:
            raise token_limit_error(limit=1_000, input_tokens=400, output_tokens=max_tokens)
        return {"choices": []}

    told: list[Any] = []
    Compacter(on_event=told.append).wrap(chat)(talk(), 900)
    assert allowed == [900, 592]
    assert [(event.before, event.after, event.attempt) for event in told] == [(900, 592, 1)]
