"""boto3's bedrock-runtime client, wrapped whole: against botocore's own stubber, and against its
wire format.
"""

from __future__ import annotations

import copy
import io
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.loopback import Provider

# Neither package is typed: what is taken from them is whatever it is.
boto3: Any = import_module("boto3")
Config: Any = import_module("botocore.config").Config
EventStream: Any = import_module("botocore.eventstream").EventStream
Stubber: Any = import_module("botocore.stub").Stubber
ClientError: Any = import_module("botocore.exceptions").ClientError
EventStreamError: Any = import_module("botocore.exceptions").EventStreamError

MODEL = "anthropic.claude-test-v1:0"
OPTIONS: dict[str, Any] = {
    "modelId": MODEL,
    "system": [{"text": "Be terse."}],
    "inferenceConfig": {"maxTokens": 50, "temperature": 0.5, "stopSequences": ["END"]},
    "toolConfig": {
        "tools": [{"toolSpec": {"name": "look_up", "inputSchema": {"json": {"type": "object"}}}}]
    },
}


def made(**options: Any) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}),
        **options,
    )


@pytest.fixture
def client(bedrock_server: Provider) -> Iterator[Any]:
    client = made(endpoint_url=bedrock_server.url)
    yield client
    client.close()


def test_a_body_that_is_a_stream_is_passed_on_as_it_is(
    client: Any, bedrock_server: Provider, chat: list[Any]
) -> None:
    body = json.dumps(
        {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": chat}
    ).encode()
    with pytest.raises(ClientError, match="too long"):
        Compacter().wrap(client).invoke_model(modelId=MODEL, body=io.BytesIO(body))
    assert len(bedrock_server.bodies) == 1


def check(server: Provider, history: list[Any], events: list[CompactionEvent]) -> None:
    refused, *summaries, answered = server.bodies
    assert refused["messages"] == history
    assert answered["messages"][-1] == history[-1]
    assert len(answered["messages"]) < len(history)
    assert {name: answered[name] for name in answered if name != "messages"} == {
        name: refused[name] for name in refused if name != "messages"
    }
    assert [event.trigger for event in events] == ["token_limit"]
    assert (events[0].fallback, events[0].summarizer_calls) == (False, len(summaries))
    assert (events[0].input_tokens, events[0].output_tokens) == (
        90 * len(summaries),
        9 * len(summaries),
    )
    for body in summaries:
        assert body["inferenceConfig"] == {"temperature": 0.5, "maxTokens": 150}
        assert "toolConfig" not in body


def test_converse(
    client: Any, bedrock_server: Provider, compacter: Recording, converse: list[Any]
) -> None:
    before = copy.deepcopy(converse)
    reply = compacter.wrap(client).converse(messages=converse, **OPTIONS)
    assert reply["output"]["message"]["content"][0]["text"] == WORDS
    assert converse == before
    check(bedrock_server, converse, compacter.events)


def test_converse_stream(
    client: Any, bedrock_server: Provider, compacter: Recording, converse: list[Any], refusing: Any
) -> None:
    bedrock_server.refuse = refusing
    reply = compacter.wrap(client).converse_stream(messages=converse, **OPTIONS)
    assert reply["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert isinstance(reply["stream"], EventStream)
    seen = list(reply["stream"])
    assert [next(iter(event)) for event in (seen[0], seen[-1])] == ["messageStart", "metadata"]
    deltas = [
        event["contentBlockDelta"]["delta"]["text"]
        for event in seen
        if "contentBlockDelta" in event
    ]
    assert "".join(deltas) == WORDS
    reply["stream"].close()
    check(bedrock_server, converse, compacter.events)


BODY: dict[str, Any] = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 50,
    "system": "Be terse.",
    "temperature": 0.5,
    "stop_sequences": ["END"],
    "tools": [{"name": "look_up", "input_schema": {"type": "object"}}],
}


def check_body(server: Provider, history: list[Any], events: list[CompactionEvent]) -> None:
    refused, *summaries, answered = server.bodies
    assert refused["messages"] == history
    assert answered["messages"][-1] == history[-1]
    assert len(answered["messages"]) < len(history)
    assert {**answered, "messages": None} == {**refused, "messages": None}
    assert [(event.trigger, event.fallback) for event in events] == [("token_limit", False)]
    for body in summaries:
        assert set(body) == {"anthropic_version", "temperature", "max_tokens", "messages"}


@pytest.mark.parametrize("packed", [str, lambda text: text.encode()], ids=["text", "bytes"])
def test_invoke_model_with_anthropics_body(
    packed: Callable[[str], Any],
    client: Any,
    bedrock_server: Provider,
    compacter: Recording,
    blocks: list[Any],
) -> None:
    body = packed(json.dumps({**BODY, "messages": blocks}))
    reply = compacter.wrap(client).invoke_model(modelId=MODEL, body=body)
    assert json.loads(reply["body"].read())["content"][0]["text"] == WORDS
    check_body(bedrock_server, blocks, compacter.events)


def test_a_body_that_fits_is_sent_byte_for_byte_when_a_compaction_is_remembered(
    client: Any, compacter: Compacter, blocks: list[Any]
) -> None:
    sent: list[Any] = []
    client.meta.events.register(
        "before-send.bedrock-runtime.*", lambda request, **_: sent.append(request.body)
    )
    wrapped = compacter.wrap(client)
    wrapped.invoke_model(modelId=MODEL, body=json.dumps({**BODY, "messages": blocks}))[
        "body"
    ].read()
    assert compacter.totals.rounds == 1
    body = json.dumps({"messages": blocks[-1:], **BODY}, indent=3).encode()
    wrapped.invoke_model(modelId=MODEL, body=body)["body"].read()
    assert sent[-1] == body


def test_invoke_model_with_response_stream(
    client: Any, bedrock_server: Provider, compacter: Recording, blocks: list[Any], refusing: Any
) -> None:
    bedrock_server.refuse = refusing
    body = json.dumps({**BODY, "messages": blocks})
    reply = compacter.wrap(client).invoke_model_with_response_stream(modelId=MODEL, body=body)
    assert isinstance(reply["body"], EventStream)
    chunks = [json.loads(event["chunk"]["bytes"]) for event in reply["body"]]
    assert [chunk["type"] for chunk in (chunks[0], chunks[-1])] == ["message_start", "message_stop"]
    assert "".join(chunk["delta"].get("text", "") for chunk in chunks if "delta" in chunk) == WORDS
    reply["body"].close()
    check_body(bedrock_server, blocks, compacter.events)


def test_its_summary_may_be_asked_for_natively(
    client: Any,
    bedrock_server: Provider,
    events: list[CompactionEvent],
    blocks: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A compaction made ahead asks at the end of the call's own messages."""
    monkeypatch.setattr("compacter.compaction.summarize.is_native", lambda task: True)
    native = Compacter(max_summary_tokens=100, on_compaction=events.append)
    body = json.dumps({**BODY, "messages": blocks[-60:]})
    bedrock_server.too_long = lambda messages: 9 if len(messages) > 58 else None  # type: ignore[method-assign, arg-type]
    native.wrap(client).invoke_model(modelId=MODEL, body=body)["body"].read()
    asked = bedrock_server.bodies[1]
    assert asked["tools"] == BODY["tools"]
    assert "stop_sequences" not in asked
    assert len(asked["messages"]) > 1
    assert events


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("no JSON", "no messages"),
        (b"[1]", "no messages"),
        ('{"prompt": "What?"}', "no messages"),
        (
            '{"schemaVersion": "messages-v1", "messages": [{"role": "user", "content": []}]}',
            "not Anthropic's, and no other body is compacted: use converse",
        ),
    ],
)
def test_any_other_body_is_left_alone(
    body: Any, note: str, client: Any, bedrock_server: Provider, compacter: Compacter
) -> None:
    """The refusal of a body that is not Anthropic's has a note with the reason and the remedy."""
    bedrock_server.vendor = lambda *_: refusal()
    with pytest.raises(ClientError, match="Input is too long") as caught:
        compacter.wrap(client).invoke_model(modelId=MODEL, body=body)
    assert note in caught.value.__notes__[0]
    assert len(bedrock_server.paths) == 1


