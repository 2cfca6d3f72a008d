"""LlamaIndex, whose LLMs, chat engines and agents go on when the history is too long."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

import openai
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.litellm import LiteLLM
from llama_index.llms.openai import OpenAI, OpenAIResponses
from llama_index.llms.openai_like import OpenAILike
from tests.frameworks.provider import WORDS

from compacter import Compacter
from compacter.frameworks.llama_index import _read
from compacter.messages.openai import OPENAI

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = ["chat", "fresh clients", "like", "responses", "litellm"]


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [ChatMessage(role=role, content=text) for role, text in talk]


def llm(kind: str, url: str, compacter: Compacter | None = None) -> Any:
    options: dict[str, Any] = {"api_base": url, "api_key": "sk-test", "max_retries": 0}
    match kind:
        case "fresh clients":
            return OpenAI(model="gpt-4o", reuse_client=False, **options)
        case "like":
            return OpenAILike(
                model="local", is_chat_model=True, is_function_calling_model=True, **options
            )
        case "responses" if compacter is not None:
            # It drops the event that says "too long" inside a stream, as the manual tells: its
            # clients do not.
            clients = {
                "openai_client": openai.OpenAI(),
                "async_openai_client": openai.AsyncOpenAI(),
            }
            return OpenAIResponses(
                model="gpt-4o", **{name: compacter.wrap(one) for name, one in clients.items()}
            )
        case "responses":
            return OpenAIResponses(model="gpt-4o", **options)
        case "litellm":
            return LiteLLM(model="openai/gpt-4o", **options)
    return OpenAI(model="gpt-4o", **options)


@pytest.mark.parametrize("kind", KINDS)
def test_plain(serve: Callable, compacter: Compacter, history: list[Any], kind: str) -> None:
    served = serve()
    assert compacter.wrap(llm(kind, served.url)).chat(history).message.content == WORDS


@pytest.mark.parametrize("kind", KINDS)
async def test_async(serve: Callable, compacter: Compacter, history: list[Any], kind: str) -> None:
    served = serve()
    assert (await compacter.wrap(llm(kind, served.url)).achat(history)).message.content == WORDS


@pytest.mark.parametrize("kind", KINDS)
def test_stream(
    serve: Callable, compacter: Compacter, history: list[Any], kind: str, in_stream: bool
) -> None:
    served = serve(in_stream=in_stream)
    chunks = list(
        compacter.wrap(llm(kind, served.url, compacter if in_stream else None)).stream_chat(history)
    )
    assert "".join(chunk.delta or "" for chunk in chunks) == WORDS


@pytest.mark.parametrize("kind", KINDS)
async def test_async_stream(
    serve: Callable, compacter: Compacter, history: list[Any], kind: str, in_stream: bool
) -> None:
    served = serve(in_stream=in_stream)
    wrapped = compacter.wrap(llm(kind, served.url, compacter if in_stream else None))
    chunks = [chunk async for chunk in await wrapped.astream_chat(history)]
    assert "".join(chunk.delta or "" for chunk in chunks) == WORDS


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_agent_with_tools(
    serve: Callable, compacter: Compacter, report: str, kind: str, streaming: bool
) -> None:
    def look_up(name: str) -> str:
        """Look something up."""
        return report

    served = serve(tool_calls=8)
    agent = FunctionAgent(
        llm=compacter.wrap(llm(kind, served.url)), tools=[look_up], streaming=streaming
    )
    assert str(await agent.run("What colour is the harbour?")) == WORDS


def test_chat_engine(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    served = serve()
    memory = ChatMemoryBuffer.from_defaults(
        chat_history=history[:-1], token_limit=1_000_000, tokenizer_fn=str.split
    )
    engine = SimpleChatEngine(compacter.wrap(llm("chat", served.url)), memory, prefix_messages=[])
    assert str(engine.chat("What colour is the harbour?")) == WORDS


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_copies(serve: Callable, compacter: Compacter, history: list[Any], how: Callable) -> None:
    served = serve()
    assert how(compacter.wrap(llm("chat", served.url))).chat(history).message.content == WORDS


def test_each_picture_stays_where_its_text_is_shortened(
    serve: Callable, shortening: Compacter, about_it: str, pictures: list[str]
) -> None:
    served = serve()
    for picture in pictures:
        shown = ImageBlock(image=picture.encode(), image_mimetype="image/png")
        asked = ChatMessage(role="user", blocks=[TextBlock(text=about_it), shown])
        messages = [
            asked,
            ChatMessage(role="assistant", content="Ships."),
            ChatMessage(role="user", content="Why?"),
        ]
        assert shortening.wrap(llm("chat", served.url)).chat(messages).message.content == WORDS
    assert served.kept_the_pictures()


def test_messages_that_differ_in_a_url_have_different_contents() -> None:
    read = [
        _read(ChatMessage(role="user", blocks=[ImageBlock(url=f"https://example.com/{name}")]))
        for name in "aba"
    ]
    one, other, same = map(OPENAI.content, read)
    assert one != other
    assert one == same


SUMMARY = (
    "The user asked questions about the harbour, and was answered that ships came into the harbour."
)


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
async def test_responses_gets_a_models_summary(
    serve: Callable, history: list[Any], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """That API has another name for the output limit, and refuses the usual one."""
    served = serve()
    words = served.words
    monkeypatch.setattr(
        served, "words", lambda body: SUMMARY if "max_output_tokens" in body else words(body)
    )
    events: list[Any] = []
    wrapped = Compacter(on_compaction=events.append).wrap(llm("responses", served.url))
    if way == "sync":
        wrapped.chat(history)
    elif way == "async":
        await wrapped.achat(history)
    else:
        list(wrapped.stream_chat(history))
    assert [(event.strategy, event.fallback) for event in events] == [("summarize", False)]
    assert SUMMARY in str(served.accepted[-1])
    assert not any("max_tokens" in body for body in served.accepted)
