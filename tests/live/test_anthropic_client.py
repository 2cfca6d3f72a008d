"""Anthropic's clients, wrapped whole, against a real model that runs out of its window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from tests.live.garden import chat, check

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from embedded_model import EmbeddedModel

SCHEMA: Any = {"type": "object", "properties": {"bed": {"type": "integer"}}}
TOOLS: list[Any] = [
    {"name": "look_up", "description": "What grows in a bed.", "input_schema": SCHEMA}
]


def history() -> list[Any]:
    """The garden's talk as Anthropic's messages."""
    messages: list[Any] = []
    for message in chat()[1:]:
        if message.get("tool_calls"):
            [call] = message["tool_calls"]
            given = json.loads(call["function"]["arguments"])
            use = {"type": "tool_use", "id": call["id"], "name": "look_up", "input": given}
            messages.append({"role": "assistant", "content": [use]})
        elif message["role"] == "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": message["content"],
            }
            messages.append({"role": "user", "content": [result]})
        else:
            messages.append(message)
    return messages


def options(model: EmbeddedModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "max_tokens": 8,
        "extra_body": {"temperature": 0},
        "system": "You answer questions about a garden.",
    }


@pytest.fixture
def client(model: EmbeddedModel) -> Iterator[anthropic.Anthropic]:
    base = model.api_base.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base, api_key="none", timeout=600) as made:
        yield made


@pytest.fixture
async def aclient(model: EmbeddedModel) -> AsyncIterator[anthropic.AsyncAnthropic]:
    base = model.api_base.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=base, api_key="none", timeout=600) as made:
        yield made


def test_create_then_stream(
    client: anthropic.Anthropic,
    summarizing: Compacter,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    wrapped = summarizing.wrap(client)
    reply = wrapped.messages.create(messages=history(), **options(model))
    assert reply.content
    check(events, model)
    assert events[0].input_tokens > 0
    assert events[0].summarizer_calls > 0
    made = len(events)
    stream = wrapped.messages.create(messages=history(), stream=True, **options(model))
    assert next(event.type for event in stream) == "message_start"
    assert len(events) == made


def test_the_stream_helper(
    client: anthropic.Anthropic,
    compacter: Compacter,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    with compacter.wrap(client).messages.stream(messages=history(), **options(model)) as stream:
        assert "".join(stream.text_stream) == stream.get_final_text() != ""
    check(events, model)


def test_with_tools(
    client: anthropic.Anthropic,
    compacter: Compacter,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    reply = compacter.wrap(client).messages.create(
        messages=history(), tools=TOOLS, **options(model)
    )
    assert reply.content
    check(events, model)


async def test_the_async_client(
    aclient: anthropic.AsyncAnthropic,
    compacter: Compacter,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    wrapped = compacter.wrap(aclient)
    async with wrapped.messages.stream(messages=history(), **options(model)) as stream:
        assert "".join([text async for text in stream.text_stream])
    check(events, model)
    made = len(events)
    reply = await wrapped.messages.create(messages=history(), **options(model))
    assert reply.content
    assert len(events) == made