def refusal() -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(
        body=b'{"message": "Input is too long for requested model."}',
        kind="application/json",
        status=400,
        headers=[("x-amzn-ErrorType", "ValidationException")],
    )


def test_aiobotocores_clients_are_refused_with_a_remedy(client: Any, compacter: Compacter) -> None:
    client.__class__ = type("BedrockRuntime", (type(client),), {"__module__": "aiobotocore.client"})
    with pytest.raises(TypeError, match="Wrap a coroutine function that calls yours"):
        compacter.wrap(client)


def test_giving_up_raises_botocores_own_exception(
    client: Any, bedrock_server: Provider, converse: list[Any], refusing: Any
) -> None:
    bedrock_server.refuse = refusing
    wrapped = Compacter(max_retries=0).wrap(client)
    with pytest.raises(ClientError, match="Input is too long") as caught:
        wrapped.converse_stream(messages=converse, **OPTIONS)
    assert isinstance(caught.value, EventStreamError) == (refusing == "event")
    assert len(bedrock_server.bodies) == 1


def test_a_stubbed_client_stays_stubbed(compacter: Compacter, converse: list[Any]) -> None:
    client = made()
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    message = {"role": "assistant", "content": [{"text": WORDS}]}
    reply = {
        "output": {"message": message},
        "stopReason": "end_turn",
        "usage": usage,
        "metrics": {"latencyMs": 1},
    }
    with Stubber(client) as stubber:
        stubber.add_client_error(
            "converse", "ValidationException", ("Input is too long for requested model."), 400
        )
        stubber.add_response("converse", reply)
        stubber.add_response("converse", reply)
        wrapped = compacter.wrap(client)
        assert wrapped.converse(messages=converse, **OPTIONS)["output"]["message"] == message
        stubber.assert_no_pending_responses()


def test_clients_of_other_services_are_refused(compacter: Compacter) -> None:
    other = boto3.client(
        "s3", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none"
    )
    with pytest.raises(TypeError, match="bedrock-runtime"):
        compacter.wrap(other)
