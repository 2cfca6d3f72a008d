"""Gemini, Ollama and Bedrock: each in the same cells as the other protocols."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import botocore.config
import httpx
import pytest
from google import genai
from google.genai import types
from tests.clients import loopback
from tests.dialects import retold

from compacter import SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.serve import main

Serve = Callable[..., Any]


def ollama(server: loopback.Provider, path: str, body: loopback.Body) -> loopback.Answer:
    """Ollama with ``truncate: false``: it streams lines of JSON unless the request disables
    that.
    """
    assert path == "/api/chat"
    streaming = body.get("stream", True)
    tokens = server.too_long(body["messages"])
    if tokens:
        text = f"the input length ({tokens} tokens) exceeds the context length (1500 tokens)"
        if streaming and server.refuse == "event":
            lines = [{"model": "m", "message": {"role": "assistant", "content": ""}, "done": False}]
            return ndjson([*lines, {"error": text}])
        return loopback.json_answer({"error": text}, 400)
    done = {
        "model": "m",
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 90,
        "eval_count": 9,
    }
    pieces = [
        {"model": "m", "message": {"role": "assistant", "content": piece}, "done": False}
        for piece in loopback.PIECES
    ]
    if streaming:
        last = {**done, "message": {"role": "assistant", "content": ""}}
        return ndjson([*pieces, last])
    return loopback.json_answer(
        {**done, "message": {"role": "assistant", "content": loopback.WORDS}}
    )


def ndjson(lines: list[dict[str, Any]]) -> loopback.Answer:
    body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    return loopback.Answer(body, "application/x-ndjson")


class GeminiArray:
    """``streamGenerateContent`` without ``alt=sse``: one JSON array, piece by piece."""

    def __call__(
        self, server: loopback.Provider, path: str, body: loopback.Body
    ) -> loopback.Answer:
        answer = loopback.gemini(server, path, body)
        if "stream" not in path:
            return answer
        if "event-stream" not in answer.kind:  # An error stands in an array too.
            return loopback.Answer(b"[" + answer.body + b"]", answer.kind, answer.status)
        events = [line[6:] for line in answer.body.decode().splitlines() if line[:6] == "data: "]
        array = "[" + ",\r\n".join(events) + "\n]"
        return loopback.Answer(array.encode(), "application/json")


QUESTION = "Which pier came first?"


def talk(*, tools: bool) -> list[dict[str, Any]]:
    """A conversation that is too long, with or without calls of a tool and their results."""
    said: list[dict[str, Any]] = []
    for number in range(20):
        said.append({"role": "user", "content": f"What is known of pier {number}? " * 8})
        if tools and number % 3 == 0:
            function = {"name": "look_up", "arguments": f'{{"pier": {number}}}'}
            call = {"id": f"t{number}", "function": function}
            said.append({"role": "assistant", "content": "", "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": call["id"], "content": str(number)})
        answer = f"Pier {number} was built of oak in {1800 + number}. " * 8
        said.append({"role": "assistant", "content": answer})
    return [*said, {"role": "user", "content": QUESTION}]


def gemini_says(url: str, *, stream: bool, key: str, tools: bool) -> str:
    options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
    asked: dict[str, Any] = {
        "model": "gemini-test",
        "contents": retold("gemini", talk(tools=tools)),
        "config": {"system_instruction": "Be brief.", "max_output_tokens": 100},
    }
    with genai.Client(api_key=key, http_options=options) as client:
        if stream:
            chunks = client.models.generate_content_stream(**asked)
            return "".join(chunk.text or "" for chunk in chunks)
        return str(client.models.generate_content(**asked).text)


def gemini_array_says(url: str, *, stream: bool, key: str, tools: bool) -> str:
    contents = retold("gemini", talk(tools=tools))
    verb = "streamGenerateContent" if stream else "generateContent"
    path = f"{url}/v1beta/models/gemini-test:{verb}?key={key}"
    answer = httpx.post(path, json={"contents": contents}, timeout=300).json()
    replies = answer if isinstance(answer, list) else [answer]
    parts = [part for reply in replies for part in reply["candidates"][0]["content"]["parts"]]
    return "".join(part["text"] for part in parts)


def ollama_says(url: str, *, stream: bool, key: str, tools: bool) -> str:
    messages = talk(tools=tools)
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    body: dict[str, Any] = {"model": "m", "messages": messages, "options": {"num_ctx": 1500}}
    if not stream:
        body["stream"] = False
    headers = {"authorization": f"Bearer {key}"}
    reply = httpx.post(f"{url}/api/chat", json=body, headers=headers, timeout=300)
    lines = [json.loads(line) for line in reply.text.splitlines()]
    return "".join(line["message"]["content"] for line in lines)


def aws(url: str, key: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id=key,
        aws_secret_access_key="none",
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )


def converse_says(url: str, *, stream: bool, key: str, tools: bool) -> str:
    client = aws(url, key)
    asked = {"modelId": "amazon.nova-pro-v1:0", "messages": retold("bedrock", talk(tools=tools))}
    if not stream:
        return str(client.converse(**asked)["output"]["message"]["content"][0]["text"])
    events = client.converse_stream(**asked)["stream"]
    deltas = [event["contentBlockDelta"] for event in events if "contentBlockDelta" in event]
    return "".join(delta["delta"]["text"] for delta in deltas)


def invoke_says(url: str, *, stream: bool, key: str, tools: bool) -> str:
    messages = retold("anthropic", talk(tools=tools))
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "messages": messages}
    asked = {"modelId": "anthropic.claude-x", "body": json.dumps(body)}
    client = aws(url, key)
    if not stream:
        return str(json.loads(client.invoke_model(**asked)["body"].read())["content"][0]["text"])
    events = client.invoke_model_with_response_stream(**asked)["body"]
    chunks = [json.loads(event["chunk"]["bytes"]) for event in events]
    return "".join((chunk.get("delta") or {}).get("text") or "" for chunk in chunks)


PROTOCOLS: dict[str, tuple[Any, Any]] = {
    "gemini": (gemini_says, loopback.gemini),
    "gemini as an array": (gemini_array_says, GeminiArray()),
    "ollama": (ollama_says, ollama),
    "converse": (converse_says, loopback.bedrock),
    "invoke": (invoke_says, loopback.bedrock),
}
MODES = {"plain": (False, "status"), "streamed": (True, "status"), "inside 200": (True, "event")}


@pytest.fixture(params=PROTOCOLS)
def protocol(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, loopback.Provider]]:
    """A client's request, and the server that answers it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOPERATOR")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs")
    says, vendor = PROTOCOLS[request.param]
    with loopback.serving(vendor) as server:
        yield says, server


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_too_long_is_answered(
    serve: Serve, protocol: Any, words: str, mode: str, *, tools: bool
) -> None:
    says, server = protocol
    stream, server.refuse = MODES[mode]
    serving = serve(server.url, aws_region="us-east-1")
    assert says(serving.url, stream=stream, key="one", tools=tools) == words
    assert serving.board.numbers()["rounds"] == 1
    assert serving.board.numbers()["failures"] == 0
    assert serving.board.counts["passed_on"] == 0


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("name", ["gemini", "gemini as an array", "ollama"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_document_with_status_200_is_recovered(
    serve: Serve, words: str, name: str, *, stream: bool, tools: bool
) -> None:
    """As servers and gateways in front of them send it; Bedrock's has no member that tells it."""
    says, vendor = PROTOCOLS[name]

    def with_status_200(server: loopback.Provider, path: str, body: Any) -> loopback.Answer:
        answer: loopback.Answer = vendor(server, path, body)
        answer.status = 200
        return answer

    with loopback.serving(with_status_200) as server:
        serving = serve(server.url)
        assert says(serving.url, stream=stream, key="one", tools=tools) == words
    assert serving.board.numbers()["rounds"] == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_second_call_begins_from_the_record_and_another_key_does_not(
    serve: Serve, protocol: Any, tmp_path: Path, *, stream: bool
) -> None:
    says, server = protocol
    memory = SQLiteMemory(tmp_path / "memory.db")
    serving = serve(server.url, aws_region="us-east-1", memory=memory)
    says(serving.url, stream=stream, key="one", tools=False)
    before = len(server.bodies)
    says(serving.url, stream=not stream, key="one", tools=False)
    assert len(server.bodies) == before + 1
    says(serving.url, stream=stream, key="two", tools=False)
    assert serving.board.numbers()["rounds"] == 2


def test_another_model_writes_summaries_where_one_is_named(serve: Serve, protocol: Any) -> None:
    says, server = protocol
    serving = serve(server.url, aws_region="us-east-1", summarizer="writer-2.5:x")
    says(serving.url, stream=True, key="one", tools=False)
    written = f"{server.paths[1]} {server.bodies[1].get('model')}"
    assert "writer-2.5:x" in written.replace("%3A", ":")
    assert serving.board.numbers()["failures"] == 0


def test_a_signed_request_is_signed_anew_with_the_operators_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOPERATOR")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    with loopback.serving(loopback.bedrock) as server:
        serving = serve(server.url, aws_region="eu-west-1")
        converse_says(serving.url, stream=False, key="AKIDCALLER", tools=False)
        for headers in server.headers:
            assert "Credential=AKIDOPERATOR/" in headers["authorization"]
            assert "/eu-west-1/bedrock/" in headers["authorization"]
            assert headers["x-amz-security-token"] == "token"
            assert "AKIDCALLER" not in str(headers)
        signatures = [headers["authorization"] for headers in server.headers]
        assert len(set(signatures)) == len(signatures)


def test_an_api_key_of_the_operator_comes_before_credentials_as_with_boto3(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOPERATOR")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-operator")
    with loopback.serving(loopback.bedrock) as server:
        serving = serve(server.url, aws_region="eu-west-1")
        monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK")
        converse_says(serving.url, stream=False, key="AKIDCALLER", tools=False)
    assert len(server.headers) > 2
    for headers in server.headers:
        assert headers["authorization"] == "Bearer bedrock-api-key-operator"
        assert "AKID" not in str(headers)


def test_without_credentials_a_signed_request_is_passed_on_and_told_once(serve: Serve) -> None:
    with loopback.serving(loopback.bedrock) as server:
        serving = serve(server.url)
        for _ in range(2):
            with pytest.raises(Exception, match="too long for requested model"):
                converse_says(serving.url, stream=False, key="AKIDCALLER", tools=False)
        assert "AKIDCALLER" in server.headers[0]["authorization"]
    assert [line for line in serving.lines if "--aws-region" in line] == serving.lines[:1]


def test_an_api_key_of_bedrock_needs_no_signature(serve: Serve, words: str) -> None:
    messages = retold("bedrock", talk(tools=False))
    with loopback.serving(loopback.bedrock) as server:
        serving = serve(server.url)
        got = httpx.post(
            f"{serving.url}/model/amazon.nova/converse",
            json={"messages": messages},
            headers={"authorization": "Bearer bedrock-api-key-x"},
            timeout=300,
        )
    assert got.json()["output"]["message"]["content"][0]["text"] == words


def test_credentials_are_not_lent_to_other_machines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDOPERATOR")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "theirs")
    upstream = "https://bedrock-runtime.us-east-1.amazonaws.com"
    arguments = ["--upstream", upstream, "--aws-region", "us-east-1", "--host", "0.0.0.0"]  # noqa: S104
    assert main(arguments) == 2
    assert "--aws-region" in capsys.readouterr().err


def test_without_any_credentials_the_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK")
    for name in (*keys, "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/no/such/file")
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID"):
        serve("https://bedrock-runtime.us-east-1.amazonaws.com", aws_region="us-east-1")


@pytest.mark.parametrize(
    "body",
    [
        {"inputText": "Hello"},
        {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9},
        {"prompt": b64encode(b"x").decode()},
    ],
)
def test_a_body_of_another_vendor_is_passed_on(
    serve: Serve, answering: Any, body: dict[str, Any]
) -> None:
    server = answering()
    serving = serve(server.url)
    raw = json.dumps(body).encode()
    httpx.post(f"{serving.url}/model/amazon.titan/invoke", content=raw, timeout=300)
    assert server.asked[0].body == raw
    assert serving.board.counts["passed_on"] == 1
