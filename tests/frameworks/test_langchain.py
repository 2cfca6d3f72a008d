"""LangChain and LangGraph, whose agents and chains go on when the history is too long."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

pytest.importorskip("langchain_openai")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph, add_messages
from pydantic import BaseModel
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter

Talk = list[tuple[str, str]]


@pytest.fixture
def history(talk: Talk) -> list[Any]:
    return [HumanMessage(text) if role == "user" else AIMessage(text) for role, text in talk]


def model(compacter: Compacter, **options: Any) -> ChatOpenAI:
    return compacter.wrap(ChatOpenAI(model="gpt-test", max_retries=0, **options))


@pytest.mark.parametrize("responses", [False, True])
def test_plain(serve: Callable, compacter: Compacter, history: list[Any], responses: bool) -> None:
    serve()
    assert model(compacter, use_responses_api=responses).invoke(history).text == WORDS


@pytest.mark.parametrize("responses", [False, True])
async def test_async(
    serve: Callable, compacter: Compacter, history: list[Any], responses: bool
) -> None:
    serve()
    assert (await model(compacter, use_responses_api=responses).ainvoke(history)).text == WORDS


@pytest.mark.parametrize("responses", [False, True])
def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], in_stream: bool, responses: bool
) -> None:
    serve(in_stream=in_stream)
    chunks = list(model(compacter, use_responses_api=responses).stream(history))
    assert "".join(chunk.text for chunk in chunks) == WORDS


@pytest.mark.parametrize("responses", [False, True])
async def test_async_stream(
    serve: Callable, compacter: Compacter, history: list[Any], in_stream: bool, responses: bool
) -> None:
    serve(in_stream=in_stream)
    chunks = [
        chunk async for chunk in model(compacter, use_responses_api=responses).astream(history)
    ]
    assert "".join(chunk.text for chunk in chunks) == WORDS


@pytest.mark.parametrize("responses", [False, True])
def test_stream_with_response_headers(
    serve: Callable, compacter: Compacter, history: list[Any], in_stream: bool, responses: bool
) -> None:
    serve(in_stream=in_stream)
    wrapped = model(compacter, use_responses_api=responses, include_response_headers=True)
    assert "".join(chunk.text for chunk in wrapped.stream(history)) == WORDS


@pytest.mark.parametrize("how", [copy.copy, ChatOpenAI.model_copy])
def test_copies(serve: Callable, compacter: Compacter, history: list[Any], how: Callable) -> None:
    serve()
    assert how(model(compacter)).invoke(history).text == WORDS


def test_response_headers(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    serve()
    reply = model(compacter, include_response_headers=True).invoke(history)
    assert reply.text == WORDS
    assert "headers" in reply.response_metadata


def test_structured_output(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    class Colour(BaseModel):
        colour: str

    serve()
    found = model(compacter).with_structured_output(Colour, method="json_schema").invoke(history)
    assert found == Colour(colour="blue")


@pytest.mark.parametrize("responses", [False, True])
def test_agent_with_tools(
    serve: Callable, compacter: Compacter, report: str, responses: bool
) -> None:
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    serve(tool_calls=8)
    agent = create_agent(model(compacter, use_responses_api=responses), tools=[look_up])
    state = agent.invoke(
        {"messages": [("user", "What colour is the harbour?")]}, {"recursion_limit": 50}
    )
    assert state["messages"][-1].text == WORDS


async def test_agent_streamed(serve: Callable, compacter: Compacter, report: str) -> None:
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    serve(tool_calls=8)
    agent = create_agent(model(compacter), tools=[look_up])
    asked = {"messages": [("user", "What colour is the harbour?")]}
    heard = [
        part.text
        async for part, _ in agent.astream(asked, {"recursion_limit": 50}, stream_mode="messages")
        if part.type == "AIMessageChunk"
    ]
    assert "".join(heard).endswith(WORDS)


def test_graph(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    class State(TypedDict):
        messages: Annotated[list, add_messages]

    serve()
    chat = model(compacter)
    graph = StateGraph(State)
    graph.add_node("chat", lambda state: {"messages": [chat.invoke(state["messages"])]})
    graph.add_edge(START, "chat")
    graph.add_edge("chat", END)
    state = graph.compile().invoke({"messages": history})
    assert state["messages"][-1].text == WORDS


def test_kept_messages_are_the_same_objects_and_the_callers_list_stays(
    serve: Callable, compacter: Compacter, history: list[Any]
) -> None:
    serve()
    before = list(history)
    model(compacter).invoke(history)
    assert history == before
    assert compacter.totals.rounds == 1


def test_a_second_call_pays_for_no_second_summary(
    serve: Callable, compacter: Compacter, history: list[Any]
) -> None:
    served = serve()
    chat = model(compacter)
    chat.invoke(history)
    paid = compacter.totals.summarizer_calls
    chat.invoke(history)
    assert served.refused == 1
    assert compacter.totals.summarizer_calls == paid


def test_the_type_stays(compacter: Compacter, serve: Callable) -> None:
    serve()
    chat = model(compacter)
    assert isinstance(chat, ChatOpenAI)
    assert chat.model_name == "gpt-test"


async def test_middleware(serve: Callable, compacter: Compacter, report: str) -> None:
    from compacter.frameworks.langchain import compaction_middleware

    def look_up(name: str) -> str:
        """Look something up."""
        return report

    for run in ("invoke", "ainvoke"):
        served = serve(tool_calls=8)
        agent = create_agent(
            "openai:gpt-test", tools=[look_up], middleware=[compaction_middleware(compacter)]
        )
        asked = {"messages": [("user", "What colour is the harbour?")]}
        state = getattr(agent, run)(asked, {"recursion_limit": 50})
        state = state if run == "invoke" else await state
        assert state["messages"][-1].text == WORDS
        assert served.recovered()


def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str]
) -> None:
    served = serve()
    for picture in pictures:
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
        asked = HumanMessage([{"type": "text", "text": about_it}, shown])
        assert (
            model(shortening).invoke([asked, AIMessage("Ships."), HumanMessage("Why?")]).content
            == WORDS
        )
    assert served.kept_the_pictures()


def test_page(serve: Callable, run_page: Callable) -> None:
    serve()
    names = run_page("langchain")
    assert names["reply"].text == WORDS
    assert names["state"]["messages"][-1].text == WORDS
