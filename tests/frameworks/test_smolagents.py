"""smolagents, whose agents go on when their memory is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("smolagents")

from smolagents import ChatMessage, CodeAgent, MessageRole, OpenAIModel, ToolCallingAgent, tool
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [ChatMessage(MessageRole(role), text) for role, text in talk]


def model(compacter: Compacter) -> Any:
    made = OpenAIModel("gpt-4o", client_kwargs={"max_retries": 0})
    made.client = compacter.wrap(made.client)
    return made


def test_plain(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    serve()
    assert model(compacter).generate(history).content == WORDS


def test_dicts(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    serve()
    messages = [
        {"role": one.role.value, "content": [{"type": "text", "text": one.content}]}
        for one in history
    ]
    assert model(compacter).generate(messages).content == WORDS


def test_stream(serve: Callable, compacter: Compacter, history: list[Any], in_stream: bool) -> None:
    serve(in_stream=in_stream)
    deltas = list(model(compacter).generate_stream(history))
    assert "".join(delta.content or "" for delta in deltas) == WORDS


@pytest.mark.parametrize("streaming", [False, True])
def test_tools(serve: Callable, compacter: Compacter, report: str, streaming: bool) -> None:
    @tool
    def look_up(name: str) -> str:
        """Look something up.

        Args:
            name: What.
        """
        return report

    serve(tool_calls=8, window=4_000)
    agent = ToolCallingAgent(
        [look_up], model(compacter), stream_outputs=streaming, max_steps=8, verbosity_level=0
    )
    # What it says when it has no steps left.
    assert agent.run("What colour is the harbour?") == WORDS


def test_code_agent(serve: Callable, compacter: Compacter) -> None:
    serve(window=6_500)
    agent = CodeAgent([], model(compacter), max_steps=3, verbosity_level=0)
    question = "What colour is the harbour? " + "It lies in the north. " * 10
    for _ in range(12):
        answer = agent.run(question, reset=False)
    assert answer == WORDS


def test_a_model_itself_is_refused_with_the_way(serve: Callable, compacter: Compacter) -> None:
    """The framework's page shows how to wrap a model's client."""
    serve()
    with pytest.raises(TypeError, match="wrap the client that it calls"):
        compacter.wrap(OpenAIModel("gpt-4o"))


def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str]
) -> None:
    served = serve()
    for picture in pictures:
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        asked = ChatMessage(MessageRole.USER, [{"type": "text", "text": about_it}, shown])
        said = [(MessageRole.ASSISTANT, "Ships."), (MessageRole.USER, "Why?")]
        assert (
            model(shortening).generate([asked, *(ChatMessage(*one) for one in said)]).content
            == WORDS
        )
    assert served.kept_the_pictures()
