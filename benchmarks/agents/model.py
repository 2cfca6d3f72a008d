"""A pretend model with a true window: it has an agent run one command after the other, and refuses
what is too long as the vendor does.

Requests without a tool that runs commands are an agent's own business (a title, a summary), or a
summary of compacter's: these get a text.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

COMMANDS = 12
# Each prints 6,000 characters, which count as 1,500 tokens.
COMMAND = "seq {first} {last}"
LINES = 1_000
ROOM = 9_000
"""Tokens that the window has beyond an agent's first request: half of what the commands print."""
ASKED = "Count in twelve steps, one command after the other, and say when it is done."
DONE = "All of it is counted."
SUMMARY = (
    "The user asked to count in twelve steps. Some steps are done; each printed 1,000 numbers "
    "in order. The next step is the next command."
)
_SHELLS = re.compile(r"bash|shell|exec_command|run_shell|terminal", re.IGNORECASE)
_WANTS_SUMMARY = re.compile(
    r"\b(?:create|provide|write|generate)\b[^.]{0,80}\bsummary", re.IGNORECASE
)


@dataclass
class Model:
    """What one run of one agent asked, and what it got."""

    window: int = 0
    """Tokens; 0 until the first request that can run commands, which decides it."""
    commands: int = 0
    requests: int = 0
    refused: int = 0
    others: int = 0
    """Requests that cannot run commands."""
    finished: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, protocol: Protocol, body: Json, path: str) -> Answer:
        """Return the answer to a request."""
        messages = body.get(protocol.param)
        # What counts is what a model reads: instructions, tools and messages.
        tokens = len(json.dumps(body)) // 4
        tool = _shell_of(protocol.tools(body))
        with self.lock:
            self.requests += 1
            request = Request(body, path, tokens, self.window, self.requests)
            if tool is not None and not self.window:
                self.window = tokens + ROOM
            if self.window and tokens > self.window:
                self.refused += 1
                return protocol.refuse(request)
            if tool is None or _WANTS_SUMMARY.search(_last_text(messages)):
                self.others += 1
                return protocol.say(SUMMARY, request)
            if self.commands < COMMANDS:
                self.commands += 1
                first = 10_000 + LINES * self.commands
                command = COMMAND.format(first=first, last=first + LINES - 1)
                return protocol.call(tool, command, request)
            self.finished = True
            return protocol.say(DONE, request)


@dataclass(frozen=True)
class Request:
    """A request, and its size."""

    body: Json
    path: str
    tokens: int
    window: int
    number: int
    """Part of the ids in the answer: programs take messages of one id for pieces of one message."""


@dataclass(frozen=True)
class Tool:
    """A tool that runs commands."""

    name: str
    schema: Json

    def arguments(self, command: str) -> Json:
        """Return what to call it with."""
        properties = self.schema.get("properties", {})
        given: Json = {}
        for name in ("command", "cmd"):
            if name in properties:
                is_list = properties[name].get("type") == "array"
                given[name] = ["bash", "-lc", command] if is_list else command
        for name in self.schema.get("required", ()):
            kind = properties.get(name, {}).get("type")
            given.setdefault(name, {"boolean": False, "number": 60_000}.get(kind, "Count."))
        return given


def _shell_of(tools: Iterator[Tool]) -> Tool | None:
    return next((tool for tool in tools if _SHELLS.search(tool.name)), None)


def _last_text(messages: object) -> str:
    last = messages[-1] if isinstance(messages, list) and messages else messages
    return json.dumps(last)


@dataclass(frozen=True)
class Answer:
    """Bytes of a response."""

    body: bytes
    kind: str = "application/json"
    status: int = 200


class Protocol:
    """How a vendor's requests are read, and its responses written."""

    param = "messages"

    def tools(self, body: Json) -> Iterator[Tool]:
        """Yield the tools of a request."""
        raise NotImplementedError

    def say(self, text: str, request: Request) -> Answer:
        """Return a text."""
        raise NotImplementedError

    def call(self, tool: Tool, command: str, request: Request) -> Answer:
        """Return a call of a tool."""
        raise NotImplementedError

    def refuse(self, request: Request) -> Answer:
        """Return the refusal of a request that is too long."""
        raise NotImplementedError


