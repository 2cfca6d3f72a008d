"""The form of the requests for summaries, and signs without words, through the pass-through."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Serve = Callable[..., Any]
KEY = "Authorization: Bearer k\n"
"""Callers without a key share nothing."""
SUMMARY = "The piers of part 3 and of part 5 were built of oak, as was part 7."
SAID = "This model's maximum context length is 16000 tokens. However, you requested 16500 tokens."


def completion(text: str, finish: str = "stop", written: int = 5) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 800, "completion_tokens": written, "total_tokens": 805}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


def events(text: str) -> bytes:
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": word + " "}}]} for word in text.split()
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    lines = [f"data: {json.dumps(each)}\n\n" for each in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def failure(words: str) -> bytes:
    return json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()


REFUSED: dict[str, tuple[str, Callable[[dict[str, Any]], bool], dict[str, Any]]] = {
    "the limit's name": (
        "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" in body,
        {"max_completion_tokens": 1_500},
    ),
    "the limit's range": (
        "Range of max_tokens should be [1, 900]",
        lambda body: body.get("max_tokens", 0) > 900,
        {"max_tokens": 900},
    ),
    "no stream": (
        "This model only support stream mode, please enable the stream parameter.",
        lambda body: not body.get("stream"),
        {"max_tokens": 1_500, "stream": True},
    ),
    "an option": (
        "Unknown parameter: 'enable_thinking'.",
        lambda body: "enable_thinking" in body,
        {"max_tokens": 1_500},
    ),
}


@pytest.mark.parametrize(("words", "is_wrong", "taken"), REFUSED.values(), ids=REFUSED)
def test_a_refused_form_is_asked_in_another_and_remembered(
    serve: Serve,
    upstream: Any,
    wire: Any,
    talk: Any,
    words: str,
    is_wrong: Callable[[dict[str, Any]], bool],
    taken: dict[str, Any],
) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: Any, write: Callable[[bytes], object]) -> None:
        body = json.loads(request.body)
        is_summary = "<transcript>" in json.dumps(body)
        if is_summary:
            names = ("max_tokens", "max_completion_tokens", "stream")
            asked.append({name: body[name] for name in names if name in body})
        if is_summary and is_wrong(body):
            write(wire.plain(failure(words), "400 Bad Request"))
        elif is_summary and body.get("stream"):
            write(wire.plain(events(SUMMARY), kind="text/event-stream"))
        elif len(body["messages"]) > 40:
            write(wire.plain(failure(SAID), "400 Bad Request"))
        else:
            text = SUMMARY if is_summary else "All is well."
            write(wire.plain(json.dumps(completion(text)).encode()))

    server = upstream(answer)
    serving = serve(server.url, max_summary_tokens=1_500)
    for about in ("piers", "quays"):
        call = {"model": "m", "messages": talk(60, about), "enable_thinking": False}
        assert b"All is well." in serving.post("/v1/chat/completions", call, KEY)
    assert SUMMARY in json.dumps(json.loads(server.asked[-1].body))
    assert asked[0] == {"max_tokens": 1_500}
    assert all(each == taken for each in asked[1:])
    assert len(asked) == 3


def test_where_the_call_goes_its_summarys_request_goes(
    serve: Serve, upstream: Any, wire: Any, talk: Any
) -> None:
    asked: list[dict[str, Any]] = []
    routed = {
        "provider": {"zdr": True, "only": ["eu-host"]},
        "chat_template_kwargs": {"enable_thinking": False},
        "thinking": {"type": "disabled"},
        "reasoning": {"enabled": False},
        "metadata": {"project": "eu-1"},
    }

    def answer(request: Any, write: Callable[[bytes], object]) -> None:
        body = json.loads(request.body)
        if "<transcript>" in json.dumps(body):
            asked.append(body)
            write(wire.plain(json.dumps(completion(SUMMARY)).encode()))
        elif len(body["messages"]) > 40:
            write(wire.plain(failure(SAID), "400 Bad Request"))
        else:
            write(wire.plain(json.dumps(completion("All is well.")).encode()))

    serving = serve(upstream(answer).url)
    call = {"model": "m", "messages": talk(), "stream_options": {"include_usage": True}, **routed}
    assert b"All is well." in serving.post("/v1/chat/completions", call, KEY)
    (body,) = asked
    assert {name: body.get(name) for name in routed} == routed
    assert "stream_options" not in body


@pytest.mark.parametrize("status", ["400 Bad Request", "413 Payload Too Large", "200 OK"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_sign_without_words(
    serve: Serve, upstream: Any, wire: Any, talk: Any, status: str, *, stream: bool
) -> None:
    def answer(request: Any, write: Callable[[bytes], object]) -> None:
        body = json.loads(request.body)
        is_large = len(body["messages"]) > 40
        if is_large and status != "200 OK":
            write(wire.plain(b"", status))
        elif stream:
            write(wire.plain(events("" if is_large else "All is well."), kind="text/event-stream"))
        else:
            reply = completion("", written=0) if is_large else completion("All is well.")
            write(wire.plain(json.dumps(reply).encode()))

    server = upstream(answer)
    serving = serve(server.url, summarizer="extractive")
    call = {"model": "m", "messages": talk(40), "stream": stream}
    for _ in range(2):
        got = serving.post("/v1/chat/completions", call, KEY)
        assert b"All" in got
        assert b"well." in got
    assert len(server.asked) == 3
    assert serving.board.numbers()["rounds"] == 1


@pytest.mark.parametrize("stream", [False, True])
def test_an_empty_answer_that_stays_empty_goes_back_as_it_came(
    serve: Serve, upstream: Any, wire: Any, talk: Any, *, stream: bool
) -> None:
    empty = events("") if stream else json.dumps(completion("", written=0)).encode()
    kind = "text/event-stream" if stream else "application/json"

    def answer(_: Any, write: Callable[[bytes], object]) -> None:
        write(wire.plain(empty, kind=kind))

    server = upstream(answer)
    serving = serve(server.url, summarizer="extractive")
    call = {"model": "m", "messages": talk(40), "stream": stream}
    for _ in range(2):
        assert serving.post("/v1/chat/completions", call, KEY).endswith(empty)
    assert len(server.asked) == 3


def test_calls_with_another_beta_share_no_window(
    serve: Serve, upstream: Any, wire: Any, talk: Any
) -> None:
    """Anthropic's `context-1m` stands in a header."""
    reply = {"content": [{"type": "text", "text": "All is well."}], "stop_reason": "end_turn"}

    def answer(request: Any, write: Callable[[bytes], object]) -> None:
        is_small = request.header("anthropic-beta") != ["context-1m-2025-08-07"]
        if is_small and len(json.loads(request.body)["messages"]) > 40:
            write(wire.plain(failure("prompt is too long: 900 tokens > 800 maximum"), "400 Bad"))
        else:
            write(wire.plain(json.dumps(reply).encode()))

    server = upstream(answer)
    serving = serve(server.url, summarizer="extractive")
    body = {"model": "m", "max_tokens": 9, "messages": talk()}
    assert b"All is well." in serving.post("/v1/messages", body)
    large = "anthropic-beta: context-1m-2025-08-07\n"
    assert b"All is well." in serving.post("/v1/messages", body, large)
    assert len(json.loads(server.asked[-1].body)["messages"]) == 41
