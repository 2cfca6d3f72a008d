"""A pretend provider on a loopback address, with a true context window.

It speaks OpenAI's chat completions and responses, Anthropic's messages, Bedrock's Converse and
InvokeModel, plain and streamed, refuses what is longer than its window, refuses half a tool pair,
and keeps the books. The name of the model says how it behaves; the words in it, in any order:

    window-1500     tokens that fit, of four characters each (default: 1,500)
    new             refuses in words that litellm does not know
    bare            refuses without numbers
    llama           refuses as llama.cpp does
    event           refuses inside a stream that was opened with HTTP 200
    output          counts the longest answer in, as OpenAI once did
    writer          writes summaries
    slow-2          takes two seconds for an answer
    broken          answers every request with HTTP 500
    picky           refuses every request with HTTP 400, whatever its length

An answer repeats every ``mark-...`` of the conversation, so that a reader can tell whose it is.
"""

from __future__ import annotations

import contextlib
import json
import re
import struct
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote

Json = dict[str, Any]
CHARACTERS_PER_TOKEN = 4
_MARK = re.compile(r"mark-[0-9a-z]{1,16}")


@dataclass
class Seen:
    """One request, as the provider saw it."""

    path: str
    model: str
    body: Json
    tokens: int
    status: int
    headers: dict[str, str] = field(default_factory=dict)


