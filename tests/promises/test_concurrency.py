"""Streams, cancellation, and the provider's cache of prompts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.promises.conftest import Chat, MakeStage, Talk


# entelix
async def test_cancellation_reaches_the_summarizer(talk: type[Talk]) -> None:
    begun = asyncio.Event()
    cancelled = asyncio.Event()

    async def summarizer(messages: Sequence[Chat]) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    completion: Callable[..., Any] = Compacter(summarizer=summarizer).wrap(
        ScriptedModel(window=500).acompletion
    )
    task = asyncio.create_task(completion("m", talk.turns(12)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert cancelled.is_set()


# gollem
def test_a_stream_that_is_too_long_is_opened_twice_and_read_once(
    stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(model=ScriptedModel(window=500, replies="hello there", chunk_size=3))
    completion = scene.compacter.wrap(scene.model.completion)

    stream = completion(model="scripted", messages=talk.turns(12), stream=True)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in stream)

    assert text == "hello there"
    assert [request.refused for request in scene.model.requests] == [True, False]
    assert len(scene.model.streams) == 1


# users of other libraries report
def test_the_prompt_cache_stays_warm(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=2_000)
    history = [talk.system()]

    for number in range(120):
        history.append(talk.user(talk.text(f"question {number}", 150)))
        scene.ask(history)
        history.append(talk.answer(talk.text(f"answer {number}", 150)))

    # Each request but those around a compaction begins with the whole one before it.
    cold = 0
    for earlier, later in zip(scene.model.requests, scene.model.requests[1:], strict=False):
        cold += list(later.messages[: len(earlier.messages)]) != list(earlier.messages)
    assert cold <= 2 * len(scene.compactions)
    assert len(scene.compactions) < 30
