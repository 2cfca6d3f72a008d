"""OpenAI's clients, wrapped whole, against a real model that runs out of its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from tests.live.garden import chat, check

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from embedded_model import EmbeddedModel

LIMITS: dict[str, Any] = {"temperature": 0}


def items() -> list[Any]:
    """The same as the Responses API has it."""
    found: list[Any] = []
    for message in chat():
        if message.get("tool_calls"):
            [call] = message["tool_calls"]
            found.append({"type": "function_call", "call_id": call["id"], **call["function"]})
        elif message["role"] == "tool":
            output = {
                "type": "function_call_output",
                "call_id": message["tool_call_id"],
                "output": message["content"],
            }
            found.append(output)
        elif message["role"] == "assistant":
            part = {"type": "output_text", "text": message["content"], "annotations": []}
            found.append({"type": "message", "role": "assistant", "content": [part]})
        else:
            found.append(message)
    return found


@pytest.fixture
def client(model: EmbeddedModel) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=model.api_base, api_key="none", timeout=600) as made:
        yield made


@pytest.fixture
async def aclient(model: EmbeddedModel) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=model.api_base, api_key="none", timeout=600) as made:
        yield made


def words(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_chat_completions(
    client: openai.OpenAI,
    summarizing: Compacter,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    wrapped = summarizing.wrap(client).with_options(timeout=500)
    reply = wrapped.chat.completions.create(
        model=model.name, messages=chat(), max_tokens=8, **LIMITS
    )
    assert reply.choices[0].message.content
    check(events, model)
    assert events[0].input_tokens > 0
    assert events[0].summarizer_calls > 0
    made = len(events)
    stream = wrapped.chat.completions.create(
        model=model.name, messages=chat(), max_tokens=8, stream=True, **LIMITS
    )
    assert words(list(stream))
    assert len(events) == made


def test_chat_completions_streaming(
    client: openai.OpenAI, compacter: Compacter, events: list[CompactionEvent], model: EmbeddedModel
) -> None:
    wrapped = compacter.wrap(client)
    with wrapped.chat.completions.stream(
        model=model.name, messages=chat(), max_tokens=8, **LIMITS
    ) as stream:
        deltas = "".join(event.delta for event in stream if event.type == "content.delta")
        assert stream.current_completion_snapshot.choices[0].message.content == deltas != ""
    check(events, model)


async def test_async_chat_completions(
    aclient: openai.AsyncOpenAI,
    compacter: Compacter,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    create = compacter.wrap(aclient).chat.completions.create
    stream = await create(model=model.name, messages=chat(), max_tokens=8, stream=True, **LIMITS)
    assert words([chunk async for chunk in stream])
    check(events, model)
    made = len(events)
    reply = await create(model=model.name, messages=chat(), max_tokens=8, **LIMITS)
    assert reply.choices[0].message.content
    assert len(events) == made


def test_responses(
    client: openai.OpenAI, compacter: Compacter, events: list[CompactionEvent], model: EmbeddedModel
) -> None:
    wrapped = compacter.wrap(client)
    stream = wrapped.responses.create(
        model=model.name, input=items(), max_output_tokens=8, stream=True, **LIMITS
    )
    assert "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    check(events, model)
    made = len(events)
    reply = wrapped.responses.create(model=model.name, input=items(), max_output_tokens=8, **LIMITS)
    assert reply.output_text
    assert len(events) == made


async def test_async_responses(
    aclient: openai.AsyncOpenAI,
    compacter: Compacter,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    wrapped = compacter.wrap(aclient)
    reply = await wrapped.responses.create(
        model=model.name, input=items(), max_output_tokens=8, **LIMITS
    )
    assert reply.output_text
    check(events, model)
    stream = await wrapped.responses.create(
        model=model.name, input=items(), max_output_tokens=8, stream=True, **LIMITS
    )
    assert "".join(
        [event.delta async for event in stream if event.type == "response.output_text.delta"]
    )
