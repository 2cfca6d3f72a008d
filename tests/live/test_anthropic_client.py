"""Anthropic's clients, wrapped whole, against a real model that runs out of its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from embedded_model import EmbeddedModel

SCHEMA: Any = {"type": "object", "properties": {"bed": {"type": "integer"}}}
TOOLS: list[Any] = [
    {"name": "look_up", "description": "What grows in a bed.", "input_schema": SCHEMA}
]


def history() -> list[Any]:
    found: list[Any] = []
    for number in range(13):
        found.append(
            {"role": "user", "content": (f"Bed {number}: what grows there in the summer months?")}
        )
        if number % 8 == 0:
            use = {
                "type": "tool_use",
                "id": f"toolu_{number}",
                "name": "look_up",
                "input": {"bed": number},
            }
            result = {
                "type": "tool_result",
                "tool_use_id": f"toolu_{number}",
                "content": f'{{"plants": {number + 3}}}',
            }
            found += [
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result]},
            ]
        answer = f"In bed {number} there are {number + 3} rose bushes, all of them yellow."
        found.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
    return [*found, {"role": "user", "content": "Which colour are the roses?"}]


def options(model: EmbeddedModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "max_tokens": 8,
        "extra_body": {"temperature": 0},
        "system": "You answer questions about a garden.",
    }


@pytest.fixture
def events() -> list[CompactionEvent]:
    return []


@pytest.fixture
def compacter(events: list[CompactionEvent]) -> Compacter:
    """The summary without a model, and little kept: the prompts that a model has to read take the
    time.
    """
    return Compacter(compact_ratio=0.95, summarizer="extractive", on_compaction=events.append)


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


def check(events: list[CompactionEvent], model: EmbeddedModel) -> None:
    """Compacted because the server said so, with its own numbers, by what the server then took."""
    assert events
    assert events[0].trigger == "token_limit"
    assert events[0].limit == model.window
    assert (events[0].requested or 0) > model.window
    assert events[-1].compacted_data_size < events[0].original_data_size


def test_create_then_stream(
    client: anthropic.Anthropic,
    summary_prompt: str,
    events: list[CompactionEvent],
    model: EmbeddedModel,
) -> None:
    compacter = Compacter(
        max_summary_tokens=60, summary_prompt=summary_prompt, on_compaction=events.append
    )
    wrapped = compacter.wrap(client)
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
