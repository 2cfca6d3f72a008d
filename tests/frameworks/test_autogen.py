"""AutoGen, whose agents and teams go on when the history is too long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen_agentchat")

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import Image
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import AssistantMessage, ChatCompletionClient, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel
from tests.frameworks.provider import WORDS

from compacter import Compacter

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [
        UserMessage(content=text, source="user")
        if role == "user"
        else AssistantMessage(content=text, source="agent")
        for role, text in talk
    ]


def client(compacter: Compacter) -> Any:
    made = OpenAIChatCompletionClient(model="gpt-4o", max_retries=0)
    made._client = compacter.wrap(made._client)
    return made


async def test_plain(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    serve()
    assert (await client(compacter).create(history)).content == WORDS


async def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], in_stream: bool
) -> None:
    serve(in_stream=in_stream)
    *chunks, result = [chunk async for chunk in client(compacter).create_stream(history)]
    assert "".join(chunks) == result.content == WORDS


@pytest.mark.parametrize("streamed", [False, True])
async def test_agent_with_tools(
    serve: Callable, compacter: Compacter, report: str, streamed: bool
) -> None:
    async def look_up(name: str) -> str:
        """Look something up."""
        return report

    serve(tool_calls=8)
    agent = AssistantAgent(
        "agent",
        client(compacter),
        tools=[look_up],
        max_tool_iterations=9,
        model_client_stream=streamed,
    )
    result = await agent.run(task="What colour is the harbour?")
    assert result.messages[-1].content == WORDS


async def test_agent_with_a_history(
    serve: Callable, compacter: Compacter, history: list[Any]
) -> None:
    serve()
    context = UnboundedChatCompletionContext(initial_messages=history[:-1])
    agent = AssistantAgent("agent", client(compacter), model_context=context)
    assert (await agent.run(task="What colour is the harbour?")).messages[-1].content == WORDS


async def test_output_type(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    class Colour(BaseModel):
        colour: str

    serve()
    assert (
        await client(compacter).create(history, json_output=Colour)
    ).content == '{"colour": "blue"}'


async def test_team(serve: Callable, compacter: Compacter) -> None:
    serve(window=800)
    agents = [AssistantAgent(name, client(compacter)) for name in ("one", "two")]
    team = RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(60))
    result = await team.run(task="What colour is the harbour? " * 20)
    assert result.messages[-1].content == WORDS


def test_a_saved_client_is_the_frameworks_own(serve: Callable) -> None:
    """A saved component names no class of compacter; wrap it again after loading."""
    serve()
    saved = client(Compacter()).dump_component().model_dump_json()
    assert "compacter" not in saved
    loaded = ChatCompletionClient.load_component(json.loads(saved))
    assert type(loaded) is OpenAIChatCompletionClient


async def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str]
) -> None:
    served = serve()
    for picture in pictures:
        asked = UserMessage(content=[about_it, Image.from_base64(picture)], source="user")
        messages = [
            asked,
            AssistantMessage(content="Ships.", source="agent"),
            UserMessage(content="Why?", source="user"),
        ]
        assert (await client(shortening).create(messages)).content == WORDS
    assert served.kept_the_pictures()


def test_a_model_client_itself_is_refused_with_the_way(
    serve: Callable, compacter: Compacter
) -> None:
    """The framework's page shows how to wrap the client that it calls."""
    serve()
    with pytest.raises(TypeError, match="wrap the client that it calls"):
        compacter.wrap(OpenAIChatCompletionClient(model="gpt-4o"))
