"""The SDKs, unwrapped, with another base URL: what is too long is compacted, and nobody notices."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

Talk = Callable[..., Any]
Serve = Callable[..., Any]
REFUSAL = {
    "error": {
        "message": "This model's maximum context length is 900 tokens. However, your "
        "messages resulted in "
        "5000 tokens.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
}


def chat(url: str, key: str = "sk-one") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


def said(chunks: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def chat_says(client: openai.OpenAI, history: Any, *, stream: bool) -> str:
    reply: Any = client.chat.completions.create(model="m", messages=history, stream=stream)
    return said(reply) if stream else str(reply.choices[0].message.content)


def response_says(client: openai.OpenAI, history: Any, *, stream: bool) -> str:
    reply: Any = client.responses.create(model="m", input=history, stream=stream)
    if stream:
        return "".join(event.text for event in reply if event.type == "response.output_text.done")
    return str(reply.output_text)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("says", [chat_says, response_says])
def test_what_is_too_long_is_answered(
    serve: Serve,
    openai_server: Any,
    talk: Talk,
    words: str,
    refusing: str,
    says: Callable[..., str],
    *,
    stream: bool,
) -> None:
    openai_server.refuse = refusing
    serving = serve(f"{openai_server.url}/v1")
    with chat(serving.url) as client:
        assert says(client, talk(), stream=stream) == words
    assert serving.board.numbers()["rounds"] == 1


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_messages_that_are_too_long_are_answered(
    serve: Serve, anthropic_server: Any, talk: Talk, words: str, refusing: str, *, stream: bool
) -> None:
    anthropic_server.refuse = refusing
    serving = serve(anthropic_server.url)
    with anthropic.Anthropic(base_url=serving.url, api_key="sk-one", max_retries=0) as client:
        asked: dict[str, Any] = {"model": "m", "messages": talk(), "max_tokens": 100}
        if stream:
            with client.messages.stream(**asked) as reply:
                assert reply.get_final_text() == words
        else:
            assert client.messages.create(**asked).content[0].text == words
    assert serving.board.numbers()["rounds"] == 1


async def test_async_clients_are_answered_too(
    serve: Serve, openai_server: Any, talk: Talk, words: str
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    async with openai.AsyncOpenAI(
        base_url=f"{serving.url}/v1", api_key="sk-one", max_retries=0
    ) as client:
        reply: Any = await client.chat.completions.create(model="m", messages=talk())
    assert reply.choices[0].message.content == words


def test_every_request_bears_the_callers_key_and_headers(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    with chat(serving.url) as client:
        client.chat.completions.create(
            model="m",
            messages=talk(),
            extra_headers={"X-Team": "harbour"},
            extra_query={"api-version": "7"},
        )
    assert len(openai_server.headers) >= 3
    assert {sent["authorization"] for sent in openai_server.headers} == {"Bearer sk-one"}
    assert {sent["x-team"] for sent in openai_server.headers} == {"harbour"}
    assert {sent["host"] for sent in openai_server.headers} == {
        openai_server.url.removeprefix("http://")
    }
    assert set(openai_server.paths) == {"/v1/chat/completions?api-version=7"}


def test_a_compacted_request_does_not_bear_the_key_of_the_refused_one(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    with chat(serving.url) as client:
        client.chat.completions.create(
            model="m", messages=talk(), extra_headers={"Idempotency-Key": "once"}
        )
    assert ["idempotency-key" in sent for sent in openai_server.headers].count(True) == 1
    assert "idempotency-key" in openai_server.headers[0]


def test_a_later_call_of_the_conversation_is_not_refused_again(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    with chat(serving.url) as client:
        history: Any = talk()
        client.chat.completions.create(model="m", messages=history)
        before = len(openai_server.bodies)
        history += [
            {"role": "assistant", "content": "The first."},
            {"role": "user", "content": "Sure?"},
        ]
        client.chat.completions.create(model="m", messages=history)
    assert len(openai_server.bodies) == before + 1


def test_a_request_that_fits_is_sent_byte_for_byte(serve: Serve, answering: Any) -> None:
    answered = (
        b'{"id": "x",  "choices": [{"message": {"role": "assistant", "content": '
        b'"Yes."}, "n": 1.10}]}'
    )
    server = answering(answered, more="X-Request-Id: 7\n".replace("\n", "\r\n"))
    serving = serve(server.url)
    body = (
        b'{ "temperature": 1.0,"messages":[{"role":"user","content":"\\u00e9 '
        b'\xc3\xa9"}], "model":"m", "seed":1e3}'
    )
    got = serving.post("/v1/chat/completions", body)
    assert server.asked[0].body == body
    assert got.startswith(b"HTTP/1.1 200 ")
    assert b"x-request-id: 7\r\n" in got.lower()
    assert got.endswith(b"\r\n\r\n" + answered)


@pytest.mark.parametrize(
    "status", ["400 Bad Request", "401 Unauthorized", "429 Too Many Requests", "503 Busy"]
)
def test_another_error_comes_back_as_it_was(serve: Serve, answering: Any, status: str) -> None:
    answered = b'{"error":  {"message": "No such key.", "code": "invalid_api_key"}}'
    server = answering(answered, status, more="Retry-After: 9\r\n")
    serving = serve(server.url)
    body = b'{"messages": [{"role": "user", "content": "Hello"}]}'
    got = serving.post("/v1/messages", body)
    assert got.startswith(f"HTTP/1.1 {status[:3]}".encode())
    assert b"retry-after: 9" in got.lower()
    assert got.endswith(answered)
    assert len(server.asked) == 1


def test_where_nothing_helps_the_upstreams_own_refusal_comes_back(
    serve: Serve, answering: Any
) -> None:
    answered = json.dumps(REFUSAL, indent=3).encode()
    server = answering(answered, "400 Bad Request")
    serving = serve(server.url)
    body = json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "long " * 4000}]}
    ).encode()
    assert serving.post("/v1/chat/completions", body).endswith(answered)
    assert serving.board.numbers()["given_up"] == 1


def test_a_refusal_inside_a_stream_comes_back_as_it_was_where_nothing_helps(
    serve: Serve, upstream: Any, wire: Any
) -> None:
    event = b"event: error\ndata: " + json.dumps({"type": "error", **REFUSAL}).encode() + b"\n\n"
    server = upstream(lambda asked, write: write(wire.STREAM + wire.chunk(event) + wire.chunk(b"")))
    serving = serve(server.url)
    body = json.dumps(
        {"messages": [{"role": "user", "content": "long " * 4000}], "stream": True}
    ).encode()
    assert event in serving.post("/v1/messages", body)
    assert serving.board.numbers()["given_up"] == 1


def test_summaries_can_be_another_models(serve: Serve, openai_server: Any, talk: Talk) -> None:
    serving = serve(f"{openai_server.url}/v1", summarizer="small")
    with chat(serving.url) as client:
        client.chat.completions.create(model="m", messages=talk())
    models = [body["model"] for body in openai_server.bodies]
    assert (models[0], models[-1], set(models[1:-1])) == ("m", "m", {"small"})


def test_summaries_need_no_model(serve: Serve, openai_server: Any, talk: Talk) -> None:
    serving = serve(f"{openai_server.url}/v1", summarizer="extractive")
    with chat(serving.url) as client:
        client.chat.completions.create(model="m", messages=talk())
    assert len(openai_server.bodies) == 2


def test_a_dry_run_changes_nothing_and_tells_what_would_be_compacted(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1", dry_run=True)
    with (
        chat(serving.url) as client,
        pytest.raises(openai.BadRequestError, match="maximum context length"),
    ):
        client.chat.completions.create(model="m", messages=talk(), max_tokens=1200)
    assert len(openai_server.bodies) == 1
    assert serving.board.numbers()["dry_runs"] == 1
    assert any("would compact" in line and "41 messages" in line for line in serving.lines)


def test_a_past_that_the_server_keeps_is_compacted_there(
    serve: Serve, openai_server: Any, words: str
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    with chat(serving.url) as client:
        reply = client.responses.create(model="m", input="And now?", previous_response_id="resp_9")
    assert reply.output_text == words
    assert openai_server.paths[1] == "/v1/responses/compact"


def test_results_of_calls_in_a_past_that_the_server_keeps_are_sent_with_their_calls(
    serve: Serve, openai_server: Any, words: str
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    outputs: Any = [
        {"type": "function_call_output", "call_id": "call_1", "output": "built in 1850"}
    ]
    with chat(serving.url) as client:
        reply = client.responses.create(model="m", input=outputs, previous_response_id="resp_0")
    assert reply.output_text == words
    assert openai_server.paths[2] == "/v1/responses/resp_0"
    assert openai_server.headers[2]["authorization"] == "Bearer sk-one"
    kinds = [item["type"] for item in openai_server.bodies[-1]["input"]]
    assert kinds == ["compaction", "reasoning", "function_call", "function_call_output"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_that_is_packed_or_ends_without_an_empty_line_is_understood(
    serve: Serve, upstream: Any, wire: Any, talk: Talk, *, stream: bool
) -> None:
    event = b"data: " + json.dumps({"type": "error", **REFUSAL}).encode()
    packed = wire.plain(
        gzip.compress(json.dumps(REFUSAL).encode()),
        "400 Bad Request",
        more="Content-Encoding: gzip\r\n",
    )
    refusal = wire.plain(event, kind="text/event-stream") if stream else packed
    server: Any = upstream(
        lambda asked, write: write(refusal if len(server.asked) == 1 else wire.plain(b"{}"))
    )
    body = json.dumps({"model": "m", "messages": talk(), "stream": stream}).encode()
    assert (
        serve(server.url, summarizer="extractive")
        .post("/v1/chat/completions", body)
        .endswith(b"{}")
    )
    assert len(server.asked[1].body) < len(body)


def test_a_summary_that_cannot_be_had_is_a_500_where_nothing_else_may_be_done(
    serve: Serve, upstream: Any, wire: Any, talk: Talk
) -> None:
    refusal = wire.plain(json.dumps(REFUSAL).encode(), "400 Bad Request")
    server: Any = upstream(
        lambda asked, write: write(refusal if len(server.asked) == 1 else wire.plain(b"{}"))
    )
    body = json.dumps({"model": "m", "messages": talk()}).encode()
    got = serve(server.url, fallback=None).post("/v1/chat/completions", body)
    assert got.startswith(b"HTTP/1.1 500 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "compaction_failed"


@pytest.mark.parametrize(
    "name", ["self", "function", "args", "kwargs", "messages_param", "io", "compacter_options"]
)
def test_members_of_any_name_go_through(serve: Serve, answering: Any, name: str) -> None:
    server = answering()
    serving = serve(server.url)
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}], name: "x"}).encode()
    assert serving.post("/v1/chat/completions", body).endswith(b"{}")
    assert server.asked[0].body == body


def test_a_caller_does_not_set_options_of_the_server(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    with (
        chat(serving.url) as client,
        pytest.raises(openai.BadRequestError, match="maximum context length"),
    ):
        client.chat.completions.create(
            model="m",
            messages=talk(),
            extra_body={"compacter_options": {"summarizer": "extractive"}},
        )
    assert len(openai_server.bodies) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"messages": 7}',
        b'{"messages": {}}',
        b'{"messages": []}',
        b'{"messages": [7, null, []]}',
        b'{"messages": [{"role": 7, "content": {"a": 1}}]}',
        b'{"input": [NaN]}',
    ],
)
def test_a_body_that_is_no_conversation_goes_through(
    serve: Serve, answering: Any, body: bytes
) -> None:
    refusal = json.dumps(REFUSAL).encode()
    server = answering(refusal, "400 Bad Request")
    serving = serve(server.url)
    for path in ("chat/completions", "responses", "messages"):
        head = f"POST /v1/{path} HTTP/1.1\nHOST\nContent-Length: {len(body)}\nConnection: close\n\n"
        assert serving.ask(head, body).endswith(refusal)
    assert [asked.body for asked in server.asked] == [body] * 3
