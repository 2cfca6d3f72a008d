"""The OpenAI Agents SDK, whose runs go on when the history is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("agents")

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter

set_tracing_disabled(disabled=True)
KINDS = [OpenAIChatCompletionsModel, OpenAIResponsesModel]
QUESTION = "What colour is the harbour?"


def agent(kind: Any, compacter: Compacter, **options: Any) -> Agent:
    return Agent(
        "Harbour", model=kind("gpt-4o", compacter.wrap(AsyncOpenAI(max_retries=0))), **options
    )


async def text_of(run: Any) -> str:
    return "".join(
        [
            event.data.delta
            async for event in run.stream_events()
            if event.type == "raw_response_event"
            and event.data.type == "response.output_text.delta"
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_plain(serve: Callable, compacter: Compacter, history: list[Any], kind: Any) -> None:
    serve()
    assert (await Runner.run(agent(kind, compacter), history)).final_output == WORDS


@pytest.mark.parametrize("kind", KINDS)
async def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], kind: Any, in_stream: bool
) -> None:
    serve(in_stream=in_stream)
    assert await text_of(Runner.run_streamed(agent(kind, compacter), history)) == WORDS


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_tools(
    serve: Callable, compacter: Compacter, report: str, kind: Any, streamed: bool
) -> None:
    @function_tool
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    serve(tool_calls=8)
    one = agent(kind, compacter, tools=[look_up])
    if streamed:
        assert (await text_of(Runner.run_streamed(one, QUESTION))).endswith(WORDS)
    else:
        assert (await Runner.run(one, QUESTION)).final_output == WORDS


@pytest.mark.parametrize("kind", KINDS)
async def test_session(
    serve: Callable, compacter: Compacter, history: list[Any], kind: Any
) -> None:
    serve()
    session = SQLiteSession("harbour")
    await session.add_items(history[:-1])
    assert (
        await Runner.run(agent(kind, compacter), QUESTION, session=session)
    ).final_output == WORDS
    assert len(await session.get_items()) == len(history) + 1


@pytest.mark.parametrize("kind", KINDS)
async def test_output_type(
    serve: Callable, compacter: Compacter, history: list[Any], kind: Any
) -> None:
    class Colour(BaseModel):
        colour: str

    serve()
    result = await Runner.run(agent(kind, compacter, output_type=Colour), history)
    assert result.final_output == Colour(colour="blue")


@pytest.mark.parametrize("kind", KINDS)
def test_sync_with_instructions(
    serve: Callable, compacter: Compacter, history: list[Any], kind: Any
) -> None:
    serve()
    config = RunConfig(model_settings=ModelSettings(temperature=0))
    one = agent(kind, compacter, instructions="Answer in few WORDS.")
    assert Runner.run_sync(one, history, run_config=config).final_output == WORDS
