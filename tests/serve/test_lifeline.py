"""A stream that is held until its first content: its caller gets signs of life meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import anthropic
import httpx
import openai
import pytest
from google import genai

from compacter.gateway.serve import gateway

LIMIT = "This model's maximum context length is 900 tokens. However, you requested 5000 tokens."
ERROR = {"message": LIMIT, "type": "invalid_request_error", "code": "context_length_exceeded"}
COMMENT = b": the answer is awaited\n\n"
RESPONSE = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "status": "in_progress",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
START = {
    "type": "message_start",
    "message": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": {"input_tokens": 9, "output_tokens": 1},
    },
}


def chat(url: str) -> Iterable[str]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
            yield chunk.choices[0].delta.content or ""


def responses(url: str) -> Iterable[str]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        for event in client.responses.create(model="m", input="x", stream=True):
            yield event.delta if event.type == "response.output_text.delta" else ""


def messages(url: str) -> Iterable[str]:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        for event in client.messages.create(model="m", max_tokens=9, messages=[], stream=True):
            yield getattr(getattr(event, "delta", None), "text", "")


def gemini(url: str) -> Iterable[str]:
    with genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url)) as client:
        for chunk in client.models.generate_content_stream(model="m", contents="x"):
            yield chunk.text or ""


def lines(url: str) -> Iterable[str]:
    with httpx.stream("POST", f"{url}/api/chat", json={}) as reply:
        for line in reply.iter_lines():
            data = json.loads(line)
            if "error" in data:
                raise RuntimeError(data["error"])
            yield data["message"]["content"]


def array(url: str) -> Iterable[str]:
    for element in httpx.post(f"{url}/v1beta/models/m:streamGenerateContent", json={}).json():
        yield element["candidates"][0]["content"]["parts"][0]["text"]


class Case(NamedTuple):
    """One protocol: where its stream begins without content, and goes on."""

    path: str
    beat: bytes
    begin: list[Any]
    word: Any
    read: Callable[[str], Iterable[str]]
    kind: str = "text/event-stream"


PART = {"role": "model", "parts": [{"text": "well"}]}
CASES = {
    "chat": Case(
        "/v1/chat/completions",
        COMMENT,
        [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}],
        {"choices": [{"index": 0, "delta": {"content": "well"}}]},
        chat,
    ),
    "responses": Case(
        "/v1/responses",
        COMMENT,
        [{"type": "response.created", "sequence_number": 0, "response": RESPONSE}],
        {"type": "response.output_text.delta", "delta": "well", "sequence_number": 1},
        responses,
    ),
    "messages": Case(
        "/v1/messages",
        b'event: ping\ndata: {"type": "ping"}\n\n',
        [START],
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "well"},
        },
        messages,
    ),
    "gemini": Case(
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        b"\n",
        [],
        {"candidates": [{"index": 0, "content": PART}]},
        gemini,
    ),
    "gemini, an array": Case(
        "/v1beta/models/m:streamGenerateContent",
        b"\n",
        [],
        {"candidates": [{"index": 0, "content": PART}]},
        array,
        "application/json",
    ),
    "ollama": Case(
        "/api/chat",
        b" ",
        [{"message": {"role": "assistant", "content": ""}, "done": False}],
        {"message": {"role": "assistant", "content": "well"}, "done": False},
        lines,
        "application/x-ndjson",
    ),
}


def written(case: Case, event: Any) -> bytes:
    text = json.dumps(event)
    if case.kind == "application/json":
        return f"[{text}]".encode()
    if case.kind == "application/x-ndjson":
        return f"{text}\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {text}\n\n".encode()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "SILENCE", 0.05)


@pytest.fixture
def record(serve: Any, upstream: Any, wire: Any, talk: Any) -> Callable[..., bytes]:
    """Returns the bytes of an answer whose upstream sends the first event of its stream, and goes
    on when the caller has got a sign of life.
    """

    def record(case: Case, following: str) -> bytes:
        go_on = threading.Event()
        seen: list[str] = []

        def answer(_: Any, write: Callable[[bytes], object]) -> None:
            seen.append(following)
            if len(seen) > 1 and following == "given up":
                write(wire.plain(json.dumps({"error": ERROR}).encode(), "400 Bad Request"))
            elif len(seen) == 1 or following != "broken off":
                write(wire.STREAM.replace(b"text/event-stream", case.kind.encode()))
                for event in case.begin:
                    write(wire.chunk(written(case, event)))
                assert len(seen) > 1 or go_on.wait(300)
                is_refused = len(seen) == 1 and following != "content"
                last = {"type": "error", "error": ERROR} if is_refused else case.word
                write(wire.chunk(written(case, last)) + wire.chunk(b""))

        serving = serve(upstream(answer).url, summarizer="extractive", max_retries=1)
        said = talk()
        body: dict[str, Any] = {"model": "m", "stream": True, "max_tokens": 9}
        if "models" in case.path:
            roles = {"user": "user", "assistant": "model"}
            parts = [[{"text": each["content"]}] for each in said]
            body = {
                "contents": [
                    {"role": roles[each["role"]], "parts": part}
                    for each, part in zip(said, parts, strict=True)
                ]
            }
        else:
            body["input" if case.path == "/v1/responses" else "messages"] = said
        content = json.dumps(body).encode()
        head = f"POST {case.path} HTTP/1.1\nHOST\nContent-Length: {len(content)}\n"
        got = b""
        with serving.send(f"{head}Connection: close\n\n", content) as connection:
            while case.beat not in got.partition(b"\r\n\r\n")[2].replace(b"\r\n", b""):
                got += connection.recv(65_536)
            go_on.set()
            while chunk := connection.recv(65_536):
                got += chunk
        return got

    return record


@pytest.mark.parametrize("following", ["content", "a refusal"])
@pytest.mark.parametrize("name", CASES)
def test_clients_skip_the_signs_of_life(
    record: Callable[..., bytes], upstream: Any, name: str, following: str
) -> None:
    """The caller of a held stream gets a head and signs of life, and its client reads the answer,
    also if a refusal came first and the history was compacted.
    """
    case = CASES[name]
    got = record(case, following)
    assert got.startswith(b"HTTP/1.1 200 ")
    replay = upstream(lambda _, write: write(got))
    assert "".join(case.read(replay.url)) == "well"


@pytest.mark.parametrize("following", ["given up", "broken off"])
@pytest.mark.parametrize("name", [name for name in CASES if "array" not in name])
def test_a_failure_after_the_head_is_an_event(
    record: Callable[..., bytes], upstream: Any, name: str, following: str
) -> None:
    """A call that fails after its head was sent ends with an error that its client raises."""
    got = record(CASES[name], following)
    replay = upstream(lambda _, write: write(got))
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each SDK has its own
        list(CASES[name].read(replay.url))
    told = LIMIT if following == "given up" else "could not reach the upstream"
    assert told in str(raised.value) or name == "gemini"


def test_an_answer_that_comes_at_once_has_no_sign_of_life(
    serve: Any, upstream: Any, wire: Any
) -> None:
    """A stream whose content comes at once is passed on byte for byte."""
    case = CASES["chat"]
    stream = wire.plain(written(case, case.word), kind=case.kind)
    serving = serve(upstream(lambda _, write: write(stream)).url)
    reply = httpx.post(f"{serving.url}{case.path}", json={"stream": True, "messages": [{}]})
    assert reply.content == written(case, case.word)
