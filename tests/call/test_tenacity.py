"""Undocumented behaviour of tenacity on which the flow relies: a state that stops are asked
with.
"""

from __future__ import annotations

import pytest
from tenacity import RetryCallState
from tests.conversations import talk

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError


def test_a_stop_sees_the_providers_error() -> None:
    seen: list[BaseException | None] = []

    def stop(state: RetryCallState) -> bool:
        assert state.outcome is not None
        seen.append(state.outcome.exception())
        return True

    with pytest.raises(TokenLimitError) as refused:
        Compacter(max_retries=stop).wrap(ScriptedModel(window=100).completion)("m", talk())
    assert seen == [refused.value]


def test_a_stop_that_raises_is_named_in_the_note_on_the_providers_error() -> None:
    def stop(state: RetryCallState) -> bool:
        raise ZeroDivisionError

    with pytest.raises(TokenLimitError) as refused:
        Compacter(max_retries=stop).wrap(ScriptedModel(window=100).completion)("m", talk())
    assert refused.value.__notes__ == [
        ("compacter could not compact: max_retries raised ZeroDivisionError")
    ]


async def test_a_large_history_gets_all_its_rounds_in_threads() -> None:
    history = [
        {"role": ("user", "assistant")[turn % 2], "content": f"{turn} " + "so it goes " * 700}
        for turn in range(41)
    ]
    model = ScriptedModel(replies="fine", window=30_000, style="bedrock")
    compacter = Compacter(
        summarizer=ScriptedSummarizer("They talked."), compact_ratio=0.4, max_retries=5, recall=None
    )
    reply = await compacter.wrap(model.acompletion)("a-model", history)
    assert reply["choices"][0]["message"]["content"] == "fine"
    assert compacter.totals.rounds > 1
