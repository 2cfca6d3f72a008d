"""Events that hooks get, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError, token_limit_error

if TYPE_CHECKING:
    from tests.promises.conftest import MakeStage, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def test_a_compaction_is_one_event(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, recall=None)
    history = talk.turns(12)

    scene.ask(history)

    (event,) = scene.compactions
    assert len(scene.sent) == event.messages_after < event.messages_before == len(history)
    assert event.compacted_data_size == sum(len(message["content"]) for message in scene.sent)
    assert len(event.discarded) == event.messages_before - event.messages_after + 1


def test_hooks_fire_once_a_round(stage: MakeStage, talk: type[Talk]) -> None:
    """Also when the retry then fails."""
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
