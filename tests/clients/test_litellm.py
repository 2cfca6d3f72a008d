"""litellm wrapped whole: the module, its Anthropic and Responses interfaces, and the Router."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import litellm
import pytest
from litellm import anthropic_interface
from litellm.exceptions import ContextWindowExceededError
from litellm.router import Router

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from tests.clients.loopback import Provider


@pytest.fixture
def options(openai_server: Provider) -> dict[str, Any]:
    return {
        "model": "openai/gpt-test",
        "api_base": openai_server.url + "/v1",
        "api_key": "none",
        "max_retries": 0,
    }


def text_of(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_the_modules_completion(
    options: dict[str, Any],
    compacter: Compacter,
    events: list[CompactionEvent],
    chat: list[Any],
    words: str,
    refusing: Any,
    openai_server: Provider,
) -> None:
    openai_server.refuse = refusing
    wrapped: Any = compacter.wrap(litellm)
    assert wrapped.completion(messages=chat, **options).choices[0].message.content == words
    assert len(events) == 1
    assert text_of(list(wrapped.completion(messages=chat, stream=True, **options))) == words
    assert len(events) == 1


async def test_the_modules_acompletion(
    options: dict[str, Any], compacter: Compacter, events: list[CompactionEvent], chat: list[Any], words: str
) -> None:
    wrapped: Any = compacter.wrap(litellm)
    reply = await wrapped.acompletion(messages=chat, **options)
    assert reply.choices[0].message.content == words
    assert len(events) == 1


async def test_the_modules_responses(
    options: dict[str, Any], compacter: Compacter, events: list[CompactionEvent], items: list[Any], words: str
) -> None:
    pytest.importorskip("mcp", reason="litellm.responses needs it")
    wrapped: Any = compacter.wrap(litellm)
    reply = wrapped.responses(input=items, **options)
    assert reply.output[0].content[0].text == words
    assert len(events) == 1
    other: Any = Compacter(max_summary_tokens=200, on_compaction=events.append).wrap(litellm)
    again = await other.aresponses(input=items, **options)
    assert again.output[0].content[0].text == words
    assert len(events) == 2


async def test_the_modules_anthropic_messages(
    anthropic_server: Provider,
    compacter: Compacter,
    events: list[CompactionEvent],
    blocks: list[Any],
    words: str,
) -> None:
    options: dict[str, Any] = {
        "model": "anthropic/claude-test",
        "api_base": anthropic_server.url,
        "api_key": "none",
        "max_tokens": 100,
    }
    module: Any = compacter.wrap(litellm)
    reply: Any = await module.anthropic.messages.acreate(messages=blocks, **options)
    assert reply["content"][0]["text"] == words
    assert len(events) == 1
    single: Any = Compacter(max_summary_tokens=200, on_compaction=events.append).wrap(
        anthropic_interface.messages.acreate
    )
    reply = await single(messages=blocks, **options)
    assert reply["content"][0]["text"] == words
    assert len(events) == 2


def test_the_module_is_left_alone_and_its_settings_are_shared(compacter: Compacter) -> None:
    before = litellm.completion
    wrapped: Any = compacter.wrap(litellm)
    assert litellm.completion is before
    assert wrapped.completion is not before
    assert dir(wrapped) == dir(litellm)
    assert wrapped.__name__ == "litellm"
    assert wrapped.get_model_info is litellm.get_model_info
    old = litellm.drop_params
    wrapped.drop_params = not old
    try:
        assert litellm.drop_params is not old
    finally:
        litellm.drop_params = old


@pytest.fixture
def router(options: dict[str, Any]) -> Router:
    return Router(model_list=[{"model_name": "ours", "litellm_params": options}], num_retries=0)


def test_the_router(
    router: Router, compacter: Compacter, events: list[CompactionEvent], chat: list[Any], words: str
) -> None:
    wrapped: Any = compacter.wrap(router)
    assert type(compacter.wrap(router)) is Router
    assert wrapped.completion("ours", chat).choices[0].message.content == words
    assert len(events) == 1
    reply = wrapped.chat.completions.create(messages=chat, model="ours")
    assert reply.choices[0].message.content == words
    assert len(events) == 1
    with pytest.raises(ContextWindowExceededError):
        router.completion("ours", chat)


async def test_the_routers_async_side(
    router: Router, compacter: Compacter, events: list[CompactionEvent], chat: list[Any], words: str
) -> None:
    wrapped: Any = compacter.wrap(router)
    reply = await wrapped.acompletion(model="ours", messages=chat)
    assert reply.choices[0].message.content == words
    stream = await wrapped.acompletion(model="ours", messages=chat, stream=True)
    assert text_of([chunk async for chunk in stream]) == words
    assert len(events) == 1


async def test_the_routers_responses(
    router: Router, compacter: Compacter, events: list[CompactionEvent], items: list[Any], words: str
) -> None:
    pytest.importorskip("mcp", reason="litellm.responses needs it")
    wrapped: Any = compacter.wrap(router)
    response = await wrapped.aresponses(model="ours", input=items)
    assert response.output[0].content[0].text == words
    assert len(events) == 1
