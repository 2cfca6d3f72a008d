"""Microsoft's Agent Framework, whose agents go on when the history is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import Agent, Content, Message
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI
from pydantic import BaseModel
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter

KINDS = [OpenAIChatCompletionClient, OpenAIChatClient]
QUESTION = "What colour is the harbour?"


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [Message(role, [text]) for role, text in talk]


def client(kind: Any, compacter: Compacter) -> Any:
    return kind(model="gpt-4o", async_client=compacter.wrap(AsyncOpenAI(max_retries=0)))


@pytest.mark.parametrize("kind", KINDS)
async def test_plain(serve: Callable, compacter: Compacter, history: list, kind: Any) -> None:
    serve()
    assert (await client(kind, compacter).get_response(history)).text == WORDS


@pytest.mark.parametrize("kind", KINDS)
async def test_stream(
    serve: Callable, compacter: Compacter, history: list, kind: Any, in_stream: bool
) -> None:
    serve(in_stream=in_stream)
    stream = client(kind, compacter).get_response(history, stream=True)
    assert "".join([update.text async for update in stream]).endswith(WORDS)
    assert (await stream.get_final_response()).text == WORDS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_tools(
    serve: Callable, compacter: Compacter, report: str, kind: Any, streamed: bool
) -> None:
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    serve(tool_calls=8)
    agent = Agent(client(kind, compacter), tools=[look_up], default_options={"store": False})
    if streamed:
        assert "".join([update.text async for update in agent.run(QUESTION, stream=True)]).endswith(
            WORDS
        )
    else:
        assert (await agent.run(QUESTION)).text.endswith(WORDS)


async def test_output_type(serve: Callable, compacter: Compacter, history: list) -> None:
    class Colour(BaseModel):
        colour: str

    serve()
    options: Any = {"response_format": Colour}
    response = await client(OpenAIChatCompletionClient, compacter).get_response(
        history, options=options
    )
    assert response.value == Colour(colour="blue")


async def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str]
) -> None:
    served = serve()
    for picture in pictures:
        shown = Content.from_uri(f"data:image/png;base64,{picture}", media_type="image/png")
        messages = [
            Message("user", [about_it, shown]),
            Message("assistant", ["Ships."]),
            Message("user", ["Why?"]),
        ]
        made = client(OpenAIChatCompletionClient, shortening)
        assert (await made.get_response(messages)).text == WORDS
    assert served.kept_the_pictures()


def test_a_chat_client_itself_is_refused_with_the_way(
    serve: Callable, compacter: Compacter
) -> None:
    """The framework's page shows how to give it a wrapped client."""
    serve()
    with pytest.raises(TypeError, match="wrap the client that it calls"):
        compacter.wrap(OpenAIChatClient(model="gpt-4o"))
