"""smolagents, whose agents go on when their memory is too long."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("smolagents")

import openai
from smolagents import ChatMessage, CodeAgent, MessageRole, OpenAIModel, ToolCallingAgent, tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter

WAYS = ["client", "model"]


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [ChatMessage(MessageRole(role), text) for role, text in talk]


def model(way: str, compacter: Compacter, **options: Any) -> Any:
    bare = OpenAIModel("gpt-4o", **options)
    if way == "client":
        bare.client = compacter.wrap(openai.OpenAI(max_retries=0))
        return bare
    return compacter.wrap(bare)


@pytest.mark.parametrize("way", WAYS)
def test_plain(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, way: str
) -> None:
    served = serve()
    assert model(way, compacter).generate(history).content == words
    assert served.recovered()


@pytest.mark.parametrize("way", WAYS)
def test_dicts(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, way: str
) -> None:
    served = serve()
    messages = [
        {"role": one.role.value, "content": [{"type": "text", "text": one.content}]}
        for one in history
    ]
    assert model(way, compacter).generate(messages).content == words
    assert served.recovered()


@pytest.mark.parametrize("way", WAYS)
def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, way: str, in_stream: bool
) -> None:
    served = serve(in_stream=in_stream)
    deltas = list(model(way, compacter).generate_stream(history))
    assert "".join(delta.content or "" for delta in deltas) == words
    assert served.recovered()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_tools(
    serve: Callable, compacter: Compacter, report: str, words: str, way: str, streaming: bool
) -> None:
    @tool
    def look_up(name: str) -> str:
        """Look something up.

        Args:
            name: What.
        """
        return report

    served = serve(tool_calls=8, window=4_000)
    agent = ToolCallingAgent(
        [look_up], model(way, compacter), stream_outputs=streaming, max_steps=8, verbosity_level=0
    )
    # What it says when it has no steps left.
    assert agent.run("What colour is the harbour?") == words
    assert served.recovered()


@pytest.mark.parametrize("way", WAYS)
def test_code_agent(serve: Callable, compacter: Compacter, words: str, way: str) -> None:
    served = serve(window=6_500)
    agent = CodeAgent([], model(way, compacter), max_steps=3, verbosity_level=0)
    question = "What colour is the harbour? " + "It lies in the north. " * 10
    for _ in range(12):
        answer = agent.run(question, reset=False)
    assert answer == words
    assert served.recovered()


def test_copy(serve: Callable, compacter: Compacter, history: list[Any], words: str) -> None:
    served = serve()
    assert copy.copy(model("model", compacter)).generate(history).content == words
    assert served.recovered()


def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str], words: str
) -> None:
    served = serve()
    for picture in pictures:
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        asked = ChatMessage(MessageRole.USER, [{"type": "text", "text": about_it}, shown])
        said = [(MessageRole.ASSISTANT, "Ships."), (MessageRole.USER, "Why?")]
        assert (
            model("model", shortening)
            .generate([asked, *(ChatMessage(*one) for one in said)])
            .content
            == words
        )
    assert served.kept_the_pictures()


def test_page(serve: Callable, run_page: Callable, words: str) -> None:
    served = serve()
    assert run_page("smolagents")["answer"] == words
    assert served.recovered()
