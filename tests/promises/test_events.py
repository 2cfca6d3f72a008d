"""What hooks are given, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError, token_limit_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.promises.conftest import Chat, MakeStage, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def test_what_does_not_fit_is_fewer_messages_and_one_event(
    stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(window=500, recall=None)
    history = talk.turns(12)

    scene.ask(history)

    (event,) = scene.compactions
    assert len(scene.sent) == event.messages_after < event.messages_before == len(history)
    assert event.compacted_data_size == sum(len(message["content"]) for message in scene.sent)
    assert len(event.discarded) == event.messages_before - event.messages_after + 1


def test_the_hook_gets_sizes_and_the_summarizers_own_tokens(
    stage: MakeStage, talk: type[Talk]
) -> None:
    usage = {"prompt_tokens": 321, "completion_tokens": 23, "total_tokens": 344}
    summarizer = ScriptedSummarizer("They spoke of the weather.", returns="completion", usage=usage)
    scene = stage(window=500, summarizer=summarizer)

    scene.ask(talk.turns(12))

    (event,) = scene.compactions
    assert event.attempt == 1
    assert 0 < event.compacted_data_size < event.original_data_size
    assert event.summarizer_calls == len(summarizer.requests)
    assert event.input_tokens == 321 * event.summarizer_calls
    assert event.output_tokens == 23 * event.summarizer_calls
    assert event.summary == "They spoke of the weather."


def test_the_hook_fires_after_the_summary_and_before_the_retry(talk: type[Talk]) -> None:
    order: list[str] = []
    model = ScriptedModel(window=500)

    def completion(messages: Sequence[Chat]) -> Any:
        order.append("call")
        return model.completion("scripted", messages)

    def summarizer(messages: Sequence[Chat]) -> str:
        order.append("summary")
        return "They spoke of the weather."

    compacter = Compacter(summarizer=summarizer, on_compaction=lambda event: order.append("hook"))
    compacter.wrap(completion)(messages=talk.turns(12))

    assert order[0] == "call"
    assert set(order[1:-2]) == {"summary"}
    assert order[-2:] == ["hook", "call"]


def test_the_hook_fires_once_a_round_also_when_the_retry_then_fails(
    stage: MakeStage, talk: type[Talk]
) -> None:
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    scene = stage(
        model=ScriptedModel(window=10**9, replies=refusal), max_retries=2, compact_ratio=0.3
    )

    with pytest.raises(TokenLimitError):
        scene.ask(talk.turns(40))

    assert [event.attempt for event in scene.compactions] == [1, 2]


def test_the_hook_never_fires_when_nothing_was_done(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=100)

    with pytest.raises(TokenLimitError):
        scene.ask([talk.user(talk.text("only", 2_000))])

    assert not scene.compactions
