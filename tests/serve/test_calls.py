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
PATH = "/v1/chat/completions"
LIMIT = "This model's maximum context length is 900 tokens. However, you sent 5000 tokens."
REFUSAL = {
    "error": {
        "message": LIMIT,
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
}
LONG = {"model": "m", "messages": [{"role": "user", "content": "long " * 4000}]}


def chat(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="sk-one", max_retries=0)


def create(serving: Any, history: Any, **more: Any) -> Any:
    with chat(serving.url) as client:
        return client.chat.completions.create(model="m", messages=history, **more)


def chat_says(url: str, history: Any, *, stream: bool) -> str:
    with chat(url) as client:
        reply: Any = client.chat.completions.create(model="m", messages=history, stream=stream)
        if stream:
            return "".join(chunk.choices[0].delta.content or "" for chunk in reply)
        return str(reply.choices[0].message.content)


def response_says(url: str, history: Any, *, stream: bool) -> str:
    with chat(url) as client:
        reply: Any = client.responses.create(model="m", input=history, stream=stream)
        if stream:
            done = (event for event in reply if event.type == "response.output_text.done")
            return "".join(event.text for event in done)
        return str(reply.output_text)


def message_says(url: str, history: Any, *, stream: bool) -> str:
    with anthropic.Anthropic(base_url=url, api_key="sk-one", max_retries=0) as client:
        asked: dict[str, Any] = {"model": "m", "messages": history, "max_tokens": 100}
        if stream:
            with client.messages.stream(**asked) as reply:
                return reply.get_final_text()
        return str(client.messages.create(**asked).content[0].text)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("says", [chat_says, response_says, message_says])
def test_what_is_too_long_is_answered(
    serve: Serve,
    openai_server: Any,
    anthropic_server: Any,
    talk: Talk,
    words: str,
    refusing: str,
    says: Callable[..., str],
    *,
    stream: bool,
) -> None:
    server = anthropic_server if says is message_says else openai_server
    server.refuse = refusing
    serving = serve(server.url)
    assert says(serving.url, talk(), stream=stream) == words
    assert serving.board.numbers()["rounds"] == 1


async def test_async_clients_are_answered_too(
    serve: Serve, openai_server: Any, talk: Talk, words: str
) -> None:
    url = f"{serve(f'{openai_server.url}/v1').url}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key="sk-one", max_retries=0) as client:
        reply: Any = await client.chat.completions.create(model="m", messages=talk())
    assert reply.choices[0].message.content == words


def test_every_request_bears_the_callers_key_and_headers(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    """All requests of a call have the caller's headers and query; only the refused one has its
    idempotency key.
    """
    headers = {"X-Team": "harbour", "Idempotency-Key": "once"}
    serving = serve(f"{openai_server.url}/v1")
    create(serving, talk(), extra_headers=headers, extra_query={"api-version": "7"})
    sent = openai_server.headers
    assert len(sent) >= 3
    assert {each["authorization"] for each in sent} == {"Bearer sk-one"}
    assert {each["x-team"] for each in sent} == {"harbour"}
    assert {each["host"] for each in sent} == {openai_server.url.removeprefix("http://")}
    assert set(openai_server.paths) == {f"{PATH}?api-version=7"}
    assert [index for index, each in enumerate(sent) if "idempotency-key" in each] == [0]


def test_a_later_call_of_the_conversation_is_not_refused_again(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    create(serving, talk())
    before = len(openai_server.bodies)
    answer = {"role": "assistant", "content": "The first."}
    create(serving, [*talk(), answer, {"role": "user", "content": "Sure?"}])
    assert len(openai_server.bodies) == before + 1


def test_a_request_that_fits_is_sent_byte_for_byte(serve: Serve, answering: Any) -> None:
    answered = b'{"id": "x",  "choices": [{"message": {"content": "Yes."}, "n": 1.10}]}'
    server = answering(answered, more="X-Request-Id: 7\r\n")
    body = b'{ "temperature": 1.0,"messages":[{"role":"user","content":"\\u00e9"}], "seed":1e3}'
    got = serve(server.url).post(PATH, body)
    assert server.asked[0].body == body
    assert got.startswith(b"HTTP/1.1 200 ")
    assert b"x-request-id: 7\r\n" in got.lower()
    assert got.endswith(b"\r\n\r\n" + answered)


@pytest.mark.parametrize(
    "status", ["400 Bad Request", "401 Unauthorized", "429 Too Many Requests", "503 Busy"]
)
def test_another_error_comes_back_as_it_was(serve: Serve, answering: Any, status: str) -> None:
    """An error that is not a token limit is returned unchanged; the wrapped call sees its status
    and body.
    """
    seen: list[Any] = []
    answered = b'{"error":  {"message": "Too many requests", "code": "busy"}}'
    server = answering(answered, status, more="Retry-After: 9\r\n")
    serving = serve(server.url, detect=seen.append)
    got = serving.post("/v1/messages", {"messages": [{"role": "user", "content": "Hello"}]})
    assert got.startswith(f"HTTP/1.1 {status[:3]}".encode())
    assert b"retry-after: 9" in got.lower()
    assert got.endswith(answered)
    assert len(server.asked) == 1
    assert (seen[0].status_code, seen[0].body) == (int(status[:3]), json.loads(answered))


def test_where_nothing_helps_the_upstreams_own_refusal_comes_back(
    serve: Serve, answering: Any, upstream: Any, wire: Any
) -> None:
    answered = json.dumps(REFUSAL, indent=3).encode()
    serving = serve(answering(answered, "400 Bad Request").url)
    assert serving.post(PATH, LONG).endswith(answered)
    assert serving.board.numbers()["given_up"] == 1
    event = b"event: error\ndata: " + json.dumps({"type": "error", **REFUSAL}).encode() + b"\n\n"
    stream = wire.STREAM + wire.chunk(event) + wire.chunk(b"")
    streaming = serve(upstream(lambda asked, write: write(stream)).url)
    assert event in streaming.post("/v1/messages", {**LONG, "stream": True})
    assert streaming.board.numbers()["given_up"] == 1


def test_summaries_can_be_another_models_or_nobodys(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    create(serve(f"{openai_server.url}/v1", summarizer="small"), talk())
    models = [body["model"] for body in openai_server.bodies]
    assert (models[0], models[-1], set(models[1:-1])) == ("m", "m", {"small"})
    before = len(models)
    create(serve(f"{openai_server.url}/v1", summarizer="extractive"), talk())
    assert len(openai_server.bodies) == before + 2


def test_a_dry_run_changes_nothing_and_tells_what_would_be_compacted(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1", dry_run=True)
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        create(serving, talk(), max_tokens=1200)
    assert len(openai_server.bodies) == 1
    assert serving.board.numbers()["dry_runs"] == 1
    assert any("would compact" in line and "41 messages" in line for line in serving.lines)


def test_a_past_that_the_server_keeps_is_compacted_there(
    serve: Serve, openai_server: Any, words: str
) -> None:
    with chat(serve(f"{openai_server.url}/v1").url) as client:
        reply = client.responses.create(model="m", input="And now?", previous_response_id="resp_9")
    assert reply.output_text == words
    assert openai_server.paths[1] == "/v1/responses/compact"


def test_results_of_calls_in_a_past_that_the_server_keeps_are_sent_with_their_calls(
    serve: Serve, openai_server: Any, words: str
) -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "built in 1850"}
    outputs: Any = [output]
    with chat(serve(f"{openai_server.url}/v1").url) as client:
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
    packed = gzip.compress(json.dumps(REFUSAL).encode())
    more = "Content-Encoding: gzip\r\n"
    refusal = wire.plain(packed, "400 Bad Request", more=more)
    if stream:
        refusal = wire.plain(event, kind="text/event-stream")
    server: Any = upstream(
        lambda asked, write: write(refusal if len(server.asked) == 1 else wire.plain(b"{}"))
    )
    serving = serve(server.url, summarizer="extractive")
    body = {"model": "m", "messages": talk(), "stream": stream}
    assert serving.post(PATH, body).endswith(b"{}")
    assert len(server.asked[1].body) < len(server.asked[0].body)


def test_a_summary_that_cannot_be_had_is_a_500_where_nothing_else_may_be_done(
    serve: Serve, upstream: Any, wire: Any, talk: Talk
) -> None:
    refusal = wire.plain(json.dumps(REFUSAL).encode(), "400 Bad Request")
    server: Any = upstream(
        lambda asked, write: write(refusal if len(server.asked) == 1 else wire.plain(b"{}"))
    )
    got = serve(server.url, fallback=None).post(PATH, {"model": "m", "messages": talk()})
    assert got.startswith(b"HTTP/1.1 500 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "compaction_failed"


@pytest.mark.parametrize(
    "name", ["self", "function", "args", "kwargs", "messages_param", "io", "compacter_options"]
)
def test_members_of_any_name_go_through(passing: Any, name: str) -> None:
    serving, server = passing
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}], name: "x"}).encode()
    assert serving.post(PATH, body).endswith(b"{}")
    assert server.asked[0].body == body


def test_a_caller_does_not_set_options_of_the_server(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        create(serving, talk(), extra_body={"compacter_options": {"summarizer": "extractive"}})
    assert len(openai_server.bodies) == 1


ODD = [
    *(b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"messages": 7}', b'{"messages": {}}'),
    *(b'{"messages": []}', b'{"messages": [7, null, []]}', b'{"input": [NaN]}'),
    b'{"messages": [{"role": 7, "content": {"a": 1}}]}',
]


@pytest.mark.parametrize("body", ODD)
def test_a_body_that_is_no_conversation_goes_through(passing: Any, wire: Any, body: bytes) -> None:
    serving, server = passing
    refusal = json.dumps(REFUSAL).encode()
    server.answer = lambda asked, write: write(wire.plain(refusal, "400 Bad Request"))
    for path in (PATH, "/v1/responses", "/v1/messages"):
        assert serving.post(path, body).endswith(refusal)
    assert [asked.body for asked in server.asked] == [body] * 3
