"""Behaviour that every vendor's client shares: each way to call it survives a token limit, as if
nothing had happened.
"""

from __future__ import annotations

import inspect
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.clients.conftest import Vendor

from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import CompactionEvent

STREAMS = (openai.Stream, openai.AsyncStream, anthropic.Stream, anthropic.AsyncStream)


class Colour(BaseModel):
    colour: str


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def asynchronous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
async def client(vendor: Vendor, asynchronous: bool) -> AsyncIterator[Any]:
    made = vendor.client(asynchronous=asynchronous)
    yield made
    await settled(made.close())


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def all_of(stream: Any) -> list[Any]:
    return [item async for item in stream] if hasattr(stream, "__aiter__") else list(stream)


def check(vendor: Vendor, events: list[CompactionEvent]) -> None:
    """Refused, summarised by the same model, sent again with the same end: a list that the vendor
    takes.
    """
    refused, *summaries, answered = (body for body in vendor.server.bodies)
    sent = answered[vendor.param]
    assert refused[vendor.param] == vendor.history
    assert sent[-1] == vendor.history[-1]
    assert len(sent) < len(vendor.history)
    assert {**answered, vendor.param: None} == {**refused, vendor.param: None}
    assert [event.trigger for event in events] == ["token_limit"]
    assert (events[0].fallback, events[0].summarizer_calls) == (False, len(summaries))
    for body in summaries:
        assert not any(
            body.get(name)
            for name in ("stream", "tools", "thinking", "response_format", "output_config")
        )
    if vendor.is_anthropic:
        assert sent[0]["role"] == "user"
        assert all(one["role"] != other["role"] for one, other in pairwise(sent))


async def test_a_call(vendor: Vendor, client: Any, compacter: Recording) -> None:
    create = vendor.method(compacter.wrap(client))
    given = vendor.options()
    assert vendor.words(await settled(create(**given))) == WORDS
    assert given[vendor.param] == vendor.history
    check(vendor, compacter.events)
    # With a record in force: the same answer, in one request.
    sent = len(vendor.server.bodies)
    assert vendor.words(await settled(create(**given))) == WORDS
    assert (len(vendor.server.bodies), len(compacter.events)) == (sent + 1, 1)


async def test_a_stream(vendor: Vendor, client: Any, compacter: Recording, refusing: Any) -> None:
    vendor.server.refuse = refusing
    stream = await settled(vendor.method(compacter.wrap(client))(**vendor.options(stream=True)))
    assert isinstance(stream, STREAMS)
    seen = await all_of(stream)
    assert "".join(map(vendor.text_of, seen)) == WORDS
    assert [event.type for event in seen if hasattr(event, "type")].count(
        "message_start"
    ) == vendor.is_anthropic
    check(vendor, compacter.events)


FINAL = {"chat.completions": "get_final_completion", "responses": "get_final_response"}


async def test_the_stream_helper(
    vendor: Vendor, client: Any, compacter: Recording, refusing: Any
) -> None:
    vendor.server.refuse = refusing
    manager = vendor.method(compacter.wrap(client), "stream")(**vendor.options())
    async with AsyncExitStack() as stack:
        if hasattr(manager, "__aenter__"):
            helper = await stack.enter_async_context(manager)
        else:
            helper = stack.enter_context(manager)
        final = await settled(getattr(helper, FINAL.get(vendor.path, "get_final_message"))())
    assert vendor.words(final) == WORDS
    check(vendor, compacter.events)


async def test_a_parsed_reply(vendor: Vendor, client: Any, compacter: Recording) -> None:
    option = {"chat.completions": "response_format", "responses": "text_format"}.get(
        vendor.path, "output_format"
    )
    given = vendor.options() | {option: Colour}
    reply = await settled(vendor.method(compacter.wrap(client), "parse")(**given))
    parsed = {"chat.completions": "choices", "responses": "output_parsed"}.get(
        vendor.path, "parsed_output"
    )
    found = getattr(reply, parsed)
    assert (found[0].message.parsed if parsed == "choices" else found) == Colour(colour="blue")
    check(vendor, compacter.events)


@pytest.mark.parametrize("way", ["with_raw_response", "with_streaming_response"])
async def test_a_raw_response(way: str, vendor: Vendor, client: Any, compacter: Recording) -> None:
    async with AsyncExitStack() as stack:
        raw = vendor.method(compacter.wrap(client), f"{way}.create")(**vendor.options())
        if hasattr(raw, "__aenter__"):
            raw = await stack.enter_async_context(raw)
        elif hasattr(raw, "__enter__"):
            raw = stack.enter_context(raw)
        raw = await settled(raw)
        assert raw.headers["content-type"] == "application/json"
        assert vendor.words(await settled(raw.parse())) == WORDS
    check(vendor, compacter.events)


@pytest.mark.parametrize("copying", ["copy", "with_options"])
async def test_a_copy_of_a_wrapped_client(
    copying: str, vendor: Vendor, client: Any, compacter: Recording
) -> None:
    again = getattr(getattr(compacter.wrap(client), copying)(timeout=30), copying)(max_retries=1)
    assert type(again) is type(client)
    assert (again.timeout, again.max_retries) == (30, 1)
    assert vendor.words(await settled(vendor.method(again)(**vendor.options()))) == WORDS
    check(vendor, compacter.events)


async def test_a_single_method(vendor: Vendor, client: Any, compacter: Recording) -> None:
    create = compacter.wrap(vendor.method(client))
    assert vendor.words(await settled(create(**vendor.options()))) == WORDS
    check(vendor, compacter.events)
    assert inspect.ismethod(create)
    assert vendor.method(client) != create
