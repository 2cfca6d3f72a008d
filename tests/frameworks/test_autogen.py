"""AutoGen, whose agents and teams go on when the history is too long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("autogen_agentchat")

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall, Image
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    UserMessage,
)
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

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
    return compacter.wrap(OpenAIChatCompletionClient(model="gpt-4o", max_retries=0))


async def test_plain(serve: Callable, compacter: Compacter, history: list[Any], words: str) -> None:
    served = serve()
    assert (await client(compacter).create(history)).content == words
    assert served.recovered()


async def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, in_stream: bool
) -> None:
    served = serve(in_stream=in_stream)
    *chunks, result = [chunk async for chunk in client(compacter).create_stream(history)]
    assert "".join(chunks) == result.content == words
    assert served.recovered()


@pytest.mark.parametrize("streamed", [False, True])
async def test_agent_with_tools(
    serve: Callable, compacter: Compacter, report: str, words: str, streamed: bool
) -> None:
    async def look_up(name: str) -> str:
        """Look something up."""
        return report

    served = serve(tool_calls=8)
    agent = AssistantAgent(
        "agent",
        client(compacter),
        tools=[look_up],
        max_tool_iterations=9,
        model_client_stream=streamed,
    )
    result = await agent.run(task="What colour is the harbour?")
    assert result.messages[-1].content == words
    assert served.recovered()


async def test_agent_with_a_history(
    serve: Callable, compacter: Compacter, history: list[Any], words: str
) -> None:
    served = serve()
    context = UnboundedChatCompletionContext(initial_messages=history[:-1])
    agent = AssistantAgent("agent", client(compacter), model_context=context)
    assert (await agent.run(task="What colour is the harbour?")).messages[-1].content == words
    assert served.recovered()


async def test_output_type(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    class Colour(BaseModel):
        colour: str

    served = serve()
    assert (
        await client(compacter).create(history, json_output=Colour)
    ).content == '{"colour": "blue"}'
    assert served.recovered()


async def test_team(serve: Callable, compacter: Compacter, words: str) -> None:
    served = serve(window=800)
    agents = [AssistantAgent(name, client(compacter)) for name in ("one", "two")]
    team = RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(60))
    result = await team.run(task="What colour is the harbour? " * 20)
    assert result.messages[-1].content == words
    assert served.recovered()


def test_a_saved_client_is_the_frameworks_own(serve: Callable) -> None:
    """A saved component names no class of compacter; wrap it again after loading."""
    serve()
    saved = client(Compacter()).dump_component().model_dump_json()
    assert "compacter" not in saved
    loaded = ChatCompletionClient.load_component(json.loads(saved))
    assert type(loaded) is OpenAIChatCompletionClient


async def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str], words: str
) -> None:
    served = serve()
    for picture in pictures:
        asked = UserMessage(content=[about_it, Image.from_base64(picture)], source="user")
        messages = [
            asked,
            AssistantMessage(content="Ships.", source="agent"),
            UserMessage(content="Why?", source="user"),
        ]
        assert (await client(shortening).create(messages)).content == words
    assert served.kept_the_pictures()


async def test_a_shortened_message_keeps_its_other_fields(
    serve: Callable, shortening: Compacter, about_it: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve()
    inner = OpenAIChatCompletionClient(model="gpt-4o", max_retries=0, include_name_in_message=True)
    sent: list[Any] = []
    create = OpenAIChatCompletionClient.create

    async def recorded(self: Any, messages: Any, **kwargs: Any) -> Any:
        sent[:] = messages
        return await create(self, messages, **kwargs)

    monkeypatch.setattr(OpenAIChatCompletionClient, "create", recorded)
    call = FunctionCall(id="a", name="look_up", arguments="{}")
    failed = FunctionExecutionResult(call_id="a", name="look_up", content=about_it, is_error=True)
    messages = [
        UserMessage(content=about_it, source="captain"),
        AssistantMessage(content=about_it, thought="Ships?", source="pilot"),
        UserMessage(content="Well?", source="captain"),
        AssistantMessage(content=[call], thought=about_it, source="pilot"),
        FunctionExecutionResultMessage(content=[failed]),
        UserMessage(content="Why?", source="captain"),
    ]
    await shortening.wrap(inner).create(messages)
    asked, said, _, called, result, _ = sent
    assert all(
        "characters left out" in text
        for text in (asked.content, said.content, result.content[0].content)
    )
    assert (asked.source, said.source, said.thought, called.source) == (
        "captain",
        "pilot",
        "Ships?",
        "pilot",
    )
    assert "characters left out" in called.thought
    assert result.content[0].is_error is True


def test_page(serve: Callable, run_page: Callable, words: str) -> None:
    served = serve()
    assert run_page("autogen")["answer"] == words
    assert served.recovered()