class Chat(Protocol):
    """OpenAI's chat completions."""

    def tools(self, body: Json) -> Iterator[Tool]:
        for tool in body.get("tools") or ():
            yield Tool(tool["function"]["name"], tool["function"].get("parameters", {}))

    def say(self, text: str, request: Request) -> Answer:
        return self._reply({"content": text}, "stop", request)

    def call(self, tool: Tool, command: str, request: Request) -> Answer:
        function = {"name": tool.name, "arguments": json.dumps(tool.arguments(command))}
        made = {
            "index": 0,
            "id": f"call_{request.number}",
            "type": "function",
            "function": function,
        }
        return self._reply({"content": None, "tool_calls": [made]}, "tool_calls", request)

    def refuse(self, request: Request) -> Answer:
        message = (
            f"This model's maximum context length is {request.window} tokens. However, your "
            f"messages resulted in {request.tokens} tokens. Please reduce the length of the "
            "messages."
        )
        error = {"message": message, "type": "invalid_request_error", "param": "messages"}
        return document({"error": {**error, "code": "context_length_exceeded"}}, 400)

    def _reply(self, message: Json, finish: str, request: Request) -> Answer:
        usage = {
            "prompt_tokens": request.tokens,
            "completion_tokens": 20,
            "total_tokens": request.tokens + 20,
        }
        shared = {"id": f"chatcmpl-{request.number}", "created": 1, "model": request.body["model"]}
        said = {"role": "assistant", **message}
        if not request.body.get("stream"):
            choice = {"index": 0, "message": said, "finish_reason": finish}
            whole = {**shared, "object": "chat.completion", "choices": [choice], "usage": usage}
            return document(whole)
        shared["object"] = "chat.completion.chunk"
        chunks: list[Json] = [
            {**shared, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {**shared, "choices": [], "usage": usage},
        ]
        return events([(None, chunk) for chunk in chunks], done=True)


class Responses(Protocol):
    """OpenAI's responses; a refusal is the last event of a stream."""

    param = "input"

    def tools(self, body: Json) -> Iterator[Tool]:
        for tool in body.get("tools") or ():
            if tool.get("type") == "function":
                yield Tool(tool["name"], tool.get("parameters", {}))

    def say(self, text: str, request: Request) -> Answer:
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {
            "id": f"msg_{request.number}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
        }
        return self._reply({**item, "content": [part]}, request)

    def call(self, tool: Tool, command: str, request: Request) -> Answer:
        item = {
            "id": f"fc_{request.number}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{request.number}",
            "name": tool.name,
            "arguments": json.dumps(tool.arguments(command)),
        }
        return self._reply(item, request)

    def refuse(self, request: Request) -> Answer:
        message = "Your input exceeds the context window of this model."
        error = {"code": "context_length_exceeded", "message": message}
        if not request.body.get("stream"):
            return document({"error": {**error, "type": "invalid_request_error"}}, 400)
        response = {**self._shared(request), "status": "failed", "output": [], "error": error}
        return events([("response.failed", _numbered("response.failed", 1, response=response))])

    @staticmethod
    def _shared(request: Request) -> Json:
        shared = {
            "id": f"resp_{request.number}",
            "object": "response",
            "created_at": 1,
            "model": request.body["model"],
        }
        return {**shared, "parallel_tool_calls": True}

    def _reply(self, item: Json, request: Request) -> Answer:
        usage = {
            "input_tokens": request.tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": request.tokens + 20,
        }
        shared = self._shared(request)
        whole = {**shared, "status": "completed", "output": [item], "usage": usage}
        if not request.body.get("stream"):
            return document(whole)
        done = "response.output_item.done"
        end = "response.completed"
        first = _numbered(done, 0, output_index=0, item=item)
        return events([(done, first), (end, _numbered(end, 1, response=whole))])


def _numbered(kind: str, number: int, **fields: object) -> Json:
    return {"type": kind, "sequence_number": number, **fields}


class Messages(Protocol):
    """Anthropic's messages."""

    def tools(self, body: Json) -> Iterator[Tool]:
        for tool in body.get("tools") or ():
            yield Tool(tool["name"], tool.get("input_schema", {}))

    def say(self, text: str, request: Request) -> Answer:
        return self._reply({"type": "text", "text": text}, "end_turn", request)

    def call(self, tool: Tool, command: str, request: Request) -> Answer:
        use = {"type": "tool_use", "id": f"toolu_{request.number}", "name": tool.name}
        block = {**use, "input": tool.arguments(command)}
        return self._reply(block, "tool_use", request)

    def refuse(self, request: Request) -> Answer:
        text = f"prompt is too long: {request.tokens} tokens > {request.window} maximum"
        error = {"type": "invalid_request_error", "message": text}
        return document({"type": "error", "error": error}, 400)

    def _reply(self, block: Json, stop: str, request: Request) -> Answer:
        usage = {"input_tokens": request.tokens, "output_tokens": 20}
        message = {
            "id": f"msg_{request.number}",
            "type": "message",
            "role": "assistant",
            "model": request.body["model"],
        }
        message |= {"stop_reason": stop, "stop_sequence": None, "usage": usage}
        if not request.body.get("stream"):
            return document({**message, "content": [block]})
        if block["type"] == "text":
            empty: Json = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        start = {**message, "content": [], "stop_reason": None}
        end = {"stop_reason": stop, "stop_sequence": None}
        sent: list[Json] = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}},
            {"type": "message_stop"},
        ]
        return events([(event["type"], event) for event in sent])


