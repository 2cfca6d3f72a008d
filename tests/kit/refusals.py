"""Refusals inside HTTP 200: the answers by which a provider says "too long" with a successful
status.

A gateway that has sent its status before the model has read the request, or that answers 200 to
everything, puts the refusal into the body. Each form stands in the table below, and `refusals`
returns them as bytes, for a server of your own.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from compacter.testing import token_limit_error

Protocol = Literal["chat completions", "responses", "messages", "gemini", "bedrock", "ollama"]

Body: TypeAlias = dict[str, Any]
Event: TypeAlias = tuple[str | None, Body]
"""Name and data of one event; the name of most events of chat completions and Gemini is None."""

_EVENTS = "text/event-stream"
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal inside HTTP 200, as the bytes of an answer."""

    protocol: Protocol
    name: str
    """Form and place, such as "flat, after 2 events"."""
    streamed: bool
    """Whether it answers a request for a stream."""
    content_type: str
    body: bytes
    states_numbers: bool = True
    """Whether it states the limit and the size of the request."""

    def __str__(self) -> str:
        """Return protocol and name, for the ids of tests."""
        return f"{self.protocol}: {'stream' if self.streamed else 'plain'}, {self.name}"


def refusals(limit: int = 8192, requested: int = 9000) -> tuple[Refusal, ...]:
    """Return every form of refusal, in every protocol.

    Streams have each form three times: as the first event, as the second, and after all events that
    may come before content. They have the forms of plain answers too: some servers answer a request
    for a stream with one JSON document.

    Args:
        limit: The context window that the texts state, in tokens.
        requested: The size of the request that they state, in tokens.
    """
    return tuple(
        refusal
        for protocol in _FORMS
        for refusal in _refusals(_FORMS[protocol](limit, requested), protocol)
    )


@dataclass(frozen=True, slots=True)
class _Forms:
    """The refusals of one protocol."""

    quiet: Sequence[Event]
    """Events that may come before content, in their order."""
    events: Mapping[str, Event]
    documents: Mapping[str, object]
    write: Callable[[Sequence[Event]], bytes]
    content_type: str = _EVENTS


def _refusals(forms: _Forms, protocol: Protocol) -> Iterator[Refusal]:
    for name, document in forms.documents.items():
        answer = partial(
            Refusal, protocol, body=json.dumps(document).encode(), states_numbers=_has_numbers(name)
        )
        yield answer(name, streamed=False, content_type=_JSON)
        yield answer(f"{name}, as JSON", streamed=True, content_type=_JSON)
        if forms.content_type == _EVENTS:
            # The headers had been sent when the server met its error.
            under = f"{name}, as JSON under the type of events"
            yield answer(under, streamed=True, content_type=_EVENTS)
    for name, event in forms.events.items():
        for count in (0, 1, len(forms.quiet)):
            yield Refusal(
                protocol,
                f"{name}, after {count} events",
                streamed=True,
                content_type=forms.content_type,
                body=forms.write([*forms.quiet[:count], event]),
                states_numbers=_has_numbers(name),
            )


def _has_numbers(name: str) -> bool:
    return not name.startswith(("stop reason", "exception", "incomplete"))


# -- how streams are written -----------------------------------------------------------------------


def _sse_stream(events: Sequence[Event]) -> bytes:
    """https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    return b"".join(
        (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(data)}\n\n".encode()
        for name, data in events
    )


def _lines(events: Sequence[Event]) -> bytes:
    return b"".join(json.dumps(data).encode() + b"\n" for _, data in events)


def event_stream_message(kind: Literal["event", "exception"], name: str, data: object) -> bytes:
    """Return one message of the encoding ``application/vnd.amazon.eventstream``: prelude, headers,
    payload, two checksums.

    https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html describes it.
    """
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in (
            (":message-type", kind),
            (f":{kind}-type", name),
            (":content-type", _JSON),
        )
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _event_stream(events: Sequence[Event]) -> bytes:
    return b"".join(
        event_stream_message(
            "exception" if str(name).endswith("Exception") else "event", str(name), data
        )
        for name, data in events
    )


# -- the forms of each protocol --------------------------------------------------------------------


def _openai_error(limit: int, requested: int) -> Body:
    error = token_limit_error("openai", limit=limit, input_tokens=requested)
    return {"message": error.message, "type": error.type, "param": "messages", "code": error.code}


def _flat(error: Body) -> Body:
    """``ResponseErrorEvent`` of OpenAI's SDK, which other protocols use too."""
    return {
        "type": "error",
        "code": error["code"],
        "message": error["message"],
        "param": error["param"],
    }


