"""Streams read through ``with_raw_response`` and ``with_streaming_response``, refused inside HTTP 200."""

from __future__ import annotations

import gzip
import inspect
import json
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.loopback import Answer, Provider

VENDORS = ("chat", "responses", "messages")
WAYS = ("with_raw_response", "with_streaming_response")
READINGS = ("events", "lines", "bytes")


class Vendor:
    """One vendor's method, its server and the history that is too long for it."""

    def __init__(self, name: str, server: Provider, history: list[Any]) -> None:
        self.name = name
        self.server = server
        self.history = history

    def client(self, *, asynchronous: bool = False) -> Any:
        options: dict[str, Any] = {"base_url": self.server.url, "api_key": "none", "max_retries": 0}
        if self.name == "messages":
            return (anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic)(**options)
        options["base_url"] += "/v1"
        return (openai.AsyncOpenAI if asynchronous else openai.OpenAI)(**options)

    def method(self, client: Any, way: str) -> Callable[..., Any]:
        resource = {"chat": "chat.completions", "responses": "responses", "messages": "messages"}[self.name]
        for part in (*resource.split("."), way):
            client = getattr(client, part)
        create: Callable[..., Any] = client.create
        return create

    def options(self, history: list[Any] | None = None, *, stream: bool = True) -> dict[str, Any]:
        param = "input" if self.name == "responses" else "messages"
        options: dict[str, Any] = {"model": "m", param: self.history if history is None else history, "stream": stream}
        return {**options, "max_tokens": 50} if self.name == "messages" else options


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    server, history = {
        "chat": ("openai_server", "chat"),
        "responses": ("openai_server", "items"),
        "messages": ("anthropic_server", "blocks"),
    }[request.param]
    made: Provider = request.getfixturevalue(server)
    made.refuse = "event"
    return Vendor(request.param, made, request.getfixturevalue(history))


def said(text: str) -> str:
    """The words in a body of server-sent events."""
    words = ""
    for line in text.splitlines():
        if line.startswith("data: {"):
            data = json.loads(line.removeprefix("data: "))
            delta = data.get("delta") or (data.get("choices") or [{}])[0].get("delta") or {}
            words += delta if isinstance(delta, str) else delta.get("text") or delta.get("content") or ""
    return words


def text_of(event: Any) -> str:
    """The words of one event, which has a delta or choices that have one."""
    choices = getattr(event, "choices", None)
    delta = choices[0].delta if choices else getattr(event, "delta", None)
    found = delta if isinstance(delta, str) else getattr(delta, "text", None) or getattr(delta, "content", None)
    return found if isinstance(found, str) else ""


def read(raw: Any, reading: str) -> str:
    if reading == "events":
        return "".join(map(text_of, raw.parse()))
    response = raw.http_response
    if reading == "lines":
        return said("\n".join(response.iter_lines()))
    return said(b"".join(response.iter_bytes()).decode())


async def aread(raw: Any, reading: str) -> str:
    if reading == "events":
        stream = raw.parse()
        stream = await stream if inspect.isawaitable(stream) else stream
        return "".join([text_of(event) async for event in stream])
    response = raw.http_response
    if reading == "lines":
        return said("\n".join([line async for line in response.aiter_lines()]))
    return said(b"".join([chunk async for chunk in response.aiter_bytes()]).decode())


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_as_first_event_is_compacted_and_nothing_of_the_answer_is_missing(
    way: str, reading: str, vendor: Vendor, compacter: Compacter, events: list[CompactionEvent], words: str
) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(vendor.client())
        raw = vendor.method(compacter.wrap(client), way)(**vendor.options())
        raw = stack.enter_context(raw) if way == "with_streaming_response" else raw
        assert raw.headers["content-type"] == "text/event-stream"
        assert read(raw, reading) == words
    assert [event.trigger for event in events] == ["token_limit"]
    assert len(vendor.server.bodies) == 2 + events[0].summarizer_calls


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("way", WAYS)
async def test_so_it_is_with_the_async_clients(
    way: str, reading: str, vendor: Vendor, compacter: Compacter, events: list[CompactionEvent], words: str
) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(vendor.client(asynchronous=True))
        raw = vendor.method(compacter.wrap(client), way)(**vendor.options())
        raw = await (stack.enter_async_context(raw) if way == "with_streaming_response" else raw)
        assert await aread(raw, reading) == words
    assert [event.trigger for event in events] == ["token_limit"]