class Provider(ThreadingHTTPServer):
    """The server. Used as a context manager it runs in a thread of its own.

    Args:
        port: Where it listens; 0 for any free port.
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.seen: list[Seen] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        """Run in a thread."""
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.shutdown()
        self.server_close()


@dataclass(frozen=True)
class _Asked:
    """A request, read."""

    protocol: str
    body: Json
    words: tuple[str, ...]
    tokens: int
    text: str
    framed: bool
    """Whether a stream is in Bedrock's binary frames."""

    @property
    def window(self) -> int:
        """Tokens that fit."""
        return int(self._number("window", 1_500))

    @property
    def seconds(self) -> float:
        """Seconds that an answer takes."""
        return self._number("slow", 0)

    def _number(self, word: str, otherwise: float) -> float:
        at = self.words.index(word) + 1 if word in self.words else -1
        return float(self.words[at]) if at > 0 else otherwise


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Provider  # pyright: ignore[reportIncompatibleVariableOverride] - http.server makes it of its own class

    def do_GET(self) -> None:
        """Answer with nothing."""
        self._send(200, {})

    def do_POST(self) -> None:
        """One request."""
        asked = _read(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = asked.body
        problem, status = _problem(asked)
        with self.server.lock:
            self.server.seen.append(
                Seen(
                    asked.protocol,
                    str(body.get("model")),
                    body,
                    asked.tokens,
                    status,
                    dict(self.headers.items()),
                )
            )
        time.sleep(asked.seconds)
        inside = (
            "event" in asked.words
            and body.get("stream")
            and status == 400
            and asked.tokens > asked.window
        )
        if problem is not None and not inside:
            self._send(status, problem)
        elif body.get("stream"):
            events = _failed(asked, problem) if problem else _streamed(asked)
            if asked.framed:
                self._body(
                    b"".join(_frame(asked, *event) for event in events),
                    "application/vnd.amazon.eventstream",
                )
            else:
                self._body(
                    "".join(_lines(*event) for event in events).encode(), "text/event-stream"
                )
        else:
            self._send(200, _plain(asked))

    def _send(self, status: int, body: Json) -> None:
        self._body(json.dumps(body).encode(), "application/json", status)

    def _body(self, text: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def handle(self) -> None:
        """Requests, until the client is gone, as one that was killed is."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Quiet."""


def _read(path: str, body: Json) -> _Asked:
    *_, model, protocol = path.partition("?")[0].split("/")
    framed = path.startswith("/model/")
    if framed:  # Bedrock names the model, and whether it streams, in the path.
        body = {**body, "model": unquote(model), "stream": "stream" in protocol}
        protocol = "converse" if "converse" in protocol else "messages"
    content = body.get("input" if protocol == "responses" else "messages") or []
    beside = [
        body.get(name)
        for name in ("tools", "toolConfig", "system", "instructions")
        if body.get(name)
    ]
    text = json.dumps([content, *beside], ensure_ascii=False)
    words = tuple(str(body.get("model", "")).replace("/", "-").split("-"))
    return _Asked(protocol, body, words, len(text) // CHARACTERS_PER_TOKEN, text, framed)


def _lines(name: str, data: Json | str) -> str:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def _frame(asked: _Asked, name: str, data: Json | str) -> bytes:
    """One message of the encoding ``vnd.amazon.eventstream``: prelude, headers, payload, two
    checksums.
    """
    failed = name == "validationException"
    if asked.protocol == "messages" and not failed:
        name = "chunk"
        data = {"bytes": b64encode(json.dumps(data).encode()).decode()}
    kind = "exception" if failed else "event"
    named = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in named.items()
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


# -- refusing --------------------------------------------------------------------------------------


def _problem(asked: _Asked) -> tuple[Json | None, int]:
    if "broken" in asked.words:
        return _error(asked, "The server had an error.", "server_error"), 500
    if "picky" in asked.words:
        return _error(asked, "Invalid value for 'temperature'.", "invalid_request_error"), 400
    orphan = _orphan(asked)
    if orphan:
        return _error(asked, f"tool pair broken: {orphan}", "invalid_request_error"), 400
    most = int(asked.body.get("max_tokens") or 0) if "output" in asked.words else 0
    if asked.tokens + most <= asked.window:
        return None, 200
    return _too_long(asked, most)


def _too_long(asked: _Asked, most: int) -> tuple[Json, int]:
    """A refusal in the words of the server that it is; ``most`` tokens of the answer count too."""
    if most:
        text = (
            f"This model's maximum context length is {asked.window} tokens. However, you requested "
            f"{asked.tokens + most} tokens ({asked.tokens} in the messages, {most} in the "
            "completion)."
        )
        return _error(asked, text, "invalid_request_error", "context_length_exceeded"), 400
    used = asked.tokens
    window = asked.window
    if asked.framed:
        return _bedrock_refusal(asked), 400
    if "llama" in asked.words and "bare" in asked.words:
        text = "the request exceeds the available context size. try increasing the context size"
        return {"error": {"code": 400, "message": text, "type": "invalid_request_error"}}, 400
    if "llama" in asked.words:
        text = (
            f"request ({used} tokens) exceeds the available context size ({window} tokens), "
            f"try increasing it"
        )
        error = {
            "code": 400,
            "message": text,
            "type": "exceed_context_size_error",
            "n_prompt_tokens": used,
            "n_ctx": window,
        }
        return {"error": error}, 400
    if "new" in asked.words or ("bare" in asked.words and asked.protocol == "responses"):
        text = (
            "Your input exceeds the context window of this model. Please adjust your input "
            "and try again."
        )
        return _error(asked, text, "invalid_request_error", "context_length_exceeded"), 400
    if asked.protocol == "messages":
        numbers = "" if "bare" in asked.words else f": {used} tokens > {window} maximum"
        text = f"prompt is too long{numbers}"
        return _error(asked, text, "invalid_request_error"), 400
    text = (
        (
            "This model's maximum context length was exceeded. Please reduce the length of "
            "the messages."
        )
        if "bare" in asked.words
        else f"This model's maximum context length is {window} tokens. However, your "
        f"messages resulted in {used} "
        "tokens. Please reduce the length of the messages."
    )
    return _error(asked, text, "invalid_request_error", "context_length_exceeded"), 400


def _bedrock_refusal(asked: _Asked) -> Json:
    text = f"prompt is too long: {asked.tokens} tokens > {asked.window} maximum"
    if "bare" in asked.words:
        text = "Input is too long for requested model."
    if "new" in asked.words:
        text = (
            "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please "
            "update the input."
        )
    return _error(asked, f"The model returned the following errors: {text}", "ValidationException")


def _error(asked: _Asked, text: str, kind: str, code: str | None = None) -> Json:
    if asked.framed:
        return {"message": text}
    if asked.protocol == "messages":
        return {"type": "error", "error": {"type": kind, "message": text}}
    return {"error": {"message": text, "type": kind, "param": "messages", "code": code}}


def _failed(asked: _Asked, problem: Json) -> Iterator[tuple[str, Json | str]]:
    """A stream that was opened and then refuses."""
    if asked.framed:
        yield "validationException", problem
    elif asked.protocol == "messages":
        yield "message_start", {"type": "message_start", "message": _message(asked, [])}
        yield "error", problem
    elif asked.protocol == "responses":
        response = _response(asked, [], "in_progress")
        yield (
            "response.created",
            {"type": "response.created", "response": response, "sequence_number": 0},
        )
        failed = {
            **response,
            "status": "failed",
            "error": {
                "code": "context_length_exceeded",
                "message": problem["error"]["message"],
            },
        }
        yield (
            "response.failed",
            {"type": "response.failed", "response": failed, "sequence_number": 1},
        )
    else:
        yield "", problem


def _orphan(asked: _Asked) -> str:
    """The first call without a result, or result without a call; empty where all are whole."""
    calls: list[str] = []
    results: list[str] = []
    body = asked.body
    for item in body.get("input", ()) if isinstance(body.get("input"), list) else ():
        if item.get("type") == "function_call":
            calls.append(item["call_id"])
        if item.get("type") == "function_call_output":
            results.append(item["call_id"])
    for message in body.get("messages", ()):
        calls.extend(call["id"] for call in message.get("tool_calls") or ())
        if message.get("role") == "tool":
            results.append(message["tool_call_id"])
        blocks = message["content"] if isinstance(message.get("content"), list) else []
        calls.extend(block["id"] for block in blocks if block.get("type") == "tool_use")
        results.extend(
            block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"
        )
        calls.extend(block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block)
        results.extend(
            block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block
        )
    odd = set(calls) ^ set(results)
    return min(odd) if odd else ""


# -- answering -------------------------------------------------------------------------------------


def _answer(asked: _Asked) -> str:
    marks = sorted(set(_MARK.findall(asked.text)))
    if "writer" in asked.words:
        return f"The user and the assistant talked about a house. Marks: {' '.join(marks)}."
    return f"Noted. {' '.join(marks)}".strip()


def _tool(asked: _Asked) -> Json | None:
    """The tool that the answer calls, where the request has any and asks for it in its
    last words.
    """
    tools = asked.body.get("tools") or [
        tool["toolSpec"]
        for tool in (asked.body.get("toolConfig") or {}).get("tools", ())
        if "toolSpec" in tool
    ]
    return tools[0] if tools and "use the tool" in asked.text[-2_000:] else None


def _usage(asked: _Asked) -> tuple[int, int]:
    return asked.tokens, max(1, len(_answer(asked)) // CHARACTERS_PER_TOKEN)


def _plain(asked: _Asked) -> Json:
    text = _answer(asked)
    tool = _tool(asked)
    read, written = _usage(asked)
    if asked.protocol == "converse":
        use: Json | None = None
        if tool:
            use = {"toolUse": {"toolUseId": "toolu_9", "name": tool["name"], "input": {"q": "x"}}}
        return {
            "output": {"message": {"role": "assistant", "content": [use or {"text": text}]}},
            "stopReason": "tool_use" if tool else "end_turn",
            "usage": _converse_usage(asked),
            "metrics": {"latencyMs": 1},
        }
    if asked.protocol == "messages":
        block = (
            {"type": "tool_use", "id": "toolu_9", "name": tool["name"], "input": {"q": "x"}}
            if tool
            else None
        )
        native = _message(asked, [block or {"type": "text", "text": text}])
        return {**native, "stop_reason": "tool_use" if tool else "end_turn"}
    if asked.protocol == "responses":
        return _response(asked, [_item(asked)], "completed")
    message: Json = {"role": "assistant", "content": text}
    if tool:
        function = {"name": tool["function"]["name"], "arguments": '{"q": "x"}'}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_9", "type": "function", "function": function},
            ],
        }
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
    return {**_chat(asked), "object": "chat.completion", "choices": [choice], "usage": usage}


def _streamed(asked: _Asked) -> Iterator[tuple[str, Json | str]]:
    if asked.protocol == "converse":
        yield from _converse_events(asked)
    elif asked.protocol == "messages":
        yield from _message_events(asked)
    elif asked.protocol == "responses":
        yield from _response_events(asked)
    else:
        yield from _chat_chunks(asked)


def _chat(asked: _Asked) -> Json:
    return {"id": "chatcmpl-1", "created": int(time.time()), "model": asked.body["model"]}


def _chat_chunks(asked: _Asked) -> Iterator[tuple[str, Json | str]]:
    shared = {**_chat(asked), "object": "chat.completion.chunk"}
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    tool = _tool(asked)
    if tool:
        function = {"name": tool["function"]["name"], "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": 0, "id": "call_9", "type": "function", "function": function}]}
        )
        deltas.extend(
            {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
            for part in ('{"q": ', '"x"}')
        )
    else:
        deltas.extend({"content": part} for part in _parts(_answer(asked)))
    for delta in deltas:
        yield "", {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield (
        "",
        {
            **shared,
            "choices": [
                {"index": 0, "delta": {}, "finish_reason": "tool_calls" if tool else "stop"}
            ],
        },
    )
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        read, written = _usage(asked)
        usage = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }
        yield "", {**shared, "choices": [], "usage": usage}
    yield "", "[DONE]"


def _message(asked: _Asked, content: list[Json]) -> Json:
    read, written = _usage(asked)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
    }


