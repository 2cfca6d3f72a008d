"""Strands, whose agents go on when the history is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("strands")

from openai import AsyncOpenAI
from pydantic import BaseModel
from strands import Agent, tool
from strands.agent import NullConversationManager
from strands.models.openai import OpenAIModel
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter

QUESTION = "What colour is the harbour?"


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [{"role": role, "content": [{"text": text}]} for role, text in talk[:-1]]


def agent(compacter: Compacter, **options: Any) -> Agent:
    model = OpenAIModel(compacter.wrap(AsyncOpenAI(max_retries=0)), model_id="gpt-4o")
    return Agent(
        model, callback_handler=None, conversation_manager=NullConversationManager(), **options
    )


async def test_plain(
    serve: Callable, compacter: Compacter, history: list[Any], in_stream: bool
) -> None:
    serve(in_stream=in_stream)
    assert str(await agent(compacter, messages=history).invoke_async(QUESTION)).strip() == WORDS


async def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], in_stream: bool
) -> None:
    serve(in_stream=in_stream)
    heard = [
        event.get("data", "")
        async for event in agent(compacter, messages=history).stream_async(QUESTION)
    ]
    assert "".join(heard) == WORDS


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools(serve: Callable, compacter: Compacter, report: str, streamed: bool) -> None:
    @tool
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    serve(tool_calls=8)
    one = agent(compacter, tools=[look_up])
    if streamed:
        assert "".join(
            [event.get("data", "") async for event in one.stream_async(QUESTION)]
        ).endswith(WORDS)
    else:
        assert str(await one.invoke_async(QUESTION)).strip() == WORDS


async def test_structured_output(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    class Colour(BaseModel):
        colour: str

    serve(tool_calls=99)
    result = await agent(compacter, messages=history).invoke_async(
        QUESTION, structured_output_model=Colour
    )
    assert result.structured_output == Colour(colour="blue")


async def test_the_agents_own_history_stays_whole(
    serve: Callable, compacter: Compacter, history: list[Any]
) -> None:
    serve()
    one = agent(compacter, messages=list(history))
    await one.invoke_async(QUESTION)
    assert one.messages[: len(history)] == history
    assert len(one.messages) == len(history) + 2
