"""Haystack, whose generators, pipelines and agents go on when the history is too long."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("haystack")

from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent
from haystack.tools import tool
from tests.frameworks.provider import WORDS

from compacter import Compacter

if TYPE_CHECKING:
    from collections.abc import Callable


KINDS = [OpenAIChatGenerator, OpenAIResponsesChatGenerator]


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [
        ChatMessage.from_user(text) if role == "user" else ChatMessage.from_assistant(text)
        for role, text in talk
    ]


def generator(kind: Any, compacter: Compacter, **options: Any) -> Any:
    return compacter.wrap(kind(model="gpt-4o", max_retries=0, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_plain(serve: Callable, compacter: Compacter, history: list[Any], kind: Any) -> None:
    serve()
    assert generator(kind, compacter).run(history)["replies"][0].text == WORDS


@pytest.mark.parametrize("kind", KINDS)
async def test_async(serve: Callable, compacter: Compacter, history: list[Any], kind: Any) -> None:
    serve()
    assert (await generator(kind, compacter).run_async(history))["replies"][0].text == WORDS


@pytest.mark.parametrize("kind", KINDS)
def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], kind: Any, in_stream: bool
) -> None:
    serve(in_stream=in_stream)
    heard: list[str] = []
    one = generator(kind, compacter, streaming_callback=lambda chunk: heard.append(chunk.content))
    # It drops the event that says so, as the manual tells.
    if in_stream and kind is OpenAIResponsesChatGenerator:
        one.warm_up()
        one.client = compacter.wrap(one.client)
    one.run(history)
    assert "".join(heard) == WORDS


@pytest.mark.parametrize("kind", KINDS)
def test_agent_with_tools(serve: Callable, compacter: Compacter, report: str, kind: Any) -> None:
    @tool
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    serve(tool_calls=8)
    agent = Agent(chat_generator=generator(kind, compacter), tools=[look_up])
    result = agent.run([ChatMessage.from_user("What colour is the harbour?")])
    assert result["messages"][-1].text == WORDS


def test_pipeline(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    serve()
    pipeline = Pipeline()
    pipeline.add_component("model", generator(OpenAIChatGenerator, compacter))
    assert pipeline.run({"model": {"messages": history}})["model"]["replies"][0].text == WORDS


def test_a_saved_pipeline_has_the_frameworks_own_generator(serve: Callable) -> None:
    """A saved pipeline names no class of compacter; wrap the generator again after loading."""
    serve()
    pipeline = Pipeline()
    pipeline.add_component("model", generator(OpenAIChatGenerator, Compacter()))
    saved = pipeline.dumps()
    assert "compacter" not in saved
    assert type(Pipeline.loads(saved).get_component("model")) is OpenAIChatGenerator


def test_a_copy_is_wrapped(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    serve()
    assert (
        copy.copy(generator(OpenAIChatGenerator, compacter)).run(history)["replies"][0].text
        == WORDS
    )


def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str]
) -> None:
    served = serve()
    for picture in pictures:
        shown = ImageContent(base64_image=picture, mime_type="image/png")
        asked = ChatMessage.from_user(content_parts=[about_it, shown])
        messages = [asked, ChatMessage.from_assistant("Ships."), ChatMessage.from_user("Why?")]
        assert generator(OpenAIChatGenerator, shortening).run(messages)["replies"][0].text == WORDS
    assert served.kept_the_pictures()
