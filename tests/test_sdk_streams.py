"""Streams of the OpenAI SDK and of litellm, from a server that refuses at each place where
one can.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.conversations import Chat, talk

from compacter import Compacter
from compacter.testing import STYLES, ScriptedServer, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = "The answer in pieces."
# litellm knows a token limit by these words.
STYLE = replace(
    STYLES["openai"],
    text="This model's maximum context length is {limit} tokens, your messages are {input}.",
)


@pytest.fixture(params=["open", "first_event", "after_role", "error_chunk"])
def provider(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    with ScriptedServer(
        window=600, replies=ANSWER, style=STYLE, overflow_at=request.param
    ) as server:
        yield server


def words(chunks: list[Any]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def compacter() -> Compacter:
    return Compacter(summarizer=ScriptedSummarizer("They asked and answered."))


HOPELESS: list[Chat] = [{"role": "user", "content": "long " * 900}]


def test_the_sdks_stream_is_its_own(provider: ScriptedServer) -> None:
    import openai

    with provider.openai() as client:
        create: Any = compacter().wrap(client.chat.completions.create)
        with create(model="scripted", messages=talk(), stream=True) as stream:
            assert isinstance(stream, openai.Stream)
            assert stream.response.status_code == 200
            assert words(list(stream)) == ANSWER
        assert type(stream) is openai.Stream
        assert stream.response.is_closed
        asked = len(provider.model.requests)
        with pytest.raises(openai.APIError, match="maximum context length"):
            list(create(model="scripted", messages=HOPELESS, stream=True))

    assert len(provider.model.requests) == asked + 1


async def test_so_is_its_async_one(provider: ScriptedServer) -> None:
    import openai

    async with provider.async_openai() as client:
        create: Any = compacter().wrap(client.chat.completions.create)
        async with await create(model="scripted", messages=talk(), stream=True) as stream:
            assert isinstance(stream, openai.AsyncStream)
            assert words([chunk async for chunk in stream]) == ANSWER
        assert stream.response.is_closed


def litellm_options(provider: ScriptedServer) -> dict[str, Any]:
    return {
        "model": "openai/scripted",
        "api_base": f"{provider.url}/v1",
        "api_key": "none",
        "max_retries": 0,
    }


def test_litellms_stream_is_its_own(provider: ScriptedServer) -> None:
    import litellm
    from litellm.exceptions import ContextWindowExceededError

    completion: Any = compacter().wrap(litellm.completion)
    options = litellm_options(provider)
    stream = completion(messages=talk(), stream=True, **options)

    assert isinstance(stream, litellm.CustomStreamWrapper)
    assert words(list(stream)) == ANSWER
    assert type(stream) is litellm.CustomStreamWrapper
    with pytest.raises(ContextWindowExceededError) as caught:
        list(completion(messages=HOPELESS, stream=True, **options))
    assert "compacter gave up" in caught.value.__notes__[0]


def routed(provider: ScriptedServer) -> Any:
    """A litellm Router with one deployment."""
    from litellm.router import Router

    params = litellm_options(provider)
    return Router(model_list=[{"model_name": "mine", "litellm_params": params}], num_retries=0)


async def test_a_routers_methods_survive_a_token_limit(provider: ScriptedServer) -> None:
    router = routed(provider)
    middle = compacter()
    completion = middle.wrap(router.completion)
    acompletion = middle.wrap(router.acompletion)

    whole = completion(model="mine", messages=talk())
    awaited = await acompletion(model="mine", messages=[*talk(), *talk()[1:]])
    stream = completion(model="mine", messages=[*talk()[1:], *talk()[1:]], stream=True)
    astream = await acompletion(model="mine", messages=[talk()[0], *talk()[3:]], stream=True)

    assert whole.choices[0].message.content == awaited.choices[0].message.content == ANSWER
    assert words(list(stream)) == words([chunk async for chunk in astream]) == ANSWER
    assert middle.totals.rounds >= 3