class Gemini(Protocol):
    """Gemini's ``generateContent`` and its stream."""

    param = "contents"

    def tools(self, body: Json) -> Iterator[Tool]:
        for tool in body.get("tools") or ():
            for declared in tool.get("functionDeclarations", ()):
                schema = declared.get("parametersJsonSchema") or declared.get("parameters", {})
                yield Tool(declared["name"], schema)

    def say(self, text: str, request: Request) -> Answer:
        return self._reply({"text": text}, request)

    def call(self, tool: Tool, command: str, request: Request) -> Answer:
        call = {"name": tool.name, "args": tool.arguments(command)}
        return self._reply({"functionCall": call}, request)

    def refuse(self, request: Request) -> Answer:
        text = (
            f"The input token count ({request.tokens}) exceeds the maximum number of tokens "
            f"allowed ({request.window})."
        )
        error = {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}
        return document({"error": error}, 400)

    def _reply(self, part: Json, request: Request) -> Answer:
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": request.tokens, "candidatesTokenCount": 20}
        reply = {
            "candidates": [{"content": content, "index": 0, "finishReason": "STOP"}],
            "usageMetadata": {**usage, "totalTokenCount": request.tokens + 20},
            "modelVersion": "pretend",
        }
        return events([(None, reply)]) if "stream" in request.path else document(reply)


ROUTES: tuple[tuple[re.Pattern[str], Protocol], ...] = (
    (re.compile(r"/chat/completions\Z"), Chat()),
    (re.compile(r"/responses\Z"), Responses()),
    (re.compile(r"/messages\Z"), Messages()),
    (re.compile(r":(?:generate|streamGenerate)Content\Z"), Gemini()),
)


def document(body: Json, status: int = 200) -> Answer:
    """Return a JSON response."""
    return Answer(json.dumps(body).encode(), status=status)


def events(sent: list[tuple[str | None, Json]], *, done: bool = False) -> Answer:
    """Return server-sent events, each with or without a name."""
    lines = [
        (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"
        for name, data in sent
    ]
    text = "".join([*lines, "data: [DONE]\n\n" if done else ""])
    return Answer(text.encode(), "text/event-stream")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: Model


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._send(Answer(b""))

    def do_GET(self) -> None:
        self._send(document({"object": "list", "data": []}))

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        protocol = next((one for route, one in ROUTES if route.search(path)), None)
        if protocol is None:
            self._send(document({}, 404))
            return
        assert isinstance(self.server, _Server)
        self._send(self.server.model.answer(protocol, json.loads(text), path))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def serving(model: Model) -> Generator[str]:
    """Serve a model on a free port; yields the URL."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.model = model
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