def _chat_completions(limit: int, requested: int) -> _Forms:
    error = _openai_error(limit, requested)
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    whole = {**frame, "object": "chat.completion"}
    role = {"role": "assistant", "content": ""}

    def choice(**members: Any) -> list[Body]:
        return [{"index": 0, "finish_reason": None, **members}]

    shared: Mapping[str, Body] = {
        "nested": {"error": error},
        "text": {"error": error["message"]},
        "typed": {"type": "error", "error": error},
        "flat": _flat(error),
        # vLLM and SGLang: ``type`` is the class of the error.
        "flat object": {**error, "object": "error", "type": "BadRequestError", "code": 400},
        "in no choice": {**whole, "choices": [], "error": error},
    }
    reply = {"role": "assistant", "content": None}
    cut = "model_context_window_exceeded"
    return _Forms(
        quiet=(
            # Azure's first chunk: the results of its filter for the prompt.
            (None, {**frame, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
            (None, {**frame, "choices": choice(delta=role)}),
            (None, {**frame, "choices": choice(delta={"content": ""})}),
        ),
        events={
            **{name: (None, data) for name, data in shared.items()},
            "named": ("error", error),
            "beside a choice": (
                None,
                {**frame, "choices": choice(delta=role, finish_reason="error"), "error": error},
            ),
            "in a choice": (
                None,
                {**frame, "choices": choice(delta=role, finish_reason="error", error=error)},
            ),
            "stop reason": (None, {**frame, "choices": choice(delta={}, finish_reason=cut)}),
        },
        documents={
            **shared,
            "beside a choice": {
                **whole,
                "choices": choice(message=reply, finish_reason="error"),
                "error": error,
            },
            "in a choice": {
                **whole,
                "choices": choice(message=reply, finish_reason="error", error=error),
            },
            "stop reason": {**whole, "choices": choice(message=reply, finish_reason=cut)},
        },
        write=_sse_stream,
    )


def _responses(limit: int, requested: int) -> _Forms:
    error = {**_openai_error(limit, requested), "param": "input"}
    reason = {"code": error["code"], "message": error["message"]}
    begun: Body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    failed = {**begun, "status": "failed", "error": reason}
    cut = {
        **begun,
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "usage": {
            "input_tokens": limit,
            "output_tokens": 0,
            "total_tokens": limit,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
    full = {
        **begun,
        "status": "incomplete",
        "incomplete_details": {"reason": "context_window_exceeded"},
    }
    stopped = {**failed, "status": "incomplete"}

    def event(kind: str, number: int, **members: Any) -> Event:
        return kind, {"type": kind, "sequence_number": number, **members}

    item = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    shared: Mapping[str, Body] = {
        "nested": {"error": error},
        "typed": {"type": "error", "error": error},
        "flat": _flat(error),
    }
    return _Forms(
        quiet=(
            event("response.created", 0, response=begun),
            event("response.in_progress", 1, response=begun),
            event("response.output_item.added", 2, output_index=0, item=item),
        ),
        events={
            **{name: ("error", {**data, "sequence_number": 3}) for name, data in shared.items()},
            "named": ("error", error),
            "failed": event("response.failed", 3, response=failed),
            "incomplete": event("response.incomplete", 3, response=full),
            "incomplete, with an error": event("response.incomplete", 3, response=stopped),
            "incomplete, cut off": event("response.incomplete", 3, response=cut),
        },
        documents={
            **shared,
            "failed": failed,
            "incomplete": full,
            "incomplete, with an error": stopped,
            "incomplete, cut off": cut,
        },
        write=_sse_stream,
    )


def _messages(limit: int, requested: int) -> _Forms:
    text = token_limit_error("anthropic", limit=limit, input_tokens=requested).message
    error = {"type": "invalid_request_error", "message": text}
    begun: Body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": limit, "output_tokens": 0},
    }
    cut = {"stop_reason": "model_context_window_exceeded", "stop_sequence": None}
    block = {"type": "text", "text": ""}
    shared: Mapping[str, Body] = {
        "typed": {"type": "error", "error": error},
        "nested": {"error": error},
        "flat": {"type": "error", "message": text},
    }
    return _Forms(
        quiet=(
            ("message_start", {"type": "message_start", "message": begun}),
            ("ping", {"type": "ping"}),
            (
                "content_block_start",
                {"type": "content_block_start", "index": 0, "content_block": block},
            ),
        ),
        events={
            **{name: ("error", data) for name, data in shared.items()},
            "named": ("error", error),
            "stop reason": (
                "message_delta",
                {"type": "message_delta", "delta": cut, "usage": {"output_tokens": 0}},
            ),
        },
        documents={**shared, "stop reason": {**begun, **cut}},
        write=_sse_stream,
    )


def _gemini(limit: int, requested: int) -> _Forms:
    text = token_limit_error("gemini", limit=limit, input_tokens=requested).message
    error = {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}
    empty = {"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0}
    return _Forms(
        quiet=(
            (None, {"usageMetadata": {"promptTokenCount": limit}, "modelVersion": "m"}),
            (None, {"candidates": [empty], "modelVersion": "m"}),
        ),
        events={"nested": (None, error), "named": ("error", error)},
        documents={
            "nested": error,
            # ``streamGenerateContent`` without ``alt=sse`` answers with an array.
            "in a list": [error],
        },
        write=_sse_stream,
    )


def _bedrock(limit: int, requested: int) -> _Forms:
    text = token_limit_error("bedrock", limit=limit, input_tokens=requested).message
    cut = {"stopReason": "model_context_window_exceeded"}
    message = {"role": "assistant", "content": []}
    usage = {"inputTokens": limit, "outputTokens": 0, "totalTokens": limit}
    return _Forms(
        quiet=(
            ("messageStart", {"role": "assistant"}),
            ("contentBlockStart", {"contentBlockIndex": 0, "start": {}}),
        ),
        events={
            "exception": ("validationException", {"message": text}),
            "stop reason": ("messageStop", cut),
        },
        documents={"stop reason": {"output": {"message": message}, "usage": usage, **cut}},
        write=_event_stream,
        content_type="application/vnd.amazon.eventstream",
    )


def _ollama(limit: int, requested: int) -> _Forms:
    text = f"the prompt of {requested} tokens exceeds the context length of {limit} tokens"
    empty = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": False}
    return _Forms(
        quiet=((None, empty), (None, empty)),
        events={"text": (None, {"error": text})},
        documents={"text": {"error": text}},
        write=_lines,
        content_type="application/x-ndjson",
    )


_FORMS: Mapping[Protocol, Callable[[int, int], _Forms]] = {
    "chat completions": _chat_completions,
    "responses": _responses,
    "messages": _messages,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "ollama": _ollama,
}