def _message_events(asked: _Asked) -> Iterator[tuple[str, Json | str]]:
    tool = _tool(asked)
    yield "message_start", {"type": "message_start", "message": _message(asked, [])}
    block: Json = {"type": "text", "text": ""}
    if tool:
        block = {"type": "tool_use", "id": "toolu_9", "name": tool["name"], "input": {}}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    if tool:
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in ('{"q": ', '"x"}')]
    else:
        deltas = [{"type": "text_delta", "text": part} for part in _parts(_answer(asked))]
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    reason = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield (
        "message_delta",
        {"type": "message_delta", "delta": reason, "usage": {"output_tokens": _usage(asked)[1]}},
    )
    yield "message_stop", {"type": "message_stop"}


def _response(asked: _Asked, output: list[Json], status: str) -> Json:
    read, written = _usage(asked)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": int(time.time()),
        "model": asked.body["model"],
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {
            "input_tokens": read,
            "output_tokens": written,
            "total_tokens": read + written,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _item(asked: _Asked) -> Json:
    tool = _tool(asked)
    if tool:
        return {
            "id": "fc_9",
            "type": "function_call",
            "call_id": "call_9",
            "name": tool["name"],
            "arguments": '{"q": "x"}',
            "status": "completed",
        }
    content = [{"type": "output_text", "text": _answer(asked), "annotations": []}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def _response_events(asked: _Asked) -> Iterator[tuple[str, Json | str]]:
    item = _item(asked)
    events: list[Json] = [
        {"type": "response.created", "response": _response(asked, [], "in_progress")},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress"},
        },
    ]
    place = {"item_id": item["id"], "output_index": 0}
    if item["type"] == "function_call":
        events.extend(
            {"type": "response.function_call_arguments.delta", **place, "delta": part}
            for part in ('{"q": ', '"x"}')
        )
        events.append(
            {
                "type": "response.function_call_arguments.done",
                **place,
                "arguments": item["arguments"],
            }
        )
    else:
        text = _answer(asked)
        part = {"type": "output_text", "text": "", "annotations": []}
        events.append(
            {"type": "response.content_part.added", **place, "content_index": 0, "part": part}
        )
        events.extend(
            {
                "type": "response.output_text.delta",
                **place,
                "content_index": 0,
                "delta": piece,
                "logprobs": [],
            }
            for piece in _parts(text)
        )
        events.append(
            {
                "type": "response.output_text.done",
                **place,
                "content_index": 0,
                "text": text,
                "logprobs": [],
            }
        )
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": _response(asked, [item], "completed")})
    for number, event in enumerate(events):
        yield event["type"], {**event, "sequence_number": number}


def _converse_usage(asked: _Asked) -> Json:
    read, written = _usage(asked)
    return {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}


def _converse_events(asked: _Asked) -> Iterator[tuple[str, Json | str]]:
    tool = _tool(asked)
    yield "messageStart", {"role": "assistant"}
    if tool:
        start: Json = {"toolUse": {"toolUseId": "toolu_9", "name": tool["name"]}}
        yield "contentBlockStart", {"contentBlockIndex": 0, "start": start}
        deltas: list[Json] = [{"toolUse": {"input": part}} for part in ('{"q": ', '"x"}')]
    else:
        deltas = [{"text": part} for part in _parts(_answer(asked))]
    for delta in deltas:
        yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}
    yield "contentBlockStop", {"contentBlockIndex": 0}
    yield "messageStop", {"stopReason": "tool_use" if tool else "end_turn"}
    yield "metadata", {"usage": _converse_usage(asked), "metrics": {"latencyMs": 1}}


def _parts(text: str) -> list[str]:
    third = max(1, len(text) // 3)
    return [text[start : start + third] for start in range(0, len(text), third)]
