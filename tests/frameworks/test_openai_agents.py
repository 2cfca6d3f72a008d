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

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter

set_tracing_disabled(disabled=True)
KINDS = [OpenAIChatCompletionsModel, OpenAIResponsesModel]
QUESTION = "What colour is the harbour?"


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [{"role": role, "content": text} for role, text in talk]


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
async def test_plain(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, kind: Any
) -> None:
    served = serve()
    assert (await Runner.run(agent(kind, compacter), history)).final_output == words
    assert served.recovered()


@pytest.mark.parametrize("kind", KINDS)
async def test_stream(
    serve: Callable,
    compacter: Compacter,
    history: list[Any],
    words: str,
    kind: Any,
    in_stream: bool,
) -> None:
    served = serve(in_stream=in_stream)
    assert await text_of(Runner.run_streamed(agent(kind, compacter), history)) == words
    assert served.recovered()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_tools(
    serve: Callable, compacter: Compacter, report: str, words: str, kind: Any, streamed: bool
) -> None:
    @function_tool
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    served = serve(tool_calls=8)
    one = agent(kind, compacter, tools=[look_up])
    if streamed:
        assert (await text_of(Runner.run_streamed(one, QUESTION))).endswith(words)
    else:
        assert (await Runner.run(one, QUESTION)).final_output == words
    assert served.recovered()


@pytest.mark.parametrize("kind", KINDS)
async def test_session(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, kind: Any
) -> None:
    served = serve()
    session = SQLiteSession("harbour")
    await session.add_items(history[:-1])
    assert (
        await Runner.run(agent(kind, compacter), QUESTION, session=session)
    ).final_output == words
    assert len(await session.get_items()) == len(history) + 1
    assert served.recovered()


@pytest.mark.parametrize("kind", KINDS)
async def test_output_type(
    serve: Callable, compacter: Compacter, history: list[Any], kind: Any
) -> None:
    class Colour(BaseModel):
        colour: str

    served = serve()
    result = await Runner.run(agent(kind, compacter, output_type=Colour), history)
    assert result.final_output == Colour(colour="blue")
    assert served.recovered()


@pytest.mark.parametrize("kind", KINDS)
def test_sync_with_instructions(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, kind: Any
) -> None:
    served = serve()
    config = RunConfig(model_settings=ModelSettings(temperature=0))
    one = agent(kind, compacter, instructions="Answer in few words.")
    assert Runner.run_sync(one, history, run_config=config).final_output == words
    assert served.recovered()


def test_page(serve: Callable, run_page: Callable, words: str) -> None:
    served = serve()
    assert run_page("openai-agents")["answer"] == words
    assert served.recovered()
