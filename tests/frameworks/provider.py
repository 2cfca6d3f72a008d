"""A provider on a loopback address for frameworks to talk to: OpenAI's chat completions and
responses.

It refuses what is longer than its window, and what breaks the pairing rules of tool calls. Where a
request offers tools it calls the first one a few times, and then answers; every other answer is the
same few words, a summary's too.
"""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from compacter.testing import chat_fault

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

Body = dict[str, Any]
PIECES = ("The harbour ", "was painted ", "blue last year.")
WORDS = "".join(PIECES)
STRUCTURED = '{"colour": "blue"}'
WINDOW = 2_000
"""Tokens, of four characters each; tool definitions count."""

_NUMBERS = itertools.count(1)
"""Of answers: frameworks take two of the same id for one."""
_USAGE = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}
_RESPONSES_USAGE = {
    "input_tokens": 90,
    "output_tokens": 9,
    "total_tokens": 99,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


class Provider(ThreadingHTTPServer):
    """One server, and what it was asked."""

    daemon_threads = True

    def __init__(self, *, tool_calls: int, in_stream: bool | str, window: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tool_calls = tool_calls
        self.in_stream = in_stream
        self.window = window
        self.refused = 0
        self.invalid: list[str] = []
        self.accepted: list[Body] = []

    @property
    def url(self) -> str:
        """What clients take as ``base_url``."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def call_id(self, body: Body) -> str | None:
        """The id of the next tool call, where one is to be made."""
        if not body.get("tools") or self.tool_calls == 0:
            return None
        self.tool_calls -= 1
        return f"call_{self.tool_calls}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _provider(self) -> Provider:
        assert isinstance(self.server, Provider)
        return self.server

    def do_POST(self) -> None:
        body: Body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = body["input"] if "input" in body else body["messages"]
        fault = _items_fault(messages) if "input" in body else chat_fault(messages)
        tokens = (
            len(
                json.dumps(
                    [messages, body.get("instructions"), body.get("tools")], ensure_ascii=False
                )
            )
            // 4
        )
        if fault is not None:
            self._provider.invalid.append(fault)
            self._json(
                {"error": {"message": fault, "type": "invalid_request_error", "code": None}}, 400
            )
        elif tokens > self._provider.window:
            self._provider.refused += 1
            self._refuse(body, tokens)
        else:
            self._provider.accepted.append(body)
            answer = (
                _Response(self._provider, body)
                if "input" in body
                else _Completion(self._provider, body)
            )
            if body.get("stream"):
                self._events(answer.events())
            else:
                self._json(answer.whole)

    def _refuse(self, body: Body, tokens: int) -> None:
        error = {
            "message": f"This model's maximum context length is {self._provider.window} tokens. "
            f"However, your messages "
            f"resulted in {tokens} tokens. Please reduce the length of the messages.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
        if not (body.get("stream") and self._provider.in_stream):
            self._json({"error": error}, 400)
        elif self._provider.in_stream == "flat" and "input" in body:
            flat: Body = {name: error[name] for name in ("code", "message", "param")}
            self._events(
                iter([("response.created", {"response": _response(body)}), ("error", flat)])
            )
        elif "input" in body:
            begun = _response(body)
            failed = {
                **begun,
                "status": "failed",
                "error": {"code": error["code"], "message": error["message"]},
            }
            self._events(
                iter(
                    [
                        ("response.created", {"response": begun}),
                        ("response.failed", {"response": failed}),
                    ]
                )
            )
        else:
            self._events(iter([(None, {"error": error})]))

    def _json(self, body: object, status: int = 200) -> None:
        self._send(json.dumps(body).encode(), "application/json", status)

    def _events(self, events: Iterator[tuple[str | None, Body]]) -> None:
        lines = []
        for number, (name, data) in enumerate(events):
            if name is not None:
                data = {"type": name, "sequence_number": number, **data}  # noqa: PLW2901 - what is sent
                lines.append(f"event: {name}\n")
            lines.append(f"data: {json.dumps(data)}\n\n")
        self._send("".join([*lines, "data: [DONE]\n\n"]).encode(), "text/event-stream", 200)

    def _send(self, data: bytes, kind: str, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet: a test tells what went wrong."""


def _words(body: Body) -> str:
    return (
        STRUCTURED if body.get("response_format") or "format" in (body.get("text") or {}) else WORDS
    )


def _arguments(parameters: Body) -> str:
    """Arguments for a tool: its required ones, each a word, or a number where that is wanted."""
    properties = parameters.get("properties") or {}
    return json.dumps(
        {
            name: "blue" if properties[name].get("type") == "string" else 1
            for name in parameters.get("required") or ()
        }
    )


class _Completion:
    """An answer of chat completions, whole or in chunks."""

    def __init__(self, server: Provider, body: Body) -> None:
        self._frame = {"id": f"chatcmpl-{next(_NUMBERS)}", "created": 1, "model": body["model"]}
        self._usage = bool((body.get("stream_options") or {}).get("include_usage"))
        call = server.call_id(body)
        self._message: Body = {"role": "assistant", "content": None if call else _words(body)}
        if call:
            tool = body["tools"][0]["function"]
            function = {"name": tool["name"], "arguments": _arguments(tool.get("parameters") or {})}
            self._message["tool_calls"] = [{"id": call, "type": "function", "function": function}]
        self._finish = "tool_calls" if call else "stop"
        choice = {
            "index": 0,
            "message": self._message,
            "finish_reason": self._finish,
            "logprobs": None,
        }
        self.whole = {
            **self._frame,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _USAGE,
        }

    def events(self) -> Iterator[tuple[None, Body]]:
        deltas: list[Body] = [{"role": "assistant", "content": ""}]
        if self._finish == "tool_calls":
            deltas.append({"tool_calls": [{"index": 0, **self._message["tool_calls"][0]}]})
        elif self._message["content"] == WORDS:
            deltas += [{"content": piece} for piece in PIECES]
        else:
            deltas.append({"content": self._message["content"]})
        frame = {**self._frame, "object": "chat.completion.chunk"}
        for delta in deltas:
            yield None, {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield None, {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": self._finish}]}
        if self._usage:
            yield None, {**frame, "choices": [], "usage": _USAGE}


def _response(body: Body) -> Body:
    return {
        "id": f"resp_{next(_NUMBERS)}",
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "status": "in_progress",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "output": [],
    }


class _Response:
    """An answer of responses, whole or in events."""

    def __init__(self, server: Provider, body: Body) -> None:
        self._begun = _response(body)
        call = server.call_id(body)
        self._item: Body
        if call:
            tool = body["tools"][0]
            self._item = {
                "id": f"fc_{call}",
                "type": "function_call",
                "call_id": call,
                "name": tool["name"],
                "arguments": _arguments(tool.get("parameters") or {}),
                "status": "completed",
            }
        else:
            part = {"type": "output_text", "text": _words(body), "annotations": []}
            self._item = {
                "id": f"msg_{next(_NUMBERS)}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        self.whole = {
            **self._begun,
            "status": "completed",
            "output": [self._item],
            "usage": _RESPONSES_USAGE,
        }

    def events(self) -> Iterator[tuple[str, Body]]:
        item = self._item
        place = {"item_id": self._item["id"], "output_index": 0}
        yield "response.created", {"response": self._begun}
        if item["type"] == "function_call":
            begun = {**item, "arguments": "", "status": "in_progress"}
            yield "response.output_item.added", {"output_index": 0, "item": begun}
            yield "response.function_call_arguments.delta", {**place, "delta": item["arguments"]}
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield "response.function_call_arguments.done", {**place, **done}
        else:
            part = item["content"][0]
            begun = {**item, "content": [], "status": "in_progress"}
            yield "response.output_item.added", {"output_index": 0, "item": begun}
            place = {**place, "content_index": 0}
            yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
            for piece in PIECES if part["text"] == WORDS else (part["text"],):
                yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
            yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
            yield "response.content_part.done", {**place, "part": part}
        yield "response.output_item.done", {"output_index": 0, "item": item}
        yield "response.completed", {"response": self.whole}


def _items_fault(items: object) -> str | None:
    """What is wrong with the input of ``responses``: each output needs its call before it, each
    call an output.
    """
    if isinstance(items, str):
        return None if items else "'input' must not be empty"
    if not isinstance(items, list) or not items:
        return "'input' must hold at least one item"
    waiting: list[str] = []
    for index, item in enumerate(items):
        if item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                return (
                    f"input[{index}]: no tool call found for function call output "
                    f"{item['call_id']!r}"
                )
            waiting.remove(item["call_id"])
    return f"no tool output found for function call {waiting[0]!r}" if waiting else None


@contextmanager
def serving(
    *, tool_calls: int = 0, in_stream: bool | str = False, window: int = WINDOW
) -> Generator[Provider]:
    """A server.

    Args:
        tool_calls: Times that it calls a tool, where one is offered, before it answers.
        in_stream: Whether a stream is refused inside HTTP 200; "flat" for a flat event (responses).
        window: Tokens.
    """
    server = Provider(tool_calls=tool_calls, in_stream=in_stream, window=window)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