@pytest.mark.parametrize("way", WAYS)
def test_giving_up_hands_the_refused_response_out_whole(way: str, vendor: Vendor) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(vendor.client())
        raw = vendor.method(Compacter(max_retries=0).wrap(client), way)(**vendor.options())
        raw = stack.enter_context(raw) if way == "with_streaming_response" else raw
        body = b"".join(raw.http_response.iter_bytes()).decode()
    assert "error" in body
    assert body == vendor.server.vendor(vendor.server, path_of(vendor), vendor.server.bodies[0]).body.decode()


def path_of(vendor: Vendor) -> str:
    return vendor.server.paths[0]


def test_a_refusal_in_a_packed_body_is_found(
    vendor: Vendor, compacter: Compacter, events: list[CompactionEvent], words: str
) -> None:
    serve = vendor.server.vendor

    def packed(server: Provider, path: str, body: dict[str, Any]) -> Answer:
        answer = serve(server, path, body)
        answer.body = gzip.compress(answer.body)
        answer.headers = [*answer.headers, ("Content-Encoding", "gzip")]
        return answer

    vendor.server.vendor = packed
    with vendor.client() as client:
        raw = vendor.method(compacter.wrap(client), "with_raw_response")(**vendor.options())
        assert "".join(map(text_of, raw.parse())) == words
    assert len(events) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_document_with_an_error_inside_http_200_is_compacted(
    way: str, stream: bool, vendor: Vendor, compacter: Compacter, events: list[CompactionEvent]
) -> None:
    """Gateways answer so, also where a stream was asked for."""
    serve = vendor.server.vendor

    def quiet(server: Provider, path: str, body: dict[str, Any]) -> Answer:
        answer = serve(server, path, {**body, "stream": False})
        answer.status = 200
        return answer

    vendor.server.vendor = quiet
    with ExitStack() as stack:
        client = stack.enter_context(vendor.client())
        raw = vendor.method(compacter.wrap(client), way)(**vendor.options(stream=stream))
        raw = stack.enter_context(raw) if way == "with_streaming_response" else raw
        assert "The harbour was painted" in raw.http_response.read().decode()
    assert len(events) == 1


def test_what_is_not_asked_for_raw_is_not_marked(vendor: Vendor, compacter: Compacter) -> None:
    with vendor.client() as client:
        short = [{"role": "user", "content": "What?"}]
        raw = vendor.method(compacter.wrap(client), "with_raw_response")(**vendor.options(short))
        assert not hasattr(raw, "error")
        assert not hasattr(raw, "close") or "close" not in vars(raw)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_bodies_in_pieces_of_any_size_are_read_alike(size: int, openai_server: Provider, chat: list[Any]) -> None:
    from compacter.clients.raw import EventWatch

    openai_server.refuse = "event"
    refused = openai_server.vendor(openai_server, "/v1/chat", {"model": "m", "messages": chat, "stream": True})
    body = refused.body.replace(b"\n", b"\r\n") if size == 7 else refused.body
    watch = EventWatch("")
    seen = [watch.read(body[at : at + size]) for at in range(0, len(body), size)]
    watch.end()
    assert any(seen)
    assert "maximum context length" in watch.refusal["message"]  # type: ignore[index]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n\r\n"])
def test_a_refusal_at_the_very_end_is_found_and_one_after_content_is_not(ending: bytes) -> None:
    from compacter.clients.raw import EventWatch

    refusal = b'data: {"error": {"message": "prompt is too long: 9 tokens > 5 maximum"}}' + ending
    content = b'data: {"choices": [{"delta": {"content": "The"}}]}\n\n'
    for body, found in ((refusal, True), (content + refusal, False)):
        watch = EventWatch("")
        watch.read(body)
        watch.end()
        assert (watch.refusal is not None) == found


def test_a_body_without_end_is_looked_into_no_further_than_a_megabyte() -> None:
    from compacter.clients.raw import DocumentWatch, EventWatch

    for watch in (EventWatch(""), EventWatch("gzip"), DocumentWatch(""), DocumentWatch("gzip")):
        chunk = b": keep waiting\n" * 1000
        assert any(watch.read(chunk) for _ in range(100))
        watch.end()
        assert watch.refusal is None
