"""A refusal inside HTTP 200, in every form that it can have, is recognised and recovered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Serve = Callable[..., Any]
Talk = Callable[..., Any]
SAID = "This model's maximum context length is 900 tokens. However, you requested 5000 tokens."
CODE = "context_length_exceeded"
NESTED = {"message": SAID, "type": "invalid_request_error", "code": CODE, "param": "messages"}
FLAT = {"type": "error", "code": CODE, "message": SAID, "param": None, "sequence_number": 1}
RESPONSE = {"id": "r", "object": "response", "status": "in_progress", "output": []}
FAILED = {**RESPONSE, "status": "failed", "error": {"code": CODE, "message": SAID}}
CREATED = {"type": "response.created", "response": RESPONSE, "sequence_number": 0}
ROLE = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
CHOICE = {"choices": [{"index": 0, "delta": {}, "error": NESTED, "finish_reason": "error"}]}
START = {"type": "message_start", "message": {"id": "m", "content": [], "role": "assistant"}}

FORMS: dict[str, tuple[str, list[Any]]] = {
    "chat, nested": ("chat/completions", [{"error": NESTED}]),
    "chat, flat": ("chat/completions", [FLAT]),
    "chat, a text": ("chat/completions", [{"error": SAID}]),
    "chat, in a choice": ("chat/completions", [CHOICE]),
    "chat, after the role": ("chat/completions", [ROLE, {"error": NESTED}]),
    "chat, after the role, flat": ("chat/completions", [ROLE, ROLE, FLAT]),
    "responses, flat": ("responses", [FLAT]),
    "responses, flat and later": ("responses", [CREATED, FLAT]),
    "responses, nested": ("responses", [CREATED, {"type": "error", "error": NESTED}]),
    "responses, failed": ("responses", [CREATED, {"type": "response.failed", "response": FAILED}]),
    "messages, nested": ("messages", [{"type": "error", "error": {**NESTED, "type": "x"}}]),
    "messages, after the start": (
        "messages",
        [START, {"type": "ping"}, {"type": "error", "error": NESTED}],
    ),
    "messages, flat": ("messages", [START, FLAT]),
}
DONE: dict[str, list[Any]] = {
    "chat/completions": [{"choices": [{"index": 0, "delta": {"content": "All is well."}}]}],
    "responses": [{"type": "response.output_text.delta", "delta": "All is well."}],
    "messages": [
        START,
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "All is well."}},
    ],
}


def written(events: list[Any], *, named: bool) -> bytes:
    """Server-sent events, with or without a name."""
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if named and "type" in event else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("way", "named"), [("stream", True), ("stream", False), ("one piece", False), ("json", True)]
)
@pytest.mark.parametrize("form", FORMS)
def test_it_is_recovered(
    serve: Serve, upstream: Any, wire: Any, talk: Talk, form: str, way: str, *, named: bool
) -> None:
    path, events = FORMS[form]
    param = "input" if path == "responses" else "messages"

    def answer(asked: Any, write: Callable[[bytes], object]) -> None:
        if len(json.loads(asked.body)[param]) < 41:
            write(wire.plain(written(DONE[path], named=named), kind="text/event-stream"))
        elif way == "json":
            write(wire.plain(json.dumps(events[-1]).encode()))
        elif way == "one piece":
            write(wire.plain(written(events, named=named), kind="text/event-stream; charset=utf-8"))
        else:
            write(wire.STREAM)
            for event in events:
                write(wire.chunk(written([event], named=named)))
            write(wire.chunk(b""))

    serving = serve(upstream(answer).url, summarizer="extractive")
    body = json.dumps({"model": "m", "stream": True, "max_tokens": 9, param: talk()}).encode()
    length = f"Content-Length: {len(body)}\nConnection: close\n"
    got = serving.ask(f"POST /v1/{path} HTTP/1.1\nHOST\n{length}\n", body)
    assert b"All is well." in got
    assert CODE.encode() not in got
    assert serving.board.numbers()["rounds"] == 1
