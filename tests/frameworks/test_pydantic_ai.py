"""Pydantic AI, whose agents go on when the history is too long."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pydantic_ai")

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.frameworks.provider import WORDS

from compacter import Compacter
from compacter.frameworks.pydantic_ai import CompactingModel, _read
from compacter.messages.openai import OPENAI

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = ["chat", "responses"]
WAYS = ["client", "model"]


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [
        ModelRequest([UserPromptPart(text)]) if role == "user" else ModelResponse([TextPart(text)])
        for role, text in talk[:-1]
    ]


def model(kind: str, way: str, compacter: Compacter) -> Any:
    client = AsyncOpenAI(max_retries=0)
    provider = OpenAIProvider(openai_client=compacter.wrap(client) if way == "client" else client)
    bare = (OpenAIChatModel if kind == "chat" else OpenAIResponsesModel)(
        "gpt-4o", provider=provider
    )
    return bare if way == "client" else CompactingModel(bare, compacter)


QUESTION = "What colour is the harbour?"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
async def test_plain(
    serve: Callable, compacter: Compacter, history: list, kind: str, way: str
) -> None:
    serve()
    result = await Agent(model(kind, way, compacter)).run(QUESTION, message_history=history)
    assert result.output == WORDS


@pytest.mark.parametrize("way", WAYS)
def test_sync(serve: Callable, compacter: Compacter, history: list, way: str) -> None:
    serve()
    assert (
        Agent(model("chat", way, compacter)).run_sync(QUESTION, message_history=history).output
        == WORDS
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
async def test_stream(
    serve: Callable, compacter: Compacter, history: list, kind: str, way: str, in_stream: bool
) -> None:
    serve(in_stream=in_stream)
    async with Agent(model(kind, way, compacter)).run_stream(
        QUESTION, message_history=history
    ) as result:
        assert await result.get_output() == WORDS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
async def test_tools(
    serve: Callable, compacter: Compacter, report: str, kind: str, way: str
) -> None:
    serve(tool_calls=8)
    agent = Agent(model(kind, way, compacter))

    @agent.tool_plain
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    result = await agent.run(QUESTION)
    assert result.output == WORDS
    assert len(result.all_messages()) == 18


async def test_the_model_costs_as_many_summaries_as_the_wrapped_client(serve: Callable) -> None:
    """Tools and instructions fill the window too, and are not arguments of the model itself."""
    totals = []
    for way in WAYS:
        serve()
        compacter = Compacter()
        agent = Agent(
            model("chat", way, compacter), instructions="You keep the log of a harbour. " * 20
        )

        @agent.tool_plain
        def look_up(name: str) -> str:
            """Look a ship up by its name."""
            return name

        history: list[Any] = []
        for number in range(40):
            asked = f"Question {number}: {'ships came into the harbour. ' * 8}"
            history = (await agent.run(asked, message_history=history)).all_messages()
        totals.append((compacter.totals.rounds, compacter.totals.summarizer_calls))
    by_client, by_model = totals
    assert by_client[0] > 1
    assert by_model == by_client


@pytest.mark.parametrize("way", WAYS)
async def test_streamed_tools(serve: Callable, compacter: Compacter, report: str, way: str) -> None:
    serve(tool_calls=8)
    agent = Agent(model("chat", way, compacter))

    @agent.tool_plain
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    async with agent.run_stream(QUESTION) as result:
        assert "".join([text async for text in result.stream_text(delta=True)]) == WORDS


@pytest.mark.parametrize("inside", [True, False], ids=["fallback inside", "fallback outside"])
async def test_fallback_with_a_timeout(
    serve: Callable, compacter: Compacter, history: list, inside: bool
) -> None:
    serve(in_stream=True)
    bare = OpenAIResponsesModel(
        "gpt-4o", provider=OpenAIProvider(openai_client=AsyncOpenAI(max_retries=0))
    )
    models = CompactingModel(FallbackModel(bare, bare), compacter)
    if not inside:
        models = FallbackModel(CompactingModel(bare, compacter), bare)
    agent = Agent(models, model_settings={"request_timeout": 60})
    async with agent.run_stream(QUESTION, message_history=history) as result:
        assert await result.get_output() == WORDS


@pytest.mark.parametrize("way", WAYS)
async def test_output_type(serve: Callable, compacter: Compacter, history: list, way: str) -> None:
    from pydantic_ai import NativeOutput

    class Colour(BaseModel):
        colour: str

    serve()
    agent = Agent(model("chat", way, compacter), output_type=NativeOutput(Colour))
    assert (await agent.run(QUESTION, message_history=history)).output == Colour(colour="blue")


async def test_kept_messages_are_the_same_objects(
    serve: Callable, compacter: Compacter, history: list
) -> None:
    serve()
    before = list(history)
    result = await Agent(model("chat", "model", compacter)).run(QUESTION, message_history=history)
    assert history == before
    assert result.all_messages()[: len(before)] == before


async def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str]
) -> None:
    served = serve()
    for picture in pictures:
        shown = BinaryContent(base64.b64decode(picture), media_type="image/png")
        history = [
            ModelRequest([UserPromptPart([about_it, shown])]),
            ModelResponse([TextPart("Ships.")]),
        ]
        result = await Agent(model("chat", "model", shortening)).run(
            QUESTION, message_history=history
        )
        assert result.output == WORDS
    assert served.kept_the_pictures()


MEDIA = {
    "picture": lambda name: ImageUrl(f"https://example.com/{name}", media_type="image/png"),
    "document": lambda name: DocumentUrl(f"https://example.com/{name}", identifier=name),
    "data": lambda name: BinaryContent(name.encode(), media_type="image/png"),
}


@pytest.mark.parametrize("medium", MEDIA.values(), ids=MEDIA.keys())
@pytest.mark.parametrize(
    "message",
    [
        lambda medium: ModelRequest([UserPromptPart(["Look.", medium])]),
        lambda medium: ModelRequest([ToolReturnPart("look_up", ["Look.", medium], "a")]),
        lambda medium: ModelResponse([TextPart("Look."), FilePart(medium)]),
    ],
    ids=["user", "tool", "model"],
)
def test_messages_that_differ_in_a_medium_have_different_contents(
    message: Callable, medium: Callable
) -> None:
    one, other, same = (OPENAI.content(_read([message(medium(name))])[0]) for name in "aba")
    assert one != other
    assert one == same
