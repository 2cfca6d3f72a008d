"""Streams read through ``with_raw_response`` and ``with_streaming_response``, refused inside HTTP
200.
"""

from __future__ import annotations

import gzip
import inspect
import json
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter

if TYPE_CHECKING:
    from tests.clients.conftest import Vendor
    from tests.clients.loopback import Answer, Provider

WAYS = ("with_raw_response", "with_streaming_response")
READINGS = ("events", "lines", "bytes")


@pytest.fixture(autouse=True)
def _first_event(vendor: Vendor) -> None:
    vendor.server.refuse = "event"


def said(text: str) -> str:
    """The words in a body of server-sent events."""
    words = ""
    for line in text.splitlines():
        if line.startswith("data: {"):
            data = json.loads(line.removeprefix("data: "))
            delta = data.get("delta") or (data.get("choices") or [{}])[0].get("delta") or {}
            words += (
                delta if isinstance(delta, str) else delta.get("text") or delta.get("content") or ""
            )
    return words


async def read(vendor: Vendor, raw: Any, reading: str) -> str:
    """Return the words of a raw response, sync or async."""
    response = raw.http_response
    if reading == "events":
        stream = raw.parse()
        stream = await stream if inspect.isawaitable(stream) else stream
        return "".join(map(vendor.text_of, await all_of(stream)))
    prefix = "a" if is_async(raw) else ""
    if reading == "lines":
        return said("\n".join(await all_of(getattr(response, f"{prefix}iter_lines")())))
    return said(b"".join(await all_of(getattr(response, f"{prefix}iter_bytes")())).decode())


async def all_of(stream: Any) -> list[Any]:
    return [item async for item in stream] if hasattr(stream, "__aiter__") else list(stream)


def is_async(raw: Any) -> bool:
    return "Async" in type(getattr(raw, "_client", raw)).__name__


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_refusal_as_first_event_is_compacted_and_nothing_of_the_answer_is_missing(
    way: str, reading: str, asynchronous: bool, vendor: Vendor, compacter: Recording
) -> None:
    """The events, lines and bytes of a raw response are those of the answer."""
    async with AsyncExitStack() as stack:
        client = vendor.client(asynchronous=asynchronous)
        raw = vendor.method(compacter.wrap(client), f"{way}.create")(**vendor.options(stream=True))
        if way == "with_streaming_response":
            enter = stack.enter_async_context if asynchronous else stack.enter_context
            raw = enter(raw)
        raw = await raw if inspect.isawaitable(raw) else raw
        assert raw.headers["content-type"] == "text/event-stream"
        assert await read(vendor, raw, reading) == WORDS
        closed = client.close()
        if asynchronous:
            await closed
    assert [event.trigger for event in compacter.events] == ["token_limit"]
    assert len(vendor.server.bodies) == 2 + compacter.events[0].summarizer_calls


@pytest.mark.parametrize("way", WAYS)
def test_giving_up_hands_the_refused_response_out_whole(way: str, vendor: Vendor) -> None:
    with ExitStack() as stack:
        client = stack.enter_context(vendor.client())
        raw = vendor.method(Compacter(max_retries=0).wrap(client), f"{way}.create")(
            **vendor.options(stream=True)
        )
        raw = stack.enter_context(raw) if way == "with_streaming_response" else raw
        body = b"".join(raw.http_response.iter_bytes()).decode()
    assert "error" in body
    assert (
        body
        == vendor.server.vendor(
            vendor.server, path_of(vendor), vendor.server.bodies[0]
        ).body.decode()
    )


def path_of(vendor: Vendor) -> str:
    return vendor.server.paths[0]


def test_a_refusal_in_a_packed_body_is_found(vendor: Vendor, compacter: Recording) -> None:
    serve = vendor.server.vendor

    def packed(server: Provider, path: str, body: dict[str, Any]) -> Answer:
        answer = serve(server, path, body)
        answer.body = gzip.compress(answer.body)
        answer.headers = [*answer.headers, ("Content-Encoding", "gzip")]
        return answer

    vendor.server.vendor = packed
    with vendor.client() as client:
        raw = vendor.method(compacter.wrap(client), "with_raw_response.create")(
            **vendor.options(stream=True)
        )
        assert "".join(map(vendor.text_of, raw.parse())) == WORDS
    assert len(compacter.events) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_document_with_an_error_inside_http_200_is_compacted(
    way: str, stream: bool, vendor: Vendor, compacter: Recording
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
        raw = vendor.method(compacter.wrap(client), f"{way}.create")(
            **vendor.options(stream=stream)
        )
        raw = stack.enter_context(raw) if way == "with_streaming_response" else raw
        assert "The harbour was painted" in raw.http_response.read().decode()
    assert len(compacter.events) == 1


def test_what_is_not_asked_for_raw_is_not_marked(vendor: Vendor, compacter: Compacter) -> None:
    with vendor.client() as client:
        short = [{"role": "user", "content": "What?"}]
        raw = vendor.method(compacter.wrap(client), "with_raw_response.create")(
            **vendor.options(short, stream=True)
        )
        assert not hasattr(raw, "error")
        assert not hasattr(raw, "close") or "close" not in vars(raw)
