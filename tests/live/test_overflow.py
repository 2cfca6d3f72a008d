"""A token limit on a real server, through litellm and the OpenAI SDK, in each shape a call can
have.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import litellm
import openai
import pytest
from litellm.exceptions import ContextWindowExceededError
from litellm.router import Router
from tests.effort import every
from tests.live.garden import chat

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from embedded_model import EmbeddedModel

OPTIONS: dict[str, Any] = {"max_tokens": 8, "temperature": 0, "timeout": 600}


class Recorder:
    """The real function with a book beside it: what was asked for, and the usage of each whole
    reply.
    """

    def __init__(self) -> None:
        self.requests: list[list[Any]] = []
        self.usages: list[Any] = []

    def sync(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, messages: list[Any], **options: Any) -> Any:
            self.requests.append(list(messages))
            return self._reply(function(*args, messages=messages, **options))

        return recorded

    def asynchronous(
        self, function: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(function)
        async def recorded(*args: Any, messages: list[Any], **options: Any) -> Any:
            self.requests.append(list(messages))
            return self._reply(await function(*args, messages=messages, **options))

        return recorded

    def _reply(self, reply: Any) -> Any:
        if hasattr(reply, "usage") and hasattr(reply, "choices"):
            self.usages.append(reply.usage)
        return reply


def through_litellm(model: EmbeddedModel) -> dict[str, Any]:
    return {
        "model": f"openai/{model.name}",
        "api_base": model.api_base,
        "api_key": "none",
        **OPTIONS,
    }


def router(model: EmbeddedModel) -> Router:
    deployment = {"model_name": model.name, "litellm_params": through_litellm(model)}
    return Router(model_list=[deployment])


@pytest.fixture
def sync_client(model: EmbeddedModel) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=model.api_base, api_key="none", timeout=600) as client:
        yield client


@pytest.fixture
async def async_client(model: EmbeddedModel) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=model.api_base, api_key="none", timeout=600) as client:
        yield client


def text_of(reply: Any) -> str:
    return str(reply.choices[0].message.content)


def text_of_chunk(chunk: Any) -> str:
    return (chunk.choices[0].delta.content or "") if chunk.choices else ""


def check(
    answer: str,
    events: list[CompactionEvent],
    recorder: Recorder,
    model: EmbeddedModel,
    *,
    stream: bool,
) -> None:
    """The answer came, the caller's history did not change, and the event tells the server's own
    numbers.
    """
    history = chat()
    assert answer.strip()
    assert events
    first = events[0]
    assert (first.trigger, first.attempt) == ("token_limit", 1)
    assert (first.limit, first.requested) == (model.window, model.count_tokens(history))
    assert first.compacted_data_size < first.original_data_size
    assert first.summary
    # Every whole reply but the last is a summarizer's; the answer to a stream is not among them.
    summaries = recorder.usages if stream else recorder.usages[:-1]
    assert sum(usage.prompt_tokens for usage in summaries) == sum(
        event.input_tokens for event in events
    )
    assert sum(usage.completion_tokens for usage in summaries) == sum(
        event.output_tokens for event in events
    )
    assert recorder.requests[0] == history
    assert recorder.requests[-1][0] == history[0]
    assert recorder.requests[-1][-1] == history[-1]
    assert model.count_tokens(recorder.requests[-1]) < model.window


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


IDS = ["whole", "stream"]
SHAPES = pytest.mark.parametrize("stream", [False, True], ids=IDS)
WHOLE = pytest.mark.parametrize("stream", every(2, [False, True]), ids=every(2, IDS))
STREAM = pytest.mark.parametrize("stream", every(2, [True, False]), ids=every(2, IDS[::-1]))
"""Each library, sync and async, in either shape, by pairs: a case takes a second of a model."""


@SHAPES
def test_litellm_completion(
    model: EmbeddedModel,
    summarizing: Compacter,
    events: list[CompactionEvent],
    recorder: Recorder,
    stream: bool,
) -> None:
    completion = summarizing.wrap(recorder.sync(litellm.completion))
    history = chat()
    reply = completion(messages=history, stream=stream, **through_litellm(model))
    answer = "".join(map(text_of_chunk, reply)) if stream else text_of(reply)
    assert history == chat()
    check(answer, events, recorder, model, stream=stream)


@STREAM
async def test_litellm_acompletion(
    model: EmbeddedModel,
    summarizing: Compacter,
    events: list[CompactionEvent],
    recorder: Recorder,
    stream: bool,
) -> None:
    completion = summarizing.wrap(recorder.asynchronous(litellm.acompletion))
    history = chat()
    reply = await completion(messages=history, stream=stream, **through_litellm(model))
    answer = "".join([text_of_chunk(chunk) async for chunk in reply]) if stream else text_of(reply)
    assert history == chat()
    check(answer, events, recorder, model, stream=stream)


@WHOLE
def test_litellm_router(
    model: EmbeddedModel,
    summarizing: Compacter,
    events: list[CompactionEvent],
    recorder: Recorder,
    stream: bool,
) -> None:
    completion = summarizing.wrap(recorder.sync(router(model).completion))
    reply = completion(model=model.name, messages=chat(), stream=stream)
    answer = "".join(map(text_of_chunk, reply)) if stream else text_of(reply)
    check(answer, events, recorder, model, stream=stream)


@STREAM
def test_openai_create(
    model: EmbeddedModel,
    sync_client: openai.OpenAI,
    summarizing: Compacter,
    events: list[CompactionEvent],
    recorder: Recorder,
    stream: bool,
) -> None:
    create = summarizing.wrap(recorder.sync(sync_client.chat.completions.create))
    history = chat()
    reply = create(model=model.name, messages=history, stream=stream, **OPTIONS)
    answer = "".join(map(text_of_chunk, reply)) if stream else text_of(reply)
    assert history == chat()
    check(answer, events, recorder, model, stream=stream)


@WHOLE
async def test_openai_async_create(
    model: EmbeddedModel,
    async_client: openai.AsyncOpenAI,
    summarizing: Compacter,
    events: list[CompactionEvent],
    recorder: Recorder,
    stream: bool,
) -> None:
    create = summarizing.wrap(recorder.asynchronous(async_client.chat.completions.create))
    history = chat()
    reply = await create(model=model.name, messages=history, stream=stream, **OPTIONS)
    answer = "".join([text_of_chunk(chunk) async for chunk in reply]) if stream else text_of(reply)
    assert history == chat()
    check(answer, events, recorder, model, stream=stream)


def test_a_streams_own_object_is_handed_out(
    model: EmbeddedModel,
    sync_client: openai.OpenAI,
    summarizing: Compacter,
    events: list[CompactionEvent],
) -> None:
    create = summarizing.wrap(sync_client.chat.completions.create)
    history: Any = chat()
    stream = create(model=model.name, messages=history, stream=True, **OPTIONS)
    assert isinstance(stream, openai.Stream)
    with stream:
        assert any(map(text_of_chunk, stream))
    assert stream.response.status_code == 200
    assert len(events) >= 1


def test_a_call_that_fits_is_one_request(model: EmbeddedModel, recorder: Recorder) -> None:
    events: list[CompactionEvent] = []
    completion = Compacter(on_compaction=events.append).wrap(recorder.sync(litellm.completion))
    reply = completion(messages=chat()[-1:], **through_litellm(model))
    assert text_of(reply)
    assert (len(recorder.requests), events) == (1, [])


def test_the_second_call_with_the_full_history_reuses_the_summary(
    model: EmbeddedModel, summarizing: Compacter, events: list[CompactionEvent], recorder: Recorder
) -> None:
    completion = summarizing.wrap(recorder.sync(litellm.completion))
    history = chat()
    answer = text_of(completion(messages=history, **through_litellm(model)))
    folded = len(events)
    asked = len(recorder.requests)
    history += [
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "And one more?"},
    ]
    assert text_of(completion(messages=history, **through_litellm(model)))
    assert len(events) == folded
    assert len(recorder.requests) == asked + 1


def test_giving_up_raises_litellms_own_exception(model: EmbeddedModel) -> None:
    completion = Compacter(max_retries=0).wrap(litellm.completion)
    with pytest.raises(ContextWindowExceededError):
        completion(messages=chat(), **through_litellm(model))
