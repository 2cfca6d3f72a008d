"""Providers on a loopback address: they speak the documented wire bytes and refuse what is too
long.

Every answer is the same few words, a summary's too: what is tested is the way there and back.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from base64 import b64encode
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal

from tests.kit.messages import Messages
from tests.kit.protocol import Protocol
from tests.kit.refusals import event_stream_message
from tests.kit.responses import Responses

from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from tests.kit import Refusal

    from compacter.testing.server import Event

Body = dict[str, Any]
PIECES = ("The harbour ", "was painted ", "blue last year, as is known of piers and lamps.")
WORDS = "".join(PIECES)
WINDOW = 1_500
"""Tokens, of four characters each."""


class Provider(ThreadingHTTPServer):
    """One vendor's server. ``refuse`` is where it says "too long": by status, as first event, or in
    one of the forms of ``tests.kit``.
    """

    daemon_threads = True

    def __init__(self, vendor: Callable[[Provider, str, Body], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.vendor = vendor
        self.refuse: Literal["status", "event"] | Refusal = "status"
        self.paths: list[str] = []
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def too_long(self, messages: object) -> int | None:
        """The request's tokens, where the window has no room for them."""
        tokens = len(json.dumps(messages)) // 4
        return tokens if tokens > WINDOW else None


class Answer:
    """A status, a content type and bytes."""

    def __init__(
        self, body: bytes, kind: str, status: int = 200, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.body = body
        self.kind = kind
        self.status = status
        self.headers = headers


def json_answer(body: object, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    return Answer(json.dumps(body).encode(), "application/json", status, headers)


def sse(events: Sequence[Event]) -> Answer:
    """Server-sent events, each with or without a name."""
    lines = [
        (f"event: {name}\n" if name else "")
        + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
        for name, data in events
    ]
    return Answer("".join(lines).encode(), "text/event-stream")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        text = self.rfile.read(length)
        if len(text) < length:
            # The caller went away before the end: the request was never made.
            self.close_connection = True
            return
        try:
            self._answer(json.loads(text))
        except ValueError:
            self._answer({})

    def _answer(self, body: Body) -> None:
        assert isinstance(self.server, Provider)
        self.server.paths.append(self.path)
        self.server.bodies.append(body)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        path = self.path.partition("?")[0]
        answer = _refused(self.server, path, body) or self.server.vendor(self.server, path, body)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet: a test tells what went wrong."""


def _refused(server: Provider, path: str, body: Body) -> Answer | None:
    """The refusal that a test has chosen, where this request gets it."""
    refusal = server.refuse
    if isinstance(refusal, str):
        return None
    messages = next((body[name] for name in ("messages", "input", "contents") if name in body), "")
    streamed = bool(body.get("stream")) or "stream" in path.rpartition("/")[2].lower()
    if refusal.streamed != streamed or not server.too_long(messages):
        return None
    return Answer(refusal.body, refusal.content_type)


@contextmanager
def serving(vendor: Callable[[Provider, str, Body], Answer]) -> Generator[Provider]:
    server = Provider(vendor)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    """A port that is free, and that no program is given which asks for any port: those begin at
    32768.
    """
    while True:
        port = secrets.randbelow(12_000) + 20_000
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


# -- OpenAI: chat completions, responses; Anthropic ------------------------------------------------


class Chat(Protocol):
    """OpenAI's chat completions."""

    def whole(self, body: Body, completion: Body) -> Body:
        return completion

    def events(self, body: Body, chunks: Iterable[Body]) -> Iterator[Event]:
        yield from ((None, chunk) for chunk in chunks)
        yield None, "[DONE]"

    def failed(self, body: Body, error: Body) -> Iterator[Event]:
        yield None, error


# Ids are always the same, so that two answers can be compared byte for byte.
CHAT = Chat()
RESPONSES = Responses(repeat(1))
MESSAGES = Messages(repeat(1))


def answered(
    server: Provider, protocol: Protocol, body: Body, refusal: str | None, structured: object
) -> Answer:
    """The refusal, or else the words, as JSON where a format is asked for."""
    if refusal is not None:
        error = protocol.error(refusal, "invalid_request_error", "context_length_exceeded")
        if body.get("stream") and server.refuse == "event":
            return sse(list(protocol.failed(body, error)))
        return json_answer(error, 400)
    text = '{"colour": "blue"}' if structured else WORDS
    read = len(json.dumps(body["messages"])) // 4 if protocol is CHAT else 90
    model = ScriptedModel(
        replies={"content": text, "finish_reason": "stop"},
        strict=False,
        usage={"prompt_tokens": read, "completion_tokens": 9, "total_tokens": 99},
    )
    reply = model.completion(body["model"], (), stream=bool(body.get("stream")))
    if body.get("stream"):
        return sse(list(protocol.events(body, reply)))
    return json_answer(protocol.whole(body, reply))


COMPACTED: Body = {
    "id": "cmp_1",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"id": "cmp_item", "type": "compaction", "encrypted_content": "opaque"}],
    "usage": {
        "input_tokens": 90,
        "output_tokens": 9,
        "total_tokens": 99,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
STORED: list[Body] = [
    {"id": "rs_1", "type": "reasoning", "summary": []},
    *(
        {
            "id": f"fc_{call}",
            "type": "function_call",
            "call_id": call,
            "name": "look_up",
            "arguments": "{}",
        }
        for call in ("call_1", "call_2")
    ),
]
"""Text of a stored response."""


def openai(server: Provider, path: str, body: Body) -> Answer:
    if path.endswith("/responses/compact"):
        if body["previous_response_id"] != "resp_lost":
            return json_answer(COMPACTED)
        return json_answer(RESPONSES.error("No such response.", "not_found_error", None), 404)
    if path.endswith("/responses"):
        # What a chained call asks about lies with the server, and this server's past is always too
        # long.
        is_kept = body.get("previous_response_id") or body.get("conversation")
        refusal = (
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again."
            if is_kept or server.too_long(body["input"])
            else None
        )
        return answered(server, RESPONSES, body, refusal, "format" in body.get("text", {}))
    if "/responses/" in path:
        whole = RESPONSES.whole({"model": "m"}, EMPTY)
        return json_answer({**whole, "id": path.rpartition("/")[2], "output": STORED})
    tokens = server.too_long(body["messages"])
    text = (
        f"This model's maximum context length is {WINDOW} tokens. However, your messages resulted "
        f"in {tokens} tokens. Please reduce the length of the messages."
    )
    refusal = None if tokens is None else text
    return answered(server, CHAT, body, refusal, body.get("response_format"))


EMPTY: Body = {"choices": [{"message": {}, "finish_reason": "stop"}]}


def anthropic(server: Provider, path: str, body: Body) -> Answer:
    tokens = server.too_long(body["messages"])
    text = f"prompt is too long: {tokens} tokens > {WINDOW} maximum"
    refusal = None if tokens is None else text
    return answered(server, MESSAGES, body, refusal, body.get("output_config"))


# -- Gemini ----------------------------------------------------------------------------------------


def gemini(server: Provider, path: str, body: Body) -> Answer:
    tokens = server.too_long(body["contents"])
    if tokens is not None:
        text = (
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed "
            f"({WINDOW})."
        )
        error = {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}
        if "stream" in path and server.refuse == "event":
            return sse([(None, error)])
        return json_answer(error, 400)

    def reply(text: str, **extra: object) -> Body:
        content = {"role": "model", "parts": [{"text": text}]}
        usage = {"promptTokenCount": 90, "candidatesTokenCount": 9, "totalTokenCount": 99}
        return {
            "candidates": [{"content": content, "index": 0, **extra}],
            "usageMetadata": usage,
            "modelVersion": "gemini-test",
        }

    if "stream" not in path:
        asked = json.dumps(body["contents"][-1])
        if body.get("tools") and "functionResponse" not in asked:
            call = {
                "role": "model",
                "parts": [{"functionCall": {"name": "count_ships", "args": {}}}],
            }
            return json_answer(
                {"candidates": [{"content": call, "index": 0, "finishReason": "STOP"}]}
            )
        return json_answer(reply(WORDS, finishReason="STOP"))
    return sse(
        [
            *((None, reply(piece)) for piece in PIECES[:-1]),
            (None, reply(PIECES[-1], finishReason="STOP")),
        ]
    )


# -- Bedrock ---------------------------------------------------------------------------------------


def bedrock(server: Provider, path: str, body: Body) -> Answer:
    streaming = path.endswith(("/converse-stream", "/invoke-with-response-stream"))
    if server.too_long(body["messages"]):
        text = "The model returned the following errors: Input is too long for requested model."
        if streaming and server.refuse == "event":
            failure = event_stream_message("exception", "validationException", {"message": text})
            return Answer(failure, "application/vnd.amazon.eventstream")
        return json_answer({"message": text}, 400, [("x-amzn-ErrorType", "ValidationException")])
    if "/invoke" in path:
        answer = anthropic(server, path, {**body, "model": "claude-test", "stream": streaming})
        if not streaming:
            return answer
        lines = (
            line.removeprefix(b"data: ")
            for line in answer.body.splitlines()
            if line.startswith(b"data: ")
        )
        chunks = ({"bytes": b64encode(line).decode()} for line in lines)
        body_bytes = b"".join(event_stream_message("event", "chunk", chunk) for chunk in chunks)
        return Answer(body_bytes, "application/vnd.amazon.eventstream")
    usage = {"inputTokens": 90, "outputTokens": 9, "totalTokens": 99}
    if not streaming:
        message = {"role": "assistant", "content": [{"text": WORDS}]}
        return json_answer(
            {
                "output": {"message": message},
                "stopReason": "end_turn",
                "usage": usage,
                "metrics": {"latencyMs": 1},
            }
        )
    events: list[tuple[str, Body]] = [
        ("messageStart", {"role": "assistant"}),
        *(
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}})
            for piece in PIECES
        ),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
    ]
    body_bytes = b"".join(event_stream_message("event", name, data) for name, data in events)
    return Answer(body_bytes, "application/vnd.amazon.eventstream")
